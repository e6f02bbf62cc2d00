/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c: device memory of the slots, and which are free.
 */
#include "pool.h"

#include <stdlib.h>

/* Stands in the device cell of a slot that nobody owns: whoever reads a slot id too early or too late is out of range. */
#define NOBODY ((int64_t)1 << 40)

void toy_pool_open(struct toy_pool *pool, int layers, int slots, bool use_slot_0, toy_stream stream)
{
	size_t rows = (size_t)layers * (size_t)slots;

	*pool = (struct toy_pool) { .layers = layers, .slots = slots, .id_poison = NOBODY };
	CHECK(mem_alloc(&pool->conv, rows * TOY_CONV_BYTES));
	CHECK(mem_alloc(&pool->ssm, rows * TOY_SSM_BYTES));
	CHECK(mem_alloc(&pool->ids, (size_t)slots * sizeof(int64_t)));
	CHECK(set(pool->conv, 0, rows * TOY_CONV_BYTES, stream));
	CHECK(set(pool->ssm, 0, rows * TOY_SSM_BYTES, stream));
	CHECK(set(pool->ids, 0x11, (size_t)slots * sizeof(int64_t), stream));
	pool->free = calloc((size_t)slots, sizeof(*pool->free));
	pool->id_values = calloc((size_t)slots, sizeof(*pool->id_values));
	pool->owners = calloc((size_t)slots, sizeof(*pool->owners));
	if (!pool->free || !pool->id_values || !pool->owners)
		toy_die("out of memory");
	for (int slot = !use_slot_0; slot < slots; slot++)
		pool->free[pool->free_count++] = slot;
	for (int slot = 0; slot < slots; slot++)
		pool->id_values[slot] = slot;
	CHECK(stream_sync(stream));
}

void toy_pool_close(struct toy_pool *pool)
{
	CHECK(mem_free(pool->conv));
	CHECK(mem_free(pool->ssm));
	CHECK(mem_free(pool->ids));
	free(pool->free);
	free(pool->owners);
	free(pool->id_values);
}

static void write_id(struct toy_pool *pool, int slot, const int64_t *value, toy_stream stream)
{
	CHECK(to_device(pool->ids + (uint64_t)slot * sizeof(*value), value, sizeof(*value), stream));
}

int toy_pool_take(struct toy_pool *pool, toy_stream stream)
{
	int slot;

	if (!pool->free_count)
		return -1;
	slot = pool->free[pool->free_at];
	pool->free_at = (pool->free_at + 1) % pool->slots;
	pool->free_count--;
	pool->owners[slot]++;
	write_id(pool, slot, &pool->id_values[slot], stream);
	return slot;
}

void toy_pool_give(struct toy_pool *pool, int slot, toy_stream stream)
{
	pool->free[(pool->free_at + pool->free_count) % pool->slots] = slot;
	pool->free_count++;
	write_id(pool, slot, &pool->id_poison, stream);
}

void toy_pool_clear(const struct toy_pool *pool, int slot, enum toy_clear how, toy_stream stream)
{
	for (int layer = 0; layer < pool->layers; layer++) {
		if (how == TOY_CLEAR_ALL)
			CHECK(set(toy_pool_conv(pool, layer, slot), 0, TOY_CONV_BYTES, stream));
		if (how == TOY_CLEAR_ALL || how == TOY_CLEAR_SSM)
			CHECK(set(toy_pool_ssm(pool, layer, slot), 0, TOY_SSM_BYTES, stream));
	}
}

void toy_pool_copy(const struct toy_pool *pool, int to, int from, toy_stream stream)
{
	for (int layer = 0; layer < pool->layers; layer++) {
		CHECK(copy(toy_pool_conv(pool, layer, to), toy_pool_conv(pool, layer, from), TOY_CONV_BYTES, stream));
		CHECK(copy(toy_pool_ssm(pool, layer, to), toy_pool_ssm(pool, layer, from), TOY_SSM_BYTES, stream));
	}
}
