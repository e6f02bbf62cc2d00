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

/* The cell of a hash, which must not be 0: a free one has hash 0, and becomes this one's by bigmap_fill. NULL: no memory. */
struct bigmap_cell *bigmap_find(struct bigmap *map, uint64_t hash);
void bigmap_fill(struct bigmap *map, struct bigmap_cell *cell, uint64_t hash, uint64_t value);
void bigmap_free(struct bigmap *map);

#endif
