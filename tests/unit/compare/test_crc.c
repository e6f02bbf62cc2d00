/* SPDX-License-Identifier: Apache-2.0
 *
 * test_crc.c: each way to a CRC32C, by instruction in one lane and in three and by table, says the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shim/record/log_format.h"

#define ROOM 8192u

static unsigned char bytes[ROOM + 8];

static void fill(void)
{
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)log_mix64(i + 1);
}

static uint32_t by_table(uint32_t crc, const void *data, size_t n)
{
	return ~log_crc32c_nibbles(~crc, data, n);
}

static void test_known(void **state)
{
	static const unsigned char zero[32];

	(void)state;
	assert_int_equal(log_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(log_crc32c(0, zero, sizeof zero), 0x8a9136aa);
	assert_int_equal(by_table(0, "123456789", 9), 0xe3069283);
}

/* Every length up to some lanes, and about each number of them, from each place of a word. */
static void test_lengths(void **state)
{
	(void)state;
	fill();
	for (size_t n = 0; n <= ROOM; n++)
		assert_int_equal(log_crc32c(0, bytes + n % 8, n), by_table(0, bytes + n % 8, n));
}

static void test_pieces(void **state)
{
	(void)state;
	fill();
	for (size_t cut = 0; cut <= ROOM; cut += 97)
		assert_int_equal(log_crc32c(log_crc32c(0, bytes, cut), bytes + cut, ROOM - cut),
				 by_table(0, bytes, ROOM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
