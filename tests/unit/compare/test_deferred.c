/* SPDX-License-Identifier: Apache-2.0
 *
 * test_deferred.c: every question that was put off is asked, once, and those about one hash in the order in which they came.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "compare/deferred.h"

#define ASKED_MAX 5000u

static struct {
	bool seen[ASKED_MAX];
	uint64_t n;
} asked;

/* The hash of a question follows from its number. */
static uint64_t hash_of(uint64_t number, uint64_t hashes)
{
	return (number % hashes + 1) * 0x9e3779b97f4a7c15ull;
}

static bool answer(void *arg, struct bigmap *map, struct bigmap_cell *cell, const struct question *q)
{
	const uint64_t *hashes = arg;

	assert_true(q->value < ASKED_MAX && !asked.seen[q->value]);
	assert_int_equal(q->hash, (hash_of(q->value, *hashes) & ~3ull) | q->value % 3);
	asked.seen[q->value] = true;
	asked.n++;
	if (!cell->hash) {
		assert_true(q->value < *hashes);
		bigmap_fill(map, cell, question_entry(q), q->value);
		return true;
	}
	assert_int_equal(q->value, cell->value + *hashes);
	cell->value = q->value;
	return true;
}

static void ask_and_perform(struct deferred *d, uint64_t n, uint64_t hashes)
{
	asked.n = 0;
	for (uint64_t i = 0; i < n; i++) {
		asked.seen[i] = false;
		assert_true(deferred_ask(d, i % 3, hash_of(i, hashes), i));
	}
	assert_true(deferred_perform(d, answer, &hashes));
	assert_int_equal(asked.n, n);
}

/* However the last line and the last block of a part are filled; and again in the same blocks. */
static void test_each_number(void **state)
{
	(void)state;
	for (uint64_t parts = 1; parts <= 3; parts++) {
		struct deferred d;

		assert_true(deferred_begin(&d, parts * 12288 - 1, 1 << 20));
		assert_int_equal(d.n_parts, parts);
		for (uint64_t n = 0; n < 1100; n++)
			ask_and_perform(&d, n, n % 7 + 1);
		ask_and_perform(&d, ASKED_MAX, 1000);
		assert_true(d.bytes <= 1 << 20);
		deferred_free(&d);
	}
}

static void test_no_more_than_said(void **state)
{
	struct deferred d;
	uint64_t n = 0;

	(void)state;
	assert_true(deferred_begin(&d, 1000, 3 * 4096 + 4095));
	while (n < ASKED_MAX && deferred_ask(&d, 0, hash_of(n, UINT64_MAX), n))
		n++;
	/* three blocks, and of the fourth the line that is not written yet */
	assert_in_range(n, 3 * 255, 3 * 255 + 3);
	deferred_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_number),
		cmocka_unit_test(test_no_more_than_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
