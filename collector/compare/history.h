/* SPDX-License-Identifier: Apache-2.0
 *
 * history.h: what happened to a slot, event after event, without a look at what happened to others.
 */
#ifndef COMPARE_HISTORY_H
#define COMPARE_HISTORY_H

#include "compare/align.h"

struct history {
	const struct alignment *al;
	struct map first[2]; /* (process, pool, slot) -> its first event */
	uint32_t **next[2];  /* [process][event]: the next of its slot */
};

/* false: out of memory. It is to be freed either way. */
bool history_make(struct history *history, const struct alignment *al);
void history_free(struct history *history);

/* The first event of the slot that this one is of, and the next after it; ALIGN_NONE: there is none. */
uint32_t history_first(const struct history *history, unsigned side, struct align_ref at);
uint32_t history_next(const struct history *history, unsigned side, struct align_ref at);

#endif
