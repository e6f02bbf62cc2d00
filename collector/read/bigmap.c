/* SPDX-License-Identifier: Apache-2.0
 *
 * bigmap.c: open addressing in the order of the hashes, linear probing, two thirds full at most. Nothing is ever removed but all at once.
 */
#include <stdlib.h>
#include <string.h>

#include "read/bigmap.h"

#define ROOM_MIN 4096u
/* The longest way from an entry's place to where it lies, and so the cells behind the last place. A longer one was made by a
 * forger, and counts as no memory. */
#define OVERHANG 4096u

static size_t place_of(const struct bigmap *t, uint64_t hash)
{
	return (size_t)((unsigned __int128)hash * t->room >> 64);
}

static struct bigmap_cell *look(const struct bigmap *t, uint64_t hash)
{
	struct bigmap_cell *c = t->cell + place_of(t, hash);

	for (unsigned i = 0; i < OVERHANG; i++) {
		if (!c[i].hash || c[i].hash == hash)
			return &c[i];
	}
	return NULL;
}

/* Moves all of it to a new place with that much room. */
static bool move(struct bigmap *t, size_t room)
{
	struct bigmap bigger = { calloc(room + OVERHANG, sizeof *bigger.cell), t->used, room };

	if (!bigger.cell)
		return false;
	for (size_t i = 0; t->cell && i < t->room + OVERHANG; i++) {
		struct bigmap_cell *c = t->cell[i].hash ? look(&bigger, t->cell[i].hash) : NULL;

		if (c)
			*c = t->cell[i];
		else if (t->cell[i].hash) {
			bigmap_free(&bigger);
			return false;
		}
	}
	bigmap_free(t);
	*t = bigger;
	return true;
}

static bool grow(struct bigmap *t)
{
	return move(t, t->room ? t->room + t->room / 2 : ROOM_MIN);
}

bool bigmap_begin(struct bigmap *t, uint64_t n)
{
	/* Full to two thirds it grows. */
	uint64_t room = n + n / 2 + ROOM_MIN;

	if (t->room >= room && t->room / 4 <= room) {
		if (t->used)
			memset(t->cell, 0, (t->room + OVERHANG) * sizeof *t->cell);
		t->used = 0;
		return true;
	}
	bigmap_free(t);
	return move(t, room);
}

struct bigmap_cell *bigmap_find(struct bigmap *t, uint64_t hash)
{
	if (t->used >= t->room / 3 * 2 && !grow(t))
		return NULL;
	return look(t, hash);
}

void bigmap_fill(struct bigmap *t, struct bigmap_cell *cell, uint64_t hash, uint64_t value)
{
	*cell = (struct bigmap_cell) { hash, value };
	t->used++;
}

void bigmap_free(struct bigmap *t)
{
	free(t->cell);
	*t = (struct bigmap) { NULL, 0, 0 };
}
