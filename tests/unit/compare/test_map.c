/* SPDX-License-Identifier: Apache-2.0
 *
 * test_map.c: the hash table finds what was put into it, and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "read/map.h"

static void test_empty(void **state)
{
	struct map map = { NULL, 0, 0 };

	(void)state;
	assert_true(map_get(&map, 0) == MAP_NONE);
	assert_true(map_get(&map, UINT64_MAX) == MAP_NONE);
	map_free(&map);
}

static void test_many(void **state)
{
	struct map map = { NULL, 0, 0 };

	(void)state;
	/* keys that share their low bits, and the two extremes */
	for (uint64_t i = 0; i < 20000; i++)
		assert_true(map_set(&map, i << 32, i));
	assert_true(map_set(&map, UINT64_MAX, 7));
	for (uint64_t i = 0; i < 20000; i++) {
		assert_true(map_get(&map, i << 32) == i);
		assert_true(map_get(&map, (i << 32) + 1) == MAP_NONE);
	}
	assert_true(map_get(&map, UINT64_MAX) == 7);
	assert_true(map.used == 20001);
	map_free(&map);
	assert_true(map_get(&map, 0) == MAP_NONE);
}

static void test_set_again(void **state)
{
	struct map map = { NULL, 0, 0 };

	(void)state;
	assert_true(map_set(&map, 5, 1) && map_set(&map, 5, 2));
	assert_true(map_get(&map, 5) == 2 && map.used == 1);
	map_free(&map);
}

static void test_array_room(void **state)
{
	int *array = NULL;
	size_t room = 0;

	(void)state;
	for (size_t n = 0; n < 1000; n++) {
		assert_true(array_room(&array, &room, n, sizeof *array));
		assert_true(room > n);
		array[n] = (int)n;
	}
	for (size_t n = 0; n < 1000; n++)
		assert_true(array[n] == (int)n);
	room = SIZE_MAX / 2 + 1;
	assert_false(array_room(&array, &room, room, sizeof *array));
	free(array);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_set_again),
		cmocka_unit_test(test_array_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
