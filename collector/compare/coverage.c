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
#include "trouble.h"

struct coverage_sum coverage_sum(const struct run *run, const char *probe)
{
	struct coverage_sum sum = { 0 };

	for (size_t i = 0; i < run->n_processes; i++) {
		const struct ctr_snapshot *page = run->processes[i].counters;
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
	struct coverage_sum sum = coverage_sum(&model->run, name);

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
				if (k < *n)
					continue;
				if (!array_room(&list, &room, *n, sizeof *list))
					trouble_memory();
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
	size_t process;
	char where[160]; /* "run A, host.123 (tp0.pp0.dp0)" */
};

static void name_place(struct judge *j, const struct model_process *p)
{
	j->process = (size_t)(p - j->model->process);
	snprintf(j->where, sizeof j->where, "%s%s%sprocess %llu (%s)", *j->ask->run ? "run " : "", j->ask->run,
		 *j->ask->run ? ", " : "", (unsigned long long)p->from->pid, safe(p->rank));
}

static const char *run_name(const struct judge *j)
{
	static char text[32];

	snprintf(text, sizeof text, *j->ask->run ? "run %s" : "this run%s", j->ask->run);
	return text;
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

/* How many of this probe's attempts were allowed to end so in this process. */
static uint64_t excused(const struct judge *j, const struct ctr_values *row, unsigned outcome)
{
	const struct coverage_excuse *excuse = j->ask->excuse ? &j->ask->excuse[j->process] : NULL;
	const struct ctr_snapshot *page = j->model->process[j->process].from->counters;

	if (!excuse || (row != &page->row[CTR_ROW_DONATE] && row != &page->row[CTR_ROW_RESTORE]))
		return 0;
	return excuse->lost[row == &page->row[CTR_ROW_RESTORE]][outcome];
}

static void judge_losses(struct judge *j, const struct ctr_values *row, enum ctr_group group, enum reason_code code,
			 const char *word)
{
	bool lost = false;
	char list[256];

	for (unsigned o = 0; o < CTR_OUTCOME_COUNT && !lost; o++)
		lost = ctr_outcome_group(o) == group && row->outcome[o] > excused(j, row, o);
	if (!lost)
		return;
	list_outcomes(row, group, list, sizeof list);
	reasons_add(j->reasons, code, "%s: %s %s %llu (%s)", j->where, row->name, word,
		    (unsigned long long)row->group[group], list);
}

/* A probe that the question needs: its every loss counts. */
static void judge_row(struct judge *j, const struct model_process *p, const struct ctr_values *row)
{
	judge_losses(j, row, CTR_IN_SKIPPED, REASON_skipped_needed, "skipped");
	judge_losses(j, row, CTR_IN_DROPPED, REASON_records_dropped, "dropped");
	judge_losses(j, row, CTR_IN_ERRORS, REASON_skipped_needed, "errors");
	if (row->in_flight && p->from->state == PROCESS_RUNNING)
		reasons_add(j->reasons, REASON_not_finished, "%s: %llu of %s are in flight", j->where,
			    (unsigned long long)row->in_flight, row->name);
	else if (row->in_flight)
		reasons_add(j->reasons, REASON_in_flight_lost, "%s: %llu of %s never came back", j->where,
			    (unsigned long long)row->in_flight, row->name);
}

/* Any other: what was measured must have been written, or nobody knows what else was not. */
static void judge_other_row(struct judge *j, const struct ctr_values *row, bool of_adapter)
{
	judge_losses(j, row, CTR_IN_DROPPED, REASON_records_dropped, "dropped");
	if (of_adapter)
		judge_losses(j, row, CTR_IN_SKIPPED, REASON_skipped_needed, "skipped");
	else if (row->outcome[CTR_SKIPPED_DISK])
		reasons_add(j->reasons, REASON_records_dropped, "%s: %s skipped %llu (%s)", j->where, row->name,
			    (unsigned long long)row->outcome[CTR_SKIPPED_DISK], ctr_outcome_label(CTR_SKIPPED_DISK));
}

static void judge_log(struct judge *j, const struct model_process *p)
{
	const struct log_damage *d = &p->damage;
	bool torn = d->torn_bytes && p->from->state != PROCESS_RUNNING;

	/* The tail of a log that is being written may be a chunk on its way; the counters say what is committed. */
	if (torn)
		reasons_add(j->reasons, REASON_log_truncated, "%s: its last %llu bytes are no whole chunk", j->where,
			    (unsigned long long)d->torn_bytes);
	if (d->other_process)
		reasons_add(j->reasons, REASON_log_damaged, "%s: the log's header is that of another process",
			    j->where);
	if ((d->bad_header && !torn) || d->bad_chunks || d->seq_gaps || d->bad_records || d->unknown_records)
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

	if (page)
		reasons_add(j->reasons, REASON_log_truncated, "%s: its log is gone; its page tells of %llu records",
			    j->where, (unsigned long long)page->records_written);
	else
		reasons_add(j->reasons, REASON_log_truncated, "%s: there is no log", j->where);
}

/* One that was not measured may well name no pool: its registration was refused, or it is that of a process before a fork. */
static void judge_events_without_pool(struct judge *j, const struct model_process *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_events; i++)
		n += p->event[i].pool == MODEL_NONE && p->event[i].outcome == CTR_COMMITTED;
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
	const struct ctr_values *bypassed = ctr_find(page, "bypassed_objects");

	if (unrouted)
		reasons_add(j->reasons, REASON_unrouted_entry, "%s: %llu look-ups%s%s", j->where,
			    (unsigned long long)unrouted, p->unrouted ? ", the first of " : "",
			    p->unrouted ? safe(p->unrouted_name) : "");
	if (unseen)
		reasons_add(j->reasons, REASON_unrouted_entry,
			    "%s: %llu cudaGraphLaunch calls in which no driver launch was seen", j->where,
			    (unsigned long long)unseen);
	if (bypassed && bypassed->outcome[0])
		reasons_add(j->reasons, REASON_bypassed_object, "%s: %llu%s%s%s%s", j->where,
			    (unsigned long long)bypassed->outcome[0], *p->bypassed_name ? ", the first " : "",
			    safe(p->bypassing), *p->bypassed_name ? " for " : "", safe(p->bypassed_name));
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

/* What an adapter could not make sense of it did not report: nobody knows what is missing. */
static void judge_adapters(struct judge *j, const struct ctr_snapshot *page)
{
	for (uint32_t i = CTR_CORE_ROW_COUNT; i < page->n_rows; i++) {
		const struct ctr_values *row = &page->row[i];
		char list[256];

		if (row->kind != CTR_PROBE || !row->group[CTR_IN_ERRORS])
			continue;
		list_outcomes(row, CTR_IN_ERRORS, list, sizeof list);
		reasons_add(j->reasons, REASON_adapter_error, "%s: %s: %llu of %llu (%s)", j->where, row->name,
			    (unsigned long long)row->group[CTR_IN_ERRORS], (unsigned long long)row->attempted, list);
	}
}

static bool is_needed(const struct judge *j, uint32_t row)
{
	switch (row) {
	case CTR_ROW_DONATE:
	case CTR_ROW_RESTORE:
		return true;
	case CTR_ROW_ALLOC:
	case CTR_ROW_CLEAR:
	case CTR_ROW_COPY:
	case CTR_ROW_DISCARD:
		return j->ask->slot_events;
	default:
		return false;
	}
}

static void judge_rows(struct judge *j, const struct model_process *p, const struct ctr_snapshot *page)
{
	for (uint32_t r = 0; r < page->n_rows; r++) {
		const struct ctr_values *row = &page->row[r];

		if (row->kind != CTR_PROBE)
			continue;
		if (is_needed(j, r))
			judge_row(j, p, row);
		else
			judge_other_row(j, row, r >= CTR_CORE_ROW_COUNT);
		if (!row->reconciled)
			reasons_add(j->reasons, REASON_counters_unreconciled, "%s: %s", j->where, row->name);
	}
}

static void judge_process(struct judge *j, const struct model_process *p)
{
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
	judge_rows(j, p, page);
	audit_judge_agreement(&p->audit, p->from, j->where, j->reasons);
	judge_adapters(j, page);
	if (j->ask->launches)
		judge_hooks(j, p);
}

/* ---- the run ---- */

static bool says_its_rank(const struct model_process *p)
{
	for (uint32_t a = 0; a < p->n_axes; a++) {
		if (p->axis[a].count > 0)
			return true;
	}
	return false;
}

/* A process of which nothing was measured looks like one that is equal in both runs. */
static void judge_silence(struct judge *j, const struct model_process *p)
{
	const struct ctr_snapshot *page = p->from->counters;
	const struct ctr_values *donate = page ? &page->row[CTR_ROW_DONATE] : NULL;
	char list[256];
	size_t n = 0;

	name_place(j, p);
	if (!p->n_pools && says_its_rank(p))
		reasons_add(j->reasons, REASON_probe_never_fired,
			    "core.donate in %s, which said its rank and has no pool", j->where);
	if (!donate || !donate->attempted || donate->outcome[CTR_COMMITTED])
		return;
	*list = 0;
	for (unsigned o = 0; o < CTR_OUTCOME_COUNT && n < sizeof list; o++) {
		if (donate->outcome[o])
			n += (size_t)snprintf(list + n, sizeof list - n, "%s%s %llu", n ? ", " : "",
					      ctr_outcome_label(o), (unsigned long long)donate->outcome[o]);
	}
	reasons_add(j->reasons, REASON_nothing_measured, "%s: of %llu donations none was recorded (%s)", j->where,
		    (unsigned long long)donate->attempted, n ? list : "in flight");
}

static void judge_firing(struct judge *j)
{
	struct coverage_sum donate = coverage_sum(&j->model->run, "core.donate");
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
		judge_silence(j, p);
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
		attempted = coverage_sum(&j->model->run, probe[i]).attempted;
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

/* An axis says how many ranks it has: each index must have recorded, and each combination of them. */
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

static size_t tally_axes(const struct model *model, struct axis_tally *tally)
{
	struct map seen = { NULL, 0, 0 };
	size_t n = 0;

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct model_process *p = &model->process[i];

		for (uint32_t a = 0; a < p->n_axes; a++) {
			struct axis_tally *t = tally_of(tally, &n, p->axis[a].name);
			uint64_t key = t ? (uint64_t)(t - tally) << 32 | (uint32_t)p->axis[a].index : 0;

			if (!t)
				continue;
			t->count = p->axis[a].count > t->count ? p->axis[a].count : t->count;
			t->seen += map_get(&seen, key) == MAP_NONE;
			if (!map_set(&seen, key, 1))
				trouble_memory();
		}
	}
	map_free(&seen);
	return n;
}

/* Which combination a process is; an axis that it does not name is at 0. 0: it names none that has a count, or an index
 * that is not there. */
static uint64_t combination(const struct model_process *p, struct axis_tally *tally, size_t n)
{
	uint64_t sum = 1;
	bool any = false;

	for (uint32_t a = 0; a < p->n_axes; a++) {
		const struct axis_tally *t = tally_of(tally, &n, p->axis[a].name);

		if (!t || t->count <= 0)
			continue;
		if (p->axis[a].index < 0 || p->axis[a].index >= t->count)
			return 0;
		any = true;
		if (p->axis[a].index)
			sum += log_mix64((uint64_t)(t - tally + 1) << 32 | (uint32_t)p->axis[a].index);
	}
	return any ? sum : 0;
}

static uint64_t count_combinations(const struct model *model, struct axis_tally *tally, size_t n)
{
	struct map seen = { NULL, 0, 0 };
	uint64_t found = 0;

	for (size_t i = 0; i < model->n_processes; i++) {
		uint64_t key = combination(&model->process[i], tally, n);

		if (!key || map_get(&seen, key) != MAP_NONE)
			continue;
		if (!map_set(&seen, key, 1))
			trouble_memory();
		found++;
	}
	map_free(&seen);
	return found;
}

static void judge_ranks(struct judge *j)
{
	struct axis_tally tally[AXES_MAX] = { { NULL, 0, 0 } };
	size_t n = tally_axes(j->model, tally);
	uint64_t wanted = 1, found;
	bool missing = false;

	for (size_t i = 0; i < n; i++) {
		if (tally[i].count <= 0)
			continue;
		if (__builtin_mul_overflow(wanted, (uint64_t)tally[i].count, &wanted))
			wanted = UINT64_MAX;
		if (tally[i].seen >= (size_t)tally[i].count)
			continue;
		missing = true;
		reasons_add(j->reasons, REASON_rank_missing, "%s has %zu of %d ranks of axis %s", run_name(j),
			    tally[i].seen, tally[i].count, safe(tally[i].name));
	}
	found = count_combinations(j->model, tally, n);
	if (!missing && n && found < wanted && wanted > 1)
		reasons_add(j->reasons, REASON_rank_missing, "%s has %llu of the %llu combinations of its axes",
			    run_name(j), (unsigned long long)found, (unsigned long long)wanted);
}

/* An adapter of which nothing fired was not loaded, or does not fit the server. */
static void judge_named_adapters(struct judge *j)
{
	const struct manifest *manifest = &j->model->run.manifest;

	for (size_t a = 0; a < manifest->n_adapters; a++) {
		const struct manifest_adapter *adapter = &manifest->adapters[a];
		uint64_t attempted = 0;

		for (size_t p = 0; p < adapter->n_points; p++)
			attempted |= run_counter(&j->model->run, adapter->points[p], NULL);
		if (adapter->n_points && !attempted)
			reasons_add(j->reasons, REASON_probe_never_fired, "adapter %s in %s: %s%s", safe(adapter->name),
				    run_name(j), safe(adapter->points[0]),
				    adapter->n_points > 1 ? " and its other probes" : "");
	}
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
	judge_named_adapters(&j);
}
