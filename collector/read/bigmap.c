/* SPDX-License-Identifier: Apache-2.0
 *
 * bigmap.c: open addressing in the order of the hashes, linear probing, two thirds full at most. Nothing is ever removed but all at once.
 */
#include <stdlib.h>
#include <string.h>

#include "read/bigmap.h"

#define ROOM_MIN 4096u

/* Moves all of it to a new place with that much room. */
static bool move(struct bigmap *t, size_t room)
{
	struct bigmap bigger = { calloc(room + BIGMAP_OVERHANG, sizeof *bigger.cell), t->used, room };

	if (!bigger.cell)
		return false;
	for (size_t i = 0; t->cell && i < t->room + BIGMAP_OVERHANG; i++) {
		struct bigmap_cell *c = t->cell[i].hash ? bigmap_look(&bigger, t->cell[i].hash) : NULL;

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

bool bigmap_grow(struct bigmap *t)
{
	return move(t, t->room ? t->room + t->room / 2 : ROOM_MIN);
}

bool bigmap_begin(struct bigmap *t, uint64_t n)
{
	/* Full to two thirds it grows. */
	uint64_t room = n + n / 2 + ROOM_MIN;

	if (t->room >= room && t->room / 4 <= room) {
		if (t->used)
			memset(t->cell, 0, (t->room + BIGMAP_OVERHANG) * sizeof *t->cell);
		t->used = 0;
		return true;
	}
	bigmap_free(t);
	return move(t, room);
}

void bigmap_free(struct bigmap *t)
{
	free(t->cell);
	*t = (struct bigmap) { NULL, 0, 0 };
}
