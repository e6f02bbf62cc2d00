/* SPDX-License-Identifier: Apache-2.0
 *
 * state.c: the process as a whole: is it recorded, what has it counted, and what is forgotten in a fork's child.
 */
#include "core.h"
#include "graph.h"

#include <string.h>

struct probe_counts probe_counts;
uint32_t probe_registry;

bool probe_start_inherited(void)
{
	return record_inherited() && probe_start();
}

bool probe_start(void)
{
	if (!record_options()->dir || record_start())
		return false;
	/* Ranks are reported as a process starts, before there is anything to record in. */
	probe_rank_say();
	return record_active();
}

void probe_forked(void)
{
	/* The thread that held a lock does not exist here. */
	probe_registry = 0;
	memset(&probe_counts, 0, sizeof probe_counts);
	probe_pools_forget();
	probe_rings_forget();
	probe_devices_forget();
	probe_regions_forget();
	probe_graphs_forget();
	probe_rank_forked();
}
