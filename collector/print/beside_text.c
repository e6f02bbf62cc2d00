/* SPDX-License-Identifier: Apache-2.0
 *
 * beside_text.c: what stands beside a comparison, for people. Its twin is beside_json.c.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "print/compare.h"

#define DIFFERENCES_SHOWN 8

static void print_tolerance(FILE *f, const struct tolerance *t)
{
	if (!t->asked || !t->pairs)
		return;
	fprintf(f,
		"  tolerance %g: %" PRIu64 " of %" PRIu64 " that differ are within it; %" PRIu64 " of %" PRIu64
		" values over (%.3g), the farthest apart %.3g\n",
		t->rtol, t->within, t->pairs, t->over, t->values, t->values ? (double)t->over / (double)t->values : 0,
		t->farthest);
}

static void print_noise(FILE *f, const struct noise *n)
{
	if (n->asked && n->known)
		fprintf(f,
			"  noise of run %c's arm: %" PRIu64
			" donations and restores differ between its two runs, the farthest %.3g; "
			"here %" PRIu64 " of %" PRIu64 " are no farther apart\n",
			"AB"[n->side], n -> noisy, n -> largest, n -> within, n -> pairs);
}

static void print_third(FILE *f, const struct diff *diff)
{
	if (!diff->third[0])
		return;
	fprintf(f, "  third run, %s: against A %s, against B %s\n",
		diff_arm(diff->third[0], 1) ? safe(diff_arm(diff->third[0], 1)) : "arm unknown",
		diff_verdict(diff->third[0]), diff_verdict(diff->third[1]));
	fprintf(f, "    -> %s\n", third_text(third_conclude(diff)));
}

static void print_value(FILE *f, const json_t *value)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

	fprintf(f, "%.200s", text ? safe(text) : "?");
	free(text);
}

static void print_configuration(FILE *f, const struct diff *diff)
{
	const char *note = diff_config_note(diff);
	size_t n = json_array_size(diff->config.differences);

	if (!note)
		return;
	fprintf(f, "  %s\n", note);
	for (size_t i = 0; i < n && i < DIFFERENCES_SHOWN; i++) {
		const json_t *d = json_array_get(diff->config.differences, i);

		fprintf(f, "    %s %s: ", safe(json_string_value(json_object_get(d, "part"))),
			safe(json_string_value(json_object_get(d, "name"))));
		print_value(f, json_object_get(d, "a"));
		fprintf(f, " and ");
		print_value(f, json_object_get(d, "b"));
		fputc('\n', f);
	}
	if (n > DIFFERENCES_SHOWN)
		fprintf(f, "    and %zu more; --json lists them all\n", n - DIFFERENCES_SHOWN);
}

void beside_print_text(FILE *f, const struct diff *diff)
{
	print_tolerance(f, &diff->tolerance);
	print_noise(f, &diff->noise);
	print_third(f, diff);
	print_configuration(f, diff);
}
