/* SPDX-License-Identifier: Apache-2.0
 *
 * test_abi.c: compares tests/cpudriver/abi.h with the toolkit's cuda.h, where there is one: that it compiles is the
 * test. It also asks the built library for every symbol of its table.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if __has_include(<cuda.h>)
#define CU_STREAM_NON_BLOCKING      toolkit_stream_non_blocking /* the one name that both have */
#define __CUDA_API_VERSION_INTERNAL                             /* no name is a macro for another */
#include <cuda.h>
#undef CU_STREAM_NON_BLOCKING
#define TOOLKIT 1
#endif

#define CPU_NO_DECLARATIONS
#include "tests/cpudriver/api.h"

#ifdef TOOLKIT
#define SAME(a, b)         _Static_assert((int)(a) == (int)(b), #a " is not " #b)
#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours " has another size")
#define FIELD(ours, f, theirs, tf)                                                                                     \
	_Static_assert(offsetof(ours, f) == offsetof(theirs, tf), #ours "." #f " lies elsewhere")

SAME(CUX_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(CUX_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(CUX_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(CUX_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(CUX_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUX_INVALID_PTX, CUDA_ERROR_INVALID_PTX);
SAME(CUX_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
SAME(CUX_ILLEGAL_STATE, CUDA_ERROR_ILLEGAL_STATE);
SAME(CUX_LOSSY_QUERY, CUDA_ERROR_LOSSY_QUERY);
SAME(CUX_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(CUX_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CUX_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(CUX_HOST_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(CUX_HOST_NOT_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
SAME(CUX_NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED);
SAME(CUX_CAPTURE_MERGE, CUDA_ERROR_STREAM_CAPTURE_MERGE);
SAME(CUX_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SAME(CUX_CAPTURE_UNJOINED, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
SAME(CUX_CAPTURE_ISOLATION, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
SAME(CUX_CAPTURED_EVENT, CUDA_ERROR_CAPTURED_EVENT);
SAME(CUX_CAPTURE_WRONG_THREAD, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SAME(CUX_UPDATE_FAILURE, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
SAME(CUX_UPDATE_TOPOLOGY_CHANGED, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
SAME(CUX_UPDATE_TYPE_CHANGED, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
SAME(CUX_UPDATE_NOT_SUPPORTED, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
SAME(CUX_UPDATE_UNSUPPORTED_FUNCTION, CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE);
SAME(CUX_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(CUX_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(CUX_MEMORY_ARRAY, CU_MEMORYTYPE_ARRAY);
SAME(CUX_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED);
SAME(CUX_PROC_LEGACY, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
SAME(CUX_PROC_PER_THREAD, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
SAME(CUX_PROC_FOUND, CU_GET_PROC_ADDRESS_SUCCESS);
SAME(CUX_PROC_UNKNOWN, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
SAME(CUX_PROC_TOO_NEW, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
SAME(CUX_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(CUX_EVENT_EXTERNAL, CU_EVENT_RECORD_EXTERNAL);
SAME(CUX_CAPTURE_DEPENDENCIES_ADD, CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
SAME(CUX_CAPTURE_DEPENDENCIES_SET, CU_STREAM_SET_CAPTURE_DEPENDENCIES);

SIZE(struct cux_edge_data, CUgraphEdgeData);
FIELD(struct cux_edge_data, type, CUgraphEdgeData, type);
SIZE(struct cux_launch_config, CUlaunchConfig);
FIELD(struct cux_launch_config, stream, CUlaunchConfig, hStream);
FIELD(struct cux_launch_config, n_attributes, CUlaunchConfig, numAttrs);
SIZE(struct cux_host_params, CUDA_HOST_NODE_PARAMS);
SIZE(struct cux_memcpy_node_params, CUDA_MEMCPY_NODE_PARAMS);
FIELD(struct cux_memcpy_node_params, copy, CUDA_MEMCPY_NODE_PARAMS, copyParams);
SIZE(struct cux_memset_params_v2, CUDA_MEMSET_NODE_PARAMS_v2);
SIZE(struct cux_node_params, CUgraphNodeParams);
FIELD(struct cux_node_params, kernel, CUgraphNodeParams, kernel);
SIZE(struct cux_ctx_create_params, CUctxCreateParams);
SIZE(struct cux_mem_prop, CUmemAllocationProp);
FIELD(struct cux_mem_prop, location, CUmemAllocationProp, location);
SIZE(struct cux_mem_access, CUmemAccessDesc);
SIZE(struct cux_pool_props, CUmemPoolProps);
SIZE(struct cux_alloc_params, CUDA_MEM_ALLOC_NODE_PARAMS);
FIELD(struct cux_alloc_params, access, CUDA_MEM_ALLOC_NODE_PARAMS, accessDescs);
FIELD(struct cux_alloc_params, bytes, CUDA_MEM_ALLOC_NODE_PARAMS, bytesize);
FIELD(struct cux_alloc_params, ptr, CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
SIZE(union cux_mem_op, CUstreamBatchMemOpParams);
FIELD(union cux_mem_op, value.address, CUstreamBatchMemOpParams, writeValue.address);
FIELD(union cux_mem_op, value.value, CUstreamBatchMemOpParams, waitValue.value64);
FIELD(union cux_mem_op, value.flags, CUstreamBatchMemOpParams, waitValue.flags);
SAME(CUX_OP_WAIT_32, CU_STREAM_MEM_OP_WAIT_VALUE_32);
SAME(CUX_OP_WRITE_32, CU_STREAM_MEM_OP_WRITE_VALUE_32);
SAME(CUX_OP_WAIT_64, CU_STREAM_MEM_OP_WAIT_VALUE_64);
SAME(CUX_OP_WRITE_64, CU_STREAM_MEM_OP_WRITE_VALUE_64);
SAME(CUX_OP_BARRIER, CU_STREAM_MEM_OP_BARRIER);
SIZE(struct cux_batch_params, CUDA_BATCH_MEM_OP_NODE_PARAMS);
FIELD(struct cux_batch_params, op, CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray);
FIELD(struct cux_batch_params, flags, CUDA_BATCH_MEM_OP_NODE_PARAMS, flags);
SIZE(struct cux_conditional_params, CUDA_CONDITIONAL_NODE_PARAMS);
FIELD(struct cux_conditional_params, n_bodies, CUDA_CONDITIONAL_NODE_PARAMS, size);
FIELD(struct cux_conditional_params, body, CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out);
FIELD(struct cux_conditional_params, ctx, CUDA_CONDITIONAL_NODE_PARAMS, ctx);
SAME(CUX_COND_IF, CU_GRAPH_COND_TYPE_IF);
SAME(CUX_COND_WHILE, CU_GRAPH_COND_TYPE_WHILE);
SAME(CUX_COND_SWITCH, CU_GRAPH_COND_TYPE_SWITCH);
SAME(CUX_COND_ASSIGN_DEFAULT, CU_GRAPH_COND_ASSIGN_DEFAULT);
FIELD(struct cux_node_params, alloc, CUgraphNodeParams, alloc);
FIELD(struct cux_node_params, event, CUgraphNodeParams, eventWait.event);
FIELD(struct cux_node_params, event, CUgraphNodeParams, eventRecord.event);
FIELD(struct cux_node_params, free, CUgraphNodeParams, free.dptr);
FIELD(struct cux_node_params, batch, CUgraphNodeParams, memOp);
FIELD(struct cux_node_params, conditional, CUgraphNodeParams, conditional);
SIZE(struct cux_launch_attribute, CUlaunchAttribute);
FIELD(struct cux_launch_attribute, value, CUlaunchAttribute, value);
FIELD(union cux_attribute_value, cluster, CUlaunchAttributeValue, clusterDim);
SAME(CUX_ATTR_PROGRAMMATIC, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(CUX_ATTR_CLUSTER, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(CUX_ATTR_COMPLETION_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
SAME(CUX_ATTR_CARVEOUT, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
SIZE(struct cux_dev_resource, CUdevResource);
FIELD(struct cux_dev_resource, sm, CUdevResource, sm);
#endif

static const char *const symbols[] = {
#define SYMBOL(symbol, name, version, params)              #symbol,
#define SYMBOL_PAIR(symbol, suffix, name, version, params) #symbol, (#symbol #suffix),
	CPU_CALLS(SYMBOL, SYMBOL_PAIR)
};

static void test_exports(void **state)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	(void)state;
	assert_non_null(driver);
	for (int i = 0; i < CPU_N_CALLS; i++)
		if (!dlsym(driver, symbols[i]))
			fail_msg("%s is not exported", symbols[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_exports) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
