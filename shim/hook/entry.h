/* SPDX-License-Identifier: Apache-2.0
 *
 * entry.h: the table of intercepted driver entry points. One row per symbol that libcuda exports, since the symbol, and
 * nothing else, fixes the ABI: cudart asks for one name at several versions and flags and gets another symbol each time.
 * Adding an entry point means adding a row, and a wrapper where none fits.
 *
 * A row makes three functions (entry.c): the exported symbol, for programs that link libcuda; a hidden one that is
 * substituted where libcuda's own address was asked for; and both call the wrapper with whom to call next.
 */
#ifndef SHIM_ENTRY_H
#define SHIM_ENTRY_H

#include "cuda_abi.h"

/* exact symbol, ABI wrapper, arguments, parameters */
#define SHIM_ENTRIES(X)                                                                                                \
	X(cuInit, shim_wrap_init, (flags), unsigned flags)                                                             \
	X(cuGetProcAddress, shim_wrap_get_proc_address, (name, out, version, flags), const char *name, void **out,     \
	  int version, uint64_t flags)                                                                                 \
	X(cuGetProcAddress_v2, shim_wrap_get_proc_address_v2, (name, out, version, flags, status), const char *name,   \
	  void **out, int version, uint64_t flags, int *status)                                                        \
	X(cuGraphLaunch, shim_wrap_graph_launch, (exec, stream), cu_graph_exec exec, cu_stream stream)                 \
	X(cuGraphLaunch_ptsz, shim_wrap_graph_launch_ptsz, (exec, stream), cu_graph_exec exec, cu_stream stream)       \
	X(cuGraphInstantiate, shim_wrap_instantiate, (exec, graph, node, log, bytes), cu_graph_exec *exec,             \
	  cu_graph graph, cu_graph_node *node, char *log, size_t bytes)                                                \
	X(cuGraphInstantiate_v2, shim_wrap_instantiate, (exec, graph, node, log, bytes), cu_graph_exec *exec,          \
	  cu_graph graph, cu_graph_node *node, char *log, size_t bytes)                                                \
	X(cuGraphInstantiateWithFlags, shim_wrap_instantiate_flags, (exec, graph, flags), cu_graph_exec *exec,         \
	  cu_graph graph, unsigned long long flags)                                                                    \
	X(cuGraphInstantiateWithParams, shim_wrap_instantiate_params, (exec, graph, params), cu_graph_exec *exec,      \
	  cu_graph graph, struct cu_instantiate_params *params)                                                        \
	X(cuGraphInstantiateWithParams_ptsz, shim_wrap_instantiate_params, (exec, graph, params), cu_graph_exec *exec, \
	  cu_graph graph, struct cu_instantiate_params *params)                                                        \
	X(cuGraphExecDestroy, shim_wrap_exec_destroy, (exec), cu_graph_exec exec)                                      \
	X(cuGraphExecUpdate, shim_wrap_exec_update, (exec, graph, node, result), cu_graph_exec exec, cu_graph graph,   \
	  cu_graph_node *node, int *result)                                                                            \
	X(cuGraphExecUpdate_v2, shim_wrap_exec_update_v2, (exec, graph, info), cu_graph_exec exec, cu_graph graph,     \
	  struct cu_update_result *info)                                                                               \
	X(cuGraphExecKernelNodeSetParams, shim_wrap_set_kernel_v1, (exec, node, params), cu_graph_exec exec,           \
	  cu_graph_node node, const struct cu_kernel_params_v1 *params)                                                \
	X(cuGraphExecKernelNodeSetParams_v2, shim_wrap_set_kernel_v2, (exec, node, params), cu_graph_exec exec,        \
	  cu_graph_node node, const struct cu_kernel_params *params)                                                   \
	X(cuGraphExecMemcpyNodeSetParams, shim_wrap_set_memcpy, (exec, node, params, ctx), cu_graph_exec exec,         \
	  cu_graph_node node, const struct cu_memcpy_params *params, cu_context ctx)                                   \
	X(cuGraphExecMemsetNodeSetParams, shim_wrap_set_memset, (exec, node, params, ctx), cu_graph_exec exec,         \
	  cu_graph_node node, const struct cu_memset_params *params, cu_context ctx)                                   \
	X(cuGraphExecChildGraphNodeSetParams, shim_wrap_set_child, (exec, node, child), cu_graph_exec exec,            \
	  cu_graph_node node, cu_graph child)                                                                          \
	X(cuGraphExecNodeSetParams, shim_wrap_set_node, (exec, node, params), cu_graph_exec exec, cu_graph_node node,  \
	  struct cu_node_params *params)                                                                               \
	X(cuGraphExecHostNodeSetParams, shim_wrap_set_other, (exec, node, params), cu_graph_exec exec,                 \
	  cu_graph_node node, const void *params)                                                                      \
	X(cuGraphExecExternalSemaphoresSignalNodeSetParams, shim_wrap_set_other, (exec, node, params),                 \
	  cu_graph_exec exec, cu_graph_node node, const void *params)                                                  \
	X(cuGraphExecExternalSemaphoresWaitNodeSetParams, shim_wrap_set_other, (exec, node, params),                   \
	  cu_graph_exec exec, cu_graph_node node, const void *params)                                                  \
	X(cuGraphExecBatchMemOpNodeSetParams, shim_wrap_set_other, (exec, node, params), cu_graph_exec exec,           \
	  cu_graph_node node, const void *params)                                                                      \
	X(cuGraphExecEventRecordNodeSetEvent, shim_wrap_set_event, (exec, node, event), cu_graph_exec exec,            \
	  cu_graph_node node, cu_event event)                                                                          \
	X(cuGraphExecEventWaitNodeSetEvent, shim_wrap_set_event, (exec, node, event), cu_graph_exec exec,              \
	  cu_graph_node node, cu_event event)                                                                          \
	X(cuStreamBeginCapture, shim_wrap_capture_begin, (stream), cu_stream stream)                                   \
	X(cuStreamBeginCapture_ptsz, shim_wrap_capture_begin_ptsz, (stream), cu_stream stream)                         \
	X(cuStreamBeginCapture_v2, shim_wrap_capture_begin_v2, (stream, mode), cu_stream stream, int mode)             \
	X(cuStreamBeginCapture_v2_ptsz, shim_wrap_capture_begin_v2_ptsz, (stream, mode), cu_stream stream, int mode)   \
	X(cuStreamBeginCaptureToGraph, shim_wrap_capture_to_graph, (stream, graph, deps, edges, n, mode),              \
	  cu_stream stream, cu_graph graph, const cu_graph_node *deps, const void *edges, size_t n, int mode)          \
	X(cuStreamBeginCaptureToGraph_ptsz, shim_wrap_capture_to_graph_ptsz, (stream, graph, deps, edges, n, mode),    \
	  cu_stream stream, cu_graph graph, const cu_graph_node *deps, const void *edges, size_t n, int mode)          \
	X(cuStreamEndCapture, shim_wrap_capture_end, (stream, graph), cu_stream stream, cu_graph *graph)               \
	X(cuStreamEndCapture_ptsz, shim_wrap_capture_end_ptsz, (stream, graph), cu_stream stream, cu_graph *graph)     \
	X(cuStreamDestroy, shim_wrap_stream_destroy, (stream), cu_stream stream)                                       \
	X(cuStreamDestroy_v2, shim_wrap_stream_destroy, (stream), cu_stream stream)                                    \
	X(cuMemFree, shim_wrap_free_v1, (ptr), unsigned ptr)                                                           \
	X(cuMemFree_v2, shim_wrap_free, (ptr), cu_deviceptr ptr)                                                       \
	X(cuMemFreeAsync, shim_wrap_free_async, (ptr, stream), cu_deviceptr ptr, cu_stream stream)                     \
	X(cuMemFreeAsync_ptsz, shim_wrap_free_async, (ptr, stream), cu_deviceptr ptr, cu_stream stream)                \
	X(cuMemUnmap, shim_wrap_unmap, (ptr, bytes), cu_deviceptr ptr, size_t bytes)                                   \
	X(cuIpcCloseMemHandle, shim_wrap_ipc_close, (ptr), cu_deviceptr ptr)                                           \
	X(cuMemFreeHost, shim_wrap_free_host, (ptr), void *ptr)                                                        \
	X(cuMemHostUnregister, shim_wrap_free_host, (ptr), void *ptr)                                                  \
	X(cuCtxDestroy, shim_wrap_ctx_destroy, (ctx), cu_context ctx)                                                  \
	X(cuCtxDestroy_v2, shim_wrap_ctx_destroy, (ctx), cu_context ctx)                                               \
	X(cuDevicePrimaryCtxRetain, shim_wrap_primary_retain, (ctx, device), cu_context *ctx, cu_device device)        \
	X(cuDevicePrimaryCtxRelease, shim_wrap_primary_release, (device), cu_device device)                            \
	X(cuDevicePrimaryCtxRelease_v2, shim_wrap_primary_release, (device), cu_device device)                         \
	X(cuDevicePrimaryCtxReset, shim_wrap_primary_reset, (device), cu_device device)                                \
	X(cuDevicePrimaryCtxReset_v2, shim_wrap_primary_reset, (device), cu_device device)                             \
	X(cuGreenCtxDestroy, shim_wrap_green_ctx_destroy, (ctx), cu_green_ctx ctx)

enum shim_entry_id {
#define SHIM_ID(symbol, wrapper, args, ...) SHIM_ENTRY_##symbol,
	SHIM_ENTRIES(SHIM_ID)
#undef SHIM_ID
		SHIM_ENTRY_COUNT
};

/* Every wrapper makes the real call once, whatever happens in it, and returns what that returned. */
#define SHIM_DECLARE(symbol, wrapper, args, ...) cu_result wrapper(cu_result (*real)(__VA_ARGS__), __VA_ARGS__);
SHIM_ENTRIES(SHIM_DECLARE)
#undef SHIM_DECLARE

struct shim_entry {
	const char *symbol;
	void *substitute; /* in place of libcuda's own address; calls libcuda */
	void *exported;   /* what the exported symbol is; calls the next definition after ours, as the linker would */
	void *wrapper;    /* entries with one wrapper have one ABI */
};
extern const struct shim_entry shim_entry[SHIM_ENTRY_COUNT];

#endif
