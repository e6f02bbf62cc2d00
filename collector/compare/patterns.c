/* SPDX-License-Identifier: Apache-2.0
 *
 * patterns.c: looks for what the differences share. A pattern is said only where something equal lies outside of it:
 * where all differs, nothing is told apart.
 */
#include <string.h>

#include "compare/diff.h"
#include "compare/patterns.h"

/* ---- planes ---- */

static bool add_tensor(struct patterns *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_tensors; i++) {
		if (strcmp(p->tensor[i], name) == 0)
			return true;
	}
	if (p->n_tensors == PATTERN_TENSORS)
		return false;
	p->tensor[p->n_tensors++] = name;
	return true;
}

static const struct model_pool *pool_of_row(const struct diff *diff, const struct diff_row *row)
{
	const struct align_side *side = &diff->al.side[0];

	return &align_process(side, row->shown[0])->pool[align_event(side, row->shown[0])->pool];
}

/* True when the pool has a plane outside of what differs. */
static bool is_part(const struct patterns *p, const struct model_pool *pool)
{
	for (uint32_t i = 0; i < pool->n_planes; i++) {
		const struct model_plane *plane = &pool->plane[i];
		bool named = false;

		for (uint32_t k = 0; k < p->n_tensors; k++)
			named |= strcmp(p->tensor[k], plane->tensor) == 0;
		if (plane->bytes && (!named || plane->layer < p->first_layer || plane->layer > p->last_layer))
			return true;
	}
	return false;
}

static bool is_of(const struct diff *diff, uint32_t row, uint32_t finding)
{
	return diff->row[row].verdict == ROW_DIFFERS && (finding == ALIGN_NONE || diff->row[row].finding == finding);
}

static void find_planes(const struct diff *diff, uint32_t finding, struct patterns *p)
{
	const struct model_pool *pool = NULL;

	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		const struct diff_row *row = &diff->row[i];

		if (!is_of(diff, i, finding))
			continue;
		if (!row->n_planes)
			return;
		for (uint32_t k = 0; k < row->n_planes; k++) {
			const struct model_plane *plane = &pool_of_row(diff, row)->plane[row->plane[k]];

			if (!add_tensor(p, plane->tensor))
				return;
			if (!pool || plane->layer < p->first_layer)
				p->first_layer = plane->layer;
			if (!pool || plane->layer > p->last_layer)
				p->last_layer = plane->layer;
			pool = pool_of_row(diff, row);
		}
	}
	p->planes = pool && is_part(p, pool);
}

/* ---- over the donations of the suspected run ---- */

/* A finding's own differences against all that is equal. */
struct sample {
	const struct diff *diff;
	const struct align_side *side;
	uint32_t finding;
};

enum standing { LEFT_OUT, EQUAL, DIFFERENT };

static enum standing standing_of(const struct sample *s, const struct align_occurrence *o)
{
	if (o->at.event == ALIGN_NONE)
		return LEFT_OUT;
	if (o->differs)
		return is_of(s->diff, o->row, s->finding) ? DIFFERENT : LEFT_OUT;
	return o->equal ? EQUAL : LEFT_OUT;
}

static const struct model_event *event_of(const struct sample *s, const struct align_occurrence *o)
{
	return align_event(s->side, o->at);
}

/* ---- lengths ---- */

static int64_t gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The largest modulus under which all differing lengths leave one remainder: the greatest common divisor of their distances. 0:
 * there are not two lengths among them, or one is negative. */
static int64_t widest_modulus(const struct sample *s, int64_t *length)
{
	int64_t widest = 0;
	bool any = false;

	for (size_t i = 0; i < s->side->n_occurrences; i++) {
		const struct align_occurrence *o = &s->side->occurrence[i];
		int64_t claimed;

		if (standing_of(s, o) != DIFFERENT)
			continue;
		claimed = event_of(s, o)->claimed_len;
		if (claimed < 0)
			return 0;
		if (any)
			widest = gcd(claimed > *length ? claimed - *length : *length - claimed, widest);
		else
			*length = claimed;
		any = true;
	}
	return widest;
}

/* Nothing equal leaves that remainder. Few donations split by chance. */
static bool no_equal_has(const struct sample *s, int64_t modulus, int64_t remainder)
{
	uint64_t equal = 0;

	for (size_t i = 0; i < s->side->n_occurrences; i++) {
		const struct align_occurrence *o = &s->side->occurrence[i];

		if (standing_of(s, o) != EQUAL)
			continue;
		if (event_of(s, o)->claimed_len % modulus == remainder)
			return false;
		equal++;
	}
	return equal > 1;
}

/* Pages are powers of two; a checkpoint interval may be anything, and then it is the widest modulus itself. */
static void find_lengths(const struct sample *s, struct patterns *p)
{
	int64_t length = 0, widest = widest_modulus(s, &length);

	for (int64_t modulus = 2; widest && modulus <= 4096; modulus *= 2) {
		if (widest % modulus || !no_equal_has(s, modulus, length % modulus))
			continue;
		p->modulus = modulus;
		p->remainder = length % modulus;
		return;
	}
	if (widest > 2 && no_equal_has(s, widest, length % widest)) {
		p->modulus = widest;
		p->remainder = length % widest;
	}
}

/* ---- what a donation has or has not ---- */

/* 1 it has, 0 it has not, -1 nobody knows. */
typedef int has_trait(const struct sample *s, const struct align_occurrence *o);

static int is_padded(const struct sample *s, const struct align_occurrence *o)
{
	const struct model_step *step = model_step(align_process(s->side, o->at), event_of(s, o)->step);

	if (!step || step->batch < 0 || step->padded < step->batch)
		return -1;
	return step->padded > step->batch;
}

static int is_reused(const struct sample *s, const struct align_occurrence *o)
{
	(void)s;
	return o->reused;
}

static int is_restored(const struct sample *s, const struct align_occurrence *o)
{
	(void)s;
	return o->restored;
}

/* Every difference has it, and something equal has it not. */
static bool tells_apart(const struct sample *s, has_trait *has)
{
	bool with = false, without = false;

	for (size_t i = 0; i < s->side->n_occurrences; i++) {
		const struct align_occurrence *o = &s->side->occurrence[i];
		enum standing standing = standing_of(s, o);

		if (standing == DIFFERENT && has(s, o) != 1)
			return false;
		with |= standing == DIFFERENT;
		without |= standing == EQUAL && has(s, o) == 0;
	}
	return with && without;
}

/* ---- ranks ---- */

static const char *only_rank(const struct sample *s)
{
	const char *rank = NULL;
	bool others = false;

	for (uint32_t i = 0; i < s->diff->al.n_rows; i++) {
		const char *of = s->diff->al.group[s->diff->al.row[i].group].rank;

		if (!is_of(s->diff, i, s->finding))
			continue;
		if (rank && strcmp(rank, of) != 0)
			return NULL;
		rank = of;
	}
	for (uint32_t i = 0; rank && i < s->diff->al.n_rows && !others; i++)
		others = s->diff->row[i].verdict == ROW_EQUAL &&
			 strcmp(rank, s->diff->al.group[s->diff->al.row[i].group].rank) != 0;
	return others ? rank : NULL;
}

void find_patterns(const struct diff *diff, uint32_t finding, struct patterns *p)
{
	struct sample s = { .diff = diff, .side = &diff->al.side[diff->suspect], .finding = finding };

	memset(p, 0, sizeof *p);
	if (!diff->summary.differs)
		return;
	find_planes(diff, finding, p);
	find_lengths(&s, p);
	p->padded = tells_apart(&s, is_padded);
	p->reused = tells_apart(&s, is_reused);
	p->restored = tells_apart(&s, is_restored);
	p->rank = only_rank(&s);
}
