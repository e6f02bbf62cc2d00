/* SPDX-License-Identifier: Apache-2.0
 *
 * observer.c: the two tables by which the shim and the writer reach probes/core.
 */
#include "graph.h"

#include <string.h>

static void cuda_ready(void)
{
	if (probe_start())
		__atomic_store_n(&record_page()->driver_seen, 1, __ATOMIC_RELEASE);
}

static void releasing(uint64_t address, uint64_t bytes, enum shim_release how)
{
	(void)how;
	if (!address)
		return;
	probe_regions_releasing(address, bytes);
	probe_pools_releasing(address, bytes);
}

static void context_going(cu_context ctx, cu_device device)
{
	probe_pools_going(ctx, device);
	probe_devices_going(ctx, device);
}

static void unrouted(const char *name, int version, uint64_t flags)
{
	struct log_unrouted r;

	ctr_add(ctr_core(CTR_ROW_UNROUTED), 1);
	memset(&r, 0, sizeof r);
	record_fill(&r, LOG_UNROUTED);
	r.t_ns = record_now_ns();
	r.version = version;
	r.flags = flags;
	probe_text(r.name, sizeof r.name, name);
	record_put_meta(&r);
}

const struct shim_observer shim_observer = {
	.cuda_ready = cuda_ready,
	.launch_begun = &record_area.page.row[CTR_ROW_GRAPH_LAUNCH].begun,
	.launch_end = probe_launch_end,
	.runtime_launch = probe_runtime_launch,
	.instantiated = probe_graph_instantiated,
	.updated = probe_graph_updated,
	.node_set = probe_graph_node_set,
	.destroying = probe_graph_destroying,
	.releasing = releasing,
	.context_going = context_going,
	.unrouted = unrouted,
};

const struct record_source record_source = {
	.poll = probe_poll,
	.abandon = probe_abandon,
	.forked = probe_forked,
};
