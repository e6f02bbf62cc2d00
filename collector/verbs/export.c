/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c: slotprobe export: the records of a run, one JSON object a line, or its slot events as CSV.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "print/print.h"
#include "print/progress.h"
#include "print/record_json.h"
#include "read/log.h"
#include "read/map.h"
#include "read/run.h"

#define EXPORT_SCHEMA 1

/* ---- JSON lines ---- */

static void line(FILE *f, json_t *object)
{
	json_dumpf(object, f, JSON_COMPACT);
	fputc('\n', f);
	json_decref(object);
}

static void jsonl_head(FILE *f, const struct run *run)
{
	line(f, json_pack("{s:s, s:i, s:s, s:o, s:o}", "type", "run", "schema_version", EXPORT_SCHEMA, "tool",
			  "slotprobe " SLOTPROBE_VERSION, "path", json_text(run->path), "manifest",
			  json_escaped(run->manifest.root)));
}

static void jsonl_process(FILE *f, const struct run_process *process, struct log *log)
{
	const struct log_record *rec;
	char name[128];

	snprintf(name, sizeof(name), "%s.%" PRIu64 ".%" PRIu64, safe(process->host), process->pid, process->starttime);
	while (log_next(log, &rec) > 0) {
		json_t *object = record_json(rec);

		json_object_set_new(object, "process", json_string(name));
		line(f, object);
		progress("exporting", log->chunk_offset, log->bytes);
	}
}

/* ---- CSV: one row an event, with what was measured of its slot ---- */

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

static void csv_head(FILE *f)
{
	fputs("host,pid,starttime,rank,event,kind,t_ns,pool,slot,claimed_len,key_len,key,src,step,launches,pool_"
	      "launches,outcome,"
	      "rollup,absmax,nan,inf\n",
	      f);
}

static void csv_row(FILE *f, const struct run_process *p, const struct log_event *e, const struct measured *m,
		    uint32_t outcome)
{
	int64_t slot = m && e->slot == LOG_NO_SLOT ? m->slot : e->slot;

	/* Host and rank are the only texts: quoted, quotes doubled. */
	fprintf(f, "\"%s\",%" PRIu64 ",%" PRIu64 ",\"", safe(p->host), p->pid, p->starttime);
	for (const char *c = safe(p->rank); *c; c++)
		fputs(*c == '"' ? "\"\"" : (char[]) { *c, 0 }, f);
	fprintf(f, "\",%" PRIu64 ",%s,%" PRIu64 ",%d,", e->id, event_kind_name(e->kind), e->t_ns, e->pool);
	if (slot != LOG_NO_SLOT)
		fprintf(f, "%" PRId64, slot);
	fprintf(f, ",%" PRId64 ",%" PRId64 ",0x%016" PRIx64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s,",
		e->claimed_len, e->key_len, e->key, e->src, e->step, e->launches, e->pool_launches,
		outcome < CTR_OUTCOME_COUNT ? ctr_outcome_label(outcome) : "in_flight");
	/* Unmeasured cells are empty. */
	if (m && outcome == CTR_COMMITTED)
		fprintf(f, "0x%016" PRIx64 ",%.17g,%" PRIu64 ",%" PRIu64 "\n", m->rollup, m->absmax, m->nan, m->inf);
	else
		fputs(",,,\n", f);
}

static bool csv_await(struct pending *pending, const struct log_event *e)
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

static void csv_fingerprint(FILE *f, const struct run_process *p, struct pending *pending, struct measured *m,
			    const struct log_fingerprint *part)
{
	uint64_t i = map_get(&pending->by_id, part->event);

	if (part->role != LOG_ROLE_SUBJECT)
		return;
	measure_add(m, part); /* the parts of one slot come one after the other */
	if ((uint64_t)part->first_plane + part->n_planes < part->total_planes && part->outcome == CTR_COMMITTED)
		return;
	if (i >= pending->n || !pending->list || !pending->list[i].id) /* not announced, or done */
		return;
	csv_row(f, p, &pending->list[i], m, part->outcome);
	pending->list[i].id = 0;
}

/* -1: out of memory. */
static int csv_process(FILE *f, const struct run_process *p, struct log *log)
{
	struct pending pending = { 0 };
	struct measured measured = { 0 };
	const struct log_record *rec;
	bool memory = true;

	while (memory && log_next(log, &rec) > 0) {
		const struct log_event *e = (const void *)rec;

		if (rec->type == LOG_FINGERPRINT)
			csv_fingerprint(f, p, &pending, &measured, (const void *)rec);
		else if (rec->type == LOG_EVENT && e->has_fingerprint && e->outcome == CTR_COMMITTED && e->id)
			memory = csv_await(&pending, e);
		else if (rec->type == LOG_EVENT)
			csv_row(f, p, e, NULL, e->outcome);
		progress("exporting", log->chunk_offset, log->bytes);
	}
	for (size_t i = 0; i < pending.n; i++) /* announced, and never seen */
		if (pending.list[i].id)
			csv_row(f, p, &pending.list[i], NULL, CTR_OUTCOME_COUNT);
	free(pending.list);
	map_free(&pending.by_id);
	return memory ? 0 : -1;
}

/* ---- the verb ---- */

/* Before -o FILE is emptied: every log must be one. */
static int check_logs(const struct run *run, struct error *error)
{
	for (size_t i = 0; i < run->n_processes; i++) {
		struct log log;

		if (!run->processes[i].log_path)
			continue;
		if (log_open(&log, run->processes[i].log_path, error))
			return -1;
		log_close(&log);
	}
	return 0;
}

static int export_logs(FILE *f, const struct run *run, bool csv, size_t *damaged, struct error *error)
{
	for (size_t i = 0; i < run->n_processes; i++) {
		const struct run_process *process = &run->processes[i];
		struct log log;
		int failed = 0;

		if (!process->log_path) {
			++*damaged;
			continue;
		}
		if (log_open(&log, process->log_path, error))
			return -1;
		if (csv)
			failed = csv_process(f, process, &log);
		else
			jsonl_process(f, process, &log);
		progress_end();
		*damaged += log_is_damaged(&log.damage);
		log_close(&log);
		if (failed) {
			error_set(error, "out of memory");
			return -1;
		}
	}
	return 0;
}

static int export_run(const struct options *o, const struct run *run, struct error *error)
{
	bool csv = !strcmp(options_text(o, "format"), "csv");
	struct output output;
	size_t damaged = 0;
	int failed;

	if (check_logs(run, error) || output_open(&output, options_text(o, "output"), error))
		return EXIT_TROUBLE;
	if (csv)
		csv_head(output.f);
	else
		jsonl_head(output.f, run);
	failed = export_logs(output.f, run, csv, &damaged, error);
	if (output_close(&output, failed ? NULL : error) || failed)
		return EXIT_TROUBLE;
	if (damaged)
		complain("export", "'%s' is readable with loss: %s damaged or missing; 'slotprobe verify' says more",
			 run->path, amount_of(damaged, "log", "logs"));
	return 0;
}

int cmd_export(int argc, char **argv)
{
	struct options o;
	struct error error;
	struct run run;
	int status = options_parse(VERB_export, argc, argv, &o);

	if (status >= 0)
		return status;
	if (!options_given(&o, "format"))
		status = options_usage(VERB_export, "--format is missing: jsonl or csv");
	else if (!strcmp(options_text(&o, "format"), "perfetto"))
		status = options_usage(VERB_export, "--format perfetto is not built yet: use jsonl or csv");
	if (status < 0) {
		status = run_open(&run, o.operands[0], &error) ? EXIT_TROUBLE : export_run(&o, &run, &error);
		if (status)
			complain("export", "%s", error.text);
		run_close(&run);
	}
	options_free(&o);
	return status;
}
