/* SPDX-License-Identifier: Apache-2.0
 *
 * help.c: what is printed from the tables of verbs and options: --help, and the JSON from which man pages and completion
 * are made.
 */
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "print/print.h"
#include "reasons.h"

/* "-o, --output FILE" */
static void option_left(const struct option_row *row, char *out, size_t size)
{
	char letter[8] = "    ";

	if (row->letter)
		snprintf(letter, sizeof(letter), "-%c, ", row->letter);
	snprintf(out, size, "%s--%s%s%s", letter, row->name, row->metavar ? " " : "", row->metavar ? row->metavar : "");
}

void options_print_help(enum verb verb)
{
	const struct verb_row *row = &verb_rows[verb];
	char left[64];

	printf("usage: slotprobe %s [OPTION]...%s%s\n%s\n\n", row->name, *row->operands ? " " : "", row->operands,
	       row->help);
	for (size_t i = 0; i < n_option_rows; i++) {
		const struct option_row *option = &option_rows[i];

		if (!(option->verbs & 1u << verb))
			continue;
		option_left(option, left, sizeof(left));
		printf("  %-26s %s%s%s%s%s%s%s\n", left, option->help, option->choices ? ": " : "",
		       option->choices ? option->choices : "", option->many ? "; may be repeated" : "",
		       option->fallback ? " (default " : "", option->fallback ? option->fallback : "",
		       option->fallback ? ")" : "");
	}
	printf("\nexit status: %s\n", row->exits);
}

static json_t *dump_option(const struct option_row *row)
{
	char letter[2] = { row->letter, 0 };

	return json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:b, s:s}", "name", row->name, "letter", letter, "metavar",
			 row->metavar, "choices", row->choices, "default", row->fallback, "many", row->many, "help",
			 row->help);
}

/* For docs/errors.md. */
static json_t *dump_reasons(void)
{
	static const char *const name[] = {
		[REASON_INVALID] = "invalid", [REASON_BROKEN] = "broken", [REASON_UNPROVEN] = "unproven"
	};
	json_t *reasons = json_array();

	for (int i = 0; i < REASON_COUNT; i++)
		json_array_append_new(reasons, json_pack("{s:s, s:s, s:s, s:s}", "code", reason_rows[i].code, "class",
							 name[reason_rows[i].class], "text", reason_rows[i].text,
							 "remedy", reason_rows[i].remedy));
	return reasons;
}

void options_dump(void)
{
	json_t *verbs = json_array(), *all = json_pack("{s:s, s:o, s:o}", "version", SLOTPROBE_VERSION, "verbs", verbs,
						       "reasons", dump_reasons());

	for (int verb = 0; verb < VERB_COUNT; verb++) {
		const struct verb_row *row = &verb_rows[verb];
		json_t *options = json_array();

		for (size_t i = 0; i < n_option_rows; i++)
			if (option_rows[i].verbs & 1u << verb)
				json_array_append_new(options, dump_option(&option_rows[i]));
		json_array_append_new(verbs, json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", row->name, "operands",
						       row->operands, "help", row->help, "exits", row->exits, "options",
						       options));
	}
	json_print(stdout, all);
	json_decref(all);
}
