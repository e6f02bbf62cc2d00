/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda.h: the part of the CUDA driver API that the route programs use, and how they get hold of it. Declared here, as a
 * stranger to slotprobe would: nothing is shared with it.
 */
#ifndef ROUTES_CUDA_H
#define ROUTES_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t cu_ptr; /* CUdeviceptr */
typedef void *cu_handle; /* CUcontext, CUstream, CUgraph, CUgraphExec, CUgraphNode */

struct cu_set_params { /* CUDA_MEMSET_NODE_PARAMS */
	cu_ptr dst;
	size_t pitch;
	unsigned value, element_bytes;
	size_t width, height;
};

struct cu_alloc_params { /* CUDA_MEM_ALLOC_NODE_PARAMS */
	int type, handles, location_type, location;
	void *security;
	size_t most;
	unsigned short usage;
	unsigned char reserved[54];
	const void *access;
	size_t n_access, bytes;
	cu_ptr ptr;
};

struct cu_conditional_params { /* CUgraphNodeParams with its conditional member */
	int type, reserved0[3];
	unsigned long long handle;
	int condition;
	unsigned size;
	cu_handle *bodies;
	cu_handle ctx;
	long long rest[25];
	long long reserved2;
};

struct cu_update_info { /* CUgraphExecUpdateResultInfo */
	int result;
	cu_handle node, from;
};

/* member, exported symbol, name for cuGetProcAddress, arguments, parameters */
#define CUDA_CALLS(X)                                                                                                  \
	X(init, cuInit, "cuInit", (flags), (unsigned flags))                                                           \
	X(device_get, cuDeviceGet, "cuDeviceGet", (device, ordinal), (int *device, int ordinal))                       \
	X(ctx_retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (ctx, device),                             \
	  (cu_handle * ctx, int device))                                                                               \
	X(ctx_set, cuCtxSetCurrent, "cuCtxSetCurrent", (ctx), (cu_handle ctx))                                         \
	X(stream_create, cuStreamCreate, "cuStreamCreate", (stream, flags), (cu_handle * stream, unsigned flags))      \
	X(stream_sync, cuStreamSynchronize, "cuStreamSynchronize", (stream), (cu_handle stream))                       \
	X(mem_alloc, cuMemAlloc_v2, "cuMemAlloc", (ptr, bytes), (cu_ptr * ptr, size_t bytes))                          \
	X(graph_create, cuGraphCreate, "cuGraphCreate", (graph, flags), (cu_handle * graph, unsigned flags))           \
	X(graph_destroy, cuGraphDestroy, "cuGraphDestroy", (graph), (cu_handle graph))                                 \
	X(add_set, cuGraphAddMemsetNode, "cuGraphAddMemsetNode", (node, graph, deps, n, params, ctx),                  \
	  (cu_handle * node, cu_handle graph, const cu_handle *deps, size_t n, const struct cu_set_params *params,     \
	   cu_handle ctx))                                                                                             \
	X(instantiate, cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", (exec, graph, flags),               \
	  (cu_handle * exec, cu_handle graph, unsigned long long flags))                                               \
	X(launch, cuGraphLaunch, "cuGraphLaunch", (exec, stream), (cu_handle exec, cu_handle stream))                  \
	X(update, cuGraphExecUpdate_v2, "cuGraphExecUpdate", (exec, graph, info),                                      \
	  (cu_handle exec, cu_handle graph, struct cu_update_info * info))                                             \
	X(set_set, cuGraphExecMemsetNodeSetParams, "cuGraphExecMemsetNodeSetParams", (exec, node, params, ctx),        \
	  (cu_handle exec, cu_handle node, const struct cu_set_params *params, cu_handle ctx))

/* Newer ones, looked up by a route that needs them. */
typedef int add_alloc_fn(cu_handle *node, cu_handle graph, const cu_handle *deps, size_t n,
			 struct cu_alloc_params *params);
typedef int add_free_fn(cu_handle *node, cu_handle graph, const cu_handle *deps, size_t n, cu_ptr ptr);
typedef int add_node_fn(cu_handle *node, cu_handle graph, const cu_handle *deps, size_t n,
			struct cu_conditional_params *params);
typedef int conditional_fn(unsigned long long *handle, cu_handle graph, cu_handle ctx, unsigned value, unsigned flags);

struct cuda {
#define CUDA_MEMBER(member, symbol, name, args, params) int(*member) params;
	CUDA_CALLS(CUDA_MEMBER)
#undef CUDA_MEMBER
};
extern struct cuda cu;

/* how: linked, dlsym, proc, proc_v2, per-thread. Ends the program when it cannot. */
void cuda_load(const char *how);
/* An entry that older drivers lack, by its symbol. Ends the program when it is not there. */
void *cuda_find(const char *symbol);

__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		int tried = (cu.call);                                                                                 \
		if (tried)                                                                                             \
			die("driver error %d in %s", tried, #call);                                                    \
	} while (0)

#endif
