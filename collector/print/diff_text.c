/* SPDX-License-Identifier: Apache-2.0
 *
 * diff_text.c: a comparison for people: the verdict and what it rests on first. Its twin is diff_json.c.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compare/coverage.h"
#include "compare/lives.h"
#include "print/compare.h"
#include "verbs.h"

#define ROWS_SHOWN 8

static const char *arm_text(const struct diff *diff, unsigned s)
{
	const char *arm = diff_arm(diff, s);

	return arm ? safe(arm) : "arm unknown";
}

static void print_verdict(FILE *f, const struct diff *diff, bool color)
{
	static const char *const word[] = {
		[EXIT_HOLDS] = "EQUAL", [EXIT_DIFFERS] = "DIFFERS", [EXIT_NOT_PROVEN] = "NOT PROVEN"
	};
	static const enum color paint[] = {
		[EXIT_HOLDS] = COLOR_GREEN, [EXIT_DIFFERS] = COLOR_RED, [EXIT_NOT_PROVEN] = COLOR_YELLOW
	};
	int status = diff_exit_status(diff);

	fprintf(f, "%s%s%s  ", color_on(color, paint[status]), word[status], color_off(color));
	if (diff->summary.differs)
		fprintf(f, "%" PRIu64 " of %" PRIu64 " slots differ", diff->summary.differs, diff->summary.slots);
	else
		fprintf(f, "%" PRIu64 " of %" PRIu64 " slots equal", diff->summary.equal, diff->summary.slots);
	fprintf(f, " (%s vs %s); %" PRIu64 " donations measured on both sides, of %" PRIu64 " and %" PRIu64 "\n",
		arm_text(diff, 0), arm_text(diff, 1), diff->measured, diff->al.side[0].donations,
		diff->al.side[1].donations);
}

/* What the verdict does not speak of, beside it. */
static void print_left_out(FILE *f, const struct diff *diff)
{
	for (unsigned s = 0; s < 2; s++) {
		struct coverage_sum sum = coverage_sum(&diff->run[s].run, "core.donate");
		uint64_t paused = sum.outcome[CTR_FILTERED_PAUSED], adapter = sum.outcome[CTR_FILTERED_ADAPTER];

		if (!paused && !adapter)
			continue;
		fprintf(f, "  run %c: %" PRIu64 " of %" PRIu64 " donations were not recorded (", "AB"[s],
			paused + adapter, sum.attempted);
		if (paused)
			fprintf(f, "%s %" PRIu64, ctr_outcome_label(CTR_FILTERED_PAUSED), paused);
		if (adapter)
			fprintf(f, "%s%s %" PRIu64, paused ? ", " : "", ctr_outcome_label(CTR_FILTERED_ADAPTER),
				adapter);
		fprintf(f, ")\n");
	}
	for (uint32_t i = 0; i < diff->al.n_groups; i++) {
		if (diff_pool_is_silent(diff, i))
			fprintf(f, "  pool %s/%s: no donation in either run\n", safe(diff->al.group[i].rank),
				safe(diff->al.group[i].pool));
	}
}

/* The kinds of a row's explanations, as bits. */
static uint32_t kinds_of(const struct diff_row *row)
{
	uint32_t kinds = 0;

	for (uint32_t k = 0; k < row->n_explain; k++)
		kinds |= 1u << row->explain[k].kind;
	return kinds;
}

/* "zero in 6 slots, misplaced in 4 slots", of the differing rows but for the first `skip` of them. */
static bool print_kinds(FILE *f, const struct diff *diff, const char *before, uint64_t skip)
{
	const char *gap = before;

	for (int kind = 0; kind < EXPLAIN_KIND_COUNT; kind++) {
		uint64_t n = 0, seen = 0;

		for (uint32_t i = 0; i < diff->al.n_rows; i++) {
			if (diff->row[i].verdict == ROW_DIFFERS && seen++ >= skip)
				n += kinds_of(&diff->row[i]) >> kind & 1;
		}
		if (!n)
			continue;
		fprintf(f, "%s%s in %s", gap, explain_kind_name((enum explain_kind)kind),
			amount_of(n, "slot", "slots"));
		gap = ", ";
	}
	return gap != before;
}

static void print_why(FILE *f, const struct diff *diff)
{
	char hint[DIFF_HINT_MAX];

	if (print_kinds(f, diff, "  why: ", 0))
		fputs(diff->n_findings == 1 && diff->summary.differs > 1 && diff->finding[0].cause != CAUSE_UNKNOWN
			      ? ": one cause for all\n"
			      : "\n",
		      f);
	if (diff_hint(diff, hint, sizeof hint))
		fprintf(f, "  hint: %s\n", hint);
}

/* ---- findings: a sentence each ---- */

#define FINDINGS_SHOWN 16

static void print_writer(FILE *f, const struct finding *finding)
{
	char *sentence = finding->has_writer ? writer_sentence(&finding->writer) : NULL;

	if (sentence)
		fprintf(f, "     written by: %s\n", sentence);
	free(sentence);
}

static void print_findings(FILE *f, const struct diff *diff, bool color)
{
	if (!diff->n_findings)
		return;
	fprintf(f, "\n%sFindings%s\n", color_on(color, COLOR_BOLD), color_off(color));
	for (size_t i = 0; i < diff->n_findings && i < FINDINGS_SHOWN; i++) {
		char *sentence = finding_sentence(diff, &diff->finding[i]);

		fprintf(f, "  %zu. %s\n", i + 1, sentence);
		fprintf(f, "     usual cause: %s\n", finding_cause_text(diff->finding[i].cause));
		print_writer(f, &diff->finding[i]);
		free(sentence);
	}
	if (diff->n_findings > FINDINGS_SHOWN)
		fprintf(f, "  and %zu more; --json lists them all\n", diff->n_findings - FINDINGS_SHOWN);
}

static void print_rest(FILE *f, const struct alignment *al)
{
	if (al->mismatched)
		fprintf(f, "; %" PRIu64 " claim another key or length than their mate", al->mismatched);
	for (unsigned s = 0; s < 2; s++) {
		if (al->alone[s])
			fprintf(f, "; %" PRIu64 " of run %c have no mate", al->alone[s], "AB"[s]);
		if (al->mode == ALIGN_KEY && al->without_key[s])
			fprintf(f, " (%" PRIu64 " have no key)", al->without_key[s]);
	}
}

#define LIVES_SHOWN 4

/* Ranks that were started more often in one run than in the other. */
static void print_lives(FILE *f, const struct alignment *al)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < al->n_groups; i++) {
		const struct align_group *g = &al->group[i];

		if (g->first_life != i || g->lives[0] == g->lives[1] || !g->lives[0] || !g->lives[1])
			continue;
		if (n++ < LIVES_SHOWN)
			fprintf(f, "    %s/%s: %s in run A, %s in run B\n", safe(g->rank), safe(g->pool),
				amount_of(g->lives[0], "life", "lives"), amount_of(g->lives[1], "life", "lives"));
	}
	if (n > LIVES_SHOWN)
		fprintf(f, "    and %u more pools whose lives are not as many\n", n - LIVES_SHOWN);
	if (al->across_lives)
		fprintf(f, "    %" PRIu64 " donations line up with one of another life of their rank\n",
			al->across_lives);
}

static void print_alignment(FILE *f, const struct alignment *al)
{
	enum align_mode proposal = align_proposal(al);

	fprintf(f, "  aligned by %s: %" PRIu64 " donations line up, %" PRIu64 " do not", align_mode_name(al->mode),
		al->aligned, al->count[al->mode].unaligned);
	print_rest(f, al);
	fputc('\n', f);
	if (al->aligned && !al->by_key)
		fprintf(f, "    no donation has a key: lengths alone say which is which\n");
	print_lives(f, al);
	if (proposal != ALIGN_AUTO)
		fprintf(f, "    --align %s would line up %" PRIu64 "\n", align_mode_name(proposal),
			al->count[proposal].aligned);
}

static void print_runs(FILE *f, const struct diff *diff)
{
	for (unsigned s = 0; s < 2; s++) {
		const struct model *model = &diff->run[s];
		const char *driver = run_driver(model), *device = run_device(model);

		fprintf(f, "  %c  %s: %s, %zu process%s, %s%s%s\n", "AB"[s], safe(model->run.path), arm_text(diff, s),
			model -> n_processes, model -> n_processes == 1 ? "" : "es", driver ? driver : "driver unknown",
			device ? ", " : "", device ? safe(device) : "");
	}
	print_alignment(f, &diff->al);
}

/* ---- explanations ---- */

static const struct model_process *process_of(const struct diff *diff, unsigned s, struct align_ref at)
{
	return align_process(&diff->al.side[s], at);
}

static void print_explanation(FILE *f, const struct diff *diff, const struct explanation *x)
{
	const struct model_event *e = x->has_event ? align_event(&diff->al.side[x->event_side], x->event) : NULL;
	char run = "AB"[x->side], event_run = "AB"[x->event_side];

	fprintf(f, "      %s: ", explain_kind_name(x->kind));
	switch (x->kind) {
	case EXPLAIN_NON_FINITE:
		fprintf(f, "run %c holds NaN or Inf; this slot had it first at %s\n", run, event_text(e));
		break;
	case EXPLAIN_ZERO:
		fprintf(f, "run %c holds only zeros: never written\n", run);
		break;
	case EXPLAIN_STALE:
		fprintf(f, "run %c still holds what the slot held at %s%s\n", run, event_text(e),
			x->since_alloc ? ": not written since its allocation" : "");
		break;
	case EXPLAIN_MISPLACED:
		if (x->event_side == x->side)
			fprintf(f, "the right bytes lie in slot %" PRId64 " of run %c%s, at %s\n", x->slot, run,
				x->role == LOG_ROLE_WATCHED ? " (watched)" : "", event_text(e));
		else
			fprintf(f, "run %c holds what belongs to slot %" PRId64 ": run %c, %s\n", run, x->slot,
				event_run, event_text(e));
		break;
	case EXPLAIN_WRONG_LENGTH:
		fprintf(f, "run %c holds the state of %" PRId64 " tokens: run %c, %s\n", run, e ? e->claimed_len : -1,
			event_run, e ? event_text(e) : "?");
		break;
	default:
		fprintf(f, "the bytes were found nowhere else in either run\n");
		break;
	}
}

/* ---- planes: "3 of 4 planes: conv (layers 0-2)" ---- */

/* Layers are listed as the pool has them registered, as ranges where they follow each other. */
static void print_layers(FILE *f, const struct diff_row *row, const struct model_pool *pool, const char *tensor)
{
	int32_t from = 0, last = 0;
	bool open = false, any = false;

	for (uint32_t i = 0; i <= row->n_planes; i++) {
		const struct model_plane *p = i < row->n_planes ? &pool->plane[row->plane[i]] : NULL;

		if (p && strcmp(p->tensor, tensor) != 0)
			continue;
		if (p && open && p->layer == last + 1) {
			last++;
			continue;
		}
		if (open) {
			fprintf(f, any ? ", %d" : " %d", from);
			if (last != from)
				fprintf(f, "-%d", last);
			any = true;
		}
		if (p)
			from = last = p->layer;
		open = true;
	}
}

static void print_planes(FILE *f, const struct diff *diff, uint32_t index)
{
	const struct diff_row *row = &diff->row[index];
	const struct model_event *e = align_event(&diff->al.side[0], row->shown[0]);
	const struct model_pool *pool = &process_of(diff, 0, row->shown[0])->pool[e->pool];

	if (row->rollup_alone || !pool->plane) {
		fprintf(f, "      the roll-up differs and no plane does: one of the records is damaged\n");
		return;
	}
	fprintf(f, "      %u of %u planes differ:", row->n_planes, pool->n_planes);
	for (uint32_t i = 0; i < row->n_planes; i++) {
		const char *tensor = pool->plane[row->plane[i]].tensor;
		bool met = false;

		for (uint32_t k = 0; k < i && !met; k++)
			met = strcmp(pool->plane[row->plane[k]].tensor, tensor) == 0;
		if (met)
			continue;
		fprintf(f, "%s %s, layers", i ? ";" : "", safe(tensor));
		print_layers(f, row, pool, tensor);
	}
	fputc('\n', f);
}

static void print_row(FILE *f, const struct diff *diff, uint32_t index, bool color)
{
	const struct diff_row *row = &diff->row[index];
	char name[256];

	diff_row_name(diff, index, name, sizeof name);
	fprintf(f, "  %s%s%s  occurrence %u%s", color_on(color, COLOR_BOLD), safe(name), color_off(color), row->number,
		row->shows_restore ? ", when restored" : "");
	for (unsigned s = 0; s < 2; s++) {
		const struct model_event *e = align_event(&diff->al.side[s], row->shown[s]);
		const struct model_print *p = model_subject(process_of(diff, s, row->shown[s]), e);

		fprintf(f, "; %c: abs-max %g, NaN %" PRIu64 ", Inf %" PRIu64, "AB"[s], p -> absmax, p -> nan, p -> inf);
	}
	fputc('\n', f);
	print_planes(f, diff, index);
	for (uint32_t i = 0; i < row->n_explain; i++)
		print_explanation(f, diff, &row->explain[i]);
}

static void print_first(FILE *f, const struct diff *diff, bool color)
{
	const struct align_side *side = &diff->al.side[diff->suspect];
	const struct diff_row *row = &diff->row[diff->first_row];
	const struct model_process *p = process_of(diff, diff->suspect, row->shown[diff->suspect]);
	const struct model_event *e = align_event(side, row->shown[diff->suspect]);
	const struct model_step *step = model_step(p, e->step);

	fprintf(f, "\n%sFirst divergence%s, in the order of run %c: %s", color_on(color, COLOR_BOLD), color_off(color),
		"AB"[diff->suspect], event_text(e));
	if (step)
		fprintf(f, "; %s, batch %d padded to %d%s", *step->name ? safe(step->name) : "step", step->batch,
			step->padded,
			step->mode == 2   ? ", graph"
			: step->mode == 1 ? ", eager"
					  : "");
	fputc('\n', f);
	callsite_print(f, p, e->callsite, CALLSITE_FRAMES, "    ");
	if (diff->has_last_equal)
		fprintf(f, "  last equal before it: %s\n",
			event_text(align_event(side, side->occurrence[diff->last_equal].at)));
	else
		fprintf(f, "  nothing before it was equal\n");
}

static void print_rows(FILE *f, const struct diff *diff, bool color)
{
	uint64_t shown = 0;

	fprintf(f, "\n%sSlots that differ%s\n", color_on(color, COLOR_BOLD), color_off(color));
	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		if (diff->row[i].verdict != ROW_DIFFERS)
			continue;
		if (shown++ < ROWS_SHOWN)
			print_row(f, diff, i, color);
	}
	if (shown <= ROWS_SHOWN)
		return;
	fprintf(f, "  and %s", amount_of(shown - ROWS_SHOWN, "more slot", "more slots"));
	print_kinds(f, diff, ": ", ROWS_SHOWN);
	fprintf(f, "; --json lists them all\n");
}

/* Rows that were not compared, a line for each verdict. */
static void print_others(FILE *f, const struct diff *diff)
{
	for (int verdict = ROW_WITHIN_TOLERANCE; verdict < ROW_VERDICT_COUNT; verdict++) {
		uint64_t n = 0;

		for (uint32_t i = 0; i < diff->al.n_rows; i++) {
			char name[256];

			if ((int)diff->row[i].verdict != verdict || !diff_row_speaks(diff, i))
				continue;
			diff_row_name(diff, i, name, sizeof name);
			if (!n)
				fprintf(f, "  %s:", row_verdict_name((enum row_verdict)verdict));
			if (n++ < 8)
				fprintf(f, " %s%s", safe(name), diff->row[i].allowed ? " (allowed)" : "");
		}
		if (n > 8)
			fprintf(f, " and %" PRIu64 " more", n - 8);
		if (n)
			fputc('\n', f);
	}
}

void diff_print_text(FILE *f, const struct diff *diff, bool color)
{
	print_verdict(f, diff, color);
	print_left_out(f, diff);
	print_why(f, diff);
	patterns_print(f, &diff->patterns, "  ", "\n");
	print_runs(f, diff);
	print_others(f, diff);
	beside_print_text(f, diff);
	print_findings(f, diff, color);
	if (diff->reasons.n) {
		fprintf(f, "\n%sReasons%s\n", color_on(color, COLOR_BOLD), color_off(color));
		reasons_print(f, &diff->reasons, color);
	}
	if (diff->has_first) {
		print_first(f, diff, color);
		print_rows(f, diff, color);
	}
	fprintf(f, "\n%sCoverage%s\n", color_on(color, COLOR_BOLD), color_off(color));
	coverage_print_text(f, diff->run, 2, color);
}
