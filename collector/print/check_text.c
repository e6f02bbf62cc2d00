/* SPDX-License-Identifier: Apache-2.0
 *
 * check_text.c: one run's invariants for people. Its twin is check_json.c.
 */
#include <inttypes.h>

#include "print/compare.h"
#include "verbs.h"

static void print_examples(FILE *f, const struct check *check, const struct check_result *r)
{
	for (uint32_t i = 0; i < r->n_examples; i++) {
		const struct check_example *x = &r->example[i];
		const struct model_process *p = &check->model.process[x->process];
		const struct model_event *e = &p->event[x->event];

		fprintf(f, "      %s/%s: %s", safe(p->rank), safe(p->pool[e->pool].name), event_text(e));
		if (x->other != MODEL_NONE)
			fprintf(f, ", against %s", event_text(&p->event[x->other]));
		fputc('\n', f);
		if (!i)
			callsite_print(f, p, e->callsite, CALLSITE_FRAMES, "          ");
	}
	if (r->broken > r->n_examples)
		fprintf(f, "      and %" PRIu64 " more\n", r->broken - r->n_examples);
}

static void print_invariant(FILE *f, const struct check *check, unsigned i, bool color)
{
	const struct check_result *r = &check->result[i];
	const struct invariant_row *row = &invariant_rows[i];

	if (!r->checked && !r->broken) {
		fprintf(f, "  %snot checked%s  %s (needs %s)\n", color_on(color, COLOR_DIM), color_off(color),
			row->text, row->needs);
		return;
	}
	fprintf(f, "  %s%s%s  %s: %" PRIu64 " checked", color_on(color, r->broken ? COLOR_RED : COLOR_GREEN),
		r->broken ? "broken     " : "holds      ", color_off(color), row->text, r->checked);
	if (r->broken)
		fprintf(f, ", %" PRIu64 " broken", r->broken);
	fputc('\n', f);
	print_examples(f, check, r);
}

void check_print_text(FILE *f, const struct check *check, bool color)
{
	static const char *const word[] = {
		[EXIT_HOLDS] = "HOLDS", [EXIT_DIFFERS] = "BROKEN", [EXIT_NOT_PROVEN] = "NOT PROVEN"
	};
	static const enum color paint[] = {
		[EXIT_HOLDS] = COLOR_GREEN, [EXIT_DIFFERS] = COLOR_RED, [EXIT_NOT_PROVEN] = COLOR_YELLOW
	};
	const char *arm = check->model.run.manifest.arm;
	int status = reasons_exit_status(&check->reasons);

	fprintf(f, "%s%s%s  %s (%s); %" PRIu64 " of %" PRIu64 " donations measured, %" PRIu64 " restores\n",
		color_on(color, paint[status]), word[status], color_off(color), safe(check->model.run.path),
		arm && *arm ? safe(arm) : "arm unknown", check->measured, check->donations, check->restores);
	for (unsigned i = 0; i < INVARIANT_COUNT; i++)
		print_invariant(f, check, i, color);
	if (check->noise)
		fprintf(f,
			"  noise        %" PRIu64
			" donations hold another state than an earlier one of the same key and "
			"length; that breaks nothing\n",
			check->noise);
	if (check->reasons.n) {
		fprintf(f, "\n%sReasons%s\n", color_on(color, COLOR_BOLD), color_off(color));
		reasons_print(f, &check->reasons, color);
	}
	fprintf(f, "\n%sCoverage%s\n", color_on(color, COLOR_BOLD), color_off(color));
	coverage_print_text(f, &check->model, 1, color);
}
