/* SPDX-License-Identifier: Apache-2.0
 *
 * third.h: a third arm beside the two: does the difference come from the padding, from the graph path, or from the replay?
 */
#ifndef COMPARE_THIRD_H
#define COMPARE_THIRD_H

#include <stddef.h>

struct diff;

enum third_conclusion {
	THIRD_NOT_ASKED,
	THIRD_NO_DIFFERENCE,
	THIRD_NOT_TOLD,
	THIRD_NOT_CAPTURE,
	THIRD_NOT_PADDING,
	THIRD_GRAPH_PATH,
	THIRD_REPLAY,
	THIRD_SEVERAL,
	THIRD_CONCLUSIONS
};

/* From the verdicts of the comparison itself and of either run against the third. */
enum third_conclusion third_conclude(const struct diff *diff);

const char *third_name(enum third_conclusion conclusion);
const char *third_text(enum third_conclusion conclusion); /* a sentence */

#endif
