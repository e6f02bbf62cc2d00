/* SPDX-License-Identifier: Apache-2.0
 *
 * map.c: open addressing, linear probing, never more than two thirds full. Nothing is ever removed.
 */
#include <stdlib.h>
#include <string.h>

#include "read/map.h"
#include "shim/record/log_format.h"

static struct map_cell *find(const struct map *map, uint64_t key)
{
	size_t i = (size_t)log_mix64(key + 0x9e3779b97f4a7c15ull);

	for (;; i++) {
		struct map_cell *cell = &map->cell[i & (map->room - 1)];
		if (cell->value == MAP_NONE || cell->key == key)
			return cell;
	}
}

uint64_t map_get(const struct map *map, uint64_t key)
{
	return map->room ? find(map, key)->value : MAP_NONE;
}

static bool grow(struct map *map)
{
	struct map bigger = { NULL, map->used, map->room ? map->room * 2 : 64 };

	if (bigger.room > SIZE_MAX / sizeof *bigger.cell)
		return false;
	bigger.cell = malloc(bigger.room * sizeof *bigger.cell);
	if (!bigger.cell)
		return false;
	memset(bigger.cell, 0xff, bigger.room * sizeof *bigger.cell);
	for (size_t i = 0; i < map->room; i++) {
		if (map->cell[i].value != MAP_NONE)
			*find(&bigger, map->cell[i].key) = map->cell[i];
	}
	free(map->cell);
	*map = bigger;
	return true;
}

bool map_set(struct map *map, uint64_t key, uint64_t value)
{
	struct map_cell *cell;

	if (map->used >= map->room / 3 * 2 && !grow(map))
		return false;
	cell = find(map, key);
	if (cell->value == MAP_NONE)
		map->used++;
	*cell = (struct map_cell) { key, value };
	return true;
}

void map_free(struct map *map)
{
	free(map->cell);
	*map = (struct map) { NULL, 0, 0 };
}

bool array_room(void *array, size_t *room, size_t n, size_t element)
{
	void **at = array, *bigger;
	size_t wanted = *room ? *room * 2 : 16;

	if (n < *room)
		return true;
	if (*room > SIZE_MAX / 2 / element || !(bigger = realloc(*at, wanted * element)))
		return false;
	*at = bigger;
	*room = wanted;
	return true;
}
