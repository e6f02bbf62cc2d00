/* SPDX-License-Identifier: Apache-2.0
 *
 * diff.c: slotprobe diff: two runs, compared.
 */
#include "options.h"
#include "print/compare.h"
#include "verbs.h"

static int write_out(const struct diff *diff, const struct options *o, struct error *err)
{
	struct output output;
	int failed = 0;

	if (output_open(&output, options_text(o, "output"), err))
		return -1;
	if (o->json) {
		json_t *json = diff_json(diff);

		json_print(output.f, json);
		json_decref(json);
	} else if (o->html) {
		failed = diff_print_html(output.f, diff, err);
	} else {
		diff_print_text(output.f, diff, o->color);
	}
	return output_close(&output, failed ? NULL : err) || failed ? -1 : 0;
}

int cmd_diff(int argc, char **argv)
{
	struct options o;
	struct diff diff;
	struct error err;
	int status = options_parse(VERB_diff, argc, argv, &o);

	if (status >= 0)
		return status;
	status = EXIT_TROUBLE;
	if (diff_runs(&diff, o.operands[0], o.operands[1], &o, &err) != 0) {
		complain("diff", "%s", err.text);
	} else {
		if (write_out(&diff, &o, &err) != 0)
			complain("diff", "%s", err.text);
		else
			status = diff_exit_status(&diff);
		diff_free(&diff);
	}
	options_free(&o);
	return status;
}
