/* SPDX-License-Identifier: Apache-2.0
 *
 * abi_check.c: compares our own declarations of the driver (shim/hook) with the toolkit's cuda.h, at compile time: that
 * it compiles is the test. Compile with -D_GNU_SOURCE -I. -I<toolkit>/include -fsyntax-only.
 */
#include <stddef.h>
#include <stdint.h>

/* With this the header declares every exported symbol under its own name, the old and the per-thread ones too. */
#define __CUDA_API_VERSION_INTERNAL
#define CU_STREAM_NON_BLOCKING toolkit_stream_non_blocking /* the one name that both have */
#include <cuda.h>
#undef CU_STREAM_NON_BLOCKING

#include "shim/hook/cuda_abi.h"
#include "shim/hook/driver.h"
#include "shim/hook/entry.h"

#define SAME(a, b) _Static_assert((a) == (b), #a " is not " #b)

/* ---- values ---- */
SAME((int)CU_SUCCESS, (int)CUDA_SUCCESS);
SAME((int)CU_INVALID_VALUE, (int)CUDA_ERROR_INVALID_VALUE);
SAME((int)CU_OUT_OF_MEMORY, (int)CUDA_ERROR_OUT_OF_MEMORY);
SAME((int)CU_NOT_INITIALIZED, (int)CUDA_ERROR_NOT_INITIALIZED);
SAME((int)CU_DEINITIALIZED, (int)CUDA_ERROR_DEINITIALIZED);
SAME((int)CU_NOT_FOUND, (int)CUDA_ERROR_NOT_FOUND);
SAME((int)CU_NOT_SUPPORTED, (int)CUDA_ERROR_NOT_SUPPORTED);
SAME((int)CU_CAPTURE_UNSUPPORTED, (int)CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME((int)CU_CAPTURE_INVALIDATED, (int)CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME((int)CU_CAPTURE_IMPLICIT, (int)CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME((int)CU_CAPTURE_WRONG_THREAD, (int)CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SAME((uintptr_t)CU_LEGACY, (uintptr_t)CU_STREAM_LEGACY);
SAME((uintptr_t)CU_PER_THREAD, (uintptr_t)CU_STREAM_PER_THREAD);
SAME((int)CU_CAPTURE_NONE, (int)CU_STREAM_CAPTURE_STATUS_NONE);
SAME((int)CU_CAPTURE_ACTIVE, (int)CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME((int)CU_CAPTURE_BROKEN, (int)CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME((int)CU_MODE_GLOBAL, (int)CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME((int)CU_MODE_THREAD_LOCAL, (int)CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME((int)CU_MODE_RELAXED, (int)CU_STREAM_CAPTURE_MODE_RELAXED);
SAME((int)CU_NODE_KERNEL, (int)CU_GRAPH_NODE_TYPE_KERNEL);
SAME((int)CU_NODE_MEMCPY, (int)CU_GRAPH_NODE_TYPE_MEMCPY);
SAME((int)CU_NODE_MEMSET, (int)CU_GRAPH_NODE_TYPE_MEMSET);
SAME((int)CU_NODE_HOST, (int)CU_GRAPH_NODE_TYPE_HOST);
SAME((int)CU_NODE_GRAPH, (int)CU_GRAPH_NODE_TYPE_GRAPH);
SAME((int)CU_NODE_EMPTY, (int)CU_GRAPH_NODE_TYPE_EMPTY);
SAME((int)CU_NODE_WAIT_EVENT, (int)CU_GRAPH_NODE_TYPE_WAIT_EVENT);
SAME((int)CU_NODE_EVENT_RECORD, (int)CU_GRAPH_NODE_TYPE_EVENT_RECORD);
SAME((int)CU_NODE_SEMAS_SIGNAL, (int)CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL);
SAME((int)CU_NODE_SEMAS_WAIT, (int)CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT);
SAME((int)CU_NODE_MEM_ALLOC, (int)CU_GRAPH_NODE_TYPE_MEM_ALLOC);
SAME((int)CU_NODE_MEM_FREE, (int)CU_GRAPH_NODE_TYPE_MEM_FREE);
SAME((int)CU_NODE_BATCH_MEM_OP, (int)CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
SAME((int)CU_NODE_CONDITIONAL, (int)CU_GRAPH_NODE_TYPE_CONDITIONAL);
SAME((uintptr_t)CU_EXTRA_END, (uintptr_t)CU_LAUNCH_PARAM_END);
SAME((uintptr_t)CU_EXTRA_BUFFER, (uintptr_t)CU_LAUNCH_PARAM_BUFFER_POINTER);
SAME((uintptr_t)CU_EXTRA_SIZE, (uintptr_t)CU_LAUNCH_PARAM_BUFFER_SIZE);
SAME((int)CU_HOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME((int)CU_HOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_DEVICEMAP);
SAME((int)CU_STREAM_NON_BLOCKING, (int)toolkit_stream_non_blocking);
SAME((int)CU_ATTRIBUTE_MULTIPROCESSORS, (int)CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME((int)CU_ATTRIBUTE_CAPABILITY_MAJOR, (int)CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME((int)CU_ATTRIBUTE_CAPABILITY_MINOR, (int)CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

/* ---- sizes and offsets ---- */
SAME(sizeof(cu_result), sizeof(CUresult));
SAME(sizeof(cu_device), sizeof(CUdevice));
SAME(sizeof(cu_deviceptr), sizeof(CUdeviceptr));
SAME(sizeof(unsigned), sizeof(CUdeviceptr_v1));

#define SIZE(ours, theirs) SAME(sizeof(ours), sizeof(theirs))
#define FIELD(ours, our_field, theirs, their_field)                                                                    \
	SAME(offsetof(ours, our_field), offsetof(theirs, their_field));                                                \
	SAME(sizeof(((ours *)0)->our_field), sizeof(((theirs *)0)->their_field))

SIZE(struct cu_uuid, CUuuid);
SIZE(struct cu_kernel_params_v1, CUDA_KERNEL_NODE_PARAMS_v1);
FIELD(struct cu_kernel_params_v1, func, CUDA_KERNEL_NODE_PARAMS_v1, func);
FIELD(struct cu_kernel_params_v1, grid[0], CUDA_KERNEL_NODE_PARAMS_v1, gridDimX);
FIELD(struct cu_kernel_params_v1, grid[1], CUDA_KERNEL_NODE_PARAMS_v1, gridDimY);
FIELD(struct cu_kernel_params_v1, grid[2], CUDA_KERNEL_NODE_PARAMS_v1, gridDimZ);
FIELD(struct cu_kernel_params_v1, block[0], CUDA_KERNEL_NODE_PARAMS_v1, blockDimX);
FIELD(struct cu_kernel_params_v1, block[1], CUDA_KERNEL_NODE_PARAMS_v1, blockDimY);
FIELD(struct cu_kernel_params_v1, block[2], CUDA_KERNEL_NODE_PARAMS_v1, blockDimZ);
FIELD(struct cu_kernel_params_v1, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v1, sharedMemBytes);
FIELD(struct cu_kernel_params_v1, params, CUDA_KERNEL_NODE_PARAMS_v1, kernelParams);
FIELD(struct cu_kernel_params_v1, extra, CUDA_KERNEL_NODE_PARAMS_v1, extra);

SIZE(struct cu_kernel_params, CUDA_KERNEL_NODE_PARAMS_v2);
FIELD(struct cu_kernel_params, func, CUDA_KERNEL_NODE_PARAMS_v2, func);
FIELD(struct cu_kernel_params, grid[0], CUDA_KERNEL_NODE_PARAMS_v2, gridDimX);
FIELD(struct cu_kernel_params, grid[2], CUDA_KERNEL_NODE_PARAMS_v2, gridDimZ);
FIELD(struct cu_kernel_params, block[0], CUDA_KERNEL_NODE_PARAMS_v2, blockDimX);
FIELD(struct cu_kernel_params, block[2], CUDA_KERNEL_NODE_PARAMS_v2, blockDimZ);
FIELD(struct cu_kernel_params, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
FIELD(struct cu_kernel_params, params, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
FIELD(struct cu_kernel_params, extra, CUDA_KERNEL_NODE_PARAMS_v2, extra);
FIELD(struct cu_kernel_params, kern, CUDA_KERNEL_NODE_PARAMS_v2, kern);
FIELD(struct cu_kernel_params, ctx, CUDA_KERNEL_NODE_PARAMS_v2, ctx);

#define COPY(ours, theirs) FIELD(struct cu_memcpy_params, ours, CUDA_MEMCPY3D, theirs)
SIZE(struct cu_memcpy_params, CUDA_MEMCPY3D);
COPY(src_x, srcXInBytes);
COPY(src_y, srcY);
COPY(src_z, srcZ);
COPY(src_lod, srcLOD);
COPY(src_type, srcMemoryType);
COPY(src_host, srcHost);
COPY(src_device, srcDevice);
COPY(src_array, srcArray);
COPY(reserved0, reserved0);
COPY(src_pitch, srcPitch);
COPY(src_height, srcHeight);
COPY(dst_x, dstXInBytes);
COPY(dst_y, dstY);
COPY(dst_z, dstZ);
COPY(dst_lod, dstLOD);
COPY(dst_type, dstMemoryType);
COPY(dst_host, dstHost);
COPY(dst_device, dstDevice);
COPY(dst_array, dstArray);
COPY(reserved1, reserved1);
COPY(dst_pitch, dstPitch);
COPY(dst_height, dstHeight);
COPY(width, WidthInBytes);
COPY(height, Height);
COPY(depth, Depth);
SAME(CU_MEMORYTYPE_HOST, 1);
SAME(CU_MEMORYTYPE_DEVICE, 2);
SAME(CU_MEMORYTYPE_ARRAY, 3);
SAME(CU_MEMORYTYPE_UNIFIED, 4);

#define SET(ours, theirs) FIELD(struct cu_memset_params, ours, CUDA_MEMSET_NODE_PARAMS_v1, theirs)
SIZE(struct cu_memset_params, CUDA_MEMSET_NODE_PARAMS_v1);
SET(dst, dst);
SET(pitch, pitch);
SET(value, value);
SET(element_bytes, elementSize);
SET(width, width);
SET(height, height);

SIZE(struct cu_instantiate_params, CUDA_GRAPH_INSTANTIATE_PARAMS);
FIELD(struct cu_instantiate_params, flags, CUDA_GRAPH_INSTANTIATE_PARAMS, flags);
FIELD(struct cu_instantiate_params, upload_stream, CUDA_GRAPH_INSTANTIATE_PARAMS, hUploadStream);
FIELD(struct cu_instantiate_params, error_node, CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out);
FIELD(struct cu_instantiate_params, result, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);

SIZE(struct cu_update_result, CUgraphExecUpdateResultInfo);
FIELD(struct cu_update_result, result, CUgraphExecUpdateResultInfo, result);
FIELD(struct cu_update_result, error_node, CUgraphExecUpdateResultInfo, errorNode);
FIELD(struct cu_update_result, error_from_node, CUgraphExecUpdateResultInfo, errorFromNode);

/* The generic parameters: the union's members are read as the structures above. */
SIZE(struct cu_node_params, CUgraphNodeParams);
FIELD(struct cu_node_params, type, CUgraphNodeParams, type);
FIELD(struct cu_node_params, reserved1, CUgraphNodeParams, reserved1);
FIELD(struct cu_node_params, kernel, CUgraphNodeParams, kernel);
FIELD(struct cu_node_params, kernel.func, CUgraphNodeParams, kernel.func);
FIELD(struct cu_node_params, kernel.params, CUgraphNodeParams, kernel.kernelParams);
FIELD(struct cu_node_params, kernel.extra, CUgraphNodeParams, kernel.extra);
FIELD(struct cu_node_params, kernel.kern, CUgraphNodeParams, kernel.kern);
FIELD(struct cu_node_params, kernel.ctx, CUgraphNodeParams, kernel.ctx);
FIELD(struct cu_node_params, copy, CUgraphNodeParams, memcpy);
FIELD(struct cu_node_params, copy.params, CUgraphNodeParams, memcpy.copyParams);
FIELD(struct cu_node_params, memset.dst, CUgraphNodeParams, memset.dst);
FIELD(struct cu_node_params, memset.pitch, CUgraphNodeParams, memset.pitch);
FIELD(struct cu_node_params, memset.value, CUgraphNodeParams, memset.value);
FIELD(struct cu_node_params, memset.element_bytes, CUgraphNodeParams, memset.elementSize);
FIELD(struct cu_node_params, memset.width, CUgraphNodeParams, memset.width);
FIELD(struct cu_node_params, memset.height, CUgraphNodeParams, memset.height);
FIELD(struct cu_node_params, graph, CUgraphNodeParams, graph.graph);
FIELD(struct cu_node_params, reserved2, CUgraphNodeParams, reserved2);

/* ---- prototypes ----
 *
 * From here on our type names mean the toolkit's types: a row of our tables must then be the very prototype that cuda.h
 * declares for that symbol. */
#define cu_result             CUresult
#define cu_device             CUdevice
#define cu_deviceptr          CUdeviceptr
#define cu_context            CUcontext
#define cu_stream             CUstream
#define cu_event              CUevent
#define cu_module             CUmodule
#define cu_library            CUlibrary
#define cu_kernel             CUkernel
#define cu_function           CUfunction
#define cu_graph              CUgraph
#define cu_graph_node         CUgraphNode
#define cu_graph_exec         CUgraphExec
#define cu_green_ctx          CUgreenCtx
#define cu_uuid               CUuuid_st
#define cu_kernel_params_v1   CUDA_KERNEL_NODE_PARAMS_st
#define cu_kernel_params      CUDA_KERNEL_NODE_PARAMS_v2_st
#define cu_memcpy_params      CUDA_MEMCPY3D_st
#define cu_memset_params      CUDA_MEMSET_NODE_PARAMS_st
#define cu_instantiate_params CUDA_GRAPH_INSTANTIATE_PARAMS_st
#define cu_node_params        CUgraphNodeParams_st
#define cu_update_result      CUgraphExecUpdateResultInfo_st

#define IS(prototype, symbol) __builtin_types_compatible_p(CUresult(*) prototype, __typeof__(&symbol))

/* Where we write int for an enumeration, or void for a structure that nobody here opens, both prototypes stand here and
 * both are checked: ours against the table, theirs against the header. */
SAME(sizeof(CUstreamCaptureMode), sizeof(int));
SAME(sizeof(CUstreamCaptureStatus), sizeof(int));
SAME(sizeof(CUgraphNodeType), sizeof(int));
SAME(sizeof(CUdevice_attribute), sizeof(int));
SAME(sizeof(CUpointer_attribute), sizeof(int));
SAME(sizeof(CUgraphExecUpdateResult), sizeof(int));
SAME(sizeof(CUdriverProcAddressQueryResult), sizeof(int));

#define COMMA_cuDeviceGetAttribute              , (int *, int, CUdevice), (int *, CUdevice_attribute, CUdevice)
#define COMMA_cuPointerGetAttribute             , (void *, int, CUdeviceptr), (void *, CUpointer_attribute, CUdeviceptr)
#define COMMA_cuStreamIsCapturing               , (CUstream, int *), (CUstream, CUstreamCaptureStatus *)
#define COMMA_cuThreadExchangeStreamCaptureMode , (int *), (CUstreamCaptureMode *)
#define COMMA_cuGraphNodeGetType                , (CUgraphNode, int *), (CUgraphNode, CUgraphNodeType *)
#define COMMA_cuLibraryLoadData                                                                                        \
	, (CUlibrary *, const void *, void **, void **, unsigned, void **, void **, unsigned),                         \
		(CUlibrary *, const void *, CUjit_option *, void **, unsigned, CUlibraryOption *, void **, unsigned)
#define COMMA_cuGetProcAddress_v2                                                                                      \
	, (const char *, void **, int, uint64_t, int *),                                                               \
		(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *)
#define COMMA_cuGraphExecUpdate                                                                                        \
	, (CUgraphExec, CUgraph, CUgraphNode *, int *), (CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *)
#define COMMA_cuGraphExecHostNodeSetParams                                                                             \
	, (CUgraphExec, CUgraphNode, const void *), (CUgraphExec, CUgraphNode, const CUDA_HOST_NODE_PARAMS *)
#define COMMA_cuGraphExecExternalSemaphoresSignalNodeSetParams                                                         \
	, (CUgraphExec, CUgraphNode, const void *), (CUgraphExec, CUgraphNode, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *)
#define COMMA_cuGraphExecExternalSemaphoresWaitNodeSetParams                                                           \
	, (CUgraphExec, CUgraphNode, const void *), (CUgraphExec, CUgraphNode, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *)
#define COMMA_cuGraphExecBatchMemOpNodeSetParams                                                                       \
	, (CUgraphExec, CUgraphNode, const void *), (CUgraphExec, CUgraphNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *)
#define COMMA_cuStreamBeginCapture_v2      , (CUstream, int), (CUstream, CUstreamCaptureMode)
#define COMMA_cuStreamBeginCapture_v2_ptsz , (CUstream, int), (CUstream, CUstreamCaptureMode)
#define TO_GRAPH                                                                                                       \
	, (CUstream, CUgraph, const CUgraphNode *, const void *, size_t, int),                                         \
		(CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, CUstreamCaptureMode)
#define COMMA_cuStreamBeginCaptureToGraph      TO_GRAPH
#define COMMA_cuStreamBeginCaptureToGraph_ptsz TO_GRAPH

/* A symbol with a pair above expands to it, any other to one odd word: the fourth argument then is the plain row. */
#define FOURTH(a, b, c, d, ...) d
#define PICK(...)               FOURTH(__VA_ARGS__)
#define PLAIN(symbol, row, ...) _Static_assert(IS(row, symbol), #symbol ": not the prototype of cuda.h");
#define PAIR(symbol, row, pair, ours, theirs, ...)                                                                     \
	_Static_assert(IS(theirs, symbol), #symbol ": the prototype of cuda.h is another");                            \
	_Static_assert(__builtin_types_compatible_p(CUresult(*) row, CUresult(*) ours), #symbol ": ours is another");
#define CHECK(symbol, row)           CHECK_WITH(symbol, row, COMMA_##symbol)
#define CHECK_WITH(symbol, row, ...) PICK(__VA_ARGS__, PAIR, , PLAIN, )(symbol, row, __VA_ARGS__, )

#define DRIVER(member, symbol, needed, params) CHECK(symbol, params)
SHIM_DRIVER_CALLS(DRIVER)

#define ENTRY(symbol, wrapper, args, ...) CHECK(symbol, (__VA_ARGS__))
SHIM_ENTRIES(ENTRY)
