/* SPDX-License-Identifier: Apache-2.0
 *
 * judge.h: between diff.c, judge.c and valid.c, the parts of one comparison.
 */
#ifndef COMPARE_JUDGE_H
#define COMPARE_JUDGE_H

#include "compare/diff.h"

/* judge.c: a verdict for each row, and the summary. */
void judge_rows(struct diff *diff);

/* Two events that are mates were measured, claim the same and are not equal, however near they are. */
bool judge_differs(const struct diff *diff, uint32_t group, struct align_ref a, struct align_ref b);

/* A row in which something is missing, and nothing that was there went uncompared. */
bool row_is_missing(enum row_verdict verdict);

/* valid.c: reasons for which the comparison is void. -1: out of memory. */
int judge_validity(struct diff *diff);

/* valid.c: what one run has and the other lacks, and whether graphs wrote what was compared. */
bool judge_sides(struct diff *diff); /* false: out of memory */

#endif
