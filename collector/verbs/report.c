/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c: slotprobe report: everything that one run holds, coverage first.
 */
#include <string.h>

#include "compare/coverage.h"
#include "options.h"
#include "print/compare.h"
#include "verbs.h"

static int write_out(const struct report *report, const struct options *o, struct error *err)
{
	struct output output;
	int failed = 0;

	if (output_open(&output, options_text(o, "output"), err))
		return -1;
	if (o->json) {
		json_t *json = report_json(report);

		json_print(output.f, json);
		json_decref(json);
	} else if (o->html) {
		failed = report_print_html(output.f, report, err);
	} else {
		report_print_text(output.f, report, o->color);
	}
	return output_close(&output, failed ? NULL : err) || failed ? -1 : 0;
}

static int show(const struct options *o, struct error *err)
{
	static const struct model no_other;
	struct coverage_ask ask = { .run = "", .launches = true, .slot_events = true };
	struct report report;
	int status = EXIT_TROUBLE;

	memset(&report, 0, sizeof report);
	if (model_open(&report.model, o->operands[0], err) != 0)
		return status;
	coverage_judge(&report.model, &ask, o, &report.reasons);
	/* The rows of the comparison, with nothing to compare them to. */
	if (align_runs(&report.al, &report.model, &no_other, ALIGN_SLOT) != 0)
		error_set(err, "out of memory");
	else if (write_out(&report, o, err) == 0)
		status = reasons_exit_status(&report.reasons);
	align_free(&report.al);
	reasons_free(&report.reasons);
	model_close(&report.model);
	return status;
}

int cmd_report(int argc, char **argv)
{
	struct options o;
	struct error err;
	int status = options_parse(VERB_report, argc, argv, &o);

	if (status >= 0)
		return status;
	status = show(&o, &err);
	if (status == EXIT_TROUBLE) /* what a damaged page left in err is among the reasons */
		complain("report", "%s", err.text);
	options_free(&o);
	return status;
}
