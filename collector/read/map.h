/* SPDX-License-Identifier: Apache-2.0
 *
 * map.h: a growing hash table from one 64-bit word to another, for the indexes of the collector.
 */
#ifndef READ_MAP_H
#define READ_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_cell {
	uint64_t key, value; /* value MAP_NONE: a free cell */
};

#define MAP_NONE UINT64_MAX

/* All zero is an empty map. */
struct map {
	struct map_cell *cell;
	size_t used, room; /* room: 0 or a power of two */
};

/* The value under key; MAP_NONE when there is none. */
uint64_t map_get(const struct map *map, uint64_t key);

/* Sets it; value must not be MAP_NONE. false: out of memory. */
bool map_set(struct map *map, uint64_t key, uint64_t value);

void map_free(struct map *map);

/* Makes room for one more element in an array that grows by doubling. false: out of memory, the array is untouched. */
bool array_room(void *array, size_t *room, size_t n, size_t element);

#endif
