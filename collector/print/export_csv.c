/* SPDX-License-Identifier: Apache-2.0
 *
 * export_csv.c: a run as CSV: one row an event, with what was measured of its slot.
 *
 * Columns are flat and keep their names, order and types: new ones come at the end. docs/fleet.md gives the types.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "print/export.h"
#include "print/progress.h"
#include "print/record_json.h"
#include "read/log.h"
#include "read/map.h"

#define POOLS_MAX 4096u

/* ---- names of pools, by the ids that events give ---- */

struct pool_names {
	struct pool_named {
		int32_t id;
		char name[sizeof(((struct log_pool *)0)->name)];
	} * list;
	size_t n, room;
};

static bool pool_note(struct pool_names *pools, const struct log_pool *pool)
{
	if (pools->n >= POOLS_MAX)
		return true;
	if (!array_room(&pools->list, &pools->room, pools->n, sizeof *pools->list))
		return false;
	pools->list[pools->n].id = pool->pool;
	memcpy(pools->list[pools->n].name, pool->name, sizeof pool->name);
	pools->n++;
	return true;
}

/* The latest of this id; NULL: not announced yet. */
static const char *pool_name(const struct pool_names *pools, int32_t id)
{
	for (size_t i = pools->n; i-- > 0;) {
		if (pools->list[i].id == id)
			return pools->list[i].name;
	}
	return NULL;
}

/* ---- rows ---- */

struct pending {
	struct log_event *list; /* events whose fingerprint has not come */
	size_t n, room;
	struct map by_id; /* index in list; list[i].id == 0: done */
};

/* Sums over the parts of the slot's fingerprint. */
struct measured {
	uint64_t event;
	int64_t slot;
	uint64_t rollup, nan, inf;
	double absmax;
};

struct csv {
	FILE *f;
	const struct run *run;
	const struct run_process *process;
	struct pool_names pools;
	struct pending pending;
};

static void head(FILE *f)
{
	fputs("host,pid,starttime,rank,event,kind,t_ns,pool,slot,claimed_len,key_len,key,src,step,launches,pool_"
	      "launches,"
	      "outcome,rollup,absmax,nan,inf,run,arm,life,pool_name,callsite,tid\n",
	      f);
}

/* Texts are quoted, quotes doubled; an absent one is an empty cell, which is not the same as an empty text. */
static void text(FILE *f, const char *value)
{
	if (!value || !*value)
		return;
	fputc('"', f);
	for (const char *c = safe(value); *c; c++)
		fputs(*c == '"' ? "\"\"" : (char[]) { *c, 0 }, f);
	fputc('"', f);
}

/* Unmeasured cells are empty. */
static void measures(FILE *f, const struct measured *m)
{
	if (!m) {
		fputs(",,,,", f);
		return;
	}
	fprintf(f, "0x%016" PRIx64, m->rollup);
	if (isinf(m->absmax))
		fputs(",Inf,", f);
	else
		fprintf(f, ",%.17g,", m->absmax);
	fprintf(f, "%" PRIu64 ",%" PRIu64 ",", m->nan, m->inf);
}

static void row(struct csv *csv, const struct log_event *e, const struct measured *m, uint32_t outcome)
{
	const struct run_process *p = csv->process;
	int64_t slot = m && e->slot == LOG_NO_SLOT ? m->slot : e->slot;
	FILE *f = csv->f;

	text(f, p->host);
	fprintf(f, ",%" PRIu64 ",%" PRIu64 ",", p->pid, p->starttime);
	text(f, p->rank);
	fprintf(f, ",%" PRIu64 ",%s,%" PRIu64 ",%d,", e->id, event_kind_name(e->kind), e->t_ns, e->pool);
	if (slot != LOG_NO_SLOT)
		fprintf(f, "%" PRId64, slot);
	fprintf(f, ",%" PRId64 ",%" PRId64 ",", e->claimed_len, e->key_len);
	if (e->key)
		fprintf(f, "0x%016" PRIx64, e->key);
	fputc(',', f);
	if (e->src != LOG_NO_SLOT)
		fprintf(f, "%" PRId64, e->src);
	fprintf(f, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s,", e->step, e->launches, e->pool_launches,
		outcome < CTR_OUTCOME_COUNT ? ctr_outcome_label(outcome) : "in_flight");
	measures(f, m && outcome == CTR_COMMITTED ? m : NULL);
	text(f, csv->run->path);
	fputc(',', f);
	text(f, csv->run->manifest.arm);
	fprintf(f, ",%u,", p->life);
	text(f, pool_name(&csv->pools, e->pool));
	fprintf(f, ",%" PRIu32 ",%" PRIu32 "\n", e->callsite, e->tid);
}

static bool await(struct pending *pending, const struct log_event *e)
{
	if (!array_room(&pending->list, &pending->room, pending->n, sizeof(*pending->list)))
		return false;
	pending->list[pending->n] = *e;
	return map_set(&pending->by_id, e->id, pending->n++);
}

static void measure_add(struct measured *m, const struct log_fingerprint *part)
{
	if (!part->first_plane)
		*m = (struct measured) { 0 };
	m->slot = part->slot;
	m->rollup = part->rollup;
	for (uint32_t i = 0; i < part->n_planes; i++) {
		m->nan += part->plane[i].nan;
		m->inf += part->plane[i].inf;
		m->absmax = fmax(m->absmax, part->plane[i].absmax);
	}
}

static void fingerprint(struct csv *csv, struct measured *m, const struct log_fingerprint *part)
{
	struct pending *pending = &csv->pending;
	uint64_t i = map_get(&pending->by_id, part->event);

	if (part->role != LOG_ROLE_SUBJECT)
		return;
	measure_add(m, part); /* the parts of one slot come one after the other */
	if ((uint64_t)part->first_plane + part->n_planes < part->total_planes && part->outcome == CTR_COMMITTED)
		return;
	if (i >= pending->n || !pending->list || !pending->list[i].id) /* not announced, or done */
		return;
	row(csv, &pending->list[i], m, part->outcome);
	pending->list[i].id = 0;
}

/* false: out of memory. */
static bool records(struct csv *csv, struct log *log)
{
	struct measured measured = { 0 };
	const struct log_record *rec;
	bool memory = true;

	while (memory && log_next(log, &rec) > 0) {
		const struct log_event *e = (const void *)rec;

		if (rec->type == LOG_POOL)
			memory = pool_note(&csv->pools, (const void *)rec);
		else if (rec->type == LOG_FINGERPRINT)
			fingerprint(csv, &measured, (const void *)rec);
		else if (rec->type == LOG_EVENT && e->has_fingerprint && e->outcome == CTR_COMMITTED && e->id)
			memory = await(&csv->pending, e);
		else if (rec->type == LOG_EVENT)
			row(csv, e, NULL, e->outcome);
		progress("exporting", log->chunk_offset, log->bytes);
	}
	progress_end();
	for (size_t i = 0; i < csv->pending.n; i++) /* announced, and never seen */
		if (csv->pending.list[i].id)
			row(csv, &csv->pending.list[i], NULL, CTR_OUTCOME_COUNT);
	return memory;
}

static int process(FILE *f, const struct run *run, const struct run_process *p, size_t *damaged, struct error *err)
{
	struct csv csv = { .f = f, .run = run, .process = p };
	struct log log;
	bool memory;

	if (log_open(&log, p->log_path, err))
		return -1;
	memory = records(&csv, &log);
	*damaged += log_is_damaged(&log.damage) || run_log_is_short(p, log.records + log.damage.records_missing);
	log_close(&log);
	free(csv.pending.list);
	map_free(&csv.pending.by_id);
	free(csv.pools.list);
	if (!memory)
		error_set(err, "out of memory");
	return memory ? 0 : -1;
}

int export_csv(FILE *f, const struct run *run, size_t *damaged, struct error *err)
{
	head(f);
	for (size_t i = 0; i < run->n_processes; i++) {
		if (!run->processes[i].log_path)
			++*damaged;
		else if (process(f, run, &run->processes[i], damaged, err))
			return -1;
	}
	return 0;
}
