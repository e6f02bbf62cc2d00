/* SPDX-License-Identifier: Apache-2.0
 *
 * deferred.h: questions to a hash table that are put off until all are known, so that the table fits the nearest cache.
 *
 * A table as large as a run misses every cache at each look. So a question is only written down, 16 bytes, behind the others of
 * its part of the hashes; at the end part after part is asked, in the order in which the questions came.
 */
#ifndef COMPARE_DEFERRED_H
#define COMPARE_DEFERRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct deferred_block;

/* All zero is one without questions, to be begun. */
struct deferred {
	struct deferred_part {
		struct deferred_block *first, *last;
		uint64_t n;
	} * part;
	struct deferred_block *spare;
	struct bigmap map;
	uint64_t bytes, bytes_max; /* of the blocks: what lies there and what may */
	uint32_t n_parts;
};

/* For about so many questions, in no more than so many bytes. false: no memory. */
bool deferred_begin(struct deferred *deferred, uint64_t questions, uint64_t bytes_max);
/* false: no memory, or more than was said. */
bool deferred_ask(struct deferred *deferred, unsigned kind, uint64_t hash, uint64_t value);
/* Asks them all and forgets them. `answer` gets the cell of the hash, a free one the first time, and may fill it; false from it
 * ends it, as does no memory. */
typedef bool deferred_answer(void *arg, struct bigmap *map, struct bigmap_cell *cell, const struct question *question);
bool deferred_perform(struct deferred *deferred, deferred_answer *answer, void *arg);
void deferred_free(struct deferred *deferred);

#endif
