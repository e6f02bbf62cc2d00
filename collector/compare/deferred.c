/* SPDX-License-Identifier: Apache-2.0
 *
 * deferred.c: the questions of each part of the hashes in a chain of blocks, and one small table that serves part after part.
 */
#include <stdlib.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "compare/deferred.h"

/* Questions of a part: what they make of the table stays in the second cache. */
#define PART_QUESTIONS 12288u
/* Blocks are cut from larger pieces, so that each begins with a line of the cache. */
#define SLAB_BLOCKS 64u
#define LINE        sizeof(struct deferred_line)

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

bool deferred_begin(struct deferred *d, uint64_t questions, uint64_t bytes_max)
{
	uint64_t parts = questions / PART_QUESTIONS + 1;

	*d = (struct deferred) { .bytes_max = bytes_max };
	parts = parts > DEFERRED_PARTS ? DEFERRED_PARTS : parts;
	d->n_parts = (uint32_t)parts;
	d->part = calloc(parts, sizeof *d->part);
	d->line = aligned_alloc(LINE, parts * sizeof *d->line);
	return d->part && d->line;
}

static bool new_slab(struct deferred *d)
{
	uint64_t blocks = (d->bytes_max - d->bytes) / sizeof(struct deferred_block);
	struct deferred_slab *slab;

	blocks = blocks < SLAB_BLOCKS ? blocks : SLAB_BLOCKS;
	slab = blocks ? aligned_alloc(LINE, sizeof *slab + blocks * sizeof slab->block[0]) : NULL;
	if (!slab)
		return false;
	slab->before = d->slab;
	slab->left = blocks;
	d->slab = slab;
	d->bytes += blocks * sizeof slab->block[0];
	return true;
}

static bool append_block(struct deferred *d, struct deferred_part *part)
{
	struct deferred_block *block = d->spare;

	if (block)
		d->spare = block->next;
	else if ((d->slab && d->slab->left) || new_slab(d))
		block = &d->slab->block[--d->slab->left];
	else
		return false;
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

static bool perform_block(struct deferred *d, const struct question *q, uint64_t n, deferred_answer *answer, void *arg)
{
	for (const struct question *end = q + n; q < end; q++) {
		struct bigmap_cell *cell = bigmap_find(&d->map, question_entry(q));

		if (!cell || !answer(arg, &d->map, cell, q))
			return false;
	}
	return true;
}

static bool perform_part(struct deferred *d, uint32_t number, deferred_answer *answer, void *arg)
{
	struct deferred_part *part = &d->part[number];
	uint64_t left = part->full * DEFERRED_QUESTIONS + d->at[number];
	struct deferred_block *block;
	bool fine;

	if (!left)
		return true;
	/* Most parts have the same size; after one that had many entries the table would be emptied in vain. */
	fine = bigmap_begin(&d->map, left < PART_QUESTIONS * 2 ? left : PART_QUESTIONS) &&
	       (d->at[number] % DEFERRED_LINE == 0 || deferred_write(d, number));
	while ((block = part->first)) {
		uint64_t n = left < DEFERRED_QUESTIONS ? left : DEFERRED_QUESTIONS;

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

bool deferred_perform(struct deferred *d, deferred_answer *answer, void *arg)
{
	bool fine = true;

	for (uint32_t i = 0; i < d->n_parts; i++)
		fine = fine && perform_part(d, i, answer, arg);
	return fine;
}

void deferred_free(struct deferred *d)
{
	while (d->slab) {
		struct deferred_slab *slab = d->slab;

		d->slab = slab->before;
		free(slab);
	}
	free(d->part);
	free(d->line);
	bigmap_free(&d->map);
	*d = (struct deferred) { .part = NULL };
}
