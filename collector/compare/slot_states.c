/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_states.c: an array for each pool, by its own numbers; a hash table for what a log says besides.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/slot_states.h"

/* Slots of all pools together that get a place before they are used: a log may announce anything. */
#define ANNOUNCED_MAX (1u << 20)

static bool add_pool(struct slot_states *s, const struct model_pool *pool)
{
	struct pool_states *states;

	if (!array_room(&s->pool, &s->room_pools, s->n_pools, sizeof *s->pool))
		return false;
	states = &s->pool[s->n_pools++];
	*states = (struct pool_states) { .first = pool->first_slot };
	if ((uint64_t)pool->n_slots > ANNOUNCED_MAX - s->announced)
		return true;
	states->n = (uint64_t)pool->n_slots;
	s->announced += states->n;
	states->slot = malloc(states->n * sizeof *states->slot);
	if (!states->slot && states->n)
		return false;
	if (states->n)
		memset(states->slot, 0xff, states->n * sizeof *states->slot);
	return true;
}

static struct slot_state *find_elsewhere(struct slot_states *s, uint32_t pool, int64_t slot)
{
	uint64_t key = check_key_of_slot(pool, slot), at = map_get(&s->elsewhere, key);

	if (at != MAP_NONE)
		return &s->other[at];
	if (!array_room(&s->other, &s->room_others, s->n_others, sizeof *s->other) ||
	    !map_set(&s->elsewhere, key, s->n_others))
		return NULL;
	s->other[s->n_others] = (struct slot_state) { MAP_NONE, MAP_NONE };
	return &s->other[s->n_others++];
}

struct slot_state *slot_states_find(struct slot_states *s, const struct model_process *p, uint32_t pool, int64_t slot)
{
	struct slot_state *announced;

	while (s->n_pools <= pool && s->n_pools < p->n_pools)
		if (!add_pool(s, &p->pool[s->n_pools]))
			return NULL;
	announced = slot_states_announced(s, pool, slot);
	return announced ? announced : find_elsewhere(s, pool, slot);
}

void slot_states_free(struct slot_states *s)
{
	for (size_t i = 0; i < s->n_pools; i++)
		free(s->pool[i].slot);
	free(s->pool);
	free(s->other);
	map_free(&s->elsewhere);
	*s = (struct slot_states) { .pool = NULL };
}
