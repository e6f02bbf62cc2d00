/* SPDX-License-Identifier: Apache-2.0
 *
 * forward.h: one forward pass, as the scheduler decides it.
 */
#ifndef TOY_FORWARD_H
#define TOY_FORWARD_H

#include <stdint.h>

#include "kernels.h"

#define TOY_MAX_TOKENS (TOY_MAX_BATCH * 1024)

struct toy_forward {
	int rows, padded; /* rows with a request; the size that a graph runs with. A prefill is not padded */
	int n_tokens;     /* of the padded rows too */
	int32_t tokens[TOY_MAX_TOKENS];
	int32_t row_begin[TOY_MAX_BATCH], row_count[TOY_MAX_BATCH];
	int32_t state_indices[TOY_MAX_BATCH];
	int32_t track_indices[TOY_MAX_BATCH], track_mask[TOY_MAX_BATCH];
	int32_t out[TOY_MAX_BATCH];
};

#endif
