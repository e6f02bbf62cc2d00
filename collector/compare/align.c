/* SPDX-License-Identifier: Apache-2.0
 *
 * align.c: builds the rows of both runs and pairs their occurrences.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/align.h"
#include "compare/lives.h"
#include "read/counters.h"

const struct model_process *align_process(const struct align_side *side, struct align_ref ref)
{
	return &side->model->process[ref.process];
}

const struct model_event *align_event(const struct align_side *side, struct align_ref ref)
{
	return ref.event == ALIGN_NONE ? NULL : &side->model->process[ref.process].event[ref.event];
}

uint64_t align_weight(const struct align_side *side, struct align_ref ref)
{
	return 1ull + model_fold(align_process(side, ref), align_event(side, ref)).donations;
}

const char *align_mode_name(enum align_mode mode)
{
	static const char *const name[] = { "auto", "slot", "key", "order" };

	return name[mode];
}

bool align_same_claim(const struct model_event *a, const struct model_event *b)
{
	/* An unknown key length (<= 0) is one value, however the adapter says it. */
	int64_t x = a->key_len > 0 ? a->key_len : 0, y = b->key_len > 0 ? b->key_len : 0;

	return a->key == b->key && a->claimed_len == b->claimed_len && x == y && a->discarded == b->discarded;
}

/* ---- groups ---- */

static uint32_t group_find(struct alignment *al, const struct model_process *p, const char *pool)
{
	const char *rank = p->rank;
	uint64_t key = model_place_key(rank, strlen(rank), pool);
	uint64_t at;

	for (;; key = log_mix64(key + 1)) {
		at = map_get(&al->group_index, key);
		if (at == MAP_NONE)
			break;
		if (strcmp(al->group[at].rank, rank) == 0 && strcmp(al->group[at].pool, pool) == 0)
			return (uint32_t)at;
	}
	at = al->n_groups;
	if (!array_room(&al->group, &al->room_groups, al->n_groups, sizeof *al->group) ||
	    !map_set(&al->group_index, key, at))
		return ALIGN_NONE;
	al->group[al->n_groups++] = (struct align_group) {
		.rank = rank, .pool = pool, .rank_length = p->rank_length, .steady = { true, true }
	};
	return (uint32_t)at;
}

static bool add_groups_of(struct alignment *al, unsigned s, size_t process)
{
	const struct model_process *p = &al->side[s].model->process[process];
	uint32_t *of = calloc(p->n_pools + 1, sizeof *of);

	al->side[s].group_of_pool[process] = of;
	for (size_t i = 0; of && i < p->n_pools; i++) {
		struct align_group *group;

		of[i] = group_find(al, p, p->pool[i].name);
		if (of[i] == ALIGN_NONE)
			return false;
		group = &al->group[of[i]];
		group->says_rank |= p->n_axes > 0;
		group->beside |= p->beside;
		if (!group->layout[s])
			group->layout[s] = &p->pool[i];
		else if (!model_same_layout(group->layout[s], &p->pool[i]))
			group->steady[s] = false;
	}
	return of != NULL;
}

static bool build_groups(struct alignment *al)
{
	for (unsigned s = 0; s < 2; s++) {
		struct align_side *side = &al->side[s];

		side->group_of_pool = calloc(side->model->n_processes + 1, sizeof *side->group_of_pool);
		if (!side->group_of_pool)
			return false;
		for (size_t i = 0; i < side->model->n_processes; i++) {
			if (!add_groups_of(al, s, i))
				return false;
		}
	}
	for (size_t i = 0; i < al->n_groups; i++) {
		struct align_group *group = &al->group[i];

		if (group->layout[0] && group->layout[1])
			group->same_layout = model_same_layout(group->layout[0], group->layout[1]) &&
					     group->steady[0] && group->steady[1];
	}
	return lives_find(al);
}

/* ---- rows and occurrences ---- */

static uint32_t row_find(struct alignment *al, uint32_t group, int64_t slot)
{
	uint64_t key = log_mix64(log_mix64(group + 1) + (uint64_t)slot), at;

	for (;; key = log_mix64(key + 1)) {
		at = map_get(&al->row_index, key);
		if (at == MAP_NONE)
			break;
		if (al->row[at].group == group && al->row[at].slot == slot)
			return (uint32_t)at;
	}
	at = al->n_rows;
	if (!array_room(&al->row, &al->room_rows, al->n_rows, sizeof *al->row) || !map_set(&al->row_index, key, at))
		return ALIGN_NONE;
	al->row[al->n_rows++] = (struct align_row) {
		.group = group, .slot = slot, .side = { { ALIGN_NONE, ALIGN_NONE, 0 }, { ALIGN_NONE, ALIGN_NONE, 0 } }
	};
	return (uint32_t)at;
}

static uint32_t occurrence_add(struct alignment *al, unsigned s, uint32_t row, struct align_ref at)
{
	struct align_side *side = &al->side[s];
	uint32_t index = (uint32_t)side->n_occurrences, last = al->row[row].side[s].last;

	if (!array_room(&side->occurrence, &side->room_occurrences, index, sizeof *side->occurrence))
		return ALIGN_NONE;
	side->n_occurrences++;
	side->occurrence[index] = (struct align_occurrence) { .at = at,
							      .row = row,
							      .next = ALIGN_NONE,
							      .mate = ALIGN_NONE,
							      .restore = ALIGN_NONE,
							      .last_restore = ALIGN_NONE };
	if (at.event != ALIGN_NONE)
		side->occurrence[index].number = al->row[row].side[s].donations +=
			1 + model_fold(align_process(side, at), align_event(side, at)).donations;
	if (last == ALIGN_NONE)
		al->row[row].side[s].first = index;
	else
		side->occurrence[last].next = index;
	al->row[row].side[s].last = index;
	return index;
}

static bool restore_add(struct alignment *al, unsigned s, uint32_t row, struct align_ref at)
{
	struct align_side *side = &al->side[s];
	uint32_t occurrence = al->row[row].side[s].last, index = (uint32_t)side->n_restores;
	struct align_occurrence *o;

	if (occurrence == ALIGN_NONE)
		occurrence = occurrence_add(al, s, row, (struct align_ref) { at.process, ALIGN_NONE });
	if (occurrence == ALIGN_NONE || !array_room(&side->restore, &side->room_restores, index, sizeof *side->restore))
		return false;
	side->restore[side->n_restores++] = (struct align_restore) { at, ALIGN_NONE, occurrence, ALIGN_NONE, false };
	o = &side->occurrence[occurrence];
	if (o->restore == ALIGN_NONE)
		o->restore = index;
	else
		side->restore[o->last_restore].next = index;
	o->last_restore = index;
	o->n_restores++;
	return true;
}

/* Launches counted when a slot was last set up: by its last alloc, clear or restore; where none was reported, by its
 * previous donation; else when its pool was registered. */
struct baselines {
	struct map set_up, donated;
	struct map life; /* enum slot_life of each slot */
};

/* What a slot has lived through. */
enum slot_life { LIFE_ALLOCATED = 1, LIFE_REUSED = 2, LIFE_DONATED = 4, LIFE_RESTORED = 8 };

static uint64_t life_of(const struct baselines *b, uint64_t key)
{
	uint64_t life = map_get(&b->life, key);

	return life == MAP_NONE ? 0 : life;
}

static bool note_life(struct baselines *b, const struct model_event *e, uint64_t key)
{
	uint64_t life = life_of(b, key);

	switch (e->kind) {
	case LOG_EV_ALLOC:
		life = LIFE_ALLOCATED | (life ? LIFE_REUSED : 0);
		break;
	case LOG_EV_CLEAR:
		life = (life & (LIFE_ALLOCATED | LIFE_REUSED)) | (life & LIFE_DONATED ? LIFE_REUSED : 0);
		break;
	case LOG_EV_COPY:
	case LOG_EV_RESTORE:
		life |= LIFE_RESTORED;
		break;
	case LOG_EV_DONATE:
		life |= LIFE_DONATED;
		break;
	default:
		return true;
	}
	return map_set(&b->life, key, life);
}

/* Where no allocation is reported, a slot that is donated again has had an owner. */
static bool is_reused(uint64_t life)
{
	return (life & LIFE_REUSED) || ((life & LIFE_DONATED) && !(life & LIFE_ALLOCATED));
}

static bool note_baseline(struct baselines *b, const struct model_event *e, uint64_t key)
{
	switch (e->kind) {
	case LOG_EV_ALLOC:
	case LOG_EV_CLEAR:
	case LOG_EV_RESTORE:
		return map_set(&b->set_up, key, e->pool_launches);
	case LOG_EV_DONATE:
		return map_set(&b->donated, key, e->pool_launches);
	default:
		return true;
	}
}

static uint64_t baseline(const struct baselines *b, const struct model_pool *pool, uint64_t key)
{
	uint64_t at = map_get(&b->set_up, key);

	if (at == MAP_NONE)
		at = map_get(&b->donated, key);
	return at == MAP_NONE ? pool->pool_launches : at;
}

/* A donation that was filtered (paused, padding, left out by the adapter) was none. */
static bool counts(const struct model_event *e)
{
	return ctr_outcome_group(e->outcome) != CTR_IN_FILTERED;
}

static bool add_event(struct alignment *al, unsigned s, struct align_ref at, struct baselines *b)
{
	struct align_side *side = &al->side[s];
	const struct model_process *p = align_process(side, at);
	const struct model_event *e = align_event(side, at);
	uint64_t key = log_mix64(log_mix64(e->pool + 1) + (uint64_t)e->slot);
	struct model_fold fold = model_fold(p, e);
	uint32_t row, o;

	if (e->pool == MODEL_NONE) {
		side->without_pool += e->kind == LOG_EV_DONATE || e->kind == LOG_EV_RESTORE;
		return true;
	}
	if ((e->kind == LOG_EV_DONATE || e->kind == LOG_EV_RESTORE) && counts(e)) {
		row = row_find(al, side->group_of_pool[at.process][e->pool], e->slot);
		if (row == ALIGN_NONE)
			return false;
		side->restores += fold.restores;
		if (e->kind == LOG_EV_RESTORE) {
			side->restores++;
			if (!restore_add(al, s, row, at))
				return false;
		} else {
			side->donations += 1 + fold.donations;
			al->group[al->row[row].group].donations[s] += 1 + fold.donations;
			al->group[al->group[al->row[row].group].kin].of_kin[s] += 1 + fold.donations;
			o = occurrence_add(al, s, row, at);
			if (o == ALIGN_NONE)
				return false;
			side->occurrence[o].launched = e->pool_launches > baseline(b, &p->pool[e->pool], key);
			side->occurrence[o].reused = is_reused(life_of(b, key));
			side->occurrence[o].restored = (life_of(b, key) & LIFE_RESTORED) != 0;
		}
	}
	return e->slot == LOG_NO_SLOT || (note_baseline(b, e, key) && note_life(b, e, key));
}

static bool add_events(struct alignment *al, unsigned s)
{
	const struct model *model = al->side[s].model;
	bool fine = true;

	for (uint32_t p = 0; fine && p < model->n_processes; p++) {
		struct baselines b = { { NULL, 0, 0 }, { NULL, 0, 0 }, { NULL, 0, 0 } };

		if (model->process[p].n_events >= ALIGN_NONE)
			return false;
		for (uint32_t e = 0; fine && e < model->process[p].n_events; e++)
			fine = add_event(al, s, (struct align_ref) { p, e }, &b);
		map_free(&b.set_up);
		map_free(&b.donated);
		map_free(&b.life);
	}
	return fine;
}

/* Where nothing was donated in either run, the slots that other events name are what was not measured. */
static bool add_silent_rows(struct alignment *al)
{
	if (al->side[0].donations || al->side[1].donations)
		return true;
	for (unsigned s = 0; s < 2; s++) {
		const struct model *model = al->side[s].model;

		for (size_t p = 0; p < model->n_processes; p++) {
			for (size_t i = 0; i < model->process[p].n_events; i++) {
				const struct model_event *e = &model->process[p].event[i];

				if (e->pool == MODEL_NONE || e->slot == LOG_NO_SLOT)
					continue;
				if (row_find(al, al->side[s].group_of_pool[p][e->pool], e->slot) == ALIGN_NONE)
					return false;
			}
		}
	}
	return true;
}

/* ---- rows in order ---- */

static int by_name_and_slot(const void *a, const void *b, void *arg)
{
	const struct alignment *al = arg;
	const struct align_row *x = &al->row[*(const uint32_t *)a], *y = &al->row[*(const uint32_t *)b];
	int c = strcmp(al->group[x->group].rank, al->group[y->group].rank);

	if (!c)
		c = strcmp(al->group[x->group].pool, al->group[y->group].pool);
	return c ? c : (x->slot > y->slot) - (x->slot < y->slot);
}

static bool sort_rows(struct alignment *al)
{
	uint32_t *order = calloc(al->n_rows + 1, sizeof *order), *place = calloc(al->n_rows + 1, sizeof *place);
	struct align_row *sorted = calloc(al->n_rows + 1, sizeof *sorted);
	bool fine = order && place && sorted;

	for (uint32_t i = 0; fine && i < al->n_rows; i++)
		order[i] = i;
	if (fine) {
		qsort_r(order, al->n_rows, sizeof *order, by_name_and_slot, al);
		for (uint32_t i = 0; i < al->n_rows; i++) {
			sorted[i] = al->row[order[i]];
			place[order[i]] = i;
		}
		for (unsigned s = 0; s < 2; s++) {
			for (size_t i = 0; i < al->side[s].n_occurrences; i++)
				al->side[s].occurrence[i].row = place[al->side[s].occurrence[i].row];
		}
		free(al->row);
		al->row = sorted;
		sorted = NULL;
	}
	/* The index still has the old places, and nobody asks it again. */
	map_free(&al->row_index);
	free(order);
	free(place);
	free(sorted);
	return fine;
}

/* ---- pairing ---- */

static void unpair(struct alignment *al)
{
	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < al->side[s].n_occurrences; i++)
			al->side[s].occurrence[i].mate = ALIGN_NONE;
		for (size_t i = 0; i < al->side[s].n_restores; i++)
			al->side[s].restore[i].mate = ALIGN_NONE;
	}
}

static void pair(struct alignment *al, uint32_t a, uint32_t b)
{
	al->side[0].occurrence[a].mate = b;
	al->side[1].occurrence[b].mate = a;
}

static void pair_by_slot(struct alignment *al)
{
	for (size_t i = 0; i < al->n_rows; i++) {
		uint32_t a = al->row[i].side[0].first, b = al->row[i].side[1].first;

		while (a != ALIGN_NONE && b != ALIGN_NONE) {
			const struct align_occurrence *x = &al->side[0].occurrence[a], *y = &al->side[1].occurrence[b];

			/* Restores before the first donation have a mate only in their like. */
			if (x->number == y->number)
				pair(al, a, b);
			a = x->number <= y->number ? x->next : a;
			b = y->number <= x->number ? y->next : b;
		}
	}
}

/* Its life, or its rank with all its lives. */
static uint32_t place_of(const struct alignment *al, const struct align_occurrence *o, bool any_life)
{
	uint32_t group = al->row[o->row].group;

	return any_life ? al->group[group].kin : group;
}

/* What a donation that has no mate yet pairs under; 0: it has one, or no key. */
static uint64_t claim_key(const struct alignment *al, unsigned s, const struct align_occurrence *o, bool any_life)
{
	const struct model_event *e = align_event(&al->side[s], o->at);

	if (!e || !e->key || o->mate != ALIGN_NONE)
		return 0;
	return log_mix64(log_mix64(log_mix64(place_of(al, o, any_life) + 1ull) + e->key) + (uint64_t)e->claimed_len) |
	       1;
}

/* The n-th donation of a key at a length pairs with the n-th of the same. */
static bool pair_by_key(struct alignment *al, bool any_life)
{
	struct align_side *a = &al->side[0], *b = &al->side[1];
	uint32_t *next = calloc(a->n_occurrences + 1, sizeof *next);
	struct map waiting = { NULL, 0, 0 };
	bool fine = next != NULL;

	/* Backwards, so that each chain begins with the earliest. */
	for (uint32_t i = (uint32_t)a->n_occurrences; fine && i-- > 0;) {
		uint64_t key = claim_key(al, 0, &a->occurrence[i], any_life), head;

		if (!key)
			continue;
		head = map_get(&waiting, key);
		next[i] = head == MAP_NONE ? ALIGN_NONE : (uint32_t)head;
		fine = map_set(&waiting, key, i);
	}
	for (uint32_t i = 0; fine && i < b->n_occurrences; i++) {
		uint64_t key = claim_key(al, 1, &b->occurrence[i], any_life), head;

		if (!key)
			continue;
		head = map_get(&waiting, key);
		if (head == MAP_NONE || head == ALIGN_NONE)
			continue;
		pair(al, (uint32_t)head, i);
		fine = map_set(&waiting, key, next[head]);
	}
	map_free(&waiting);
	free(next);
	return fine;
}

/* The n-th donation to a pool pairs with the n-th. Where one run has more lives, their donations follow on each other. */
static bool pair_by_order(struct alignment *al)
{
	struct map nth = { NULL, 0, 0 };
	uint32_t *count = calloc(al->n_groups * 2 + 1, sizeof *count);
	bool fine = count != NULL;

	for (unsigned s = 0; s < 2; s++) {
		for (uint32_t i = 0; fine && i < al->side[s].n_occurrences; i++) {
			struct align_occurrence *o = &al->side[s].occurrence[i];
			uint32_t group = place_of(al, o, lives_mix(al, al->row[o->row].group)), n;
			uint64_t key, mate;

			if (o->at.event == ALIGN_NONE)
				continue;
			n = count[group * 2 + s]++;
			key = (uint64_t)group << 32 | n;
			if (s == 0) {
				fine = map_set(&nth, key, i);
				continue;
			}
			mate = map_get(&nth, key);
			if (mate != MAP_NONE)
				pair(al, (uint32_t)mate, i);
		}
	}
	map_free(&nth);
	free(count);
	return fine;
}

/* ---- pairing of restores ---- */

/* What a restore pairs under, of a side; 0: it pairs otherwise or not at all. */
typedef uint64_t restore_name(const struct alignment *al, unsigned s, uint32_t restore);

static const struct align_occurrence *occurrence_of(const struct alignment *al, unsigned s, uint32_t restore)
{
	return &al->side[s].occurrence[al->side[s].restore[restore].occurrence];
}

static uint64_t claim_of(const struct alignment *al, unsigned s, uint32_t restore, uint64_t within)
{
	const struct model_event *e = align_event(&al->side[s], al->side[s].restore[restore].at);

	return log_mix64(log_mix64(log_mix64(within) + e->key) + (uint64_t)e->claimed_len) | 1;
}

/* The same claim after donations that are mates. */
static uint64_t name_within_pair(const struct alignment *al, unsigned s, uint32_t restore)
{
	const struct align_occurrence *o = occurrence_of(al, s, restore);

	if (o->mate == ALIGN_NONE)
		return 0;
	return claim_of(al, s, restore, 2ull << 32 | (s ? o->mate : al->side[s].restore[restore].occurrence));
}

/* The same claim anywhere in the pool: a slot follows timing, and so does what it held before it was restored. */
static uint64_t name_by_claim(const struct alignment *al, unsigned s, uint32_t restore, bool any_life)
{
	if (!align_event(&al->side[s], al->side[s].restore[restore].at)->key)
		return 0;
	return claim_of(al, s, restore, 1ull << 32 | place_of(al, occurrence_of(al, s, restore), any_life));
}

static uint64_t name_by_key(const struct alignment *al, unsigned s, uint32_t restore)
{
	return name_by_claim(al, s, restore, false);
}

static uint64_t name_in_any_life(const struct alignment *al, unsigned s, uint32_t restore)
{
	return name_by_claim(al, s, restore, true);
}

/* After donations that are mates. */
static uint64_t name_by_pair(const struct alignment *al, unsigned s, uint32_t restore)
{
	const struct align_occurrence *o = occurrence_of(al, s, restore);

	return o->mate == ALIGN_NONE ? 0 : 1ull + (s ? o->mate : al->side[s].restore[restore].occurrence);
}

/* Before the first donation of their slot. */
static uint64_t name_before_first(const struct alignment *al, unsigned s, uint32_t restore)
{
	const struct align_occurrence *o = occurrence_of(al, s, restore);

	return o->at.event == ALIGN_NONE ? 1ull + place_of(al, o, lives_mix(al, al->row[o->row].group)) : 0;
}

/* The n-th restore of a name pairs with the n-th of the same, of those that have no mate yet. */
static bool pair_restores_by(struct alignment *al, restore_name *name)
{
	struct align_side *a = &al->side[0], *b = &al->side[1];
	uint32_t *next = calloc(a->n_restores + 1, sizeof *next);
	struct map waiting = { NULL, 0, 0 };
	bool fine = next != NULL;

	for (uint32_t i = (uint32_t)a->n_restores; fine && i-- > 0;) {
		uint64_t key = a->restore[i].mate == ALIGN_NONE ? name(al, 0, i) : 0, head;

		if (!key)
			continue;
		head = map_get(&waiting, key);
		next[i] = head == MAP_NONE ? ALIGN_NONE : (uint32_t)head;
		fine = map_set(&waiting, key, i);
	}
	for (uint32_t i = 0; fine && i < b->n_restores; i++) {
		uint64_t key = b->restore[i].mate == ALIGN_NONE ? name(al, 1, i) : 0, head;

		if (!key)
			continue;
		head = map_get(&waiting, key);
		if (head == MAP_NONE || head == ALIGN_NONE)
			continue;
		a->restore[head].mate = i;
		b->restore[i].mate = (uint32_t)head;
		fine = map_set(&waiting, key, next[head]);
	}
	map_free(&waiting);
	free(next);
	return fine;
}

static bool pair_restores(struct alignment *al)
{
	if (al->mode == ALIGN_KEY)
		return pair_restores_by(al, name_within_pair) && pair_restores_by(al, name_by_key) &&
		       (!al->several_lives || pair_restores_by(al, name_in_any_life));
	if (!pair_restores_by(al, name_by_pair))
		return false;
	return al->mode != ALIGN_ORDER || pair_restores_by(al, name_before_first);
}

static void count_restores_alone(struct alignment *al)
{
	for (unsigned s = 0; s < 2; s++) {
		al->restores_alone[s] = 0;
		for (size_t i = 0; i < al->side[s].n_restores; i++)
			al->restores_alone[s] += al->side[s].restore[i].mate == ALIGN_NONE;
	}
}

static void count_pairs(struct alignment *al)
{
	al->aligned = al->mismatched = al->alone[0] = al->alone[1] = al->by_key = al->across_lives = 0;
	al->without_key[0] = al->without_key[1] = 0;
	count_restores_alone(al);
	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < al->side[s].n_occurrences; i++) {
			const struct align_occurrence *o = &al->side[s].occurrence[i];
			const struct model_event *e = align_event(&al->side[s], o->at), *mate;
			uint64_t n, keyed;

			if (!e)
				continue;
			n = align_weight(&al->side[s], o->at);
			keyed = e->fold ? model_fold(align_process(&al->side[s], o->at), e).keyed : e->key != 0;
			al->without_key[s] += n - keyed;
			if (o->mate == ALIGN_NONE) {
				al->alone[s]++;
				continue;
			}
			if (s)
				continue;
			mate = align_event(&al->side[1], al->side[1].occurrence[o->mate].at);
			al->across_lives += al->row[o->row].group != al->row[al->side[1].occurrence[o->mate].row].group;
			if (mate && align_same_claim(e, mate)) {
				al->aligned += n;
				al->by_key += keyed;
			} else {
				al->mismatched++;
			}
		}
	}
}

static bool pair_as(struct alignment *al, enum align_mode mode)
{
	bool fine = true;

	unpair(al);
	al->mode = mode;
	if (mode == ALIGN_KEY)
		fine = pair_by_key(al, false) && (!al->several_lives || pair_by_key(al, true));
	else if (mode == ALIGN_ORDER)
		fine = pair_by_order(al);
	else
		pair_by_slot(al);
	fine = fine && pair_restores(al);
	count_pairs(al);
	al->count[mode] =
		(struct align_count) { al->aligned, al->mismatched + al->alone[0] + al->alone[1], .tried = true };
	return fine;
}

/* By slot where keys and lengths prove that it holds; by key where that brings more together. */
static bool pair_auto(struct alignment *al)
{
	if (!pair_as(al, ALIGN_SLOT))
		return false;
	if (!al->count[ALIGN_SLOT].unaligned)
		return true;
	if (!pair_as(al, ALIGN_KEY))
		return false;
	return al->count[ALIGN_KEY].aligned > al->count[ALIGN_SLOT].aligned || pair_as(al, ALIGN_SLOT);
}

/* Where a rest is left, the other ways are tried too: one of them may be proposed. */
static bool try_others(struct alignment *al)
{
	enum align_mode used = al->mode;
	bool fine = true;

	if (!al->count[used].unaligned)
		return true;
	for (int mode = ALIGN_SLOT; fine && mode <= ALIGN_ORDER; mode++) {
		if (!al->count[mode].tried)
			fine = pair_as(al, (enum align_mode)mode);
	}
	return fine && (al->mode == used || pair_as(al, used));
}

enum align_mode align_proposal(const struct alignment *al)
{
	enum align_mode best = al->mode;

	for (int mode = ALIGN_SLOT; mode <= ALIGN_ORDER; mode++) {
		if (al->count[mode].tried && al->count[mode].aligned > al->count[best].aligned)
			best = (enum align_mode)mode;
	}
	return best == al->mode ? ALIGN_AUTO : best;
}

int align_runs(struct alignment *al, const struct model *a, const struct model *b, enum align_mode mode)
{
	memset(al, 0, sizeof *al);
	al->side[0].model = a;
	al->side[1].model = b;
	if (!build_groups(al) || !add_events(al, 0) || !add_events(al, 1) || !add_silent_rows(al) || !sort_rows(al))
		return -1;
	return (mode == ALIGN_AUTO ? pair_auto(al) : pair_as(al, mode)) && try_others(al) ? 0 : -1;
}

void align_free(struct alignment *al)
{
	for (unsigned s = 0; s < 2; s++) {
		struct align_side *side = &al->side[s];

		for (size_t i = 0; side->group_of_pool && i < side->model->n_processes; i++)
			free(side->group_of_pool[i]);
		free(side->group_of_pool);
		free(side->occurrence);
		free(side->restore);
	}
	free(al->group);
	free(al->row);
	map_free(&al->group_index);
	map_free(&al->row_index);
	memset(al, 0, sizeof *al);
}
