/* SPDX-License-Identifier: Apache-2.0
 *
 * api.h: everything that the CPU driver exports, in one table: the declarations, the call counters and the answers of
 * cuGetProcAddress come from it. A function that is not here does not exist for dlsym either.
 *
 *	X(symbol, name, version, parameters)         one function, whatever the default stream
 *	P(symbol, suffix, name, version, parameters) two: `symbol` for the legacy default stream, symbol##suffix for the
 *	                                             per-thread one
 *
 * `name` and `version` are what cuGetProcAddress is asked with: among the rows of a name the newest version that is not
 * newer than the one asked for is the answer.
 */
#ifndef CPUDRIVER_API_H
#define CPUDRIVER_API_H

#include "abi.h"

/* clang-format off */
#define CPU_CALLS_CONTEXT(X, P) \
	X(cuInit, cuInit, 2000, (unsigned flags)) \
	X(cuDriverGetVersion, cuDriverGetVersion, 2020, (int *version)) \
	X(cuGetErrorName, cuGetErrorName, 6000, (cu_result error, const char **text)) \
	X(cuGetErrorString, cuGetErrorString, 6000, (cu_result error, const char **text)) \
	X(cuGetProcAddress, cuGetProcAddress, 11030, (const char *name, void **fn, int version, uint64_t flags)) \
	X(cuGetProcAddress_v2, cuGetProcAddress, 12000, (const char *name, void **fn, int version, uint64_t flags, int *status)) \
	X(cuDeviceGet, cuDeviceGet, 2000, (cu_device *device, int ordinal)) \
	X(cuDeviceGetCount, cuDeviceGetCount, 2000, (int *count)) \
	X(cuDeviceGetName, cuDeviceGetName, 2000, (char *name, int bytes, cu_device device)) \
	X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, (int *value, int attribute, cu_device device)) \
	X(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020, (size_t *bytes, cu_device device)) \
	X(cuDeviceGetUuid, cuDeviceGetUuid, 9020, (struct cu_uuid *uuid, cu_device device)) \
	X(cuDeviceGetUuid_v2, cuDeviceGetUuid, 11040, (struct cu_uuid *uuid, cu_device device)) \
	X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (cu_context *ctx, cu_device device)) \
	X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 7000, (cu_device device)) \
	X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000, (cu_device device)) \
	X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000, (cu_device device)) \
	X(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000, (cu_device device)) \
	X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags, 7000, (cu_device device, unsigned flags)) \
	X(cuDevicePrimaryCtxSetFlags_v2, cuDevicePrimaryCtxSetFlags, 11000, (cu_device device, unsigned flags)) \
	X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000, (cu_device device, unsigned *flags, int *active)) \
	X(cuCtxCreate, cuCtxCreate, 2000, (cu_context *ctx, unsigned flags, cu_device device)) \
	X(cuCtxCreate_v2, cuCtxCreate, 3020, (cu_context *ctx, unsigned flags, cu_device device)) \
	X(cuCtxCreate_v3, cuCtxCreate, 11040, (cu_context *ctx, void *affinity, int n, unsigned flags, cu_device device)) \
	X(cuCtxCreate_v4, cuCtxCreate, 12050, (cu_context *ctx, struct cux_ctx_create_params *params, unsigned flags, cu_device device)) \
	X(cuCtxDestroy, cuCtxDestroy, 2000, (cu_context ctx)) \
	X(cuCtxDestroy_v2, cuCtxDestroy, 4000, (cu_context ctx)) \
	X(cuCtxPushCurrent, cuCtxPushCurrent, 2000, (cu_context ctx)) \
	X(cuCtxPushCurrent_v2, cuCtxPushCurrent, 4000, (cu_context ctx)) \
	X(cuCtxPopCurrent, cuCtxPopCurrent, 2000, (cu_context *ctx)) \
	X(cuCtxPopCurrent_v2, cuCtxPopCurrent, 4000, (cu_context *ctx)) \
	X(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (cu_context ctx)) \
	X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (cu_context *ctx)) \
	X(cuCtxGetDevice, cuCtxGetDevice, 2000, (cu_device *device)) \
	X(cuCtxGetDevice_v2, cuCtxGetDevice, 13000, (cu_device *device, cu_context ctx)) \
	X(cuCtxGetFlags, cuCtxGetFlags, 7000, (unsigned *flags)) \
	X(cuCtxGetApiVersion, cuCtxGetApiVersion, 3020, (cu_context ctx, unsigned *version)) \
	X(cuCtxGetId, cuCtxGetId, 12000, (cu_context ctx, unsigned long long *id)) \
	X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050, (int *least, int *greatest)) \
	X(cuCtxSynchronize, cuCtxSynchronize, 2000, (void)) \
	X(cuCtxSynchronize_v2, cuCtxSynchronize, 13000, (cu_context ctx)) \
	X(cuDeviceGetDevResource, cuDeviceGetDevResource, 12040, (cu_device device, struct cux_dev_resource *resource, int type)) \
	X(cuDevResourceGenerateDesc, cuDevResourceGenerateDesc, 12040, (cux_resource_desc *desc, struct cux_dev_resource *resources, unsigned n)) \
	X(cuGreenCtxCreate, cuGreenCtxCreate, 12040, (cu_green_ctx *green, cux_resource_desc desc, cu_device device, unsigned flags)) \
	X(cuGreenCtxDestroy, cuGreenCtxDestroy, 12040, (cu_green_ctx green)) \
	X(cuGreenCtxStreamCreate, cuGreenCtxStreamCreate, 12050, (cu_stream *stream, cu_green_ctx green, unsigned flags, int priority)) \
	X(cuCtxFromGreenCtx, cuCtxFromGreenCtx, 12040, (cu_context *ctx, cu_green_ctx green))

#define CPU_CALLS_MODULE(X, P) \
	X(cuModuleLoadData, cuModuleLoadData, 2000, (cu_module *module, const void *image)) \
	X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, (cu_module *module, const void *image, unsigned n, int *options, void **values)) \
	X(cuModuleUnload, cuModuleUnload, 2000, (cu_module module)) \
	X(cuModuleGetFunction, cuModuleGetFunction, 2000, (cu_function *f, cu_module module, const char *name)) \
	X(cuLibraryLoadData, cuLibraryLoadData, 12000, (cu_library *library, const void *image, void **jit_options, void **jit_values, unsigned n_jit, void **options, void **values, unsigned n_options)) \
	X(cuLibraryUnload, cuLibraryUnload, 12000, (cu_library library)) \
	X(cuLibraryGetKernel, cuLibraryGetKernel, 12000, (cu_kernel *kernel, cu_library library, const char *name)) \
	X(cuKernelGetFunction, cuKernelGetFunction, 12000, (cu_function *f, cu_kernel kernel)) \
	X(cuKernelGetName, cuKernelGetName, 12030, (const char **name, cu_kernel kernel)) \
	X(cuKernelGetParamInfo, cuKernelGetParamInfo, 12040, (cu_kernel kernel, size_t index, size_t *offset, size_t *bytes)) \
	X(cuFuncLoad, cuFuncLoad, 12040, (cu_function f)) \
	X(cuFuncIsLoaded, cuFuncIsLoaded, 12040, (int *state, cu_function f)) \
	X(cuFuncGetName, cuFuncGetName, 12030, (const char **name, cu_function f)) \
	X(cuFuncGetParamInfo, cuFuncGetParamInfo, 12040, (cu_function f, size_t index, size_t *offset, size_t *bytes)) \
	X(cuFuncGetAttribute, cuFuncGetAttribute, 2020, (int *value, int attribute, cu_function f)) \
	X(cuFuncSetAttribute, cuFuncSetAttribute, 9000, (cu_function f, int attribute, int value)) \
	X(cuFuncGetModule, cuFuncGetModule, 11000, (cu_module *module, cu_function f)) \
	P(cuLaunchKernel, _ptsz, cuLaunchKernel, 4000, (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes, cu_stream stream, void **params, void **extra)) \
	P(cuLaunchKernelEx, _ptsz, cuLaunchKernelEx, 11060, (const struct cux_launch_config *config, cu_function f, void **params, void **extra)) \
	P(cuLaunchHostFunc, _ptsz, cuLaunchHostFunc, 10000, (cu_stream stream, cux_host_fn fn, void *data))

#define CPU_CALLS_MEMORY(X, P) \
	X(cuMemGetInfo_v2, cuMemGetInfo, 3020, (size_t *free_bytes, size_t *total)) \
	X(cuMemAlloc, cuMemAlloc, 2000, (unsigned *ptr, unsigned bytes)) \
	X(cuMemAlloc_v2, cuMemAlloc, 3020, (cu_deviceptr *ptr, size_t bytes)) \
	X(cuMemFree, cuMemFree, 2000, (unsigned ptr)) \
	X(cuMemFree_v2, cuMemFree, 3020, (cu_deviceptr ptr)) \
	X(cuMemGetAddressRange_v2, cuMemGetAddressRange, 3020, (cu_deviceptr *base, size_t *bytes, cu_deviceptr ptr)) \
	P(cuMemAllocAsync, _ptsz, cuMemAllocAsync, 11020, (cu_deviceptr *ptr, size_t bytes, cu_stream stream)) \
	P(cuMemFreeAsync, _ptsz, cuMemFreeAsync, 11020, (cu_deviceptr ptr, cu_stream stream)) \
	X(cuMemAllocHost_v2, cuMemAllocHost, 3020, (void **ptr, size_t bytes)) \
	X(cuMemHostAlloc, cuMemHostAlloc, 2020, (void **ptr, size_t bytes, unsigned flags)) \
	X(cuMemFreeHost, cuMemFreeHost, 2000, (void *ptr)) \
	X(cuMemHostRegister, cuMemHostRegister, 4000, (void *ptr, size_t bytes, unsigned flags)) \
	X(cuMemHostRegister_v2, cuMemHostRegister, 6050, (void *ptr, size_t bytes, unsigned flags)) \
	X(cuMemHostUnregister, cuMemHostUnregister, 4000, (void *ptr)) \
	X(cuMemHostGetDevicePointer_v2, cuMemHostGetDevicePointer, 3020, (cu_deviceptr *device, void *host, unsigned flags)) \
	X(cuPointerGetAttribute, cuPointerGetAttribute, 4000, (void *value, int attribute, cu_deviceptr ptr)) \
	X(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, (cu_deviceptr ptr)) \
	X(cuMemAddressReserve, cuMemAddressReserve, 10020, (cu_deviceptr *ptr, size_t bytes, size_t alignment, cu_deviceptr hint, unsigned long long flags)) \
	X(cuMemAddressFree, cuMemAddressFree, 10020, (cu_deviceptr ptr, size_t bytes)) \
	X(cuMemCreate, cuMemCreate, 10020, (cux_mem_handle *handle, size_t bytes, const struct cux_mem_prop *prop, unsigned long long flags)) \
	X(cuMemRelease, cuMemRelease, 10020, (cux_mem_handle handle)) \
	X(cuMemMap, cuMemMap, 10020, (cu_deviceptr ptr, size_t bytes, size_t offset, cux_mem_handle handle, unsigned long long flags)) \
	X(cuMemUnmap, cuMemUnmap, 10020, (cu_deviceptr ptr, size_t bytes)) \
	X(cuMemSetAccess, cuMemSetAccess, 10020, (cu_deviceptr ptr, size_t bytes, const struct cux_mem_access *access, size_t n)) \
	X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity, 10020, (size_t *bytes, const struct cux_mem_prop *prop, int option))

#define CPU_CALLS_COPY(X, P) \
	P(cuMemcpy, _ptds, cuMemcpy, 4000, (cu_deviceptr dst, cu_deviceptr src, size_t bytes)) \
	P(cuMemcpyAsync, _ptsz, cuMemcpyAsync, 4000, (cu_deviceptr dst, cu_deviceptr src, size_t bytes, cu_stream stream)) \
	P(cuMemcpyHtoD_v2, _ptds, cuMemcpyHtoD, 3020, (cu_deviceptr dst, const void *src, size_t bytes)) \
	P(cuMemcpyDtoH_v2, _ptds, cuMemcpyDtoH, 3020, (void *dst, cu_deviceptr src, size_t bytes)) \
	P(cuMemcpyDtoD_v2, _ptds, cuMemcpyDtoD, 3020, (cu_deviceptr dst, cu_deviceptr src, size_t bytes)) \
	P(cuMemcpyHtoDAsync_v2, _ptsz, cuMemcpyHtoDAsync, 3020, (cu_deviceptr dst, const void *src, size_t bytes, cu_stream stream)) \
	P(cuMemcpyDtoHAsync_v2, _ptsz, cuMemcpyDtoHAsync, 3020, (void *dst, cu_deviceptr src, size_t bytes, cu_stream stream)) \
	P(cuMemcpyDtoDAsync_v2, _ptsz, cuMemcpyDtoDAsync, 3020, (cu_deviceptr dst, cu_deviceptr src, size_t bytes, cu_stream stream)) \
	P(cuMemsetD8_v2, _ptds, cuMemsetD8, 3020, (cu_deviceptr dst, unsigned char value, size_t n)) \
	P(cuMemsetD16_v2, _ptds, cuMemsetD16, 3020, (cu_deviceptr dst, unsigned short value, size_t n)) \
	P(cuMemsetD32_v2, _ptds, cuMemsetD32, 3020, (cu_deviceptr dst, unsigned value, size_t n)) \
	P(cuMemsetD8Async, _ptsz, cuMemsetD8Async, 3020, (cu_deviceptr dst, unsigned char value, size_t n, cu_stream stream)) \
	P(cuMemsetD16Async, _ptsz, cuMemsetD16Async, 3020, (cu_deviceptr dst, unsigned short value, size_t n, cu_stream stream)) \
	P(cuMemsetD32Async, _ptsz, cuMemsetD32Async, 3020, (cu_deviceptr dst, unsigned value, size_t n, cu_stream stream))

#define CPU_CALLS_STREAM(X, P) \
	X(cuStreamCreate, cuStreamCreate, 2000, (cu_stream *stream, unsigned flags)) \
	X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, (cu_stream *stream, unsigned flags, int priority)) \
	X(cuStreamDestroy, cuStreamDestroy, 2000, (cu_stream stream)) \
	X(cuStreamDestroy_v2, cuStreamDestroy, 4000, (cu_stream stream)) \
	P(cuStreamSynchronize, _ptsz, cuStreamSynchronize, 2000, (cu_stream stream)) \
	P(cuStreamQuery, _ptsz, cuStreamQuery, 2000, (cu_stream stream)) \
	P(cuStreamWaitEvent, _ptsz, cuStreamWaitEvent, 3020, (cu_stream stream, cu_event event, unsigned flags)) \
	P(cuStreamGetCtx, _ptsz, cuStreamGetCtx, 9020, (cu_stream stream, cu_context *ctx)) \
	P(cuStreamGetCtx_v2, _ptsz, cuStreamGetCtx, 12050, (cu_stream stream, cu_context *ctx, cu_green_ctx *green)) \
	X(cuStreamGetGreenCtx, cuStreamGetGreenCtx, 12040, (cu_stream stream, cu_green_ctx *green)) \
	P(cuStreamGetFlags, _ptsz, cuStreamGetFlags, 5050, (cu_stream stream, unsigned *flags)) \
	P(cuStreamGetPriority, _ptsz, cuStreamGetPriority, 5050, (cu_stream stream, int *priority)) \
	P(cuStreamGetId, _ptsz, cuStreamGetId, 12000, (cu_stream stream, unsigned long long *id)) \
	P(cuStreamBeginCapture, _ptsz, cuStreamBeginCapture, 10000, (cu_stream stream)) \
	P(cuStreamBeginCapture_v2, _ptsz, cuStreamBeginCapture, 10010, (cu_stream stream, int mode)) \
	P(cuStreamBeginCaptureToGraph, _ptsz, cuStreamBeginCaptureToGraph, 12030, (cu_stream stream, cu_graph graph, const cu_graph_node *deps, const struct cux_edge_data *edges, size_t n, int mode)) \
	P(cuStreamEndCapture, _ptsz, cuStreamEndCapture, 10000, (cu_stream stream, cu_graph *graph)) \
	P(cuStreamIsCapturing, _ptsz, cuStreamIsCapturing, 10000, (cu_stream stream, int *status)) \
	P(cuStreamGetCaptureInfo, _ptsz, cuStreamGetCaptureInfo, 10010, (cu_stream stream, int *status, uint64_t *id)) \
	P(cuStreamGetCaptureInfo_v2, _ptsz, cuStreamGetCaptureInfo, 11030, (cu_stream stream, int *status, uint64_t *id, cu_graph *graph, const cu_graph_node **deps, size_t *n)) \
	P(cuStreamGetCaptureInfo_v3, _ptsz, cuStreamGetCaptureInfo, 12030, (cu_stream stream, int *status, uint64_t *id, cu_graph *graph, const cu_graph_node **deps, const struct cux_edge_data **edges, size_t *n)) \
	P(cuStreamUpdateCaptureDependencies, _ptsz, cuStreamUpdateCaptureDependencies, 11030, (cu_stream stream, cu_graph_node *deps, size_t n, unsigned flags)) \
	P(cuStreamUpdateCaptureDependencies_v2, _ptsz, cuStreamUpdateCaptureDependencies, 12030, (cu_stream stream, cu_graph_node *deps, const struct cux_edge_data *edges, size_t n, unsigned flags)) \
	X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, (int *mode)) \
	X(cuEventCreate, cuEventCreate, 2000, (cu_event *event, unsigned flags)) \
	X(cuEventDestroy, cuEventDestroy, 2000, (cu_event event)) \
	X(cuEventDestroy_v2, cuEventDestroy, 4000, (cu_event event)) \
	P(cuEventRecord, _ptsz, cuEventRecord, 2000, (cu_event event, cu_stream stream)) \
	P(cuEventRecordWithFlags, _ptsz, cuEventRecordWithFlags, 11010, (cu_event event, cu_stream stream, unsigned flags)) \
	X(cuEventQuery, cuEventQuery, 2000, (cu_event event)) \
	X(cuEventSynchronize, cuEventSynchronize, 2000, (cu_event event)) \
	X(cuEventElapsedTime, cuEventElapsedTime, 2000, (float *ms, cu_event start, cu_event end)) \
	X(cuEventElapsedTime_v2, cuEventElapsedTime, 12080, (float *ms, cu_event start, cu_event end))

#define CPU_CALLS_GRAPH(X, P) \
	X(cuGraphCreate, cuGraphCreate, 10000, (cu_graph *graph, unsigned flags)) \
	X(cuGraphDestroy, cuGraphDestroy, 10000, (cu_graph graph)) \
	X(cuGraphClone, cuGraphClone, 10000, (cu_graph *clone, cu_graph graph)) \
	X(cuGraphDestroyNode, cuGraphDestroyNode, 10000, (cu_graph_node node)) \
	X(cuGraphGetNodes, cuGraphGetNodes, 10000, (cu_graph graph, cu_graph_node *nodes, size_t *n)) \
	X(cuGraphGetRootNodes, cuGraphGetRootNodes, 10000, (cu_graph graph, cu_graph_node *nodes, size_t *n)) \
	X(cuGraphGetEdges, cuGraphGetEdges, 10000, (cu_graph graph, cu_graph_node *from, cu_graph_node *to, size_t *n)) \
	X(cuGraphGetEdges_v2, cuGraphGetEdges, 12030, (cu_graph graph, cu_graph_node *from, cu_graph_node *to, struct cux_edge_data *edges, size_t *n)) \
	X(cuGraphAddDependencies, cuGraphAddDependencies, 10000, (cu_graph graph, const cu_graph_node *from, const cu_graph_node *to, size_t n)) \
	X(cuGraphAddDependencies_v2, cuGraphAddDependencies, 12030, (cu_graph graph, const cu_graph_node *from, const cu_graph_node *to, const struct cux_edge_data *edges, size_t n)) \
	X(cuGraphNodeGetType, cuGraphNodeGetType, 10000, (cu_graph_node node, int *type)) \
	X(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies, 10000, (cu_graph_node node, cu_graph_node *nodes, size_t *n)) \
	X(cuGraphNodeGetDependencies_v2, cuGraphNodeGetDependencies, 12030, (cu_graph_node node, cu_graph_node *nodes, struct cux_edge_data *edges, size_t *n)) \
	X(cuGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes, 10000, (cu_graph_node node, cu_graph_node *nodes, size_t *n)) \
	X(cuGraphNodeGetDependentNodes_v2, cuGraphNodeGetDependentNodes, 12030, (cu_graph_node node, cu_graph_node *nodes, struct cux_edge_data *edges, size_t *n)) \
	X(cuGraphNodeFindInClone, cuGraphNodeFindInClone, 10000, (cu_graph_node *node, cu_graph_node original, cu_graph clone)) \
	X(cuGraphAddKernelNode, cuGraphAddKernelNode, 10000, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, const struct cu_kernel_params_v1 *params)) \
	X(cuGraphAddKernelNode_v2, cuGraphAddKernelNode, 12000, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, const struct cu_kernel_params *params)) \
	X(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode, 10000, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, const struct cu_memcpy_params *params, cu_context ctx)) \
	X(cuGraphAddMemsetNode, cuGraphAddMemsetNode, 10000, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, const struct cu_memset_params *params, cu_context ctx)) \
	X(cuGraphAddHostNode, cuGraphAddHostNode, 10000, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, const struct cux_host_params *params)) \
	X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode, 10000, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, cu_graph child)) \
	X(cuGraphAddEmptyNode, cuGraphAddEmptyNode, 10000, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n)) \
	X(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams, 10000, (cu_graph_node node, struct cu_kernel_params_v1 *params)) \
	X(cuGraphKernelNodeGetParams_v2, cuGraphKernelNodeGetParams, 12000, (cu_graph_node node, struct cu_kernel_params *params)) \
	X(cuGraphKernelNodeSetParams, cuGraphKernelNodeSetParams, 10000, (cu_graph_node node, const struct cu_kernel_params_v1 *params)) \
	X(cuGraphKernelNodeSetParams_v2, cuGraphKernelNodeSetParams, 12000, (cu_graph_node node, const struct cu_kernel_params *params)) \
	X(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeGetParams, 10000, (cu_graph_node node, struct cu_memcpy_params *params)) \
	X(cuGraphMemcpyNodeSetParams, cuGraphMemcpyNodeSetParams, 10000, (cu_graph_node node, const struct cu_memcpy_params *params)) \
	X(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams, 10000, (cu_graph_node node, struct cu_memset_params *params)) \
	X(cuGraphMemsetNodeSetParams, cuGraphMemsetNodeSetParams, 10000, (cu_graph_node node, const struct cu_memset_params *params)) \
	X(cuGraphHostNodeGetParams, cuGraphHostNodeGetParams, 10000, (cu_graph_node node, struct cux_host_params *params)) \
	X(cuGraphHostNodeSetParams, cuGraphHostNodeSetParams, 10000, (cu_graph_node node, const struct cux_host_params *params)) \
	X(cuGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, 10000, (cu_graph_node node, cu_graph *graph)) \
	X(cuGraphInstantiate, cuGraphInstantiate, 10000, (cu_graph_exec *exec, cu_graph graph, cu_graph_node *error_node, char *log, size_t bytes)) \
	X(cuGraphInstantiate_v2, cuGraphInstantiate, 11000, (cu_graph_exec *exec, cu_graph graph, cu_graph_node *error_node, char *log, size_t bytes)) \
	X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, (cu_graph_exec *exec, cu_graph graph, unsigned long long flags)) \
	P(cuGraphInstantiateWithParams, _ptsz, cuGraphInstantiateWithParams, 12000, (cu_graph_exec *exec, cu_graph graph, struct cu_instantiate_params *params)) \
	X(cuGraphExecDestroy, cuGraphExecDestroy, 10000, (cu_graph_exec exec)) \
	X(cuGraphExecUpdate, cuGraphExecUpdate, 10020, (cu_graph_exec exec, cu_graph graph, cu_graph_node *error_node, int *result)) \
	X(cuGraphExecUpdate_v2, cuGraphExecUpdate, 12000, (cu_graph_exec exec, cu_graph graph, struct cu_update_result *result)) \
	X(cuGraphExecGetFlags, cuGraphExecGetFlags, 12000, (cu_graph_exec exec, uint64_t *flags)) \
	X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams, 10010, (cu_graph_exec exec, cu_graph_node node, const struct cu_kernel_params_v1 *params)) \
	X(cuGraphExecKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams, 12000, (cu_graph_exec exec, cu_graph_node node, const struct cu_kernel_params *params)) \
	X(cuGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, 10020, (cu_graph_exec exec, cu_graph_node node, const struct cu_memcpy_params *params, cu_context ctx)) \
	X(cuGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams, 10020, (cu_graph_exec exec, cu_graph_node node, const struct cu_memset_params *params, cu_context ctx)) \
	X(cuGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams, 10020, (cu_graph_exec exec, cu_graph_node node, const struct cux_host_params *params)) \
	X(cuGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams, 11010, (cu_graph_exec exec, cu_graph_node node, cu_graph child)) \
	X(cuGraphExecNodeSetParams, cuGraphExecNodeSetParams, 12020, (cu_graph_exec exec, cu_graph_node node, struct cux_node_params *params)) \
	X(cuGraphNodeSetEnabled, cuGraphNodeSetEnabled, 11060, (cu_graph_exec exec, cu_graph_node node, unsigned enabled)) \
	X(cuGraphNodeGetEnabled, cuGraphNodeGetEnabled, 11060, (cu_graph_exec exec, cu_graph_node node, unsigned *enabled)) \
	P(cuGraphUpload, _ptsz, cuGraphUpload, 11010, (cu_graph_exec exec, cu_stream stream)) \
	P(cuGraphLaunch, _ptsz, cuGraphLaunch, 10000, (cu_graph_exec exec, cu_stream stream))

#define CPU_CALLS_NODES(X, P) \
	X(cuGraphRemoveDependencies, cuGraphRemoveDependencies, 10000, (cu_graph graph, const cu_graph_node *from, const cu_graph_node *to, size_t n)) \
	X(cuGraphRemoveDependencies_v2, cuGraphRemoveDependencies, 12030, (cu_graph graph, const cu_graph_node *from, const cu_graph_node *to, const struct cux_edge_data *edges, size_t n)) \
	X(cuGraphAddNode, cuGraphAddNode, 12020, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, struct cux_node_params *params)) \
	X(cuGraphAddNode_v2, cuGraphAddNode, 12030, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, const struct cux_edge_data *edges, size_t n, struct cux_node_params *params)) \
	X(cuGraphNodeSetParams, cuGraphNodeSetParams, 12020, (cu_graph_node node, struct cux_node_params *params)) \
	X(cuGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute, 11000, (cu_graph_node node, int attribute, union cux_attribute_value *value)) \
	X(cuGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute, 11000, (cu_graph_node node, int attribute, const union cux_attribute_value *value)) \
	X(cuGraphKernelNodeCopyAttributes, cuGraphKernelNodeCopyAttributes, 11000, (cu_graph_node to, cu_graph_node from)) \
	X(cuGraphConditionalHandleCreate, cuGraphConditionalHandleCreate, 12030, (uint64_t *handle, cu_graph graph, cu_context ctx, unsigned value, unsigned flags)) \
	X(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, struct cux_alloc_params *params)) \
	X(cuGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams, 11040, (cu_graph_node node, struct cux_alloc_params *params)) \
	X(cuGraphAddMemFreeNode, cuGraphAddMemFreeNode, 11040, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, cu_deviceptr ptr)) \
	X(cuGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, 11040, (cu_graph_node node, cu_deviceptr *ptr)) \
	X(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040, (cu_device device)) \
	X(cuGraphAddEventRecordNode, cuGraphAddEventRecordNode, 11010, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, cu_event event)) \
	X(cuGraphEventRecordNodeGetEvent, cuGraphEventRecordNodeGetEvent, 11010, (cu_graph_node node, cu_event *event)) \
	X(cuGraphEventRecordNodeSetEvent, cuGraphEventRecordNodeSetEvent, 11010, (cu_graph_node node, cu_event event)) \
	X(cuGraphAddEventWaitNode, cuGraphAddEventWaitNode, 11010, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, cu_event event)) \
	X(cuGraphEventWaitNodeGetEvent, cuGraphEventWaitNodeGetEvent, 11010, (cu_graph_node node, cu_event *event)) \
	X(cuGraphEventWaitNodeSetEvent, cuGraphEventWaitNodeSetEvent, 11010, (cu_graph_node node, cu_event event)) \
	X(cuGraphExecEventRecordNodeSetEvent, cuGraphExecEventRecordNodeSetEvent, 11010, (cu_graph_exec exec, cu_graph_node node, cu_event event)) \
	X(cuGraphExecEventWaitNodeSetEvent, cuGraphExecEventWaitNodeSetEvent, 11010, (cu_graph_exec exec, cu_graph_node node, cu_event event)) \
	X(cuGraphAddBatchMemOpNode, cuGraphAddBatchMemOpNode, 11070, (cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, const struct cux_batch_params *params)) \
	X(cuGraphBatchMemOpNodeGetParams, cuGraphBatchMemOpNodeGetParams, 11070, (cu_graph_node node, struct cux_batch_params *params)) \
	X(cuGraphBatchMemOpNodeSetParams, cuGraphBatchMemOpNodeSetParams, 11070, (cu_graph_node node, const struct cux_batch_params *params)) \
	X(cuGraphExecBatchMemOpNodeSetParams, cuGraphExecBatchMemOpNodeSetParams, 11070, (cu_graph_exec exec, cu_graph_node node, const struct cux_batch_params *params)) \
	P(cuStreamBatchMemOp_v2, _ptsz, cuStreamBatchMemOp, 11070, (cu_stream stream, unsigned n, union cux_mem_op *op, unsigned flags)) \
	P(cuStreamWriteValue32_v2, _ptsz, cuStreamWriteValue32, 11070, (cu_stream stream, cu_deviceptr address, uint32_t value, unsigned flags)) \
	P(cuStreamWaitValue32_v2, _ptsz, cuStreamWaitValue32, 11070, (cu_stream stream, cu_deviceptr address, uint32_t value, unsigned flags)) \
	P(cuStreamWriteValue64_v2, _ptsz, cuStreamWriteValue64, 11070, (cu_stream stream, cu_deviceptr address, uint64_t value, unsigned flags)) \
	P(cuStreamWaitValue64_v2, _ptsz, cuStreamWaitValue64, 11070, (cu_stream stream, cu_deviceptr address, uint64_t value, unsigned flags))

/* What programs can ask for and there is no code for: missing.c */
#include "missing.h"

#define CPU_CALLS(X, P) \
	CPU_CALLS_CONTEXT(X, P) \
	CPU_CALLS_MODULE(X, P) \
	CPU_CALLS_MEMORY(X, P) \
	CPU_CALLS_COPY(X, P) \
	CPU_CALLS_STREAM(X, P) \
	CPU_CALLS_GRAPH(X, P) \
	CPU_CALLS_NODES(X, P) \
	CPU_CALLS_MISSING(X, P)
/* clang-format on */

#ifndef CPU_NO_DECLARATIONS
#define CPU_DECLARE(symbol, name, version, params) __attribute__((visibility("default"))) cu_result symbol params;
#define CPU_DECLARE_PAIR(symbol, suffix, name, version, params)                                                        \
	CPU_DECLARE(symbol, name, version, params) CPU_DECLARE(symbol##suffix, name, version, params)
CPU_CALLS(CPU_DECLARE, CPU_DECLARE_PAIR)
#undef CPU_DECLARE
#undef CPU_DECLARE_PAIR
#endif

#define CPU_INDEX(symbol, name, version, params)              CALL_##symbol,
#define CPU_INDEX_PAIR(symbol, suffix, name, version, params) CALL_##symbol, CALL_##symbol##suffix,
enum cpu_call { CPU_CALLS(CPU_INDEX, CPU_INDEX_PAIR) CPU_N_CALLS };
#undef CPU_INDEX
#undef CPU_INDEX_PAIR

/* For the counts: an operation was put on a legacy stream; so many bytes of a device are in use. */
void api_count_legacy_work(void);
void api_count_device_bytes(uint64_t in_use);

#endif
