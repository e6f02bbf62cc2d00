/* SPDX-License-Identifier: Apache-2.0
 *
 * deferred.c: the questions of each part of the hashes in a chain of blocks, and one small table that serves part after part. Where
 * no more blocks may be had, those that are full go to a file, and are fetched when their part is asked.
 */
#include <stdlib.h>
#include <sys/mman.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "compare/deferred.h"
#include "read/map.h"

/* Blocks are cut from larger pieces, so that each begins with a line of the cache; each piece is a large page, where those can be
 * had: so many parts are written to in turn that smaller ones would miss the processor's table of pages each time. */
#define SLAB_BYTES (2u << 20)
/* Blocks that are written to the file at once: IOV_MAX; and fetched. */
#define WRITTEN 1024u
#define FETCHED 64u
/* A place in the table is fetched so many questions before it is asked. */
#define AHEAD 16
#define LINE  sizeof(struct deferred_line)

struct deferred_block {
	union {
		struct deferred_line line[(DEFERRED_QUESTIONS + 1) / DEFERRED_LINE];
		struct {
			struct question question[DEFERRED_QUESTIONS];
			struct deferred_block *next;
		};
	};
};

struct deferred_slab {
	struct deferred_slab *before;
	uint64_t left; /* blocks that are not cut yet */
	_Alignas(LINE) struct deferred_block block[];
};

bool deferred_begin(struct deferred *d, uint64_t questions, uint64_t bytes_max, uint64_t leave_free)
{
	uint64_t parts = questions / DEFERRED_PART_QUESTIONS + 1, held = bytes_max / sizeof(struct deferred_block) / 2;

	*d = (struct deferred) { .bytes_max = bytes_max, .leave_free = leave_free };
	parts = parts > DEFERRED_PARTS ? DEFERRED_PARTS : parts;
	/* The last block of a part stays: they must not be all that memory holds. */
	if (leave_free != DEFERRED_NO_FILE && parts > held)
		parts = held ? held : 1;
	d->n_parts = (uint32_t)parts;
	d->part = calloc(parts, sizeof *d->part);
	d->line = aligned_alloc(LINE, parts * sizeof *d->line);
	return d->part && d->line;
}

static bool new_slab(struct deferred *d)
{
	uint64_t left = d->bytes_max - d->bytes, bytes = left < SLAB_BYTES ? left / LINE * LINE : SLAB_BYTES;
	uint64_t blocks = bytes > sizeof *d->slab ? (bytes - sizeof *d->slab) / sizeof d->slab->block[0] : 0;
	struct deferred_slab *slab = blocks ? aligned_alloc(bytes < SLAB_BYTES ? LINE : SLAB_BYTES, bytes) : NULL;

	if (!slab)
		return false;
	if (bytes == SLAB_BYTES)
		madvise(slab, SLAB_BYTES, MADV_HUGEPAGE);
	slab->before = d->slab;
	slab->left = blocks;
	d->slab = slab;
	d->bytes += bytes;
	return true;
}

/* ---- the file ---- */

/* Moves the blocks of a part that are full to the list of what is written next, and from there to the spare ones. */
static bool spill_part(struct deferred *d, struct deferred_part *part)
{
	struct iovec piece[WRITTEN];
	size_t n = 0;

	for (; part->full; part->full--) {
		struct deferred_block *block = part->first;

		part->first = block->next;
		piece[n++] = (struct iovec) { block, sizeof *block };
		block->next = d->spare;
		d->spare = block;
		if (n == WRITTEN || part->full == 1) {
			if (!spill_write(&d->spill, piece, n))
				return false;
			n = 0;
		}
	}
	if (!part->first)
		part->last = NULL;
	return true;
}

static bool spill_parts(struct deferred *d)
{
	if (!d->spill.open && !spill_open(&d->spill))
		return false;
	/* No more goes there than lies in memory. */
	if (!spill_has_room(&d->spill, d->bytes, d->leave_free))
		return false;
	for (uint32_t i = 0; i <= d->n_parts; i++) {
		if (!array_room(&d->spilled, &d->room_spilled, d->n_spilled, sizeof *d->spilled))
			return false;
		d->spilled[d->n_spilled++] = d->spill.bytes;
		if (i < d->n_parts && !spill_part(d, &d->part[i]))
			return false;
	}
	return true;
}

/* False: nothing was full, or there is no disk for it. */
static bool spill_full_blocks(struct deferred *d)
{
	if (d->leave_free == DEFERRED_NO_FILE)
		return false;
	d->no_disk = !spill_parts(d);
	return !d->no_disk && d->spare;
}

/* ---- writing ---- */

static bool append_block(struct deferred *d, struct deferred_part *part)
{
	struct deferred_block *block;

	if (!d->spare && !(d->slab && d->slab->left) && !new_slab(d) && !spill_full_blocks(d))
		return false;
	block = d->spare;
	if (block)
		d->spare = block->next;
	else
		block = &d->slab->block[--d->slab->left];
	block->next = NULL;
	if (part->last)
		part->last->next = block;
	else
		part->first = block;
	part->last = block;
	return true;
}

/* Past the caches, where the processor can: it is long until it is read again. */
static void write_line(struct deferred_line *to, const struct deferred_line *from)
{
#if defined(__SSE2__)
	for (unsigned i = 0; i < DEFERRED_LINE; i++)
		_mm_stream_si128((__m128i *)&to->question[i], _mm_load_si128((const __m128i *)&from->question[i]));
#else
	*to = *from;
#endif
}

bool deferred_write(struct deferred *d, uint32_t number)
{
	struct deferred_part *part = &d->part[number];
	uint16_t at = d->at[number];

	if (at <= DEFERRED_LINE && !append_block(d, part))
		return false;
	write_line(&part->last->line[(at - 1u) / DEFERRED_LINE], &d->line[number]);
	/* The last line has written over the link. */
	if (at > DEFERRED_QUESTIONS / DEFERRED_LINE * DEFERRED_LINE)
		part->last->next = NULL;
	if (at == DEFERRED_QUESTIONS) {
		part->full++;
		d->at[number] = 0;
	}
	return true;
}

/* ---- asking ---- */

static bool perform_block(struct deferred *d, const struct question *q, uint64_t n, deferred_answer *answer, void *arg)
{
	for (const struct question *end = q + n; q < end; q++) {
		struct bigmap_cell *cell;

		if (end - q > AHEAD)
			bigmap_fetch(&d->map, question_entry(q + AHEAD));
		cell = bigmap_find(&d->map, question_entry(q));
		if (!cell || !answer(arg, &d->map, cell, q))
			return false;
	}
	return true;
}

/* What went to the file came before what is in memory. */
static bool perform_spilled(struct deferred *d, uint32_t number, deferred_answer *answer, void *arg)
{
	for (size_t i = number; i < d->n_spilled; i += d->n_parts + 1) {
		for (uint64_t at = d->spilled[i], end = d->spilled[i + 1], n; at < end; at += n * sizeof *d->fetched) {
			n = (end - at) / sizeof *d->fetched;
			n = n < FETCHED ? n : FETCHED;
			if (!spill_read(&d->spill, d->fetched, n * sizeof *d->fetched, at))
				return false;
			for (uint64_t k = 0; k < n; k++)
				if (!perform_block(d, d->fetched[k].question, DEFERRED_QUESTIONS, answer, arg))
					return false;
		}
	}
	return true;
}

static uint64_t questions_spilled(const struct deferred *d, uint32_t number)
{
	uint64_t bytes = 0;

	for (size_t i = number; i < d->n_spilled; i += d->n_parts + 1)
		bytes += d->spilled[i + 1] - d->spilled[i];
	return bytes / sizeof(struct deferred_block) * DEFERRED_QUESTIONS;
}

static bool perform_part(struct deferred *d, uint32_t number, deferred_answer *answer, void *arg)
{
	struct deferred_part *part = &d->part[number];
	uint64_t left = part->full * DEFERRED_QUESTIONS + d->at[number], all = left + questions_spilled(d, number);
	/* Parts are alike: where the last one had that many entries, this one will. */
	uint64_t likely = d->map.used < DEFERRED_PART_QUESTIONS ? DEFERRED_PART_QUESTIONS : d->map.used;
	struct deferred_block *block;
	bool fine;

	if (!all)
		return true;
	/* After one that had more the table would be emptied in vain. */
	fine = bigmap_begin(&d->map, all < likely * 2 ? all : likely) && perform_spilled(d, number, answer, arg);
	while ((block = part->first)) {
		uint64_t n = left < DEFERRED_QUESTIONS ? left : DEFERRED_QUESTIONS;

		for (unsigned i = 0; block->next && i < AHEAD / DEFERRED_LINE; i++)
			__builtin_prefetch(&block->next->line[i]);
		fine = fine && perform_block(d, block->question, n, answer, arg);
		left -= n;
		part->first = block->next;
		block->next = d->spare;
		d->spare = block;
	}
	*part = (struct deferred_part) { NULL };
	d->at[number] = 0;
	return fine;
}

/* All that is gathered goes to the blocks, and perhaps some of those to the file. */
static bool write_rest(struct deferred *d)
{
	for (uint32_t i = 0; i < d->n_parts; i++)
		if (d->at[i] % DEFERRED_LINE && !deferred_write(d, i))
			return false;
	if (d->n_spilled && !d->fetched)
		d->fetched = aligned_alloc(LINE, FETCHED * sizeof *d->fetched);
	return !d->n_spilled || d->fetched;
}

bool deferred_perform(struct deferred *d, deferred_answer *answer, void *arg)
{
	bool fine = write_rest(d);

	for (uint32_t i = 0; i < d->n_parts; i++)
		fine = fine && perform_part(d, i, answer, arg);
	d->n_spilled = 0;
	d->spill.bytes = 0;
	return fine;
}

void deferred_free(struct deferred *d)
{
	while (d->slab) {
		struct deferred_slab *slab = d->slab;

		d->slab = slab->before;
		free(slab);
	}
	spill_close(&d->spill);
	free(d->spilled);
	free(d->fetched);
	free(d->part);
	free(d->line);
	bigmap_free(&d->map);
	*d = (struct deferred) { .part = NULL };
}
