/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_states.h: what each slot of a process was given last, for the invariants of a run whose events are not kept.
 */
#ifndef COMPARE_SLOT_STATES_H
#define COMPARE_SLOT_STATES_H

#include "compare/check_keys.h"

/* MAP_NONE: nothing yet. */
struct slot_state {
	uint64_t allocated; /* roll-up of the last alloc or clear */
	uint64_t donated;   /* what was donated last: claim and roll-up */
};

struct pool_states {
	struct slot_state *slot; /* those that the pool announced, from `first` on */
	uint64_t n;
	int64_t first;
};

/* All zero is one without states. */
struct slot_states {
	struct pool_states *pool;
	size_t n_pools, room_pools;
	uint64_t announced;   /* slots of all pools that have an array */
	struct map elsewhere; /* any other: (pool, slot) -> index */
	struct slot_state *other;
	size_t n_others, room_others;
};

/* Of a slot that the pools do not announce, or of a pool that comes for the first time. NULL: no memory. */
struct slot_state *slot_states_find(struct slot_states *states, const struct model_process *process, uint32_t pool,
				    int64_t slot);

/* Of a slot that its pool announced. NULL: it did not, or is not known yet. */
static inline struct slot_state *slot_states_announced(const struct slot_states *states, uint32_t pool, int64_t slot)
{
	const struct pool_states *p = pool < states->n_pools ? &states->pool[pool] : NULL;
	uint64_t at = p ? (uint64_t)slot - (uint64_t)p->first : 0;

	return p && at < p->n ? &p->slot[at] : NULL;
}

/* The state of a slot, to be read and written until the next call. NULL: no memory. */
static inline struct slot_state *slot_states_at(struct slot_states *states, const struct model_process *process,
						uint32_t pool, int64_t slot)
{
	struct slot_state *found = slot_states_announced(states, pool, slot);

	return found ? found : slot_states_find(states, process, pool, slot);
}

void slot_states_free(struct slot_states *states);

#endif
