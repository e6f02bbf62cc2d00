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

static void find_planes(const struct diff *diff, struct patterns *p)
{
	const struct model_pool *pool = NULL;

	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		const struct diff_row *row = &diff->row[i];

		if (row->verdict != ROW_DIFFERS)
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

/* ---- lengths and batches: over the donations of the suspected run ---- */

static const struct model_event *event_of(const struct align_side *side, const struct align_occurrence *o)
{
	return o->at.event != ALIGN_NONE && (o->differs || o->equal) ? align_event(side, o->at) : NULL;
}

/* Every difference has the remainder of the first one, there are two lengths among them, and nothing equal has it. */
static bool splits_by(const struct align_side *side, int64_t modulus, int64_t *remainder)
{
	uint64_t equal = 0;
	int64_t length = 0, of = -1;
	bool lengths_differ = false;

	for (size_t i = 0; i < side->n_occurrences; i++) {
		const struct model_event *e = event_of(side, &side->occurrence[i]);

		if (!e || !side->occurrence[i].differs)
			continue;
		if (e->claimed_len < 0 || (of >= 0 && e->claimed_len % modulus != of))
			return false;
		lengths_differ |= of >= 0 && e->claimed_len != length;
		of = e->claimed_len % modulus;
		length = e->claimed_len;
	}
	for (size_t i = 0; i < side->n_occurrences; i++) {
		const struct model_event *e = event_of(side, &side->occurrence[i]);

		if (!e || side->occurrence[i].differs)
			continue;
		if (e->claimed_len % modulus == of)
			return false;
		equal++;
	}
	*remainder = of;
	/* Few donations split by chance. */
	return lengths_differ && equal > 1;
}

static void find_lengths(const struct align_side *side, struct patterns *p)
{
	for (int64_t modulus = 2; modulus <= 4096; modulus *= 2) {
		if (!splits_by(side, modulus, &p->remainder))
			continue;
		p->modulus = modulus;
		return;
	}
}

static void find_padded(const struct align_side *side, struct patterns *p)
{
	bool padded_difference = false, unpadded_equal = false;

	for (size_t i = 0; i < side->n_occurrences; i++) {
		const struct align_occurrence *o = &side->occurrence[i];
		const struct model_event *e = event_of(side, o);
		const struct model_step *step = e ? model_step(align_process(side, o->at), e->step) : NULL;

		if (!e)
			continue;
		if (o->differs) {
			if (!step || step->batch < 0 || step->padded <= step->batch)
				return;
			padded_difference = true;
		} else if (step && step->batch >= 0 && step->padded == step->batch) {
			unpadded_equal = true;
		}
	}
	p->padded = padded_difference && unpadded_equal;
}

void find_patterns(const struct diff *diff, struct patterns *p)
{
	memset(p, 0, sizeof *p);
	if (!diff->summary.differs)
		return;
	find_planes(diff, p);
	find_lengths(&diff->al.side[diff->suspect], p);
	find_padded(&diff->al.side[diff->suspect], p);
}
