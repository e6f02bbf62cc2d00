/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.h: the model's dimensions and the kernels' arguments, shared by the device code, its host twin and the
 * server.
 */
#ifndef TOY_KERNELS_H
#define TOY_KERNELS_H

#include <stdint.h>

#define TOY_MAX_BATCH 8 /* the largest batch that is captured */
#define TOY_CHANNELS  32
#define TOY_WINDOW    3  /* tokens that the convolution remembers */
#define TOY_STATE     16 /* numbers of SSM state for each channel */
#define TOY_HEADS     4
#define TOY_VOCAB     1024
#define TOY_THREADS   32

#define TOY_CONV_ELEMS (TOY_CHANNELS * TOY_WINDOW)
#define TOY_SSM_ELEMS  (TOY_CHANNELS * TOY_STATE)

/* Addresses are device addresses (host addresses for the twin). One block works on one row: what a row computes does
 * not depend on its neighbours nor on how many there are. */
struct toy_rows {
	uint64_t tokens;               /* int32, all rows' tokens one after the other */
	uint64_t row_begin, row_count; /* int32[rows]: a row's tokens */
	uint64_t state_indices;        /* int32[rows]: live slot, negative for a padded row */
	uint64_t hidden;               /* float[tokens][TOY_CHANNELS] */
	uint64_t fresh;                /* int32[rows]: 1 where no state came before, whatever the window holds; or 0 */
};

struct toy_layer_args {
	struct toy_rows rows;
	uint64_t conv, ssm; /* this layer's planes, at slot 0 */
	int64_t conv_stride, ssm_stride;
	int32_t layer;
	int32_t wide; /* 1: the sum that is right for many rows, which rounds otherwise */
};

struct toy_stray_table {
	uint64_t state_indices, ssm;
	int64_t ssm_stride;
};

#endif
