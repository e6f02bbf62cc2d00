/* SPDX-License-Identifier: Apache-2.0
 *
 * test_llamacpp.c: the adapter's parser against hostile blobs, and its token histories against what they must forget.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probes/servers/llamacpp/batch.h"
#include "probes/servers/llamacpp/blob.h"
#include "probes/servers/llamacpp/history.h"

#define ROWS      4u
#define ROW_BYTES 24u
#define PART      (20u + ROWS * (12u + ROW_BYTES))

static struct lc_part part;

static void put(uint8_t *to, size_t *at, uint64_t value, size_t bytes)
{
	memcpy(to + *at, &value, bytes);
	*at += bytes;
}

/* A sound recurrent part in a buffer of exactly its size: a byte read behind it is found by the sanitizer. */
static uint8_t *sound(void)
{
	uint8_t *p = calloc(1, PART);
	size_t at = 0;

	put(p, &at, 1, 4);  /* cells */
	put(p, &at, 41, 4); /* position */
	put(p, &at, 0, 4);
	put(p, &at, 0, 4);
	put(p, &at, 5, 4); /* layers */
	for (unsigned i = 0; i < ROWS; i++) {
		put(p, &at, 0, 4);
		put(p, &at, ROW_BYTES, 8);
		at += ROW_BYTES;
	}
	return p;
}

static enum lc_blob_status with(size_t offset, uint64_t value, size_t bytes)
{
	enum lc_blob_status status;
	uint8_t *p = sound();

	put(p, &offset, value, bytes);
	status = lc_blob_part(p, PART, &part);
	free(p);
	return status;
}

static void test_sound(void **state)
{
	uint8_t *p = sound();

	(void)state;
	assert_int_equal(lc_blob_part(p, PART, &part), LC_BLOB_SOUND);
	assert_int_equal(part.pos, 41);
	assert_int_equal(part.n_rows, ROWS);
	for (unsigned i = 0; i < ROWS; i++) {
		assert_int_equal(part.row[i].offset, 32 + i * (12 + ROW_BYTES));
		assert_int_equal(part.row[i].bytes, ROW_BYTES);
	}
	free(p);
}

static void test_every_cut(void **state)
{
	(void)state;
	for (size_t n = 0; n < PART; n++) {
		uint8_t *whole = sound(), *p = malloc(n ? n : 1);
		enum lc_blob_status status;
		memcpy(p, whole, n);
		status = lc_blob_part(p, n, &part);
		/* between two pairs of rows nothing is missing that could be missed */
		if (n == 20 + 2 * (12 + ROW_BYTES))
			assert_int_equal(status, LC_BLOB_SOUND);
		else
			assert_int_equal(status, LC_BLOB_UNKNOWN);
		free(whole);
		free(p);
	}
}

static void test_fields(void **state)
{
	(void)state;
	assert_int_equal(with(0, 0, 4), LC_BLOB_EMPTY);
	assert_int_equal(with(0, 2, 4), LC_BLOB_UNKNOWN);           /* two cells */
	assert_int_equal(with(4, 0xffffffff, 4), LC_BLOB_UNKNOWN);  /* position -1 */
	assert_int_equal(with(8, 1, 4), LC_BLOB_UNKNOWN);           /* sequence ids in the cell */
	assert_int_equal(with(12, 1, 4), LC_BLOB_UNKNOWN);          /* transposed */
	assert_int_equal(with(16, 1, 4), LC_BLOB_UNKNOWN);          /* more recurrent layers than layers */
	assert_int_equal(with(20, 0xffffffff, 4), LC_BLOB_UNKNOWN); /* a type that cannot be */
	assert_int_equal(with(24, UINT64_MAX, 8), LC_BLOB_UNKNOWN); /* a length that wraps */
	assert_int_equal(with(24, ROW_BYTES + 1, 8), LC_BLOB_UNKNOWN);
	assert_int_equal(with(24, PART, 8), LC_BLOB_UNKNOWN);
	assert_int_equal(lc_blob_part(NULL, 100, &part), LC_BLOB_UNKNOWN);
}

static void test_noise(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 20000; round++) {
		uint8_t *p = sound();
		for (int i = rand() % 6; i >= 0; i--)
			p[(unsigned)rand() % PART] = (uint8_t)rand();
		if (lc_blob_part(p, PART, &part) == LC_BLOB_SOUND)
			for (uint32_t i = 0; i < part.n_rows; i++)
				assert_true(part.row[i].offset + part.row[i].bytes <= PART);
		free(p);
	}
}

static void test_header(void **state)
{
	const uint8_t good[8] = { 0xd8, 0x3c, 0x14, 0xaf, 7, 0, 0, 0 };
	int32_t seq;

	(void)state;
	assert_int_equal(lc_blob_sequence(good, 8, &seq), LC_BLOB_SOUND);
	assert_int_equal(seq, 7);
	for (size_t n = 0; n < 8; n++)
		assert_int_equal(lc_blob_sequence(good, n, &seq), LC_BLOB_UNKNOWN);
	assert_int_equal(lc_blob_sequence(good + 1, 7, &seq), LC_BLOB_UNKNOWN);
	assert_int_equal(lc_blob_sequence(NULL, 8, &seq), LC_BLOB_UNKNOWN);
}

/* ---- histories ---- */

static const int here, there;

static void push(int32_t seq, int32_t from, int32_t n, int32_t token)
{
	for (int32_t i = 0; i < n; i++)
		lc_history_push(&here, seq, from + i, token + i);
}

static uint64_t key(int32_t seq, int32_t n)
{
	return lc_history_key(&here, seq, n);
}

static int forget(void **state)
{
	(void)state;
	lc_history_forget(&here);
	lc_history_forget(&there);
	return 0;
}

static void test_prefixes(void **state)
{
	uint64_t five;

	(void)state;
	push(0, 0, 10, 100);
	push(1, 0, 5, 100);
	push(1, 5, 5, 7);
	five = key(0, 5);
	assert_int_not_equal(five, 0);
	assert_int_equal(key(1, 5), five);
	assert_int_not_equal(key(1, 6), key(0, 6));
	assert_int_not_equal(key(0, 9), key(0, 10));
	assert_int_equal(key(0, 11), 0);
	assert_int_equal(key(0, 0), 0);
	assert_int_equal(key(2, 5), 0);
	assert_int_equal(lc_history_key(&there, 0, 5), 0);
}

static void test_cut_back(void **state)
{
	uint64_t three;

	(void)state;
	push(0, 0, 10, 100);
	three = key(0, 3);
	lc_history_remove(&here, 0, 3, -1);
	assert_int_equal(key(0, 3), three);
	assert_int_equal(key(0, 4), 0);
	push(0, 3, 2, 50);
	assert_int_not_equal(key(0, 5), 0);
	lc_history_remove(&here, -1, -1, -1);
	assert_int_equal(key(0, 1), 0);
	push(0, 0, 3, 100);
	assert_int_equal(key(0, 3), three);
}

static void test_what_is_lost(void **state)
{
	(void)state;
	push(0, 0, 4, 1);
	lc_history_push(&here, 0, 6, 9); /* a gap */
	lc_history_push(&here, 0, 4, 9);
	assert_int_not_equal(key(0, 4), 0);
	assert_int_equal(key(0, 5), 0);
	lc_history_remove(&here, 0, 4, -1); /* known again */
	push(0, 4, 1, 9);
	assert_int_not_equal(key(0, 5), 0);
	lc_history_push(&here, 0, 5, -1); /* no token */
	push(0, 6, 1, 9);
	assert_int_equal(key(0, 6), 0);
	lc_history_remove(&here, 0, 2, 3); /* a hole */
	assert_int_not_equal(key(0, 2), 0);
	assert_int_equal(key(0, 3), 0);
	push(1, 0, 4, 1);
	lc_history_shift(&here, 1, 2, -1);
	push(1, 2, 1, 5);
	assert_int_not_equal(key(1, 2), 0);
	assert_int_equal(key(1, 3), 0);
}

static void test_copies(void **state)
{
	(void)state;
	push(0, 0, 6, 10);
	lc_history_copy(&here, 0, 3, -1, -1);
	assert_int_equal(key(3, 6), key(0, 6));
	lc_history_copy(&here, 0, 2, 2, -1);
	assert_int_equal(key(2, 6), 0);
	lc_history_keep(&here, 3);
	assert_int_equal(key(0, 1), 0);
	assert_int_not_equal(key(3, 6), 0);
}

static void test_buffers(void **state)
{
	char buffer[2];
	uint64_t six;

	(void)state;
	push(0, 0, 6, 10);
	six = key(0, 6);
	lc_history_save(&here, 0, &buffer[0], 100, 6);
	push(1, 0, 3, 99);
	assert_false(lc_history_load(&here, 1, &buffer[1], 100, 6));
	assert_int_equal(key(1, 3), 0);
	assert_false(lc_history_load(&here, 1, &buffer[0], 99, 6));
	assert_false(lc_history_load(&here, 1, &buffer[0], 100, 5));
	assert_true(lc_history_load(&here, 1, &buffer[0], 100, 6));
	assert_int_equal(key(1, 6), six);
	push(1, 6, 1, 4);
	assert_int_not_equal(key(1, 7), 0);
	for (long i = 0; i < 3000; i++) /* more than are kept */
		lc_history_save(&here, 0, (void *)(intptr_t)(1000 + i), 100, 6);
	assert_false(lc_history_load(&here, 2, &buffer[0], 100, 6));
}

static void test_batches(void **state)
{
	static const int batch;

	(void)state;
	assert_int_equal(lc_batch_entries(&batch), -1);
	lc_batch_new(&batch);
	for (int32_t i = 0; i < 200; i++) { /* two sequences share the first half, then go on alone */
		lc_batch_add(&batch, i, i < 100 ? 0 : i % 2, i < 100 ? i : i - i % 2);
		lc_batch_set_pos(&batch, i, i < 100 ? i : 100 + (i - 100) / 2);
		if (i < 100)
			lc_batch_add_sequence(&batch, i, 1);
	}
	assert_int_equal(lc_batch_entries(&batch), 200);
	lc_batch_ran(&here, &batch, 1);
	assert_int_equal(key(0, 1), 0);
	lc_batch_ran(&here, &batch, 0);
	assert_int_not_equal(key(0, 150), 0);
	assert_int_equal(key(0, 150), key(1, 150));
	lc_batch_clear(&batch);
	lc_batch_add(&batch, 0, 0, 5);
	lc_batch_set_pos(&batch, 0, 150);
	lc_batch_ran(&here, &batch, -3); /* who knows what ran of it */
	push(0, 150, 1, 5);
	assert_int_equal(key(0, 151), 0);
	lc_batch_clear(&batch);
	lc_batch_add(&batch, 5, 1, 5); /* an entry that we missed */
	lc_batch_ran(&here, &batch, 0);
	push(1, 150, 1, 5);
	assert_int_equal(key(1, 151), 0);
	lc_batch_free(&batch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_header),
		cmocka_unit_test_teardown(test_prefixes, forget),
		cmocka_unit_test_teardown(test_cut_back, forget),
		cmocka_unit_test_teardown(test_what_is_lost, forget),
		cmocka_unit_test_teardown(test_copies, forget),
		cmocka_unit_test_teardown(test_buffers, forget),
		cmocka_unit_test_teardown(test_batches, forget),
	};

	return cmocka_run_group_tests_name("llamacpp", tests, NULL, NULL);
}
