/* SPDX-License-Identifier: Apache-2.0
 *
 * bigmap.h: a hash table of 16 bytes an entry, from a hash of 64 bits to a word.
 *
 * The place of an entry follows the order of the hashes, so that growing is one sweep from front to back and needs no random
 * access, and no room is taken that is not soon filled.
 */
#ifndef READ_BIGMAP_H
#define READ_BIGMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bigmap_cell {
	uint64_t hash, value; /* hash 0: free */
};

/* All zero is an empty table. */
struct bigmap {
	struct bigmap_cell *cell;
	size_t used, room;
};

/* Empties it, and makes room for n entries in advance. false: no memory. */
bool bigmap_begin(struct bigmap *map, uint64_t n);

void bigmap_free(struct bigmap *map);

/* Makes room for more. false: no memory. */
bool bigmap_grow(struct bigmap *map);

/* The longest way from an entry's place to where it lies, and so the cells behind the last place. A longer one was made by a
 * forger, and counts as no memory. */
#define BIGMAP_OVERHANG 4096u

static inline struct bigmap_cell *bigmap_place(const struct bigmap *map, uint64_t hash)
{
	return map->cell + (size_t)((unsigned __int128)hash * map->room >> 64);
}

static inline struct bigmap_cell *bigmap_look(const struct bigmap *map, uint64_t hash)
{
	struct bigmap_cell *c = bigmap_place(map, hash);

	for (unsigned i = 0; i < BIGMAP_OVERHANG; i++) {
		if (!c[i].hash || c[i].hash == hash)
			return &c[i];
	}
	return NULL;
}

/* Soon that hash is looked for. */
static inline void bigmap_fetch(const struct bigmap *map, uint64_t hash)
{
	__builtin_prefetch(bigmap_place(map, hash), 1);
}

/* The cell of a hash, which must not be 0: a free one has hash 0, and becomes this one's by bigmap_fill. NULL: no memory. */
static inline struct bigmap_cell *bigmap_find(struct bigmap *map, uint64_t hash)
{
	if (map->used >= map->room / 3 * 2 && !bigmap_grow(map))
		return NULL;
	return bigmap_look(map, hash);
}

static inline void bigmap_fill(struct bigmap *map, struct bigmap_cell *cell, uint64_t hash, uint64_t value)
{
	*cell = (struct bigmap_cell) { hash, value };
	map->used++;
}

#endif
