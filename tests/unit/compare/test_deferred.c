/* SPDX-License-Identifier: Apache-2.0
 *
 * test_deferred.c: every question that was put off is asked, once, and those about one hash in the order in which they came; where
 * memory does not hold them, by way of a file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "compare/deferred.h"

#define ASKED_MAX 5000u
#define MANY      600000u

static struct {
	bool seen[MANY];
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

	assert_true(q->value < MANY && !asked.seen[q->value]);
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

		assert_true(deferred_begin(&d, parts * DEFERRED_PART_QUESTIONS - 1, 1 << 20, DEFERRED_NO_FILE));
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
	assert_true(deferred_begin(&d, 1000, 3 * 4096 + 4095, DEFERRED_NO_FILE));
	while (n < ASKED_MAX && deferred_ask(&d, 0, hash_of(n, UINT64_MAX), n))
		n++;
	/* three blocks, and of the fourth the line that is not written yet */
	assert_in_range(n, 3 * 255, 3 * 255 + 3);
	deferred_free(&d);
}

/* Four blocks of memory: the others go to the file and come back, in the order in which they were written. */
static void test_more_than_fits(void **state)
{
	const uint64_t numbers[] = { 255, 1020, 1021, 1275, 2000, ASKED_MAX };

	(void)state;
	for (uint64_t parts = 1; parts <= 2; parts++) {
		struct deferred d;

		assert_true(deferred_begin(&d, parts * DEFERRED_PART_QUESTIONS - 1, 5 * 4096, 0));
		assert_int_equal(d.n_parts, parts);
		for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
			ask_and_perform(&d, numbers[i], 7);
			/* and again, with what is left of the time before */
			ask_and_perform(&d, numbers[i], numbers[i]);
		}
		assert_true(d.spill.open && d.bytes <= 5 * 4096);
		deferred_free(&d);
	}
}

/* More blocks of a part at once than one call writes. */
static void test_many_blocks_of_a_part(void **state)
{
	struct deferred d;

	(void)state;
	assert_true(deferred_begin(&d, 1000, 6 << 20, 0));
	assert_int_equal(d.n_parts, 1);
	for (unsigned i = 0; i < 2; i++)
		ask_and_perform(&d, MANY, i ? 1000 : MANY);
	assert_true(d.spill.open);
	deferred_free(&d);
}

/* Of a little memory, as many parts as leave room for what is not full yet. */
static void test_parts_of_a_little_memory(void **state)
{
	struct deferred d;

	(void)state;
	assert_true(deferred_begin(&d, 1ull << 32, 40 * 4096, 0));
	assert_int_equal(d.n_parts, 20);
	ask_and_perform(&d, ASKED_MAX, ASKED_MAX);
	deferred_free(&d);
	assert_true(deferred_begin(&d, 1ull << 32, 4096, 0));
	assert_int_equal(d.n_parts, 1);
	deferred_free(&d);
}

static uint64_t asked_until_refused(struct deferred *d)
{
	uint64_t n = 0;

	while (n < ASKED_MAX && deferred_ask(d, 0, hash_of(n, UINT64_MAX), n))
		n++;
	return n;
}

static void test_no_disk(void **state)
{
	struct rlimit was, little = { 8 * 4096, RLIM_INFINITY };
	struct deferred d;

	(void)state;
	setenv("TMPDIR", "/nowhere", 1);
	assert_true(deferred_begin(&d, 1000, 5 * 4096, 0));
	assert_in_range(asked_until_refused(&d), 4 * 255, 4 * 255 + 3);
	assert_true(d.no_disk);
	deferred_free(&d);
	unsetenv("TMPDIR");

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	little.rlim_max = was.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	assert_true(deferred_begin(&d, 1000, 5 * 4096, 0));
	assert_in_range(asked_until_refused(&d), 12 * 255, 12 * 255 + 3);
	assert_true(d.no_disk);
	deferred_free(&d);
	setrlimit(RLIMIT_FSIZE, &was);
}

/* Others have more use for the disk. */
static void test_what_is_to_be_left_of_the_disk(void **state)
{
	struct deferred d;

	(void)state;
	assert_true(deferred_begin(&d, 1000, 5 * 4096, 1ull << 62));
	assert_in_range(asked_until_refused(&d), 4 * 255, 4 * 255 + 3);
	assert_true(d.no_disk);
	deferred_free(&d);
}

/* What is gone from the file, or was never there, is not made up. */
static void test_a_file_that_is_cut(void **state)
{
	uint64_t hashes = 7;
	struct deferred d;

	(void)state;
	assert_true(deferred_begin(&d, 1000, 5 * 4096, 0));
	for (uint64_t i = 0; i < 2000; i++) {
		asked.seen[i] = false;
		assert_true(deferred_ask(&d, i % 3, hash_of(i, hashes), i));
	}
	assert_int_equal(ftruncate(d.spill.fd, 3 * 4096 - 1), 0);
	assert_false(deferred_perform(&d, answer, &hashes));
	deferred_free(&d);
}

/* It is nobody else's, and has no name. */
static void test_the_file(void **state)
{
	struct spill spill;
	char link[64], name[512];
	ssize_t n;

	(void)state;
	assert_true(spill_open(&spill));
	snprintf(link, sizeof link, "/proc/self/fd/%d", spill.fd);
	n = readlink(link, name, sizeof name - 1);
	assert_true(n > 0);
	name[n] = 0;
	assert_non_null(strstr(name, "(deleted)"));
	assert_true(fcntl(spill.fd, F_GETFD) & FD_CLOEXEC);
	spill_close(&spill);
	spill_close(&spill);
	assert_int_not_equal(fcntl(0, F_GETFD), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_number),
		cmocka_unit_test(test_no_more_than_said),
		cmocka_unit_test(test_more_than_fits),
		cmocka_unit_test(test_many_blocks_of_a_part),
		cmocka_unit_test(test_parts_of_a_little_memory),
		cmocka_unit_test(test_no_disk),
		cmocka_unit_test(test_what_is_to_be_left_of_the_disk),
		cmocka_unit_test(test_a_file_that_is_cut),
		cmocka_unit_test(test_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
