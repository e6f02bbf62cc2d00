/* SPDX-License-Identifier: Apache-2.0
 *
 * test_digest.c: planes of which anything differs have different digests, where what is said of them are small numbers too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "read/digest.h"

#define SIDE 256u /* of a square of values */

static uint64_t digest[SIDE * SIDE];

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static unsigned alike(void)
{
	unsigned n = 0;

	qsort(digest, SIDE * SIDE, sizeof digest[0], by_value);
	for (unsigned i = 1; i < SIDE * SIDE; i++)
		n += digest[i] == digest[i - 1];
	return n;
}

static uint64_t digest_of(unsigned one, uint64_t x, unsigned other, uint64_t y)
{
	uint64_t word[DIGEST_WORDS] = { 0 };
	struct log_plane_print plane;

	word[one] = x;
	word[other] = y;
	memcpy(&plane, word, sizeof plane);
	return digest_plane(7, &plane);
}

/* Each two words of a print, with each two of many numbers. */
static void each_two_words(uint64_t number(unsigned))
{
	for (unsigned one = 0; one < DIGEST_WORDS; one++)
		for (unsigned other = one + 1; other < DIGEST_WORDS; other++) {
			for (unsigned i = 0; i < SIDE * SIDE; i++)
				digest[i] = digest_of(one, number(i % SIDE), other, number(i / SIDE));
			assert_int_equal(alike(), 0);
		}
}

static uint64_t count(unsigned i)
{
	return i;
}

static uint64_t real(unsigned i)
{
	const double x = i / 4.0;
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	return bits;
}

/* One bit, all but one, some at the upper end, each byte the same. */
static uint64_t pattern(unsigned i)
{
	if (i < 64)
		return 1ull << i;
	if (i < 128)
		return ~(1ull << i % 64);
	return i < 189 ? ~0ull << (i - 126) : (i - 189) * 0x0101010101010101ull;
}

static void test_counts(void **state)
{
	(void)state;
	each_two_words(count);
}

static void test_reals(void **state)
{
	(void)state;
	each_two_words(real);
}

static void test_patterns(void **state)
{
	(void)state;
	each_two_words(pattern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_reals),
		cmocka_unit_test(test_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
