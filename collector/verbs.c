/* SPDX-License-Identifier: Apache-2.0
 *
 * verbs.c: the table of verbs.
 */
#include "verbs.h"

const struct verb_row verb_rows[VERB_COUNT] = {
#define VERB_ROW(name, operands, fewest, most, status, help, exits)                                                    \
	{ #name, operands, fewest, most, status, help, exits, cmd_##name },
	VERBS(VERB_ROW)
#undef VERB_ROW
};
