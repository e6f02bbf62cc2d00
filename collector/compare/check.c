/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c: judges one run's invariants, with the run in memory. Only roll-up hashes are compared, so the logs are
 * read once.
 */
#include <string.h>

#include "compare/check.h"
#include "compare/check_keys.h"
#include "compare/check_settled.h"
#include "compare/coverage.h"
#include "print/print.h"
#include "read/map.h"
#include "read/settle.h"
#include "verbs.h"

const struct invariant_row invariant_rows[INVARIANT_COUNT] = {
#define INVARIANT_ROW(code, name, text, needs) { REASON_##code, name, text, needs },
	INVARIANTS(INVARIANT_ROW)
#undef INVARIANT_ROW
};

/* What is known of one process while its events go by in order. */
struct walk {
	struct check *check;
	const struct model_process *p;
	uint32_t process;
	struct map allocated; /* (pool, slot) -> event of the last alloc or clear */
	struct map written;   /* (pool, key, length, hash) -> a donation that is surely written */
	struct map donated;   /* (pool, slot, key, length) -> the latest donation */
	struct map holders;   /* (pool, hash) -> the first donation that has it */
	struct map firsts;    /* (pool, key, length) -> the first donation */
	bool no_memory;
};

static const struct model_print *print_of(const struct walk *w, const struct model_event *e)
{
	return model_measured(w->p, e) ? model_subject(w->p, e) : NULL;
}

static void put(struct walk *w, struct map *map, uint64_t key, uint32_t event)
{
	w->no_memory |= !map_set(map, key, event);
}

static void broken(struct walk *w, enum invariant which, uint32_t event, uint32_t other)
{
	struct check_result *r = &w->check->result[which];

	r->broken++;
	if (r->n_examples < CHECK_EXAMPLES)
		r->example[r->n_examples++] = (struct check_example) { w->process, event, other };
}

/* ---- first: which states were surely written ---- */

static bool is_alloc(const struct model_event *e)
{
	return e->kind == LOG_EV_ALLOC || e->kind == LOG_EV_CLEAR;
}

/* Event of the slot's last allocation whose fingerprint is there; MODEL_NONE. */
static uint32_t allocation_of(const struct walk *w, const struct model_event *e)
{
	uint64_t at = map_get(&w->allocated, check_slot_key(e));

	return at == MAP_NONE ? MODEL_NONE : (uint32_t)at;
}

static void note_allocation(struct walk *w, uint32_t event)
{
	const struct model_event *e = &w->p->event[event];

	if (is_alloc(e) && e->slot != LOG_NO_SLOT && print_of(w, e))
		put(w, &w->allocated, check_slot_key(e), event);
}

static void collect_written(struct walk *w)
{
	for (uint32_t i = 0; i < w->p->n_events; i++) {
		const struct model_event *e = &w->p->event[i];
		const struct model_print *print = print_of(w, e);
		uint32_t alloc;

		note_allocation(w, i);
		if (e->kind != LOG_EV_DONATE || !print || !e->key)
			continue;
		alloc = allocation_of(w, e);
		if (alloc != MODEL_NONE && print_of(w, &w->p->event[alloc])->rollup != print->rollup)
			put(w, &w->written, check_fold(check_claim_key(e), print->rollup), i);
	}
	map_free(&w->allocated);
}

/* ---- then: each event against what came before ---- */

static void judge_written(struct walk *w, uint32_t event)
{
	const struct model_event *e = &w->p->event[event];
	const struct model_print *print = print_of(w, e);
	uint32_t alloc = allocation_of(w, e);

	/* A claim of no tokens asks for nothing to be written. */
	if (alloc == MODEL_NONE || e->claimed_len <= 0)
		return;
	w->check->result[INVARIANT_never_written].checked++;
	if (print_of(w, &w->p->event[alloc])->rollup != print->rollup)
		return;
	/* The slot may have held this very state already, from the same tokens. */
	if (e->key && map_get(&w->written, check_fold(check_claim_key(e), print->rollup)) != MAP_NONE)
		return;
	broken(w, INVARIANT_never_written, event, alloc);
}

static void judge_length(struct walk *w, uint32_t event)
{
	const struct model_event *e = &w->p->event[event];

	if (e->key_len <= 0)
		return;
	w->check->result[INVARIANT_length_disagrees].checked++;
	if (e->claimed_len != e->key_len)
		broken(w, INVARIANT_length_disagrees, event, MODEL_NONE);
}

static void judge_finite(struct walk *w, uint32_t event)
{
	const struct model_print *print = print_of(w, &w->p->event[event]);

	w->check->result[INVARIANT_non_finite].checked++;
	if (print->nan || print->inf)
		broken(w, INVARIANT_non_finite, event, MODEL_NONE);
}

/* A key identifies the exact prefix only where it stands for as many tokens as the state. */
static void judge_distinct(struct walk *w, uint32_t event)
{
	const struct model_event *e = &w->p->event[event];
	const struct model_print *print = print_of(w, e);
	uint64_t key = check_fold(check_fold(3, e->pool), print->rollup), at;

	if (!e->key || e->claimed_len <= 0 || e->key_len != e->claimed_len)
		return;
	w->check->result[INVARIANT_same_hash_other_key].checked++;
	at = map_get(&w->holders, key);
	if (at == MAP_NONE)
		put(w, &w->holders, key, event);
	else if (w->p->event[at].key != e->key)
		broken(w, INVARIANT_same_hash_other_key, event, (uint32_t)at);
}

static void judge_noise(struct walk *w, uint32_t event)
{
	const struct model_event *e = &w->p->event[event];
	uint64_t at;

	if (!e->key)
		return;
	at = map_get(&w->firsts, check_claim_key(e));
	if (at == MAP_NONE)
		put(w, &w->firsts, check_claim_key(e), event);
	else if (print_of(w, &w->p->event[at])->rollup != print_of(w, e)->rollup)
		w->check->noise++;
}

static void judge_donation(struct walk *w, uint32_t event)
{
	const struct model_event *e = &w->p->event[event];

	if (ctr_outcome_group(e->outcome) == CTR_IN_FILTERED)
		return;
	w->check->donations++;
	judge_length(w, event);
	if (!print_of(w, e))
		return;
	w->check->measured++;
	judge_written(w, event);
	judge_finite(w, event);
	judge_distinct(w, event);
	judge_noise(w, event);
	if (!e->discarded)
		put(w, &w->donated, check_fold(check_slot_key(e), check_claim_key(e)), event);
}

static void judge_restore(struct walk *w, uint32_t event)
{
	const struct model_event *e = &w->p->event[event];
	const struct model_print *print = print_of(w, e);
	uint64_t at = map_get(&w->donated, check_fold(check_slot_key(e), check_claim_key(e)));

	if (ctr_outcome_group(e->outcome) == CTR_IN_FILTERED)
		return;
	w->check->restores++;
	/* What was donated before the recording began cannot be judged. */
	if (!print || at == MAP_NONE)
		return;
	w->check->result[INVARIANT_restore_differs].checked++;
	if (print_of(w, &w->p->event[at])->rollup != print->rollup)
		broken(w, INVARIANT_restore_differs, event, (uint32_t)at);
}

static void judge_copy(struct walk *w, uint32_t event)
{
	const struct model_event *e = &w->p->event[event];
	const struct model_print *print = print_of(w, e), *source;

	if (!print || e->source == MODEL_NONE || !w->p->print[e->source].complete)
		return;
	source = &w->p->print[e->source];
	w->check->result[INVARIANT_copy_differs].checked++;
	if (source->rollup != print->rollup || source->digest != print->digest)
		broken(w, INVARIANT_copy_differs, event, MODEL_NONE);
}

static void judge_event(struct walk *w, uint32_t event)
{
	const struct model_event *e = &w->p->event[event];

	if (e->pool == MODEL_NONE)
		return;
	note_allocation(w, event);
	if (e->kind == LOG_EV_DONATE)
		judge_donation(w, event);
	else if (e->kind == LOG_EV_RESTORE)
		judge_restore(w, event);
	else if (e->kind == LOG_EV_COPY)
		judge_copy(w, event);
}

static bool judge_process(struct check *check, uint32_t process)
{
	struct walk w = { .check = check, .process = process, .p = &check->model.process[process] };

	collect_written(&w);
	for (uint32_t i = 0; i < w.p->n_events; i++)
		judge_event(&w, i);
	map_free(&w.allocated);
	map_free(&w.written);
	map_free(&w.donated);
	map_free(&w.holders);
	map_free(&w.firsts);
	return !w.no_memory;
}

static void add_reasons(struct check *check)
{
	for (unsigned i = 0; i < INVARIANT_COUNT; i++) {
		const struct check_result *r = &check->result[i];
		const struct check_example *x = &r->example[0];
		const struct model_process *p;
		const struct model_event *e;

		if (!r->broken)
			continue;
		p = &check->model.process[x->process];
		e = &p->event[x->event];
		reasons_add(&check->reasons, invariant_rows[i].code,
			    "%llu of %llu, first %s %llu of %s/%s/%lld, length %lld", (unsigned long long)r->broken,
			    (unsigned long long)r->checked, model_event_name(e->kind), (unsigned long long)e->id,
			    p->rank, p->pool[e->pool].name, (long long)e->slot, (long long)e->claimed_len);
	}
	if (!check->measured && !reasons_exit_status(&check->reasons))
		reasons_add(&check->reasons, REASON_nothing_measured, "%s", "");
}

static int judge_whole(struct check *check, struct error *err)
{
	for (uint32_t i = 0; i < check->model.n_processes; i++) {
		if (!judge_process(check, i)) {
			error_set(err, "out of memory");
			check_free(check);
			return -1;
		}
	}
	return 0;
}

int check_run(struct check *check, const char *path, const struct options *options, struct error *err)
{
	struct coverage_ask ask = { .run = "", .slot_events = true };
	bool settled;

	memset(check, 0, sizeof *check);
	/* A page shows events. */
	settled = !options->html && !settle_asked("whole") && check_settled(check, path);
	if (!settled && settle_asked("folded")) {
		error_set(err, "'%s' cannot be judged without its events", path);
		return -1;
	}
	if (!settled && model_open(&check->model, path, err) != 0)
		return -1;
	coverage_judge(&check->model, &ask, options, &check->reasons);
	if (!settled && judge_whole(check, err) != 0)
		return -1;
	add_reasons(check);
	return 0;
}

void check_free(struct check *check)
{
	reasons_free(&check->reasons);
	model_close(&check->model);
}

const char *check_verdict(const struct check *check)
{
	switch (reasons_exit_status(&check->reasons)) {
	case EXIT_HOLDS:
		return "holds";
	case EXIT_DIFFERS:
		return "broken";
	default:
		return "not_proven";
	}
}
