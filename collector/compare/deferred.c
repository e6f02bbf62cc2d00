/* SPDX-License-Identifier: Apache-2.0
 *
 * deferred.c: the questions of each part of the hashes in a chain of blocks, and one small table that serves part after part.
 */
#include <stdlib.h>

#include "compare/deferred.h"

#define BLOCK_QUESTIONS 255u /* with the link, 4 KiB */
/* Questions of a part: what they make of the table stays in the second cache. */
#define PART_QUESTIONS 12288u
/* Where more parts are written to at once, their addresses do not fit the processor any more. */
#define PARTS_MAX 1024u

struct deferred_block {
	struct deferred_block *next;
	uint64_t used;
	struct question question[BLOCK_QUESTIONS];
};

bool deferred_begin(struct deferred *d, uint64_t questions, uint64_t bytes_max)
{
	uint64_t parts = questions / PART_QUESTIONS + 1;

	*d = (struct deferred) { .bytes_max = bytes_max };
	parts = parts > PARTS_MAX ? PARTS_MAX : parts;
	d->part = calloc(parts, sizeof *d->part);
	d->n_parts = d->part ? (uint32_t)parts : 0;
	return d->part;
}

static struct deferred_block *new_block(struct deferred *d)
{
	struct deferred_block *block = d->spare;

	if (block) {
		d->spare = block->next;
	} else {
		if (d->bytes + sizeof *block > d->bytes_max)
			return NULL;
		block = malloc(sizeof *block);
		if (!block)
			return NULL;
		d->bytes += sizeof *block;
	}
	block->next = NULL;
	block->used = 0;
	return block;
}

bool deferred_ask(struct deferred *d, unsigned kind, uint64_t hash, uint64_t value)
{
	/* The table goes by the high bits, so the parts go by the low ones. */
	struct deferred_part *part = &d->part[(uint64_t)(uint32_t)hash * d->n_parts >> 32];
	struct deferred_block *block = part->last;

	if (!block || block->used == BLOCK_QUESTIONS) {
		block = new_block(d);
		if (!block)
			return false;
		if (part->last)
			part->last->next = block;
		else
			part->first = block;
		part->last = block;
	}
	block->question[block->used++] = (struct question) { (hash & ~3ull) | kind, value };
	part->n++;
	return true;
}

static bool perform_block(struct deferred *d, const struct deferred_block *block, deferred_answer *answer, void *arg)
{
	for (uint64_t i = 0; i < block->used; i++) {
		const struct question *q = &block->question[i];
		struct bigmap_cell *cell = bigmap_find(&d->map, question_entry(q));

		if (!cell || !answer(arg, &d->map, cell, q))
			return false;
	}
	return true;
}

static bool perform_part(struct deferred *d, struct deferred_part *part, deferred_answer *answer, void *arg)
{
	struct deferred_block *block;
	bool fine;

	if (!part->n)
		return true;
	/* Most parts have the same size; after one that had many entries the table would be emptied in vain. */
	fine = bigmap_begin(&d->map, part->n < PART_QUESTIONS * 2 ? part->n : PART_QUESTIONS);
	while ((block = part->first)) {
		fine = fine && perform_block(d, block, answer, arg);
		part->first = block->next;
		block->next = d->spare;
		d->spare = block;
	}
	part->last = NULL;
	part->n = 0;
	return fine;
}

bool deferred_perform(struct deferred *d, deferred_answer *answer, void *arg)
{
	bool fine = true;

	for (uint32_t i = 0; i < d->n_parts; i++)
		fine = fine && perform_part(d, &d->part[i], answer, arg);
	return fine;
}

static void free_blocks(struct deferred_block *block)
{
	while (block) {
		struct deferred_block *next = block->next;

		free(block);
		block = next;
	}
}

void deferred_free(struct deferred *d)
{
	for (uint32_t i = 0; i < d->n_parts; i++)
		free_blocks(d->part[i].first);
	free_blocks(d->spare);
	free(d->part);
	bigmap_free(&d->map);
	*d = (struct deferred) { NULL };
}
