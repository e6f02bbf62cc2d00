/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c: counts graph launches. The hottest path that we have: atomics only.
 */
#include "graph.h"

#include <string.h>

static void say(const struct graph_info *g, uint64_t number, cu_stream stream, cu_result result)
{
	struct log_launch r;

	memset(&r, 0, sizeof r);
	record_fill(&r, LOG_LAUNCH);
	r.t_ns = record_now_ns();
	r.number = number;
	r.graph = g ? g->number : 0;
	r.stream = (uintptr_t)stream;
	r.step = __atomic_load_n(&probe_counts.steps, __ATOMIC_RELAXED);
	r.tid = record_tid();
	r.result = result;
	if (!record_put(&r, NULL))
		ctr_add(ctr_core(CTR_ROW_LAUNCH_LOST), 1);
}

/* A word of a row or the one beside it that is the launching thread's own. */
static inline __attribute__((always_inline)) void count(struct ctr_row *row, bool own)
{
	own_or_shared_add(own, &row->own_committed, &row->outcome[0], 1);
}

static void count_pools(const uint64_t *set, bool own)
{
	bool any = false;

	for (uint32_t w = 0; w < PROBE_SET_WORDS; w++)
		any |= probe_pools_count_launch(w, set[w], own);
	if (any)
		count(ctr_core(CTR_ROW_POOL_LAUNCHES), own);
}

/* The outcome first, then the flight, which lies where it was begun: see struct ctr_row. */
static inline __attribute__((always_inline)) void finish(enum ctr_outcome outcome, bool own)
{
	struct ctr_row *row = ctr_core(CTR_ROW_GRAPH_LAUNCH);

	if (!own) {
		ctr_finish(row, outcome);
		return;
	}
	if (outcome == CTR_COMMITTED)
		own_add(&row->own_committed, 1);
	else
		__atomic_fetch_add(&row->outcome[outcome], 1, __ATOMIC_RELEASE);
	own_subtract(&row->own_begun, 1);
}

/* A launch that failed, at a level that records launches, of a graph that we have not read, or with many pools. */
__attribute__((noinline)) static cu_result end_slowly(cu_graph_exec exec, cu_stream stream, cu_result result, bool own)
{
	static const uint64_t every_pool[PROBE_SET_WORDS] = { ~0ull, ~0ull, ~0ull, ~0ull };
	const struct graph_info *g = probe_graph_find(exec);
	uint64_t number = 0; /* of a launch that did not happen */

	_Static_assert(PROBE_SET_WORDS == 4, "every pool is in the set of every pool");
	if (result == CU_SUCCESS) {
		const bool read = g && !__atomic_load_n(&g->unreadable, __ATOMIC_RELAXED) &&
				  !(__atomic_load_n(&probe_sets.unusual, __ATOMIC_RELAXED) & PROBE_BLIND);
		probe_launches_add(&probe_counts.launches, own);
		number = probe_launches(&probe_counts.launches);
		count_pools(read ? g->set : every_pool, own);
	}
	finish(result == CU_SUCCESS ? CTR_COMMITTED : CTR_ERROR_DRIVER, own);
	if (record_level() >= LOG_LEVEL_LAUNCHES && record_recording())
		say(g, number, stream, result);
	return result;
}

static inline __attribute__((always_inline)) cu_result end(cu_graph_exec exec, cu_stream stream, cu_result result,
							   bool own)
{
	const struct graph_place *at = &probe_graph_places[probe_graph_place(exec)];
	const struct graph_info *g;

	if (__builtin_expect(result != CU_SUCCESS || __atomic_load_n(&at->exec, __ATOMIC_ACQUIRE) != exec, 0))
		return end_slowly(exec, stream, result, own);
	g = __atomic_load_n(&at->g, __ATOMIC_RELAXED);
	if (__builtin_expect(!g || __atomic_load_n(&g->unreadable, __ATOMIC_RELAXED) ||
				     __atomic_load_n(&probe_sets.unusual, __ATOMIC_RELAXED) ||
				     record_level() >= LOG_LEVEL_LAUNCHES,
			     0))
		return end_slowly(exec, stream, result, own);
	probe_launches_add(&probe_counts.launches, own);
	if (probe_pools_count_launch(0, __atomic_load_n(&g->set[0], __ATOMIC_RELAXED), own))
		count(ctr_core(CTR_ROW_POOL_LAUNCHES), own);
	finish(CTR_COMMITTED, own);
	return CU_SUCCESS;
}

/* Counted when it has succeeded: a later donation of this thread finds it counted, a failed launch moved no state. What
 * the usual launch needs is written out here, with no call that would make it save registers. */
cu_result probe_launch_end(cu_graph_exec exec, cu_stream stream, cu_result result)
{
	return end(exec, stream, result, false);
}

/* The same on the thread that counts in words of its own. */
cu_result probe_own_launch_end(cu_graph_exec exec, cu_stream stream, cu_result result)
{
	return end(exec, stream, result, true);
}

void probe_runtime_launch(unsigned driver_launches, int result)
{
	ctr_add(ctr_core(CTR_ROW_RUNTIME_LAUNCHES), 1);
	if (!driver_launches && result == 0)
		ctr_add(ctr_core(CTR_ROW_RUNTIME_UNROUTED), 1);
}
