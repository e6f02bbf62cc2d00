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

static void count_pools(const uint64_t *set)
{
	bool any = false;

	for (uint32_t w = 0; w < PROBE_SET_WORDS; w++)
		any |= probe_pools_count_launch(w, set[w]);
	if (any)
		ctr_add(ctr_core(CTR_ROW_POOL_LAUNCHES), 1);
}

/* A launch that failed, at a level that records launches, of a graph that we have not read, or with many pools. */
__attribute__((noinline)) static cu_result end_slowly(cu_graph_exec exec, cu_stream stream, cu_result result)
{
	static const uint64_t every_pool[PROBE_SET_WORDS] = { ~0ull, ~0ull, ~0ull, ~0ull };
	const struct graph_info *g = probe_graph_find(exec);
	uint64_t number = 0; /* of a launch that did not happen */

	_Static_assert(PROBE_SET_WORDS == 4, "every pool is in the set of every pool");
	if (result == CU_SUCCESS) {
		const bool read = g && !__atomic_load_n(&g->unreadable, __ATOMIC_RELAXED) &&
				  !(__atomic_load_n(&probe_sets.unusual, __ATOMIC_RELAXED) & PROBE_BLIND);
		number = __atomic_add_fetch(&probe_counts.launches, 1, __ATOMIC_RELAXED);
		count_pools(read ? g->set : every_pool);
	}
	ctr_finish(ctr_core(CTR_ROW_GRAPH_LAUNCH), result == CU_SUCCESS ? CTR_COMMITTED : CTR_ERROR_DRIVER);
	if (record_level() >= LOG_LEVEL_LAUNCHES && record_recording())
		say(g, number, stream, result);
	return result;
}

/* Counted when it has succeeded: a later donation of this thread finds it counted, a failed launch moved no state. What
 * the usual launch needs is written out here, with no call that would make it save registers. */
cu_result probe_launch_end(cu_graph_exec exec, cu_stream stream, cu_result result)
{
	const struct graph_place *at = &probe_graph_places[probe_graph_place(exec)];
	const struct graph_info *g;

	if (__builtin_expect(result != CU_SUCCESS || __atomic_load_n(&at->exec, __ATOMIC_ACQUIRE) != exec, 0))
		return end_slowly(exec, stream, result);
	g = __atomic_load_n(&at->g, __ATOMIC_RELAXED);
	if (__builtin_expect(!g || __atomic_load_n(&g->unreadable, __ATOMIC_RELAXED) ||
				     __atomic_load_n(&probe_sets.unusual, __ATOMIC_RELAXED) ||
				     record_level() >= LOG_LEVEL_LAUNCHES,
			     0))
		return end_slowly(exec, stream, result);
	__atomic_fetch_add(&probe_counts.launches, 1, __ATOMIC_RELAXED);
	if (probe_pools_count_launch(0, __atomic_load_n(&g->set[0], __ATOMIC_RELAXED)))
		ctr_add(ctr_core(CTR_ROW_POOL_LAUNCHES), 1);
	ctr_finish(ctr_core(CTR_ROW_GRAPH_LAUNCH), CTR_COMMITTED);
	return CU_SUCCESS;
}

void probe_runtime_launch(unsigned driver_launches, int result)
{
	ctr_add(ctr_core(CTR_ROW_RUNTIME_LAUNCHES), 1);
	if (!driver_launches && result == 0)
		ctr_add(ctr_core(CTR_ROW_RUNTIME_UNROUTED), 1);
}
