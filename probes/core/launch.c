/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c: counts graph launches. The hottest path that we have: atomics only.
 */
#include "graph.h"

#include <string.h>

void probe_launch_begin(cu_graph_exec exec, cu_stream stream)
{
	(void)exec, (void)stream;
	ctr_begin(ctr_core(CTR_ROW_GRAPH_LAUNCH));
}

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

/* Counted when it has succeeded: a later donation of this thread finds it counted, a failed launch moved no state. */
void probe_launch_end(cu_graph_exec exec, cu_stream stream, cu_result result)
{
	struct ctr_row *row = ctr_core(CTR_ROW_GRAPH_LAUNCH);
	const struct graph_info *g = probe_graph_find(exec);
	uint64_t number = 0; /* of a launch that did not happen */

	if (result == CU_SUCCESS) {
		const bool read = g && !__atomic_load_n(&g->unreadable, __ATOMIC_RELAXED) &&
				  !__atomic_load_n(&probe_graphs_blind, __ATOMIC_RELAXED);
		number = __atomic_add_fetch(&probe_counts.launches, 1, __ATOMIC_RELAXED);
		if (probe_pools_count_launch(read ? g->set : NULL))
			ctr_add(ctr_core(CTR_ROW_POOL_LAUNCHES), 1);
	}
	ctr_finish(row, result == CU_SUCCESS ? CTR_COMMITTED : CTR_ERROR_DRIVER);
	if (record_level() >= LOG_LEVEL_LAUNCHES && record_recording())
		say(g, number, stream, result);
}

void probe_runtime_launch(unsigned driver_launches, int result)
{
	ctr_add(ctr_core(CTR_ROW_RUNTIME_LAUNCHES), 1);
	if (!driver_launches && result == 0)
		ctr_add(ctr_core(CTR_ROW_RUNTIME_UNROUTED), 1);
}
