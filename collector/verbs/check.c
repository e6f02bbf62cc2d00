/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c: slotprobe check: the invariants that one run must hold by itself.
 */
#include "options.h"
#include "print/compare.h"
#include "verbs.h"

static int write_out(const struct check *check, const struct options *o, struct error *err)
{
	struct output output;
	int failed = 0;

	if (output_open(&output, options_text(o, "output"), err))
		return -1;
	if (o->json) {
		json_t *json = check_json(check);

		json_print(output.f, json);
		json_decref(json);
	} else if (o->html) {
		failed = check_print_html(output.f, check, err);
	} else {
		check_print_text(output.f, check, o->color);
	}
	return output_close(&output, failed ? NULL : err) || failed ? -1 : 0;
}

int cmd_check(int argc, char **argv)
{
	struct options o;
	struct check check;
	struct error err;
	int status = options_parse(VERB_check, argc, argv, &o);

	if (status >= 0)
		return status;
	status = EXIT_TROUBLE;
	if (check_run(&check, o.operands[0], &o, &err) != 0) {
		complain("check", "%s", err.text);
	} else {
		if (write_out(&check, &o, &err) != 0)
			complain("check", "%s", err.text);
		else
			status = reasons_exit_status(&check.reasons);
		check_free(&check);
	}
	options_free(&o);
	return status;
}
