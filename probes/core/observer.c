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

/* On the writer's thread, so the record goes to the log without the queue. */
static void bypassed(const char *symbol, const char *object)
{
	struct log_bypassed r;

	ctr_add(ctr_core(CTR_ROW_BYPASSED), 1);
	memset(&r, 0, sizeof r);
	record_fill(&r, LOG_BYPASSED);
	r.t_ns = record_now_ns();
	probe_text(r.symbol, sizeof r.symbol, symbol);
	probe_text(r.object, sizeof r.object, object);
	record_append(&r, NULL);
}

const struct shim_observer shim_observer = {
	.cuda_ready = cuda_ready,
	.launch_begun = &record_area.page.row[CTR_ROW_GRAPH_LAUNCH].begun,
	.own_launch_begun = &record_area.page.row[CTR_ROW_GRAPH_LAUNCH].own_begun,
	.launch_end = probe_launch_end,
	.own_launch_end = probe_own_launch_end,
	.runtime_launch = probe_runtime_launch,
	.instantiated = probe_graph_instantiated,
	.updated = probe_graph_updated,
	.node_set = probe_graph_node_set,
	.destroying = probe_graph_destroying,
	.releasing = releasing,
	.context_going = context_going,
	.unrouted = unrouted,
	.bypassed = bypassed,
};

/* What was loaded a moment before the end is looked at too. */
#define LOOK_EVERY_NS 1000000000ull

static unsigned poll(void)
{
	static uint64_t looked_ns;
	uint64_t now = record_now_ns();

	if (now - looked_ns >= LOOK_EVERY_NS) {
		shim_bypass_look();
		looked_ns = now;
	}
	return probe_poll();
}

static void abandon(enum ctr_outcome why)
{
	shim_bypass_look();
	probe_abandon(why);
}

const struct record_source record_source = {
	.poll = poll,
	.abandon = abandon,
	.forked = probe_forked,
};
