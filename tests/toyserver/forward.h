/* SPDX-License-Identifier: Apache-2.0
 *
 * forward.h: one forward pass, as the scheduler decides it.
 */
#ifndef TOY_FORWARD_H
#define TOY_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels.h"

#define TOY_WIDE       4 /* rows from which a forward by_rows sums otherwise */
#define TOY_MAX_TOKENS (TOY_MAX_BATCH * 1024)

/* What a bug makes of a forward. */
struct toy_twist {
	bool leak;    /* the kernel is told which rows are fresh; their windows were not cleared */
	bool early;   /* rows after the first are checkpointed before the layers run */
	bool wipe;    /* states are zeroed before the layers run */
	bool stray;   /* the stray write after the layers */
	bool by_rows; /* a sum's order depends on the number of rows launched */
};

struct toy_forward {
	struct toy_twist twist;
	int rows, padded; /* rows with a request; the size that a graph runs with. A prefill is not padded */
	int n_tokens;     /* of the padded rows too */
	int32_t tokens[TOY_MAX_TOKENS];
	int32_t row_begin[TOY_MAX_BATCH], row_count[TOY_MAX_BATCH];
	int32_t state_indices[TOY_MAX_BATCH];
	int32_t track_indices[TOY_MAX_BATCH], track_mask[TOY_MAX_BATCH];
	int32_t fresh[TOY_MAX_BATCH]; /* no state came before */
	int32_t out[TOY_MAX_BATCH];
};

#endif
