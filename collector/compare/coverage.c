/* SPDX-License-Identifier: Apache-2.0
 *
 * coverage.c: reads the counters pages and the logs' damage as reasons. What was not measured must never look measured:
 * what cannot be read is never taken for zero.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "compare/coverage.h"
#include "print/print.h"
#include "read/map.h"

struct coverage_sum coverage_sum(const struct model *model, const char *probe)
{
	struct coverage_sum sum = { 0 };

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct ctr_snapshot *page = model->process[i].from->counters;
		const struct ctr_values *row = page ? ctr_find(page, probe) : NULL;

		if (!row)
			continue;
		sum.processes++;
		sum.attempted += row->attempted;
		sum.in_flight += row->in_flight;
		for (unsigned o = 0; o < CTR_OUTCOME_COUNT; o++)
			sum.outcome[o] += row->outcome[o];
		for (unsigned g = 0; g <= CTR_IN_ERRORS; g++)
			sum.group[g] += row->group[g];
	}
	return sum;
}

bool coverage_plain(const struct model *model, const char *name, uint64_t *value)
{
	struct coverage_sum sum = coverage_sum(model, name);

	*value = sum.outcome[0];
	return sum.processes > 0;
}

const char **coverage_probes(const struct model *models, size_t n_models, size_t *n)
{
	const char **list = NULL;
	size_t room = 0;

	*n = 0;
	for (size_t m = 0; m < n_models; m++) {
		for (size_t i = 0; i < models[m].n_processes; i++) {
			const struct ctr_snapshot *page = models[m].process[i].from->counters;

			for (uint32_t r = 0; page && r < page->n_rows; r++) {
				size_t k = 0;

				if (page->row[r].kind != CTR_PROBE)
					continue;
				while (k < *n && strcmp(list[k], page->row[r].name) != 0)
					k++;
				if (k < *n || !array_room(&list, &room, *n, sizeof *list))
					continue;
				list[(*n)++] = page->row[r].name;
			}
		}
	}
	return list;
}

/* ---- one process ---- */

struct judge {
	const struct model *model;
	const struct coverage_ask *ask;
	struct reasons *reasons;
	char where[160]; /* "run A, host.123 (tp0.pp0.dp0)" */
};

static void name_place(struct judge *j, const struct model_process *p)
{
	snprintf(j->where, sizeof j->where, "%s%s%sprocess %llu (%s)", *j->ask->run ? "run " : "", j->ask->run,
		 *j->ask->run ? ", " : "", (unsigned long long)p->from->pid, safe(p->rank));
}

static const char *run_name(const struct judge *j)
{
	static char text[32];

	snprintf(text, sizeof text, *j->ask->run ? "run %s" : "this run%s", j->ask->run);
	return text;
}

/* Whole fingerprints, or bare records, of one kind that the log holds. */
static uint64_t committed_in_log(const struct model_process *p, uint32_t kind)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_events; i++) {
		const struct model_event *e = &p->event[i];

		if (e->kind == kind && e->outcome == CTR_COMMITTED)
			n += !e->wants_print || model_measured(p, e);
	}
	return n;
}

static void list_outcomes(const struct ctr_values *row, enum ctr_group group, char *out, size_t size)
{
	size_t n = 0;

	*out = 0;
	for (unsigned o = 0; o < CTR_OUTCOME_COUNT && n < size; o++) {
		if (ctr_outcome_group(o) == group && row->outcome[o])
			n += (size_t)snprintf(out + n, size - n, "%s%s %llu", n ? ", " : "", ctr_outcome_label(o),
					      (unsigned long long)row->outcome[o]);
	}
}

static void judge_losses(struct judge *j, const struct ctr_values *row, enum ctr_group group, enum reason_code code,
			 const char *word)
{
	const struct coverage_excuse *excuse = j->ask->excuse;
	char list[256];

	if (row->group[group] <= (excuse ? excuse->lost[group] : 0))
		return;
	list_outcomes(row, group, list, sizeof list);
	reasons_add(j->reasons, code, "%s: %s %s %llu (%s)", j->where, row->name, word,
		    (unsigned long long)row->group[group], list);
}

static void judge_row(struct judge *j, const struct model_process *p, const struct ctr_values *row, uint32_t kind)
{
	uint64_t held = committed_in_log(p, kind), said = row->outcome[CTR_COMMITTED];

	judge_losses(j, row, CTR_IN_SKIPPED, REASON_skipped_needed, "skipped");
	judge_losses(j, row, CTR_IN_DROPPED, REASON_records_dropped, "dropped");
	judge_losses(j, row, CTR_IN_ERRORS, REASON_skipped_needed, "errors");
	if (row->in_flight)
		reasons_add(j->reasons, REASON_in_flight_lost, "%s: %llu of %s %s", j->where,
			    (unsigned long long)row->in_flight, row->name,
			    p->from->state == PROCESS_RUNNING ? "are still in flight; wait for the run to end"
							      : "never came back");
	if (!row->reconciled)
		reasons_add(j->reasons, REASON_counters_unreconciled, "%s: %s", j->where, row->name);
	if (held >= said || !p->has_log)
		return;
	reasons_add(j->reasons, REASON_log_counters_disagree,
		    "%s: the log holds %llu of the %llu %s that were committed", j->where, (unsigned long long)held,
		    (unsigned long long)said, row->name);
}

static void judge_log(struct judge *j, const struct model_process *p)
{
	const struct log_damage *d = &p->damage;

	/* The tail of a log that is being written may be a chunk on its way; the counters say what is committed. */
	if (d->torn_bytes && p->from->state != PROCESS_RUNNING)
		reasons_add(j->reasons, REASON_log_truncated, "%s: its last %llu bytes are no whole chunk", j->where,
			    (unsigned long long)d->torn_bytes);
	if ((d->bad_header && !d->torn_bytes) || d->bad_chunks || d->seq_gaps || d->bad_records || d->unknown_records)
		reasons_add(
			j->reasons, REASON_log_damaged,
			"%s: %s%llu bad chunks, %llu gaps, %llu records lost, %llu senseless and %llu unknown records",
			j->where, d->bad_header ? "a bad file header, " : "", (unsigned long long)d->bad_chunks,
			(unsigned long long)d->seq_gaps, (unsigned long long)d->records_missing,
			(unsigned long long)d->bad_records, (unsigned long long)d->unknown_records);
	if (p->contradictions)
		reasons_add(j->reasons, REASON_log_damaged, "%s: %llu records contradict each other", j->where,
			    (unsigned long long)p->contradictions);
	for (size_t i = 0; i < p->n_pools; i++) {
		if (p->pool[i].n_known != p->pool[i].n_planes)
			reasons_add(j->reasons, REASON_log_damaged, "%s: of pool %s only %u of %u planes are described",
				    j->where, safe(p->pool[i].name), p->pool[i].n_known, p->pool[i].n_planes);
	}
}

static void judge_gone_log(struct judge *j, const struct model_process *p)
{
	const struct ctr_snapshot *page = p->from->counters;

	if (!page || (!page->records_written && !page->row[CTR_ROW_DONATE].attempted))
		return;
	reasons_add(j->reasons, REASON_log_truncated, "%s: its log is gone; its page tells of %llu records", j->where,
		    (unsigned long long)page->records_written);
}

static void judge_events_without_pool(struct judge *j, const struct model_process *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_events; i++)
		n += p->event[i].pool == MODEL_NONE;
	if (n)
		reasons_add(j->reasons, REASON_log_damaged,
			    "%s: %llu events name a pool that the log does not describe", j->where,
			    (unsigned long long)n);
}

static void judge_hooks(struct judge *j, const struct model_process *p)
{
	const struct ctr_snapshot *page = p->from->counters;
	uint64_t unrouted = page->row[CTR_ROW_UNROUTED].outcome[0];
	uint64_t unseen = page->row[CTR_ROW_RUNTIME_UNROUTED].outcome[0];

	if (unrouted)
		reasons_add(j->reasons, REASON_unrouted_entry, "%s: %llu look-ups%s%s", j->where,
			    (unsigned long long)unrouted, p->unrouted ? ", the first of " : "",
			    p->unrouted ? safe(p->unrouted_name) : "");
	if (unseen)
		reasons_add(j->reasons, REASON_unrouted_entry,
			    "%s: %llu cudaGraphLaunch calls in which no driver launch was seen", j->where,
			    (unsigned long long)unseen);
}

/* The rows themselves are under no checksum: a page that does not name them as it must is not believed. */
static bool core_rows_are_there(const struct ctr_snapshot *page)
{
	static const char *const name[CTR_CORE_ROW_COUNT] = {
#define CORE_NAME(id, text, kind, meaning) text,
		CTR_CORE_ROWS(CORE_NAME)
#undef CORE_NAME
	};

	for (uint32_t i = 0; i < CTR_CORE_ROW_COUNT; i++) {
		if (i >= page->n_rows || strcmp(page->row[i].name, name[i]) != 0)
			return false;
	}
	return true;
}

static void judge_process(struct judge *j, const struct model_process *p)
{
	static const struct {
		enum ctr_core_row row;
		enum log_event_kind kind;
	} slot_rows[] = { { CTR_ROW_ALLOC, LOG_EV_ALLOC },
			  { CTR_ROW_CLEAR, LOG_EV_CLEAR },
			  { CTR_ROW_COPY, LOG_EV_COPY },
			  { CTR_ROW_DISCARD, LOG_EV_DISCARD } };
	const struct ctr_snapshot *page = p->from->counters;

	name_place(j, p);
	judge_log(j, p);
	judge_events_without_pool(j, p);
	if (!p->has_log)
		judge_gone_log(j, p);
	if (!page) {
		reasons_add(j->reasons, REASON_counters_damaged, "%s: %s", j->where,
			    p->from->counters_problem ? p->from->counters_problem : "it is not there");
		return;
	}
	if (!core_rows_are_there(page)) {
		reasons_add(j->reasons, REASON_counters_damaged, "%s: rows that every page has are not there",
			    j->where);
		return;
	}
	judge_row(j, p, &page->row[CTR_ROW_DONATE], LOG_EV_DONATE);
	judge_row(j, p, &page->row[CTR_ROW_RESTORE], LOG_EV_RESTORE);
	for (size_t i = 0; j->ask->slot_events && i < sizeof slot_rows / sizeof slot_rows[0]; i++)
		judge_row(j, p, &page->row[slot_rows[i].row], slot_rows[i].kind);
	/* A log that was cut between two chunks looks whole by itself. */
	if (p->has_log && p->records + p->damage.records_missing < page->records_written)
		reasons_add(j->reasons, REASON_log_truncated, "%s: %llu records were written, %llu are there", j->where,
			    (unsigned long long)page->records_written, (unsigned long long)p->records);
	if (page->row[CTR_ROW_META_LOST].outcome[0])
		reasons_add(j->reasons, REASON_records_dropped, "%s: %llu records about pools, graphs or regions",
			    j->where, (unsigned long long)page->row[CTR_ROW_META_LOST].outcome[0]);
	if (j->ask->launches)
		judge_hooks(j, p);
}

/* ---- the run ---- */

static void judge_firing(struct judge *j)
{
	struct coverage_sum donate = coverage_sum(j->model, "core.donate");
	uint64_t in_logs = 0;

	for (size_t i = 0; i < j->model->n_processes; i++) {
		for (size_t k = 0; k < j->model->process[i].n_events; k++)
			in_logs += j->model->process[i].event[k].kind == LOG_EV_DONATE;
	}
	if (!donate.attempted && !in_logs) {
		reasons_add(j->reasons, REASON_probe_never_fired, "core.donate in %s", run_name(j));
		return;
	}
	for (size_t i = 0; i < j->model->n_processes; i++) {
		const struct model_process *p = &j->model->process[i];

		if (p->n_pools && p->from->counters && !p->from->counters->row[CTR_ROW_DONATE].attempted) {
			name_place(j, p);
			reasons_add(j->reasons, REASON_probe_never_fired, "core.donate in %s, which has a pool",
				    j->where);
		}
	}
}

static void judge_expected(struct judge *j, const struct expect *expect)
{
	size_t n, matched = 0;
	const char **probe = coverage_probes(j->model, 1, &n);

	for (size_t i = 0; i < n; i++) {
		uint64_t attempted;

		if (fnmatch(expect->probe, probe[i], 0) != 0)
			continue;
		matched++;
		attempted = coverage_sum(j->model, probe[i]).attempted;
		if (!attempted && expect->at_least)
			reasons_add(j->reasons, REASON_probe_never_fired, "%s in %s, expected at least %llu", probe[i],
				    run_name(j), (unsigned long long)expect->at_least);
		else if (attempted < expect->at_least)
			reasons_add(j->reasons, REASON_below_expected, "%s in %s: %llu, expected at least %llu",
				    probe[i], run_name(j), (unsigned long long)attempted,
				    (unsigned long long)expect->at_least);
	}
	if (!matched)
		reasons_add(j->reasons, REASON_probe_never_fired, "no probe of %s is called %s", run_name(j),
			    expect->probe);
	free(probe);
}

/* An axis says how many ranks it has: each index must have recorded. */
#define AXES_MAX 32

struct axis_tally {
	const char *name;
	int32_t count;
	size_t seen;
};

static struct axis_tally *tally_of(struct axis_tally *tally, size_t *n, const char *name)
{
	for (size_t i = 0; i < *n; i++) {
		if (strcmp(tally[i].name, name) == 0)
			return &tally[i];
	}
	if (*n == AXES_MAX)
		return NULL;
	tally[*n].name = name;
	return &tally[(*n)++];
}

static void judge_ranks(struct judge *j)
{
	struct axis_tally tally[AXES_MAX] = { { NULL, 0, 0 } };
	struct map seen = { NULL, 0, 0 };
	size_t n = 0;

	for (size_t i = 0; i < j->model->n_processes; i++) {
		const struct model_process *p = &j->model->process[i];

		for (uint32_t a = 0; a < p->n_axes; a++) {
			struct axis_tally *t = tally_of(tally, &n, p->axis[a].name);
			uint64_t key = t ? (uint64_t)(t - tally) << 32 | (uint32_t)p->axis[a].index : 0;

			if (!t)
				continue;
			t->count = p->axis[a].count > t->count ? p->axis[a].count : t->count;
			t->seen += map_get(&seen, key) == MAP_NONE;
			map_set(&seen, key, 1);
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (tally[i].count > 0 && tally[i].seen < (size_t)tally[i].count)
			reasons_add(j->reasons, REASON_rank_missing, "%s has %zu of %d ranks of axis %s", run_name(j),
				    tally[i].seen, tally[i].count, safe(tally[i].name));
	}
	map_free(&seen);
}

void coverage_judge(const struct model *model, const struct coverage_ask *ask, const struct options *options,
		    struct reasons *reasons)
{
	struct judge j = { .model = model, .ask = ask, .reasons = reasons };

	if (!model->n_processes) {
		reasons_add(reasons, REASON_never_loaded, "%s", run_name(&j));
		return;
	}
	judge_firing(&j);
	for (size_t i = 0; i < options_count(options, "expect"); i++) {
		struct expect expect;

		if (expect_parse(options_nth(options, "expect", i), &expect) == 0)
			judge_expected(&j, &expect);
	}
	for (size_t i = 0; i < model->n_processes; i++)
		judge_process(&j, &model->process[i]);
	judge_ranks(&j);
}
