/* SPDX-License-Identifier: Apache-2.0
 *
 * observer.h: what the shim tells. The shim calls these and knows nothing of who listens; probes/core defines the one
 * table. Every member is called on the application's thread, inside its driver call: no blocking but where it says so,
 * errno is saved by the caller, no CUDA call but through shim_driver() inside a shim_guard. Members may be called
 * before the ones that one would expect first (a process can be forked, or load us late): be ready for unknown handles.
 */
#ifndef SHIM_OBSERVER_H
#define SHIM_OBSERVER_H

#include "cuda_abi.h"

enum shim_node_kind {
	SHIM_NODE_KERNEL_V1,
	SHIM_NODE_KERNEL_V2,
	SHIM_NODE_MEMCPY,
	SHIM_NODE_MEMSET,
	SHIM_NODE_CHILD,
	SHIM_NODE_OTHER
};

enum shim_release { SHIM_RELEASE_FREE, SHIM_RELEASE_FREE_ASYNC, SHIM_RELEASE_UNMAP, SHIM_RELEASE_FREE_HOST };

struct shim_observer {
	/* cuInit succeeded (each time; the first starts the recording) */
	void (*cuda_ready)(void);

	/* Around the real cuGraphLaunch, and hot. Before it CTR_BEGIN_ONE is added to a row's `begun`. After it the other
	 * is called, atomics only, who keeps errno and hands back the result: so the call is a jump. One thread of the
	 * process, always the same, has a pair of its own (shim/record/own.h). All are always there. */
	uint64_t *launch_begun, *own_launch_begun;
	cu_result (*launch_end)(cu_graph_exec exec, cu_stream stream, cu_result result);
	cu_result (*own_launch_end)(cu_graph_exec exec, cu_stream stream, cu_result result);
	/* a cudaGraphLaunch of the runtime returned; driver_launches: driver launches seen inside it on this thread */
	void (*runtime_launch)(unsigned driver_launches, int result);

	/* after the real call; exec is valid only when result is 0 */
	void (*instantiated)(cu_graph_exec exec, cu_graph graph, cu_result result);
	void (*updated)(cu_graph_exec exec, cu_graph graph, cu_result result);
	/* params as the server gave them: struct cu_kernel_params_v1, cu_kernel_params, cu_memcpy_params,
	 * cu_memset_params, cu_graph, or NULL for SHIM_NODE_OTHER */
	void (*node_set)(cu_graph_exec exec, cu_graph_node node, enum shim_node_kind kind, const void *params,
			 cu_result result);
	/* before the real call: the handle may be reused as soon as it returns */
	void (*destroying)(cu_graph_exec exec);

	/* Before memory goes. May wait, bounded, for reads of ours in flight there. bytes 0: unknown. */
	void (*releasing)(uint64_t address, uint64_t bytes, enum shim_release how);
	/* Before a context goes; ctx NULL: every context of `device`. May wait, bounded, likewise. */
	void (*context_going)(cu_context ctx, cu_device device);

	/* a table name resolved to an address that we do not know */
	void (*unrouted)(const char *name, int version, uint64_t flags);
	/* A loaded object's reference to `symbol` is bound past us; once an object. From shim_bypass_look. */
	void (*bypassed)(const char *symbol, const char *object);
};

extern const struct shim_observer shim_observer __attribute__((visibility("hidden"))); /* defined by probes/core */

/* bypass.c: looks at what was loaded since the last time. For one thread of ours, about once a second: it takes the
 * loader's lock. */
void shim_bypass_look(void);

#endif
