/* SPDX-License-Identifier: Apache-2.0
 *
 * find.h: where else do these bytes lie? Searches both runs for fingerprints that equal a given one on given planes.
 *
 * A question is a set of planes (by identity) and their hashes. Questions are asked first, then one pass over the logs
 * answers them all: an index from (pool, plane, hash) to the sets of planes that begin so makes it one look-up for each plane read,
 * and where there are such sets one for each of them.
 */
#ifndef COMPARE_FIND_H
#define COMPARE_FIND_H

#include "compare/align.h"

struct find_match {
	uint32_t side, process, print; /* print: index in the process */
};

struct find_question {
	uint32_t group, n_planes; /* group: that stands for its kin */
	uint64_t *identity, *hash;
	uint32_t next;            /* a question of other planes with the same first plane and hash; ALIGN_NONE */
	struct find_match *match; /* in the order of side, process, log */
	size_t n_matches, room;
};

struct find {
	const struct alignment *al;
	struct find_question *question;
	size_t n_questions, room;
	uint32_t most_planes; /* of a question */
	struct map by_digest, by_planes,
		by_plane; /* all planes and hashes; planes and first hash; first plane and hash */
};

/* Asks; the same question is asked once. Its number, or ALIGN_NONE: out of memory. The arrays are copied. */
uint32_t find_ask(struct find *find, uint32_t group, uint32_t n_planes, const uint64_t *identity, const uint64_t *hash);

/* Answers all that was asked. 0, or -1 with *err set. */
int find_answer(struct find *find, struct error *err);

void find_free(struct find *find);

#endif
