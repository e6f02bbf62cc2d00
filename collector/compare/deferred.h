/* SPDX-License-Identifier: Apache-2.0
 *
 * deferred.h: questions to a hash table that are put off until all are known, so that the table fits the nearest cache.
 *
 * A table as large as a run misses every cache at each look. So a question is only written down, 16 bytes, behind the others of
 * its part of the hashes; at the end part after part is asked, in the order in which the questions came. Where a part is written
 * to misses the caches as well: four questions are gathered nearby, and go there together. What does not fit in memory lies in a
 * file (spill.h) until its part is asked.
 */
#ifndef COMPARE_DEFERRED_H
#define COMPARE_DEFERRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compare/spill.h"
#include "read/bigmap.h"

/* What is asked of the table about a hash: four kinds at most. */
struct question {
	uint64_t hash, value; /* the hash's low two bits are the kind; they take no part in who is alike */
};

static inline unsigned question_kind(const struct question *q)
{
	return (unsigned)(q->hash & 3);
}

/* The hash that its entry in the table has: never 0, which is a free cell's. */
static inline uint64_t question_entry(const struct question *q)
{
	return q->hash | 3;
}

struct deferred_line { /* of the cache */
	struct question question[4];
};

#define DEFERRED_LINE      4u   /* questions of a line */
#define DEFERRED_QUESTIONS 255u /* of a block: with the link, 4 KiB */
/* Questions of a part: what they make of the table is 1.6 MB at most, near enough for what is fetched ahead. The fewer parts, the more of
 * what they gather stays in the nearest cache. */
#define DEFERRED_PART_QUESTIONS 65536u
/* Where more parts are written to at once, their addresses do not fit the processor any more. */
#define DEFERRED_PARTS 4096u

struct deferred_block;
struct deferred_slab;

/* All zero is one without questions, to be begun. */
struct deferred {
	uint16_t at[DEFERRED_PARTS]; /* a part: the next question's place in its block */
	struct deferred_line *line;  /* a part: what is gathered */
	struct deferred_part {
		struct deferred_block *first, *last;
		uint64_t full; /* blocks of it in memory */
	} * part;
	struct deferred_block *spare;
	struct deferred_slab *slab; /* the one that blocks are cut from, and those before */
	struct bigmap map;
	uint64_t bytes, bytes_max; /* of the blocks: what lies in memory and what may */
	uint32_t n_parts;
	uint64_t leave_free; /* of the disk, by the file; DEFERRED_NO_FILE: there is to be none */
	bool no_disk;        /* the file could not be made, or is full */
	struct spill spill;
	/* Each time that memory was full its blocks went to the file, part by part: where each part begins there, and the last one ends. */
	uint64_t *spilled;
	size_t room_spilled, n_spilled; /* places there: one more than parts, each time */
	struct deferred_block *fetched;
};

#define DEFERRED_NO_FILE UINT64_MAX

/* For about so many questions, in no more than so many bytes of memory; the others in a file that leaves so many bytes of its disk free,
 * unless there is to be none. false: no memory. */
bool deferred_begin(struct deferred *deferred, uint64_t questions, uint64_t bytes_max, uint64_t leave_free);
/* Writes down what a part has gathered. false: no memory, no disk, or more than was said. */
bool deferred_write(struct deferred *deferred, uint32_t part);

/* Puts a question off. false: no memory, no disk, or more than was said. */
static inline bool deferred_ask(struct deferred *deferred, unsigned kind, uint64_t hash, uint64_t value)
{
	/* The table goes by the high bits, so the parts go by the low ones. */
	uint32_t part = (uint32_t)((uint64_t)(uint32_t)hash * deferred->n_parts >> 32);
	uint16_t at = deferred->at[part]++;

	deferred->line[part].question[at % DEFERRED_LINE] = (struct question) { (hash & ~3ull) | kind, value };
	return (++at % DEFERRED_LINE && at < DEFERRED_QUESTIONS) || deferred_write(deferred, part);
}

/* Asks them all and forgets them. `answer` gets the cell of the hash, a free one the first time, and may fill it; false from it
 * ends it, as do no memory and a file that cannot be read. */
typedef bool deferred_answer(void *arg, struct bigmap *map, struct bigmap_cell *cell, const struct question *question);
bool deferred_perform(struct deferred *deferred, deferred_answer *answer, void *arg);
void deferred_free(struct deferred *deferred);

#endif
