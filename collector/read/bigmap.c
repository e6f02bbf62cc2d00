/* SPDX-License-Identifier: Apache-2.0
 *
 * bigmap.c: open addressing in the order of the hashes, linear probing, two thirds full at most. Nothing is ever removed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
	struct bigmap bigger = { NULL, t->used, room };
	size_t cells = bigger.room + OVERHANG;

	/* Fresh pages are zero, and go back whole. */
	bigger.cell =
		mmap(NULL, cells * sizeof *bigger.cell, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bigger.cell == MAP_FAILED)
		return false;
	madvise(bigger.cell, cells * sizeof *bigger.cell, MADV_HUGEPAGE);
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

/* Full to two thirds it grows. */
static uint64_t room_for(uint64_t n)
{
	return n + n / 2 + ROOM_MIN;
}

uint64_t bigmap_bytes(uint64_t n)
{
	return sizeof(struct bigmap_cell) * (room_for(n) + OVERHANG);
}

bool bigmap_reserve(struct bigmap *t, uint64_t n)
{
	return t->room >= room_for(n) || move(t, room_for(n));
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

const void *bigmap_place(const struct bigmap *t, uint64_t hash)
{
	return t->cell ? t->cell + place_of(t, hash) : NULL;
}

void bigmap_empty(struct bigmap *t)
{
	if (t->used)
		memset(t->cell, 0, (t->room + OVERHANG) * sizeof *t->cell);
	t->used = 0;
}

void bigmap_free(struct bigmap *t)
{
	if (t->cell)
		munmap(t->cell, (t->room + OVERHANG) * sizeof *t->cell);
	*t = (struct bigmap) { NULL, 0, 0 };
}
