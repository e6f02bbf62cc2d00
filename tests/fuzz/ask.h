/* SPDX-License-Identifier: Apache-2.0
 *
 * ask.h: runs the collector's verbs inside this process and holds each to what the interface says of any input.
 */
#ifndef FUZZ_ASK_H
#define FUZZ_ASK_H

#include <stdbool.h>

enum asked {
	ASK_STATUS,
	ASK_STATUS_JSON,
	ASK_VERIFY,
	ASK_VERIFY_JSON,
	ASK_CHECK,
	ASK_CHECK_JSON,
	ASK_CHECK_HTML,
	ASK_REPORT,
	ASK_REPORT_JSON,
	ASK_REPORT_HTML,
	ASK_DIFF,
	ASK_DIFF_JSON,
	ASK_DIFF_HTML,
	ASK_DIFF_KEY,
	ASK_DIFF_ORDER,
	ASK_DIFF_THIRD,
	ASK_DIFF_NOISE,
	ASK_JSONL,
	ASK_CSV,
	ASK_PERFETTO,
	ASK_COUNT
};

struct answer {
	int status;
	unsigned complaints; /* lines on stderr */
	char broken[512];    /* what it did against the interface; "": nothing */
};

/* Asks one verb about the first run; diff: about the first two, with the third for --third and --noise. */
void ask(enum asked asked, const char *const *run, struct answer *answer);
const char *asked_name(enum asked asked);
/* verify, check, report and diff say by status 3 that something was lost; status and export by one line. */
bool asked_judges(enum asked asked);

#endif
