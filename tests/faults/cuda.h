/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda.h: the part of the driver API that the small servers of this folder and of tests/bench call, and how they end when one fails. They
 * are linked with libcuda, as a program of the driver API is.
 */
#ifndef FAULTS_CUDA_H
#define FAULTS_CUDA_H

#include <stdio.h>
#include <stdlib.h>

#include "shim/hook/cuda_abi.h"

cu_result cuInit(unsigned flags);
cu_result cuDeviceGet(cu_device *device, int ordinal);
cu_result cuDevicePrimaryCtxRetain(cu_context *ctx, cu_device device);
cu_result cuDevicePrimaryCtxRelease_v2(cu_device device);
cu_result cuDevicePrimaryCtxReset_v2(cu_device device);
cu_result cuCtxCreate_v2(cu_context *ctx, unsigned flags, cu_device device);
cu_result cuCtxDestroy_v2(cu_context ctx);
cu_result cuCtxGetCurrent(cu_context *ctx);
cu_result cuCtxSetCurrent(cu_context ctx);
cu_result cuThreadExchangeStreamCaptureMode(int *mode);
cu_result cuStreamCreate(cu_stream *stream, unsigned flags);
cu_result cuStreamSynchronize(cu_stream stream);
cu_result cuStreamDestroy_v2(cu_stream stream);
cu_result cuStreamBeginCapture_v2(cu_stream stream, int mode);
cu_result cuStreamEndCapture(cu_stream stream, cu_graph *graph);
cu_result cuMemAlloc_v2(cu_deviceptr *ptr, size_t bytes);
cu_result cuMemFree_v2(cu_deviceptr ptr);
cu_result cuMemcpyHtoD_v2(cu_deviceptr to, const void *from, size_t bytes);
cu_result cuMemcpyDtoH_v2(void *to, cu_deviceptr from, size_t bytes);
cu_result cuMemcpyDtoDAsync_v2(cu_deviceptr to, cu_deviceptr from, size_t bytes, cu_stream stream);
cu_result cuMemsetD8Async(cu_deviceptr to, unsigned char value, size_t bytes, cu_stream stream);
cu_result cuGraphCreate(cu_graph *graph, unsigned flags);
cu_result cuGraphDestroy(cu_graph graph);
cu_result cuGraphGetNodes(cu_graph graph, cu_graph_node *nodes, size_t *n);
cu_result cuGraphAddMemsetNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
			       const struct cu_memset_params *params, cu_context ctx);
cu_result cuGraphAddChildGraphNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
				   cu_graph child);
cu_result cuGraphInstantiateWithFlags(cu_graph_exec *exec, cu_graph graph, unsigned long long flags);
cu_result cuGraphExecUpdate_v2(cu_graph_exec exec, cu_graph graph, struct cu_update_result *result);
cu_result cuGraphExecMemsetNodeSetParams(cu_graph_exec exec, cu_graph_node node, const struct cu_memset_params *params,
					 cu_context ctx);
cu_result cuGraphExecChildGraphNodeSetParams(cu_graph_exec exec, cu_graph_node node, cu_graph child);
cu_result cuGraphExecDestroy(cu_graph_exec exec);
cu_result cuGraphLaunch(cu_graph_exec exec, cu_stream stream);

#define CU(call)                                                                                                       \
	do {                                                                                                           \
		cu_result cu_rc = (call);                                                                              \
		if (cu_rc) {                                                                                           \
			fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, cu_rc);                          \
			exit(90);                                                                                      \
		}                                                                                                      \
	} while (0)

#endif
