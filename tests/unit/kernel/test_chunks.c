/* SPDX-License-Identifier: Apache-2.0
 *
 * test_chunks.c: how slots are cut: the shapes of models come out in whole rounds, and every shape in whole units that cover it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "probes/core/kernel/fingerprint.h"

#define KIB    1024ull
#define MIB    (1024 * KIB)
#define PLANES 1024u

static uint64_t bytes[PLANES];
static uint32_t n_planes;

static void planes(uint32_t n, uint64_t each)
{
	for (uint32_t i = 0; i < n; i++)
		bytes[n_planes++] = each;
}

/* Chunks of the slot; checks that they have whole units and cover it. */
static uint64_t chunks(void)
{
	const uint32_t size = fp_chunk_bytes(bytes, sizeof bytes[0], n_planes);
	uint64_t n = 0;

	assert_in_range(size, FP_CHUNK_UNIT, FP_CHUNK_MOST * FP_CHUNK_UNIT);
	assert_int_equal(size % FP_CHUNK_UNIT, 0);
	for (uint32_t i = 0; i < n_planes; i++) {
		const uint64_t own = fp_plane_chunks(bytes[i], size);
		assert_true(own * size >= bytes[i] && (own == 1 || (own - 1) * size < bytes[i]));
		n += own;
	}
	n_planes = 0;
	return n;
}

static void test_models(void **state)
{
	(void)state;
	planes(36, 2 * MIB);
	assert_int_equal(chunks(), 396);
	planes(72, MIB);
	assert_int_equal(chunks(), 360);
	planes(96, 768 * KIB);
	assert_int_equal(chunks(), 384);
	planes(36, 2 * MIB);
	planes(36, 48 * KIB);
	assert_int_equal(chunks(), 396);
	planes(1, 64 * MIB);
	assert_in_range(chunks(), 390, 396);
	planes(96, 1600 * KIB);
	assert_int_equal(chunks(), 384);
	planes(200, 24 * KIB);
	assert_int_equal(chunks(), 200);
	planes(48, 48 * KIB);
	assert_int_equal(chunks(), 96);
	planes(1, 4 * KIB);
	assert_int_equal(chunks(), 1);
}

/* More planes than run at once: more rounds, where they pay. */
static void test_many_planes(void **state)
{
	(void)state;
	planes(500, 24 * KIB);
	assert_int_equal(chunks(), 500);
	planes(500, MIB);
	assert_int_equal(chunks(), 1500);
	/* what a round costs, the fewer of two that cost alike, and how many are tried: a run's l2 is that of the next version */
	planes(410, 96 * KIB);
	assert_int_equal(chunks(), 410);
	planes(410, 128 * KIB);
	assert_int_equal(chunks(), 820);
	planes(397, 4 * MIB);
	assert_int_equal(chunks(), 397 * 5);
	planes(PLANES, 20 * MIB);
	assert_in_range(chunks(), 5 * PLANES, 10 * PLANES);
}

static void test_odd_sizes(void **state)
{
	uint64_t seed = 1;

	(void)state;
	planes(1, 0);
	assert_int_equal(chunks(), 1);
	planes(3, 0);
	planes(1, 1);
	assert_int_equal(chunks(), 4);
	planes(1, 1ull << 40);
	assert_int_equal(chunks(), (1ull << 40) / (FP_CHUNK_MOST * FP_CHUNK_UNIT) + 1);
	for (int turn = 0; turn < 300; turn++) {
		for (uint32_t i = 1 + turn % 40; i; i--) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			planes(1, seed >> 33 >> (seed >> 20) % 31);
		}
		chunks();
	}
}

/* Two pools with the same planes in another order, or with other things between their sizes, agree. */
static void test_only_sizes_count(void **state)
{
	const struct {
		uint64_t bytes, other;
	} apart[] = { { 3 * MIB, 7 }, { 40 * MIB, 9 }, { 5, 1 } };
	const uint64_t dense[] = { 5, 40 * MIB, 3 * MIB };

	(void)state;
	assert_int_equal(fp_chunk_bytes(&apart[0].bytes, sizeof apart[0], 3),
			 fp_chunk_bytes(dense, sizeof dense[0], 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models),
		cmocka_unit_test(test_many_planes),
		cmocka_unit_test(test_odd_sizes),
		cmocka_unit_test(test_only_sizes_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
