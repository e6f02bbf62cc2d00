/* SPDX-License-Identifier: Apache-2.0
 *
 * test_launch.c: the protocol of one launch, of the host twin; and, built with -DWITH_EMULATOR, of the kernel's own source.
 */
#include "tests/unit/kernel/cmocka.h"
#include "tests/unit/kernel/world.h"

#ifdef WITH_EMULATOR
#include "tests/unit/kernel/emulate.h"
#define ORDERS 4
static uint64_t order;
static void launch(const struct fp_launch *l)
{
	emulate_launch(l, order, NULL, NULL);
}
#else
#define ORDERS 1
static uint64_t order;
static void launch(const struct fp_launch *l)
{
	fp_host_launch(l);
}
#endif

enum { F64, F32, F16, BF16, F8E4M3, F8E5M2, I8, I32, RAW };

static struct world w;

static void run_in_every_order(int64_t slot)
{
	for (order = 0; order < ORDERS; order++) {
		world_arm(&w);
		w.launch.slot = slot;
		launch(&w.launch);
		world_expect(&w, slot);
	}
}

static void test_every_dtype(void **state)
{
	(void)state;
	for (int fill = 0; fill < FILL_COUNT; fill++) {
		world_start(&w, 0);
		for (uint32_t dtype = F64; dtype <= RAW; dtype++)
			world_plane(&w, dtype, 6000 + 16 * dtype, 0, 0, (enum fill)fill);
		run_in_every_order(2);
	}
}

static void test_sizes_and_alignments(void **state)
{
	(void)state;
	static const uint32_t sizes[] = { 1, 3, 8, 9, 15, 16, 17, 31, 4095, 4096, 4112, 36864, 65535, 65536 + 24 };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (uint32_t shift = 0; shift < 16; shift += i % 2 ? 3 : 2) {
			uint32_t dtype = (uint32_t)(i + shift) % 9;
			world_start(&w, 1);
			world_plane(&w, dtype, sizes[i], shift, 0, FILL_SPECIAL);
			world_plane(&w, F32, sizes[i], shift, 16, FILL_SPECIAL);
			world_plane(&w, BF16, sizes[i], shift, shift, FILL_ORDINARY);
			run_in_every_order(WORLD_SLOTS);
			run_in_every_order(1);
		}
}

/* Planes of one chunk, of several, of more than lanes, and of none, in one launch. */
static void test_shapes(void **state)
{
	(void)state;
	world_start(&w, 0);
	world_plane(&w, F32, 0, 0, 0, FILL_ORDINARY);
	world_plane(&w, F32, FP_CHUNK_UNIT * 3 + 4, 0, 12, FILL_SPECIAL);
	world_plane(&w, BF16, FP_CHUNK_UNIT * 2, 0, 0, FILL_ORDINARY);
	world_plane(&w, F16, 0, 0, 0, FILL_ORDINARY);
	world_plane(&w, I32, 40, 0, 8, FILL_ORDINARY);
	world_plane(&w, F64, FP_CHUNK_UNIT, 0, 0, FILL_SPECIAL);
	world_plane(&w, RAW, FP_CHUNK_UNIT + 1, 0, 15, FILL_BITS);
	world_plane(&w, F32, FP_CHUNK_UNIT * 4 - 4, 4, 4, FILL_ORDINARY); /* never at a multiple of 16 */
	world_plane(&w, F32, FP_CHUNK_UNIT + FP_CHUNK_UNIT / 6, 8, 16,
		    FILL_ORDINARY); /* nor this: of 8; one vector more */
	world_region(&w, 5, 4);
	world_region(&w, FP_REGION_VALUES, 8);
	world_region(&w, FP_REGION_VALUES + 9, 1);
	world_region(&w, 0, 8);
	run_in_every_order(3);
	run_in_every_order(0);
	for (uint32_t times = 2; times < 5; times++) { /* a lane has one full round after another */
		w.chunk_bytes = times * FP_CHUNK_UNIT;
		run_in_every_order(3);
	}
}

static void test_only_empty_planes(void **state)
{
	(void)state;
	world_start(&w, 0);
	world_plane(&w, F32, 0, 0, 16, FILL_ORDINARY);
	run_in_every_order(1);
	world_plane(&w, F32, 0, 0, 16, FILL_ORDINARY);
	world_region(&w, 3, 4);
	run_in_every_order(0);
}

static void test_one_chunk(void **state)
{
	(void)state;
	world_start(&w, 0);
	world_plane(&w, F32, 4096, 0, 0, FILL_ORDINARY);
	for (uint32_t r = 0; r < FP_MAX_REGIONS; r++)
		world_region(&w, r * 9, 8);
	run_in_every_order(1);
}

static void test_negative_stride(void **state)
{
	(void)state;
	world_start(&w, 0);
	world_plane(&w, F32, 4096, 0, 0, FILL_ORDINARY);
	w.plane[0].base += 3 * 4096;
	w.plane[0].stride = -4096;
	run_in_every_order(0);
	run_in_every_order(3);
}

static void device_slot(uint32_t bytes, int64_t slot)
{
	w.launch.slot = 99;
	w.launch.slot_ptr_bytes = bytes;
	w.launch.slot_ptr = (uint64_t)(uintptr_t)(bytes == 4 ? (void *)&w.slot32 : (void *)&w.slot64);
	w.slot32 = (int32_t)slot;
	w.slot64 = slot;
	world_arm(&w);
	launch(&w.launch);
}

static void test_slot_on_the_device(void **state)
{
	(void)state;
	world_start(&w, 10);
	world_plane(&w, F32, 5000, 0, 8, FILL_ORDINARY);
	world_plane(&w, F32, FP_CHUNK_UNIT + 8, 0, 8, FILL_ORDINARY);
	for (uint32_t bytes = 4; bytes <= 8; bytes += 4) {
		device_slot(bytes, 12);
		world_expect(&w, 12);
		device_slot(bytes, -1);
		world_expect_nothing(&w, -1, FP_PADDING);
		device_slot(bytes, 14);
		world_expect_nothing(&w, 14, FP_OUT_OF_RANGE);
		device_slot(bytes, 9);
		world_expect_nothing(&w, 9, FP_OUT_OF_RANGE);
	}
	device_slot(8, INT64_MIN);
	world_expect_nothing(&w, INT64_MIN, FP_PADDING);
	device_slot(8, INT64_MAX);
	world_expect_nothing(&w, INT64_MAX, FP_OUT_OF_RANGE);
	device_slot(8, 12 + (1ll << 32));
	world_expect_nothing(&w, 12 + (1ll << 32), FP_OUT_OF_RANGE);
}

/* Out of range nothing of the pool is read: here it is not even mapped. */
static void test_nothing_is_read_out_of_range(void **state)
{
	(void)state;
	world_start(&w, 0);
	world_plane(&w, F32, 5000, 0, 0, FILL_ORDINARY);
	world_plane(&w, F32, 0, 0, 16, FILL_ORDINARY);
	world_plane(&w, F32, FP_CHUNK_UNIT * 2, 0, 0, FILL_ORDINARY);
	w.plane[0].base = w.plane[2].base = 0x1000;
	static const int64_t slots[] = { -1, WORLD_SLOTS, INT64_MAX, INT64_MIN };
	for (size_t i = 0; i < 4; i++)
		for (order = 0; order < ORDERS; order++) {
			world_arm(&w);
			w.launch.slot = slots[i];
			launch(&w.launch);
			world_expect_nothing(&w, slots[i], slots[i] < 0 ? FP_PADDING : FP_OUT_OF_RANGE);
		}
	w.launch.n_slots = 0;
	world_arm(&w);
	w.launch.slot = 0;
	launch(&w.launch);
	world_expect_nothing(&w, 0, FP_OUT_OF_RANGE);
}

/* A record that is not all there, or is of another launch, is not in: whichever word is missing. */
static void test_torn_records(void **state)
{
	(void)state;
	world_start(&w, 0);
	world_plane(&w, F32, 4096, 0, 0, FILL_ORDINARY);
	world_plane(&w, F32, FP_CHUNK_UNIT + 64, 0, 0, FILL_ORDINARY);
	world_region(&w, 9, 8);
	run_in_every_order(1);
	for (uint32_t i = 0; i < w.n_records; i++)
		for (uint32_t k = 0; k < 8; k++) {
			uint64_t *word = (uint64_t *)&w.entry->record[i] + k, kept = *word;
			*word = kept ^ 1ull << (7 * i + k);
			assert_int_equal(world_records_in(&w), i);
			*word = kept;
		}
	assert_int_equal(fp_records_in(w.entry, w.launch.sequence, 2, w.n_records), w.n_records);
	for (uint32_t i = 0; i < 9; i++) {
		w.entry->region[0].value[i]++;
		assert_false(fp_regions_in(w.entry, w.launch.sequence, w.region, 1));
		w.entry->region[0].value[i]--;
	}
	assert_true(fp_regions_in(w.entry, w.launch.sequence, w.region, 1));
	assert_false(fp_regions_in(w.entry, w.launch.sequence + 1, w.region, 1));
}

/* What a GPU wrote for the launch before must never pass for this one. */
static void test_an_old_result_is_not_new(void **state)
{
	(void)state;
	world_start(&w, 0);
	world_plane(&w, F32, 4096, 0, 0, FILL_ZERO);
	run_in_every_order(1);
	for (uint32_t next = 1; next < 1000; next++)
		assert_int_equal(fp_records_in(w.entry, w.launch.sequence + next, 0, w.n_records), 0);
	memset(w.entry, 0, sizeof(struct fp_entry) + w.n_records * sizeof(struct fp_record));
	for (uint32_t sequence = 1; sequence < 1000; sequence++)
		assert_int_equal(fp_records_in(w.entry, sequence, 0, w.n_records), 0);
}

#ifdef WITH_EMULATOR
static void change_slot(void *arg, uint32_t done)
{
	const int64_t *slots = arg;
	w.slot64 = slots[done % 3];
}

/* The slot id changes under the kernel: the launch still ends, and its blocks do not agree. */
static void test_slot_that_changes(void **state)
{
	(void)state;
	static int64_t slots[][3] = { { 1, 1, -1 }, { -1, 2, 2 }, { 77, 1, 1 }, { 0, -5, 9 }, { 1, 1, 2 } };
	int64_t found;

	world_start(&w, 0);
	world_plane(&w, F32, FP_CHUNK_UNIT * 4, 0, 0, FILL_ORDINARY);
	world_plane(&w, F32, 4096, 0, 0, FILL_ORDINARY);
	world_plane(&w, F32, 4096, 0, 0, FILL_ORDINARY);
	for (size_t i = 0; i < 5; i++)
		for (uint64_t seed = 0; seed < 6; seed++) {
			w.launch.slot_ptr = (uint64_t)(uintptr_t)&w.slot64;
			w.launch.slot_ptr_bytes = 8;
			world_arm(&w);
			emulate_launch(&w.launch, seed, change_slot, slots[i]);
			assert_int_equal(world_records_in(&w), w.n_records);
			assert_int_equal(fp_read_status(w.entry, w.n_records, &found), FP_OUT_OF_RANGE);
		}
	w.launch.slot_ptr = 0;
	run_in_every_order(1);
}

static void next_slot(void)
{
	w.slot64 = (w.slot64 + 1) % WORLD_SLOTS;
}

/* However fast it changes: what is said of a chunk is of one slot, and the record says of which. */
static void test_a_chunk_is_of_one_slot(void **state)
{
	int64_t found;

	(void)state;
	world_start(&w, 0);
	world_plane(&w, F32, FP_CHUNK_UNIT, 0, 0, FILL_ORDINARY);
	w.launch.slot_ptr = (uint64_t)(uintptr_t)&w.slot64;
	w.launch.slot_ptr_bytes = 8;
	for (uint64_t seed = 0; seed < 6; seed++) {
		world_arm(&w);
		emulate_before_turn = next_slot;
		emulate_launch(&w.launch, seed, NULL, NULL);
		emulate_before_turn = NULL;
		assert_int_equal(world_records_in(&w), 2);
		assert_int_equal(fp_read_status(w.entry, w.n_records, &found), FP_OK);
		world_expect(&w, found);
	}
}

static void test_ready(void **state)
{
	(void)state;
	uint32_t word[2] = { 0, 7 };
	emulate_ready((uint64_t)(uintptr_t)word, 5);
	assert_int_equal(word[0], 5);
	assert_int_equal(word[1], 7);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_dtype),
		cmocka_unit_test(test_sizes_and_alignments),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_only_empty_planes),
		cmocka_unit_test(test_one_chunk),
		cmocka_unit_test(test_negative_stride),
		cmocka_unit_test(test_slot_on_the_device),
		cmocka_unit_test(test_nothing_is_read_out_of_range),
		cmocka_unit_test(test_torn_records),
		cmocka_unit_test(test_an_old_result_is_not_new),
#ifdef WITH_EMULATOR
		cmocka_unit_test(test_slot_that_changes),
		cmocka_unit_test(test_a_chunk_is_of_one_slot),
		cmocka_unit_test(test_ready),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
