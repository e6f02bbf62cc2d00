/* SPDX-License-Identifier: Apache-2.0
 *
 * judge.c: a verdict for each row, from the pairs that the alignment made.
 */
#include <string.h>

#include "compare/judge.h"

static enum row_verdict judge_unmeasured(const struct diff *diff, unsigned s, struct align_ref at)
{
	const struct model_process *p = align_process(&diff->al.side[s], at);
	const struct model_event *e = align_event(&diff->al.side[s], at);

	/* It was to follow, and the log ends before it. */
	if (e->outcome == CTR_COMMITTED && !model_subject(p, e) && !p->ended)
		return ROW_TRUNCATED;
	return ROW_LOST;
}

static bool same_print(const struct model_print *a, const struct model_print *b)
{
	return a->rollup == b->rollup && a->digest == b->digest;
}

static enum row_verdict judge_measured(const struct diff *diff, uint32_t group, struct align_ref a, struct align_ref b)
{
	struct align_ref at[2] = { a, b };
	const struct model_event *e[2];
	const struct model_print *print[2];

	for (unsigned s = 0; s < 2; s++) {
		const struct model_process *p = align_process(&diff->al.side[s], at[s]);

		e[s] = align_event(&diff->al.side[s], at[s]);
		if (!model_measured(p, e[s]))
			return judge_unmeasured(diff, s, at[s]);
		print[s] = model_subject(p, e[s]);
	}
	if (!align_same_claim(e[0], e[1]) || !diff->al.group[group].same_layout)
		return ROW_INCOMPARABLE;
	return same_print(print[0], print[1]) ? ROW_EQUAL : ROW_DIFFERS;
}

bool judge_differs(const struct diff *diff, uint32_t group, struct align_ref a, struct align_ref b)
{
	return judge_measured(diff, group, a, b) == ROW_DIFFERS;
}

/* The same, but for what was found to be near enough. */
static enum row_verdict judge_events(const struct diff *diff, uint32_t group, struct align_ref a, struct align_ref b)
{
	enum row_verdict verdict = judge_measured(diff, group, a, b);

	if (verdict == ROW_DIFFERS && map_get(&diff->near, (uint64_t)a.process << 32 | a.event) != MAP_NONE)
		return ROW_WITHIN_TOLERANCE;
	return verdict;
}

/* A measured difference outweighs all; then what is nearest to having been compared. */
static unsigned weight(enum row_verdict verdict)
{
	static const unsigned char weight_of[ROW_VERDICT_COUNT] = {
		[ROW_EQUAL] = 0,     [ROW_UNPAIRED] = 1,        [ROW_NEVER_FIRED_A] = 2, [ROW_NEVER_FIRED_B] = 2,
		[ROW_LOST] = 3,      [ROW_TRUNCATED] = 4,       [ROW_INCOMPARABLE] = 5,  [ROW_NEVER_FIRED_BOTH] = 2,
		[ROW_DIFFERS] = 255, [ROW_WITHIN_TOLERANCE] = 6
	};

	return weight_of[verdict];
}

bool row_is_missing(enum row_verdict verdict)
{
	return verdict != ROW_EQUAL && weight(verdict) <= weight(ROW_NEVER_FIRED_A);
}

/* Shows the pair if it says more than what the row shows so far, or the same of a later occurrence where it is no
 * difference. */
static void row_take(struct diff_row *row, enum row_verdict verdict, const struct align_ref *a,
		     const struct align_ref *b, uint32_t number, bool restore)
{
	bool first = !row->has[0] && !row->has[1];

	if (!first && weight(verdict) < weight(row->verdict))
		return;
	if (!first && verdict == ROW_DIFFERS && row->verdict == ROW_DIFFERS)
		return;
	/* Where all is equal the donation is shown, not the restore after it. */
	if (!first && restore && verdict == row->verdict)
		return;
	row->verdict = verdict;
	row->has[0] = a != NULL;
	row->has[1] = b != NULL;
	if (a)
		row->shown[0] = *a;
	if (b)
		row->shown[1] = *b;
	row->number = number;
	row->shows_restore = restore;
}

/* Restores are part of the occurrence: what they say is added to it. A pair of restores speaks on run A's side. */
static void judge_restores(struct diff *diff, struct diff_row *row, unsigned s, struct align_occurrence *o)
{
	for (uint32_t i = o->restore; i != ALIGN_NONE; i = diff->al.side[s].restore[i].next) {
		struct align_restore *x = &diff->al.side[s].restore[i], *y = NULL;
		enum row_verdict verdict = ROW_UNPAIRED;

		if (x->mate != ALIGN_NONE) {
			if (s)
				continue;
			y = &diff->al.side[1].restore[x->mate];
			verdict = judge_events(diff, diff->al.row[o->row].group, x->at, y->at);
			x->differs = y->differs = verdict == ROW_DIFFERS;
		} else if (!model_measured(align_process(&diff->al.side[s], x->at),
					   align_event(&diff->al.side[s], x->at))) {
			verdict = judge_unmeasured(diff, s, x->at);
		}
		o->equal &= verdict == ROW_EQUAL;
		o->differs |= verdict == ROW_DIFFERS;
		row_take(row, verdict, s ? NULL : &x->at, s ? &x->at : y ? &y->at : NULL, o->number, true);
	}
}

static void judge_pair(struct diff *diff, struct diff_row *row, struct align_occurrence *a, struct align_occurrence *b)
{
	enum row_verdict verdict = ROW_EQUAL;

	if (a->at.event != ALIGN_NONE) {
		uint64_t n = align_weight(&diff->al.side[0], a->at);

		row->paired += (uint32_t)n;
		verdict = judge_events(diff, diff->al.row[a->row].group, a->at, b->at);
		row_take(row, verdict, &a->at, &b->at, a->number, false);
		if (verdict == ROW_EQUAL || verdict == ROW_DIFFERS || verdict == ROW_WITHIN_TOLERANCE)
			diff->measured += n;
	}
	a->equal = verdict == ROW_EQUAL;
	a->differs = verdict == ROW_DIFFERS;
	judge_restores(diff, row, 0, a);
	b->equal = a->equal;
	b->differs = a->differs;
	judge_restores(diff, row, 1, b);
	a->equal = b->equal;
}

/* An occurrence without a mate: lost if it was not measured anyway. */
static void judge_alone(struct diff *diff, struct diff_row *row, unsigned s, struct align_occurrence *o)
{
	enum row_verdict verdict = ROW_UNPAIRED;

	if (o->at.event != ALIGN_NONE) {
		if (!model_measured(align_process(&diff->al.side[s], o->at), align_event(&diff->al.side[s], o->at)))
			verdict = judge_unmeasured(diff, s, o->at);
		row_take(row, verdict, s ? NULL : &o->at, s ? &o->at : NULL, o->number, false);
	}
	judge_restores(diff, row, s, o);
}

static void judge_row(struct diff *diff, uint32_t index)
{
	const struct align_row *r = &diff->al.row[index];
	struct diff_row *row = &diff->row[index];

	for (uint32_t i = r->side[0].first; i != ALIGN_NONE; i = diff->al.side[0].occurrence[i].next) {
		struct align_occurrence *o = &diff->al.side[0].occurrence[i];

		if (o->mate == ALIGN_NONE)
			judge_alone(diff, row, 0, o);
		else
			judge_pair(diff, row, o, &diff->al.side[1].occurrence[o->mate]);
	}
	for (uint32_t i = r->side[1].first; i != ALIGN_NONE; i = diff->al.side[1].occurrence[i].next) {
		struct align_occurrence *o = &diff->al.side[1].occurrence[i];

		if (o->mate == ALIGN_NONE)
			judge_alone(diff, row, 1, o);
	}
	if (!row->has[0] && !row->has[1])
		row->verdict = ROW_NEVER_FIRED_BOTH;
	else if (row->verdict == ROW_UNPAIRED && !r->side[0].donations && r->side[1].donations)
		row->verdict = ROW_NEVER_FIRED_A;
	else if (row->verdict == ROW_UNPAIRED && !r->side[1].donations && r->side[0].donations)
		row->verdict = ROW_NEVER_FIRED_B;
}

bool diff_row_speaks(const struct diff *diff, uint32_t index)
{
	const struct align_row *r = &diff->al.row[index];

	if (diff->al.mode == ALIGN_SLOT || diff->row[index].has[0] || diff->row[index].has[1])
		return true;
	return !r->side[0].donations && !r->side[1].donations && !diff->al.side[0].donations &&
	       !diff->al.side[1].donations;
}

/* As before any judgement; what is allowed to be missing stays so. */
static void forget_rows(struct diff *diff)
{
	for (uint32_t i = 0; i < diff->al.n_rows; i++)
		diff->row[i] = (struct diff_row) { .allowed = diff->row[i].allowed, .finding = ALIGN_NONE };
	memset(&diff->summary, 0, sizeof diff->summary);
	diff->measured = 0;
}

void judge_rows(struct diff *diff)
{
	forget_rows(diff);
	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		judge_row(diff, i);
		if (!diff_row_speaks(diff, i))
			continue;
		diff->summary.slots++;
		if (diff->row[i].verdict == ROW_EQUAL)
			diff->summary.equal++;
		else if (diff->row[i].verdict == ROW_DIFFERS)
			diff->summary.differs++;
		else
			diff->summary.not_proven++;
	}
}
