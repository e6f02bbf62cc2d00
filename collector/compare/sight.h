/* SPDX-License-Identifier: Apache-2.0
 *
 * sight.h: the matches of find.h as sightings, in lists of those that one question of explain.c is about: a row that asks for the
 * nearest or the first of many does not look at each of them. A list is made when it is first asked for.
 */
#ifndef COMPARE_SIGHT_H
#define COMPARE_SIGHT_H

#include "compare/find.h"

/* One match, unfolded. */
struct sighting {
	unsigned side;
	struct align_ref at;
	const struct model_process *p;
	const struct model_print *print;
	const struct model_event *e;
	uint32_t order; /* among the matches of its question */
};

/* Each kind of list, what its members have in common, and their order. Of those with a moment the events' order is that of the
 * list, else that of the matches. */
enum sight_kind {
	SIGHT_OF_SLOT,     /* side, process, pool, slot */
	SIGHT_PLACE,       /* side, process, slot: of whichever pool of the group */
	SIGHT_CLAIMS,      /* side: donations and restores */
	SIGHT_CLAIMS_NEAR, /* side, process: the same, by moment */
	SIGHT_OF_CLAIM,    /* side, key, length: the same */
	SIGHT_ELSEWHERE, /* wrong side, its process, process of the right side: bytes in slots where the right run does not
                                * have them, by moment */
	SIGHT_CREDIBLE,        /* wrong side: claims that can be right */
	SIGHT_CREDIBLE_OF_KEY, /* wrong side, key: the same */
	SIGHT_KINDS
};

struct sight_list {
	uint32_t n;
	uint32_t *match; /* indexes of matches */
	uint32_t *next,
		*previous; /* places in the list: the nearest after, before, that claims something else or nothing; n, SIGHT_END: none */
	uint32_t *next_length; /* the nearest after that claims another length */
};

#define SIGHT_END UINT32_MAX

struct sights {
	const struct alignment *al;
	const struct find *find;
	const struct map *paired; /* [side]: (process, event) of the donations that have a mate */
	struct map made, slice;   /* (question, kind, parameter); the same with a group -> list */
	struct sight_list *list;
	uint32_t **block; /* that the lists point into */
	size_t n_lists, room_lists, n_blocks, room_blocks;
	bool no_memory;
};

/* The list of that question whose members have a, b, c, d in common, in the order that its kind names them. It may be empty. */
struct sight_list sight_list(struct sights *sights, uint32_t question, enum sight_kind kind, uint64_t a, uint64_t b,
			     uint64_t c, uint64_t d);
/* The place in a list by moment of the first member whose event has this id or a later one. */
uint32_t sight_from(const struct sights *sights, uint32_t question, const struct sight_list *list, uint64_t id);
/* false: it is a fingerprint without an event. */
bool sight_of(const struct sights *sights, uint32_t question, uint32_t match, struct sighting *sighting);
bool sight_is_claim(const struct sighting *sighting);

void sights_free(struct sights *sights);

#endif
