/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c: for each row that differs: which planes, and whose bytes they hold.
 *
 * Everything here speaks of the differing planes only. The side that the arms make suspect is explained first, the
 * other only when nothing can be said of the first. Rows go in batches: their planes are read again from the logs, then all
 * searches of the batch are answered in one pass.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/diff.h"
#include "compare/find.h"
#include "compare/history.h"
#include "compare/sight.h"

#define BATCH_BYTES (256u << 20)
#define DTYPE_RAW   8 /* SLOTPROBE_RAW: bytes without a value, whose abs-max says nothing */

struct target {
	uint32_t row, n_planes;
	struct log_plane_print *plane[2]; /* by each pool's own index */
	uint32_t question[2];             /* where else are the bytes of this side; ALIGN_NONE: not asked */
	bool zero[2];
};

struct across { /* index of run A's plane -> index of run B's, of these two pools */
	uint32_t *plane;
	const struct model_pool *of[2];
};

struct explainer {
	struct diff *diff;
	struct target *target;
	uint32_t n_targets;
	struct across *across; /* [group] */
	struct find find;
	struct sights sights;
	struct map wanted[2]; /* (process, log number) -> target */
	struct map paired[2]; /* (process, event) of the donations that have a mate */
	struct history history;
};

static uint32_t group_of(const struct explainer *x, const struct target *t)
{
	return x->diff->al.row[t->row].group;
}

/* The pool as the process that the event is of registered it. */
static const struct model_pool *pool_of(const struct explainer *x, const struct target *t, unsigned s)
{
	const struct diff_row *row = &x->diff->row[t->row];
	const struct align_side *side = &x->diff->al.side[s];

	return &align_process(side, row->shown[s])->pool[align_event(side, row->shown[s])->pool];
}

/* ---- the planes of both sides ---- */

struct collect {
	struct explainer *x;
	unsigned side;
	uint32_t process;
};

static bool collect_part(void *arg, const struct log_fingerprint *part, uint32_t number)
{
	struct collect *c = arg;
	uint64_t at = map_get(&c->x->wanted[c->side], (uint64_t)c->process << 32 | number);
	struct target *t;

	if (at == MAP_NONE)
		return true;
	t = &c->x->target[at];
	for (uint32_t i = 0; i < part->n_planes && part->first_plane + i < t->n_planes; i++)
		t->plane[c->side][part->first_plane + i] = part->plane[i];
	return true;
}

static bool want(struct explainer *x, uint32_t index, unsigned s)
{
	struct target *t = &x->target[index];
	struct align_ref at = x->diff->row[t->row].shown[s];
	const struct model_process *p = align_process(&x->diff->al.side[s], at);
	const struct model_print *print = model_subject(p, align_event(&x->diff->al.side[s], at));

	t->plane[s] = calloc(t->n_planes, sizeof *t->plane[s]);
	return t->plane[s] && map_set(&x->wanted[s], (uint64_t)at.process << 32 | print->number, index);
}

static int collect_planes(struct explainer *x, struct error *err)
{
	for (uint32_t i = 0; i < x->n_targets; i++) {
		if (!want(x, i, 0) || !want(x, i, 1)) {
			error_set(err, "out of memory");
			return -1;
		}
	}
	for (unsigned s = 0; s < 2; s++) {
		const struct model *model = x->diff->al.side[s].model;

		for (uint32_t p = 0; p < model->n_processes; p++) {
			struct collect c = { x, s, p };

			if (model_planes(&model->process[p], collect_part, &c, err) != 0)
				return -1;
		}
	}
	return 0;
}

/* ---- which of them differ ---- */

static bool map_planes(struct explainer *x, const struct target *t)
{
	const struct model_pool *a = pool_of(x, t, 0), *b = pool_of(x, t, 1);
	struct map index = { NULL, 0, 0 };
	uint32_t *across;
	bool fine;

	if (x->across[group_of(x, t)].of[0] == a && x->across[group_of(x, t)].of[1] == b)
		return true;
	across = calloc(t->n_planes, sizeof *across);
	fine = across != NULL;

	for (uint32_t i = 0; fine && i < t->n_planes; i++)
		fine = map_set(&index, b->plane[i].identity, i);
	for (uint32_t i = 0; fine && i < t->n_planes; i++) {
		uint64_t at = map_get(&index, a->plane[i].identity);
		fine = at != MAP_NONE;
		across[i] = (uint32_t)at;
	}
	map_free(&index);
	free(x->across[group_of(x, t)].plane);
	x->across[group_of(x, t)] = (struct across) { across, { a, b } };
	return fine;
}

static const struct log_plane_print *plane_of(const struct explainer *x, const struct target *t, unsigned s, uint32_t i)
{
	return &t->plane[s][s ? x->across[group_of(x, t)].plane[i] : i];
}

static bool is_zero(const struct explainer *x, const struct target *t, unsigned s)
{
	const struct diff_row *row = &x->diff->row[t->row];

	for (uint32_t i = 0; i < row->n_planes; i++) {
		const struct log_plane_print *p = plane_of(x, t, s, row->plane[i]);

		if (p->absmax != 0 || p->nan || p->inf || pool_of(x, t, 0)->plane[row->plane[i]].dtype == DTYPE_RAW)
			return false;
	}
	return row->n_planes > 0;
}

static bool find_differing(struct explainer *x, struct target *t)
{
	struct diff_row *row = &x->diff->row[t->row];

	if (!map_planes(x, t))
		return false;
	row->plane = calloc(t->n_planes, sizeof *row->plane);
	if (!row->plane)
		return false;
	for (uint32_t i = 0; i < t->n_planes; i++) {
		if (memcmp(plane_of(x, t, 0, i), plane_of(x, t, 1, i), sizeof(struct log_plane_print)) != 0)
			row->plane[row->n_planes++] = i;
	}
	row->rollup_alone = !row->n_planes;
	return true;
}

/* ---- asking where the bytes are ---- */

/* Zeros lie everywhere: to find them elsewhere says nothing. */
static bool ask(struct explainer *x, struct target *t)
{
	const struct diff_row *row = &x->diff->row[t->row];
	uint64_t *identity = calloc(row->n_planes + 1, sizeof *identity),
		 *hash = calloc(row->n_planes + 1, sizeof *hash);
	bool fine = identity && hash;

	for (unsigned s = 0; fine && s < 2; s++) {
		t->zero[s] = is_zero(x, t, s);
		t->question[s] = ALIGN_NONE;
		if (t->zero[s] || !row->n_planes)
			continue;
		for (uint32_t i = 0; i < row->n_planes; i++) {
			identity[i] = pool_of(x, t, 0)->plane[row->plane[i]].identity;
			hash[i] = plane_of(x, t, s, row->plane[i])->hash;
		}
		t->question[s] =
			find_ask(&x->find, x->diff->al.group[group_of(x, t)].kin, row->n_planes, identity, hash);
		fine = t->question[s] != ALIGN_NONE;
	}
	free(identity);
	free(hash);
	return fine;
}

/* ---- what the answers mean ---- */

/* The case at hand: this row, with one side thought wrong. */
struct suspicion {
	struct explainer *x;
	const struct target *t;
	struct diff_row *row;
	unsigned wrong, right;
	const struct model_event *e[2];
	const struct model_event *stale; /* the claim that the bytes are left of, once that is known */
	uint32_t found;                  /* explanations added */
};

static bool sighting_at(const struct suspicion *c, unsigned asked, uint32_t match, struct sighting *s)
{
	return sight_of(&c->x->sights, c->t->question[asked], match, s);
}

/* Where else the bytes of the side that is asked about lie. */
static struct sight_list list_of(struct suspicion *c, unsigned asked, enum sight_kind kind, uint64_t a, uint64_t b,
				 uint64_t cc, uint64_t d)
{
	return sight_list(&c->x->sights, c->t->question[asked], kind, a, b, cc, d);
}

/* Slots of another process are other memory, whatever their numbers. */
static bool in_process_of(const struct suspicion *c, const struct sighting *s)
{
	return s->at.process == c->row->shown[s->side].process;
}

/* The same content, rightly: a claim of the same key at the same length. */
static bool is_same_claim(const struct suspicion *c, const struct sighting *s)
{
	const struct model_event *e = c->e[c->wrong];

	return sight_is_claim(s) && e->key && s->e->key == e->key && s->e->claimed_len == e->claimed_len;
}

/* The previous owner's claim, wherever else it was seen: stale says it already. */
static bool is_stale_claim(const struct suspicion *c, const struct sighting *s)
{
	return c->stale && c->stale->key == s->e->key && c->stale->claimed_len == s->e->claimed_len;
}

/* An earlier fingerprint of this very slot, in the wrong run. */
static bool is_own_past(const struct suspicion *c, const struct sighting *s)
{
	const struct model_event *e = c->e[c->wrong];

	return s->side == c->wrong && in_process_of(c, s) && s->print->slot == e->slot && s->e->pool == e->pool &&
	       s->e->id < e->id && !is_same_claim(c, s);
}

static void explain(struct suspicion *c, enum explain_kind kind, const struct sighting *s, bool since_alloc)
{
	struct explanation *x = &c->row->explain[c->row->n_explain++];

	*x = (struct explanation) { .kind = kind, .side = c->wrong, .since_alloc = since_alloc };
	c->found++;
	if (!s)
		return;
	x->has_event = true;
	x->event_side = s->side;
	x->event = s->at;
	x->slot = s->print ? s->print->slot : s->e->slot;
	x->role = s->print ? s->print->role : LOG_ROLE_SUBJECT;
}

/* The first event of this slot that had NaN or Inf, up to the one at hand. */
static void explain_non_finite(struct suspicion *c)
{
	const struct align_side *side = &c->x->diff->al.side[c->wrong];
	struct align_ref at = c->row->shown[c->wrong];
	struct sighting s = { .side = c->wrong, .at = at, .p = align_process(side, at) };
	uint64_t wrong = 0, right = 0;

	for (uint32_t i = 0; i < c->row->n_planes; i++) {
		const struct log_plane_print *w = plane_of(c->x, c->t, c->wrong, c->row->plane[i]);
		const struct log_plane_print *r = plane_of(c->x, c->t, c->right, c->row->plane[i]);

		wrong += w->nan != 0 || w->inf != 0;
		right += r->nan != 0 || r->inf != 0;
	}
	if (!wrong || right)
		return;
	for (s.at.event = history_first(&c->x->history, c->wrong, at); s.at.event <= at.event;
	     s.at.event = history_next(&c->x->history, c->wrong, s.at)) {
		s.e = &s.p->event[s.at.event];
		s.print = model_subject(s.p, s.e);
		if (!s.print || !(s.print->nan || s.print->inf))
			continue;
		explain(c, EXPLAIN_NON_FINITE, &s, false);
		return;
	}
}

/* The event at hand itself is the proof of zeros. */
static void explain_zero(struct suspicion *c)
{
	const struct align_side *side = &c->x->diff->al.side[c->wrong];
	struct sighting s = { .side = c->wrong, .at = c->row->shown[c->wrong] };

	if (!c->t->zero[c->wrong] || c->t->zero[c->right])
		return;
	s.p = align_process(side, s.at);
	s.e = c->e[c->wrong];
	s.print = model_subject(s.p, s.e);
	explain(c, EXPLAIN_ZERO, &s, false);
}

/* What best proves staleness: a donation, then a restore, then the allocation. */
static int proof(const struct sighting *s)
{
	return sight_is_claim(s) ? 1 + (s->e->kind == LOG_EV_DONATE) : 0;
}

/* Whether the slot was allocated anew after the allocation `a`: what it held then proves nothing of this owner. */
static bool allocated_again(const struct suspicion *c, const struct sighting *a)
{
	struct align_ref at = c->row->shown[c->wrong];
	uint32_t last = at.event;

	for (at.event = history_first(&c->x->history, c->wrong, at); at.event < last;
	     at.event = history_next(&c->x->history, c->wrong, at)) {
		if (at.event > a->at.event && a->p->event[at.event].kind == LOG_EV_ALLOC)
			return true;
	}
	return false;
}

/* The latest earlier holder of the slot that had the same bytes. */
static void explain_stale(struct suspicion *c)
{
	const struct model_event *e = c->e[c->wrong];
	struct sight_list own = list_of(c, c->wrong, SIGHT_OF_SLOT, c->wrong, c->row->shown[c->wrong].process, e->pool,
					(uint64_t)e->slot);
	struct sighting s, best = { .e = NULL }, alloc = { .e = NULL };

	for (uint32_t i = 0; i < own.n; i++) {
		if (!sighting_at(c, c->wrong, own.match[i], &s) || !is_own_past(c, &s))
			continue;
		if (s.e->kind == LOG_EV_ALLOC && (!alloc.e || s.e->id > alloc.e->id))
			alloc = s;
		if (!best.e || proof(&s) > proof(&best) || (proof(&s) == proof(&best) && s.e->id > best.e->id))
			best = s;
	}
	if (!best.e)
		return;
	explain(c, EXPLAIN_STALE, &best, alloc.e && !allocated_again(c, &alloc));
	if (sight_is_claim(&best))
		c->stale = best.e;
}

/* From the moment at hand on that side. */
static uint64_t distance(const struct suspicion *c, const struct sighting *s)
{
	uint64_t a = s->e->id, b = c->e[s->side]->id;

	return a > b ? a - b : b - a;
}

/* What a sighting may be: what is sought, not that, or neither that nor any other of the same claim. */
enum fitness { FITS, FITS_NOT, CLAIM_FITS_NOT };
typedef enum fitness fits(const struct suspicion *c, const struct sighting *s);

/* The nearest to the moment at hand in a list of one process by moment; of two as near the one that was found first. */
static bool nearest(struct suspicion *c, unsigned asked, struct sight_list list, uint64_t id, fits *fit,
		    struct sighting *best)
{
	uint32_t from = sight_from(&c->x->sights, c->t->question[asked], &list, id);
	struct sighting s, before = { .e = NULL };
	enum fitness found = FITS_NOT;

	best->e = NULL;
	for (uint32_t i = from; i < list.n && !best->e; i = found == CLAIM_FITS_NOT ? list.next[i] : i + 1) {
		found = sighting_at(c, asked, list.match[i], &s) ? fit(c, &s) : FITS_NOT;
		if (found == FITS)
			*best = s;
	}
	for (uint32_t i = from ? from - 1 : SIGHT_END; i != SIGHT_END; i = found == CLAIM_FITS_NOT ? list.previous[i]
									   : i                     ? i - 1
												   : SIGHT_END) {
		found = sighting_at(c, asked, list.match[i], &s) ? fit(c, &s) : FITS_NOT;
		/* An event may have been sighted more than once. */
		if (before.e && s.e != before.e)
			break;
		if (found == FITS)
			before = s;
	}
	if (before.e && (!best->e || distance(c, &before) < distance(c, best) ||
			 (distance(c, &before) == distance(c, best) && before.order < best->order)))
		*best = before;
	return best->e != NULL;
}

static enum fitness is_anothers(const struct suspicion *c, const struct sighting *s)
{
	if (is_same_claim(c, s) || is_stale_claim(c, s))
		return CLAIM_FITS_NOT;
	return in_process_of(c, s) && s->print->slot == c->e[c->right]->slot ? FITS_NOT : FITS;
}

/* What the other run claims for another slot, nearest to the moment at hand; of another life any. */
static bool holds_anothers(struct suspicion *c, struct sighting *best)
{
	struct sight_list list =
		list_of(c, c->wrong, SIGHT_CLAIMS_NEAR, c->right, c->row->shown[c->right].process, 0, 0);
	enum fitness found = FITS_NOT;

	if (nearest(c, c->wrong, list, c->e[c->right]->id, is_anothers, best))
		return true;
	if (!c->x->diff->al.several_lives)
		return false;
	list = list_of(c, c->wrong, SIGHT_CLAIMS, c->right, 0, 0, 0);
	for (uint32_t i = 0; i < list.n; i = found == CLAIM_FITS_NOT ? list.next[i] : i + 1) {
		found = sighting_at(c, c->wrong, list.match[i], best) ? is_anothers(c, best) : FITS_NOT;
		if (found == FITS)
			return true;
	}
	return false;
}

static enum fitness is_elsewhere(const struct suspicion *c, const struct sighting *s)
{
	if (is_same_claim(c, s))
		return CLAIM_FITS_NOT;
	return s->print->slot == c->e[c->wrong]->slot ? FITS_NOT : FITS;
}

/* The right bytes, in another slot of the wrong run: best where the watched slots show them at this very event. */
static bool right_bytes_elsewhere(struct suspicion *c, struct sighting *best)
{
	struct sight_list list = list_of(c, c->right, SIGHT_ELSEWHERE, c->wrong, c->row->shown[c->wrong].process,
					 c->row->shown[c->right].process, 0);

	return nearest(c, c->right, list, c->e[c->wrong]->id, is_elsewhere, best);
}

/* Bytes of another length may be the right ones of that length, and an allocation shows only what was left: then the place
 * proves nothing. A watched slot, a slot that the same step wrote and a claim of the same length do. */
static bool only_the_place(const struct suspicion *c, const struct sighting *s)
{
	const struct model_event *e = c->e[c->wrong];

	if (s->print->role == LOG_ROLE_WATCHED)
		return true;
	if (!sight_is_claim(s))
		return false;
	return s->e->claimed_len == e->claimed_len || (s->side == c->wrong && e->step && s->e->step == e->step);
}

static void explain_misplaced(struct suspicion *c)
{
	struct sighting s;

	if (!right_bytes_elsewhere(c, &s) && !holds_anothers(c, &s))
		return;
	explain(c, EXPLAIN_MISPLACED, &s, false);
	c->row->explain[c->row->n_explain - 1].strong = only_the_place(c, &s);
}

/* The first of a list that is of another length, and not what lay in the slot before: that is stale already. */
static bool first_of_another_length(struct suspicion *c, struct sight_list list, struct sighting *s)
{
	for (uint32_t i = 0; i < list.n;) {
		if (!sighting_at(c, c->wrong, list.match[i], s))
			i++;
		else if (s->e->claimed_len == c->e[c->wrong]->claimed_len)
			i = list.next_length[i];
		else if (is_stale_claim(c, s))
			i = list.next[i];
		else if (is_own_past(c, s))
			i++;
		else
			return true;
	}
	return false;
}

/* A checkpoint at another length, of the same key if there is one. */
static void explain_wrong_length(struct suspicion *c)
{
	uint64_t key = c->e[c->wrong]->key;
	struct sighting s;

	if ((key && first_of_another_length(c, list_of(c, c->wrong, SIGHT_CREDIBLE_OF_KEY, c->wrong, key, 0, 0), &s)) ||
	    first_of_another_length(c, list_of(c, c->wrong, SIGHT_CREDIBLE, c->wrong, 0, 0, 0), &s))
		explain(c, EXPLAIN_WRONG_LENGTH, &s, false);
}

static uint32_t suspect(struct explainer *x, const struct target *t, unsigned wrong)
{
	struct suspicion c = { .x = x, .t = t, .row = &x->diff->row[t->row], .wrong = wrong, .right = !wrong };

	for (unsigned s = 0; s < 2; s++)
		c.e[s] = align_event(&x->diff->al.side[s], c.row->shown[s]);
	explain_non_finite(&c);
	explain_zero(&c);
	explain_stale(&c);
	explain_misplaced(&c);
	explain_wrong_length(&c);
	return c.found;
}

/* The run gave these bytes to the same claim another time too: it is consistent with itself. */
static bool is_consistent(struct explainer *x, const struct target *t, unsigned side)
{
	struct suspicion c = { .x = x, .t = t, .row = &x->diff->row[t->row], .wrong = side };
	struct sight_list same;
	struct sighting s;

	c.e[side] = align_event(&x->diff->al.side[side], c.row->shown[side]);
	if (!c.e[side]->key)
		return false;
	same = list_of(&c, side, SIGHT_OF_CLAIM, side, c.e[side]->key, (uint64_t)c.e[side]->claimed_len, 0);
	for (uint32_t i = 0; i < same.n; i++) {
		if (sighting_at(&c, side, same.match[i], &s) && s.e != c.e[side])
			return true;
	}
	return false;
}

static void explain_target(struct explainer *x, const struct target *t)
{
	struct diff_row *row = &x->diff->row[t->row];
	unsigned first = x->diff->suspect;

	if (suspect(x, t, first))
		return;
	if (!(x->diff->told_by_arm && is_consistent(x, t, !first)) && suspect(x, t, !first))
		return;
	row->explain[row->n_explain++] = (struct explanation) { .kind = EXPLAIN_UNKNOWN, .side = first };
}

/* ---- batches ---- */

static void batch_free(struct explainer *x)
{
	for (uint32_t i = 0; i < x->n_targets; i++) {
		free(x->target[i].plane[0]);
		free(x->target[i].plane[1]);
	}
	x->n_targets = 0;
	map_free(&x->wanted[0]);
	map_free(&x->wanted[1]);
	sights_free(&x->sights);
	find_free(&x->find);
	x->find.al = &x->diff->al;
}

static int explain_batch(struct explainer *x, struct error *err)
{
	int status = collect_planes(x, err);

	for (uint32_t i = 0; status == 0 && i < x->n_targets; i++) {
		if (!find_differing(x, &x->target[i]) || !ask(x, &x->target[i])) {
			error_set(err, "out of memory");
			status = -1;
		}
	}
	if (status == 0)
		status = find_answer(&x->find, err);
	for (uint32_t i = 0; status == 0 && i < x->n_targets; i++) {
		/* The map of planes is that of the group's last row: make this row's again. */
		if (!map_planes(x, &x->target[i])) {
			error_set(err, "out of memory");
			status = -1;
			break;
		}
		explain_target(x, &x->target[i]);
	}
	if (status == 0 && x->sights.no_memory) {
		error_set(err, "out of memory");
		status = -1;
	}
	batch_free(x);
	return status;
}

static int explain_all(struct explainer *x, struct error *err)
{
	struct diff *diff = x->diff;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		struct target *t = &x->target[x->n_targets];

		if (diff->row[i].verdict != ROW_DIFFERS)
			continue;
		*t = (struct target) { .row = i };
		t->n_planes = pool_of(x, t, 0)->n_planes;
		x->n_targets++;
		bytes += 2ull * t->n_planes * sizeof(struct log_plane_print);
		if (bytes < BATCH_BYTES)
			continue;
		if (explain_batch(x, err) != 0)
			return -1;
		bytes = 0;
	}
	return x->n_targets ? explain_batch(x, err) : 0;
}

static bool note_paired(struct explainer *x)
{
	for (unsigned s = 0; s < 2; s++) {
		const struct align_side *side = &x->diff->al.side[s];

		for (size_t i = 0; i < side->n_occurrences; i++) {
			const struct align_occurrence *o = &side->occurrence[i];

			if (o->mate != ALIGN_NONE && o->at.event != ALIGN_NONE &&
			    !map_set(&x->paired[s], (uint64_t)o->at.process << 32 | o->at.event, 1))
				return false;
		}
	}
	return true;
}

int explain_rows(struct diff *diff, struct error *err)
{
	struct explainer x = { .diff = diff, .find = { .al = &diff->al } };
	int status = -1;

	if (!diff->summary.differs)
		return 0;
	x.target = calloc(diff->al.n_rows + 1, sizeof *x.target);
	x.across = calloc(diff->al.n_groups + 1, sizeof *x.across);
	x.sights = (struct sights) { .al = &diff->al, .find = &x.find, .paired = x.paired };
	if (x.target && x.across && note_paired(&x) && history_make(&x.history, &diff->al))
		status = explain_all(&x, err);
	else
		error_set(err, "out of memory");
	for (size_t i = 0; x.across && i < diff->al.n_groups; i++)
		free(x.across[i].plane);
	free(x.across);
	free(x.target);
	history_free(&x.history);
	map_free(&x.paired[0]);
	map_free(&x.paired[1]);
	return status;
}
