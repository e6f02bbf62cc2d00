/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h: the state slots on the device. Layer-major, as SGLang keeps them: conv[layers][slots][channels][window] in
 * bf16 and ssm[layers][slots][heads][channels / heads][state] in fp32, so that one slot is 2 * layers scattered rows.
 * Slot 0 is reserved. Free slots are taken and given back first in, first out.
 */
#ifndef TOY_POOL_H
#define TOY_POOL_H

#include "kernels.h"
#include "toy_cuda.h"

#define TOY_CONV_BYTES (TOY_CONV_ELEMS * 2)
#define TOY_SSM_BYTES  (TOY_SSM_ELEMS * 4)

enum toy_clear {
	TOY_CLEAR_ALL,
	TOY_CLEAR_SSM,      /* conv stays as it is */
	TOY_CLEAR_MULTIPLY, /* by a kernel of the model's, not by the pool */
	TOY_CLEAR_NOTHING,
};

struct toy_pool {
	int layers, slots; /* slot 0 counts */
	toy_ptr conv, ssm;
	toy_ptr ids; /* int64[slots]: the slot ids as a framework keeps them, in device memory */
	int64_t *id_values, id_poison;
	int *owners; /* how often each slot was taken */
	int *free;
	int free_at, free_count;
};

void toy_pool_open(struct toy_pool *pool, int layers, int slots, bool use_slot_0, toy_stream stream);
void toy_pool_close(struct toy_pool *pool);

/* -1 when none is free. Neither clears anything. */
int toy_pool_take(struct toy_pool *pool, toy_stream stream);
void toy_pool_give(struct toy_pool *pool, int slot, toy_stream stream);

void toy_pool_clear(const struct toy_pool *pool, int slot, enum toy_clear how, toy_stream stream);
void toy_pool_copy(const struct toy_pool *pool, int to, int from, toy_stream stream);

/* Address of one slot's row in a layer. */
static inline toy_ptr toy_pool_conv(const struct toy_pool *pool, int layer, int slot)
{
	return pool->conv + ((uint64_t)layer * (uint64_t)pool->slots + (uint64_t)slot) * TOY_CONV_BYTES;
}

static inline toy_ptr toy_pool_ssm(const struct toy_pool *pool, int layer, int slot)
{
	return pool->ssm + ((uint64_t)layer * (uint64_t)pool->slots + (uint64_t)slot) * TOY_SSM_BYTES;
}

#endif
