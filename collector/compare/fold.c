/* SPDX-License-Identifier: Apache-2.0
 *
 * fold.c: follows the slots of both runs through their logs, holds them against each other, and keeps one event of each.
 *
 * Of what a slot went through only a chain over it is kept, 128 bits wide: two slots are held to be the same where their
 * counts and chains are.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/coverage.h"
#include "compare/fold.h"
#include "read/counters.h"
#include "read/settle.h"

struct fold_slot {
	uint32_t process, pool;
	int64_t slot;
	uint64_t chain[2];
	uint64_t donations, restores, launched, keyed;
	uint64_t launches; /* when it was last set up: pool_launches; see align.c's baselines */
	bool set_up;
	struct model_event shown; /* the last donation; the first restore where there is none */
	struct model_print print;
};

/* Slots whose numbers lie within so many are found without the index. */
#define GUESSES 4096u

struct fold_side {
	struct model *model;
	struct fold_slot *slot;
	struct map slot_at;      /* (process, pool, slot) -> slot */
	uint32_t guess[GUESSES]; /* where a slot of that number was last */
	size_t n_slots, room;
	uint64_t donations;
};

/* ---- one run ---- */

static bool is_slot(const struct fold_slot *slot, uint32_t process, const struct model_event *e)
{
	return slot->slot == e->slot && slot->pool == e->pool && slot->process == process;
}

static struct fold_slot *add_slot(struct fold_side *side, uint64_t key, uint32_t process, const struct model_event *e)
{
	struct fold_slot *slot;

	if (side->n_slots >= UINT32_MAX || !array_room(&side->slot, &side->room, side->n_slots, sizeof *side->slot) ||
	    !map_set(&side->slot_at, key, side->n_slots))
		return NULL;
	slot = &side->slot[side->n_slots++];
	memset(slot, 0, sizeof *slot);
	slot->process = process;
	slot->pool = e->pool;
	slot->slot = e->slot;
	slot->launches = side->model->process[process].pool[e->pool].pool_launches;
	return slot;
}

static struct fold_slot *look_up(struct fold_side *side, uint32_t process, const struct model_event *e)
{
	uint64_t key = log_mix64(((uint64_t)process << 32 | e->pool) + 1) ^ log_mix64((uint64_t)e->slot), at;

	for (;; key = log_mix64(key + 1)) {
		at = map_get(&side->slot_at, key);
		if (at == MAP_NONE)
			return add_slot(side, key, process, e);
		if (is_slot(&side->slot[at], process, e))
			return &side->slot[at];
	}
}

static struct fold_slot *slot_of(struct fold_side *side, uint32_t process, const struct model_event *e)
{
	uint32_t *guess = &side->guess[(uint64_t)e->slot % GUESSES];
	struct fold_slot *slot;

	if (*guess < side->n_slots && is_slot(&side->slot[*guess], process, e))
		return &side->slot[*guess];
	slot = look_up(side, process, e);
	*guess = slot ? (uint32_t)(slot - side->slot) : 0;
	return slot;
}

/* Every fact that two mates must share. */
static void chain(struct fold_slot *slot, const struct model_event *e, const struct model_print *print)
{
	const uint64_t word[] = { (uint64_t)e->kind << 1 | e->discarded,     e->key,        (uint64_t)e->claimed_len,
				  e->key_len > 0 ? (uint64_t)e->key_len : 0, print->rollup, print->digest };
	uint64_t first = slot->chain[0], second = slot->chain[1];

	/* A sum, and a chain in which each mix is turned about before the next comes: what cancels in one does not in the other. */
	for (unsigned i = 0; i < sizeof word / sizeof word[0]; i++) {
		uint64_t mix = log_mix64(word[i] ^ 0x9e3779b97f4a7c15ull * (2 * i + 1));

		first += mix;
		second = (second ^ mix) * 0xc2b2ae3d27d4eb4full;
		second ^= second >> 29;
	}
	slot->chain[0] = log_mix64(first);
	slot->chain[1] = second;
}

static void take_donation(struct fold_side *side, struct fold_slot *slot, const struct settled *t)
{
	slot->donations++;
	side->donations++;
	slot->keyed += t->event.key != 0;
	slot->launched += t->event.pool_launches > slot->launches;
	slot->shown = t->event;
	slot->print = t->subject;
}

static void take_restore(struct fold_slot *slot, const struct settled *t)
{
	if (!slot->donations && !slot->restores) {
		slot->shown = t->event;
		slot->print = t->subject;
	}
	slot->restores++;
}

static void note_baseline(struct fold_slot *slot, const struct model_event *e)
{
	bool set_up = e->kind == LOG_EV_ALLOC || e->kind == LOG_EV_CLEAR || e->kind == LOG_EV_RESTORE;

	if (set_up || (e->kind == LOG_EV_DONATE && !slot->set_up))
		slot->launches = e->pool_launches;
	slot->set_up |= set_up;
}

static bool take(void *arg, const struct model_process *p, const struct settled *t)
{
	struct fold_side *side = arg;
	const struct model_event *e = &t->event;
	bool claim = e->kind == LOG_EV_DONATE || e->kind == LOG_EV_RESTORE;
	struct fold_slot *slot;

	if (e->kind == LOG_EV_DISCARD || e->kind == LOG_EV_FREE || e->kind == LOG_EV_COPY)
		return true;
	/* What was left out on purpose is no donation. */
	claim = claim && ctr_outcome_group(e->outcome) != CTR_IN_FILTERED;
	if (claim && (e->slot == LOG_NO_SLOT || !settle_measured(t)))
		return false;
	if (e->slot == LOG_NO_SLOT)
		return true;
	slot = slot_of(side, (uint32_t)(p - side->model->process), e);
	if (!slot)
		return false;
	if (claim) {
		chain(slot, e, &t->subject);
		if (e->kind == LOG_EV_DONATE)
			take_donation(side, slot, t);
		else
			take_restore(slot, t);
	}
	note_baseline(slot, e);
	return true;
}

static bool follow(struct fold_side *side, struct model *model, const char *path)
{
	const struct settle_sink sink = { .take = take, .arg = side };
	struct error err;
	bool regular = false;

	side->model = model;
	/* What cannot be opened is said by whoever loads it whole. */
	if (model_open_settled(model, path, &sink, &regular, &err) != 0)
		return false;
	return regular;
}

/* ---- one against the other ---- */

/* The pools of run B by rank and name. false: a name is not unique. */
static bool name_pools(const struct model *model, struct map *names)
{
	for (uint32_t i = 0; i < model->n_processes; i++) {
		for (uint32_t k = 0; k < model->process[i].n_pools; k++) {
			uint64_t name = model_place_key(model->process[i].rank, strlen(model->process[i].rank),
							model->process[i].pool[k].name);

			if (map_get(names, name) != MAP_NONE || !map_set(names, name, (uint64_t)i << 32 | k))
				return false;
		}
	}
	return true;
}

/* Where each pool of run A is in run B, by (process, pool) of A: alike in rank, name and layout. */
static bool pair_pools(const struct model *a, const struct model *b, struct map *mate)
{
	struct map names[2] = { { NULL, 0, 0 }, { NULL, 0, 0 } };
	bool fine = name_pools(a, &names[0]) && name_pools(b, &names[1]);

	for (uint32_t i = 0; fine && i < a->n_processes; i++) {
		const struct model_process *p = &a->process[i];

		for (uint32_t k = 0; fine && k < p->n_pools; k++) {
			uint64_t at = map_get(&names[1], model_place_key(p->rank, strlen(p->rank), p->pool[k].name));
			const struct model_process *q = at == MAP_NONE ? NULL : &b->process[at >> 32];
			const struct model_pool *pool = q ? &q->pool[(uint32_t)at] : NULL;

			if (!pool)
				continue;
			fine = strcmp(p->rank, q->rank) == 0 && strcmp(p->pool[k].name, pool->name) == 0 &&
			       model_same_layout(&p->pool[k], pool) && map_set(mate, (uint64_t)i << 32 | k, at);
		}
	}
	map_free(&names[0]);
	map_free(&names[1]);
	return fine;
}

static bool has_claims(const struct fold_slot *slot)
{
	return slot->donations || slot->restores;
}

static size_t count_claimed(const struct fold_side *side)
{
	size_t n = 0;

	for (size_t i = 0; i < side->n_slots; i++)
		n += has_claims(&side->slot[i]);
	return n;
}

static bool same_slot(const struct fold_slot *x, const struct fold_slot *y)
{
	return x->donations == y->donations && x->restores == y->restores && x->chain[0] == y->chain[0] &&
	       x->chain[1] == y->chain[1] && x->donations < UINT32_MAX && x->restores < UINT32_MAX;
}

static bool same_slots(const struct fold_side *a, struct fold_side *b)
{
	struct map mate = { NULL, 0, 0 };
	bool same = a->donations && b->donations && count_claimed(a) == count_claimed(b) &&
		    pair_pools(a->model, b->model, &mate);

	for (size_t i = 0; same && i < a->n_slots; i++) {
		const struct fold_slot *x = &a->slot[i], *y;
		uint64_t at = map_get(&mate, (uint64_t)x->process << 32 | x->pool);
		struct model_event e = { .slot = x->slot, .pool = (uint32_t)at };

		if (!has_claims(x))
			continue;
		y = at == MAP_NONE ? NULL : slot_of(b, (uint32_t)(at >> 32), &e);
		same = y && same_slot(x, y);
	}
	map_free(&mate);
	return same;
}

/* ---- the models that are left ---- */

static int by_place(const void *a, const void *b)
{
	const struct fold_slot *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->shown.id > y->shown.id) - (x->shown.id < y->shown.id);
}

static bool keep_one(struct model_process *p, const struct fold_slot *slot)
{
	struct model_event *e;

	if (!array_room(&p->event, &p->room_events, p->n_events, sizeof *p->event) ||
	    !array_room(&p->print, &p->room_prints, p->n_prints, sizeof *p->print) ||
	    !array_room(&p->fold, &p->room_folds, p->n_folds, sizeof *p->fold))
		return false;
	e = &p->event[p->n_events++];
	*e = slot->shown;
	e->subject = (uint32_t)p->n_prints;
	p->print[p->n_prints++] = slot->print;
	p->fold[p->n_folds++] = (struct model_fold) {
		.donations = (uint32_t)(slot->donations - (slot->donations > 0)),
		.restores = (uint32_t)(slot->restores - !slot->donations),
		.launched = slot->launched,
		.keyed = slot->keyed,
	};
	e->fold = (uint32_t)p->n_folds;
	return true;
}

static bool keep_shown(struct fold_side *side)
{
	bool fine = true;

	/* The index is not asked any more. */
	map_free(&side->slot_at);
	qsort(side->slot, side->n_slots, sizeof *side->slot, by_place);
	for (size_t i = 0; fine && i < side->n_slots; i++)
		fine = !has_claims(&side->slot[i]) ||
		       keep_one(&side->model->process[side->slot[i].process], &side->slot[i]);
	return fine;
}

/* Equal slots have equal counts; where the pages tell otherwise there is no need to read. */
static bool may_be_same(const char *path_a, const char *path_b)
{
	const char *path[2] = { path_a, path_b };
	uint64_t n[2] = { 0, 0 };

	for (unsigned s = 0; s < 2; s++) {
		struct run run;
		struct error err;

		if (run_open(&run, path[s], &err) != RUN_OK)
			return false;
		n[s] = coverage_sum(&run, "core.donate").outcome[CTR_COMMITTED];
		run_close(&run);
	}
	return n[0] && n[0] == n[1];
}

bool fold_runs(struct model *a, struct model *b, const char *path_a, const char *path_b)
{
	struct fold_side side[2] = { { .model = NULL }, { .model = NULL } };
	bool same = may_be_same(path_a, path_b) && follow(&side[0], a, path_a) && follow(&side[1], b, path_b) &&
		    same_slots(&side[0], &side[1]) && keep_shown(&side[0]) && keep_shown(&side[1]);

	for (unsigned s = 0; s < 2; s++) {
		if (!same && side[s].model)
			model_close(side[s].model);
		map_free(&side[s].slot_at);
		free(side[s].slot);
	}
	return same;
}
