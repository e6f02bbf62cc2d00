/* SPDX-License-Identifier: Apache-2.0
 *
 * finding_text.c: the one sentence of a finding: of which question is this wrong state the right answer? And what its
 * differences have in common, in words.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "print/compare.h"
#include "trouble.h"

#define CALLSITES_TRIED 1000u

static const struct model_event *event_at(const struct diff *diff, unsigned s, struct align_ref at)
{
	return align_event(&diff->al.side[s], at);
}

/* "donation 17" */
static const char *event_words(const struct model_event *e)
{
	static const char *const word[LOG_EV_KIND_COUNT] = { "event", "donation", "restore", "allocation",
							     "clear", "copy",     "discard", "free" };
	static char text[8][64];
	static unsigned turn;

	turn = (turn + 1) % 8;
	snprintf(text[turn], sizeof text[turn], "%s %" PRIu64, word[e->kind < LOG_EV_KIND_COUNT ? e->kind : 0], e->id);
	return text[turn];
}

static bool is_claim(const struct model_event *e)
{
	return e->kind == LOG_EV_DONATE || e->kind == LOG_EV_RESTORE;
}

/* "slot 5", "tp1.pp0.dp0/mamba/5" where there is more than one pool: the slot that this event of run s is of */
static void put_slot(FILE *f, const struct diff *diff, unsigned s, struct align_ref at)
{
	const struct align_side *side = &diff->al.side[s];
	const struct model_event *e = align_event(side, at);
	const struct align_group *group = &diff->al.group[side->group_of_pool[at.process][e->pool]];

	if (diff->al.n_groups > 1)
		fprintf(f, "%s/%s/", safe(group->rank), safe(group->pool));
	else
		fprintf(f, "slot ");
	if (e->slot == LOG_NO_SLOT)
		fprintf(f, "?");
	else
		fprintf(f, "%" PRId64, e->slot);
}

/* "state", or with the tensors of which something differs while other planes do not: "state in conv" */
static void put_what(FILE *f, const struct diff *diff, const struct diff_row *row)
{
	const struct model_event *e = event_at(diff, 0, row->shown[0]);
	const struct model_pool *pool = &align_process(&diff->al.side[0], row->shown[0])->pool[e->pool];
	const char *named[3];
	unsigned n = 0;

	for (uint32_t i = 0; i < row->n_planes && row->n_planes < pool->n_planes && n <= 3; i++) {
		const char *tensor = pool->plane[row->plane[i]].tensor;
		unsigned k = 0;

		while (k < n && strcmp(named[k], tensor) != 0)
			k++;
		if (k == n && n++ < 3)
			named[k] = tensor;
	}
	fprintf(f, "state");
	for (unsigned k = 0; k < n && n <= 3; k++)
		fprintf(f, "%s%s", k ? " and " : " in ", safe(named[k]));
}

/* Whether the wrong run has it in another slot, or another life, than the row is called by: that of run A. */
static bool is_of_another_row(const struct diff *diff, unsigned s, uint32_t row)
{
	const struct align_row *r = &diff->al.row[row];
	struct align_ref at = diff->row[row].shown[s];
	const struct model_event *e = event_at(diff, s, at);

	return e->slot != r->slot || diff->al.side[s].group_of_pool[at.process][e->pool] != r->group;
}

/* "slot 5's state at length 96 (donation 17 of run B)", by key with the slot that run A has it in: "; slot 7 of run A" */
static void put_subject(FILE *f, const struct diff *diff, const struct finding *finding, uint32_t index)
{
	const struct diff_row *row = &diff->row[index];
	const struct model_event *e = event_at(diff, finding->side, row->shown[finding->side]);

	put_slot(f, diff, finding->side, row->shown[finding->side]);
	fprintf(f, "'s ");
	put_what(f, diff, row);
	fprintf(f, " at length %" PRId64 " (%s of run %c", e->claimed_len, event_words(e), "AB"[finding->side]);
	if (is_of_another_row(diff, finding->side, index)) {
		fprintf(f, "; ");
		put_slot(f, diff, 0, row->shown[0]);
		fprintf(f, " of run A");
	}
	fprintf(f, ")");
}

/* "donation 3, length 64", with the run where it is not the subject's */
static void put_proof(FILE *f, const struct diff *diff, const struct finding *finding, const struct explanation *x)
{
	const struct model_event *e = event_at(diff, x->event_side, x->event);

	fprintf(f, "%s", event_words(e));
	if (x->event_side != finding->side)
		fprintf(f, " of run %c", "AB"[x->event_side]);
	if (is_claim(e) && x->role == LOG_ROLE_SUBJECT)
		fprintf(f, ", length %" PRId64, e->claimed_len);
}

/* ---- one clause for each kind; each begins with its subject ---- */

static void put_non_finite(FILE *f, const struct diff *diff, const struct finding *finding, uint32_t row)
{
	const struct explanation *x = row_explained(&diff->row[row], EXPLAIN_NON_FINITE);
	int64_t slot = finding->has_origin ? finding->origin_slot : x->slot;
	struct align_ref at = finding->has_origin ? finding->origin : x->event;

	put_subject(f, diff, finding, row);
	fprintf(f, " holds NaN or Inf, which run %c had first in slot %" PRId64 " (%s): non-finite",
		"AB"[finding->side], slot, event_words(event_at(diff, finding->side, at)));
}

static void put_zero(FILE *f, const struct diff *diff, const struct finding *finding, uint32_t row)
{
	put_subject(f, diff, finding, row);
	fprintf(f, " is all zeros, as in a slot that was never written: zero");
}

static void put_stale(FILE *f, const struct diff *diff, const struct finding *finding, uint32_t row)
{
	const struct explanation *x = row_explained(&diff->row[row], EXPLAIN_STALE);
	const struct model_event *e = event_at(diff, x->event_side, x->event);

	put_subject(f, diff, finding, row);
	fprintf(f, " is bit for bit what the slot held ");
	fprintf(f, is_claim(e) ? "for its previous owner (" : "before (");
	put_proof(f, diff, finding, x);
	fprintf(f, x->since_alloc ? "): stale, not written since its allocation" : "): stale");
}

static void put_place(FILE *f, const struct explanation *x)
{
	fprintf(f, "slot %" PRId64 "%s (", x->slot, x->role == LOG_ROLE_WATCHED ? ", which was watched" : "");
}

static void put_misplaced(FILE *f, const struct diff *diff, const struct finding *finding, uint32_t row)
{
	const struct explanation *x = row_explained(&diff->row[row], EXPLAIN_MISPLACED);

	put_subject(f, diff, finding, row);
	if (x->event_side == finding->side) {
		fprintf(f, " is wrong, and its right bytes lie in ");
		put_place(f, x);
	} else {
		fprintf(f, " is bit for bit what belongs to ");
		put_place(f, x);
	}
	put_proof(f, diff, finding, x);
	fprintf(f, "): misplaced");
}

static void put_wrong_length(FILE *f, const struct diff *diff, const struct finding *finding, uint32_t row)
{
	const struct explanation *x = row_explained(&diff->row[row], EXPLAIN_WRONG_LENGTH);
	const struct model_event *e = event_at(diff, x->event_side, x->event);

	put_subject(f, diff, finding, row);
	fprintf(f,
		" is bit for bit the checkpoint of length %" PRId64 " (%s of run %c, slot %" PRId64 "): wrong length",
		e->claimed_len, event_words(e), "AB"[x->event_side], x -> slot);
}

static void put_unknown(FILE *f, const struct diff *diff, const struct finding *finding, uint32_t row)
{
	put_subject(f, diff, finding, row);
	fprintf(f, " equals nothing else that either run recorded: unknown");
}

/* ---- the sentence ---- */

typedef void put_clause(FILE *f, const struct diff *diff, const struct finding *finding, uint32_t row);

static put_clause *const clause_of[EXPLAIN_KIND_COUNT] = {
	[EXPLAIN_NON_FINITE] = put_non_finite,
	[EXPLAIN_ZERO] = put_zero,
	[EXPLAIN_STALE] = put_stale,
	[EXPLAIN_MISPLACED] = put_misplaced,
	[EXPLAIN_WRONG_LENGTH] = put_wrong_length,
	[EXPLAIN_UNKNOWN] = put_unknown,
};

enum explain_kind finding_kind(const struct finding *finding)
{
	switch (finding->cause) {
	case CAUSE_NON_FINITE:
		return EXPLAIN_NON_FINITE;
	case CAUSE_NOT_WRITTEN:
		return finding->first_of[EXPLAIN_ZERO] == finding->first_row ? EXPLAIN_ZERO : EXPLAIN_STALE;
	case CAUSE_MISPLACED:
		return EXPLAIN_MISPLACED;
	case CAUSE_WRONG_LENGTH:
		return finding->rows_of[EXPLAIN_WRONG_LENGTH] ? EXPLAIN_WRONG_LENGTH : EXPLAIN_MISPLACED;
	default:
		return EXPLAIN_UNKNOWN;
	}
}

uint32_t finding_example(const struct finding *finding)
{
	return finding->first_of[finding_kind(finding)];
}

/* What belongs to the cause and is not the leading clause: the other form of "not written", and where the right bytes are. */
static void put_second(FILE *f, const struct diff *diff, const struct finding *finding)
{
	static const enum explain_kind more[] = { EXPLAIN_ZERO, EXPLAIN_STALE, EXPLAIN_MISPLACED };

	for (unsigned i = 0; finding->cause == CAUSE_NOT_WRITTEN && i < 3; i++) {
		if (more[i] == finding_kind(finding) || !finding->rows_of[more[i]])
			continue;
		fprintf(f, "; ");
		clause_of[more[i]](f, diff, finding, finding->first_of[more[i]]);
	}
}

static const struct model_callsite *site_of_row(const struct diff *diff, const struct finding *finding,
						const struct diff_row *row, const struct model_process **p)
{
	struct align_ref at = row->shown[finding->side];
	const struct model_event *e = event_at(diff, finding->side, at);
	const struct model_callsite *site;

	if (!e)
		return NULL;
	*p = align_process(&diff->al.side[finding->side], at);
	site = model_callsite(*p, e->callsite);
	return site && site->n_frames ? site : NULL;
}

/* A server's very first events may have none, since the unwinder was not loaded yet: another row of the same cause will do. */
static const struct model_callsite *site_of(const struct diff *diff, const struct finding *finding,
					    const struct model_process **p)
{
	const struct model_callsite *site = site_of_row(diff, finding, &diff->row[finding_example(finding)], p);

	for (uint32_t i = 0, tried = 0; !site && i < diff->al.n_rows && tried < CALLSITES_TRIED; i++) {
		const struct diff_row *row = &diff->row[i];

		if (row->finding == ALIGN_NONE || &diff->finding[row->finding] != finding)
			continue;
		site = site_of_row(diff, finding, row, p);
		tried++;
	}
	return site;
}

static void put_callsite(FILE *f, const struct diff *diff, const struct finding *finding)
{
	const struct model_process *p;
	const struct model_callsite *site = site_of(diff, finding, &p);
	const char *module;

	if (!site)
		return;
	module = model_module(p, site->frame[0].module);
	module = module && strrchr(module, '/') ? strrchr(module, '/') + 1 : module;
	fprintf(f, "; reported from ");
	if (site->symbol[0])
		fprintf(f, "%s", safe(site->symbol[0]));
	else
		fprintf(f, "%s+0x%" PRIx64, module ? safe(module) : "?", site->frame[0].offset);
}

void patterns_print(FILE *f, const struct patterns *p, const char *before, const char *after)
{
	if (p->planes) {
		fprintf(f, "%sonly in", before);
		for (uint32_t i = 0; i < p->n_tensors; i++)
			fprintf(f, "%s %s", i ? "," : "", safe(p->tensor[i]));
		fprintf(f, ", layers %d to %d%s", p->first_layer, p->last_layer, after);
	}
	if (p->modulus)
		fprintf(f, "%sonly at lengths that leave %" PRId64 " modulo %" PRId64 "%s", before, p->remainder,
			p->modulus, after);
	if (p->padded)
		fprintf(f, "%sonly in padded batches%s", before, after);
	if (p->reused)
		fprintf(f, "%sonly in slots that had an owner before%s", before, after);
	if (p->restored)
		fprintf(f, "%sonly after a restore%s", before, after);
	if (p->rank)
		fprintf(f, "%sonly in rank %s%s", before, safe(p->rank), after);
}

/* What is unknown is not said to have one cause. */
static void put_others(FILE *f, const struct finding *finding)
{
	if (finding->cause == CAUSE_UNKNOWN)
		fprintf(f, "; the same of %s", amount_of(finding->n_rows - 1, "other slot", "other slots"));
	else
		fprintf(f, "; one cause for %s", amount_of(finding->n_rows, "slot", "slots"));
}

char *writer_sentence(const struct finding_writer *w)
{
	char *text = NULL;
	size_t size;
	FILE *f = trouble_need(open_memstream(&text, &size));

	fprintf(f,
		"the captured kernel %s (node %u of graph %" PRIu64
		", and so in %s) writes these planes and reads %s+%" PRIu64 " = %" PRId64,
		safe(w->kernel), w->node, w->graph->number, amount_of(w->n_graphs, "graph", "graphs"),
		safe(w->region->name), w->offset, w->value);
	if (w->meant)
		fprintf(f, "; %s intended slot %" PRId64, safe(w->meant->name), w->slot);
	if (w->event != w->of)
		fprintf(f, " (read with event %" PRIu64 ")", w->event);
	if (w->has_at)
		fprintf(f, "; slot %" PRId64 " stood at %s+%" PRIu64, w->slot, safe(w->region->name), w->at);
	return trouble_text(f, &text);
}

char *finding_sentence(const struct diff *diff, const struct finding *finding)
{
	char *text = NULL;
	size_t size;
	FILE *f = trouble_need(open_memstream(&text, &size));

	clause_of[finding_kind(finding)](f, diff, finding, finding_example(finding));
	put_second(f, diff, finding);
	if (finding->inherited)
		fprintf(f,
			"; all of it came after %s, which brought another state back than in run %c, and may follow "
			"from that",
			event_words(event_at(diff, diff->suspect, finding->heirloom)), "AB"[!diff->suspect]);
	if (finding->n_rows > 1)
		put_others(f, finding);
	patterns_print(f, &finding->patterns, "; ", "");
	put_callsite(f, diff, finding);
	return trouble_text(f, &text);
}
