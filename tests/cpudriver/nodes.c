/* SPDX-License-Identifier: Apache-2.0
 *
 * nodes.c: the typed nodes of a graph: adding them, reading and changing their parameters.
 */
#include <string.h>

#include "cpudriver.h"

void kernel_params_v2(const struct cu_kernel_params_v1 *v1, struct cu_kernel_params *v2)
{
	*v2 = (struct cu_kernel_params) {
		.func = v1->func, .shared_bytes = v1->shared_bytes, .params = v1->params, .extra = v1->extra
	};
	memcpy(v2->grid, v1->grid, sizeof(v2->grid));
	memcpy(v2->block, v1->block, sizeof(v2->block));
}

static cu_result memcpy_work(cu_context ctx, const struct cu_memcpy_params *params, struct work **work)
{
	unsigned from = params->src_type, to = params->dst_type;

	if (from == CUX_MEMORY_ARRAY || to == CUX_MEMORY_ARRAY) {
		cpu_say("arrays are not implemented");
		return CU_NOT_SUPPORTED;
	}
	if (from < 1 || from > 4 || to < 1 || to > 4 || !params->width || !params->height || !params->depth)
		return CU_INVALID_VALUE;
	*work = work_memcpy(ctx, params);
	return CU_SUCCESS;
}

static cu_result memset_work(cu_context ctx, const struct cu_memset_params *params, struct work **work)
{
	unsigned bytes = params->element_bytes;

	if ((bytes != 1 && bytes != 2 && bytes != 4) || !params->width || !params->height || params->dst % bytes)
		return CU_INVALID_VALUE;
	*work = work_memset(ctx, params);
	return CU_SUCCESS;
}

/* params: struct cu_kernel_params, cu_memcpy_params, cu_memset_params or cux_host_params, by type */
cu_result node_work(cu_context ctx, int type, const void *params, struct work **work)
{
	const struct cux_host_params *host = params;
	cu_result result;

	if (!params)
		return CU_INVALID_VALUE;
	switch (type) {
	case CU_NODE_KERNEL:
		result = kernel_work(ctx, params, work);
		break;
	case CU_NODE_MEMCPY:
		result = memcpy_work(ctx, params, work);
		break;
	case CU_NODE_MEMSET:
		result = memset_work(ctx, params, work);
		break;
	case CU_NODE_HOST:
		if (!host->fn)
			return CU_INVALID_VALUE;
		*work = work_host(ctx, host);
		return CU_SUCCESS;
	default:
		return CU_NOT_SUPPORTED;
	}
	if (result)
		return result;
	result = work_check(*work);
	if (result)
		work_put(*work);
	return result;
}

/* Where a kernel runs is its function's affair; other nodes say it. */
static cu_context context_of(const struct cu_kernel_params *params)
{
	if (handle_is(KIND_FUNCTION, params->func))
		return params->func->ctx;
	return params->ctx ? params->ctx : context_current();
}

static cu_result add(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, int type,
		     const void *params, cu_context ctx)
{
	struct work *work;
	cu_result result;

	if (!node || !handle_is(KIND_GRAPH, graph) || !params)
		return CU_INVALID_VALUE;
	if (type == CU_NODE_KERNEL)
		ctx = context_of(params);
	if (!context_ok(ctx))
		return CUX_INVALID_CONTEXT;
	result = node_work(ctx, type, params, &work);
	return result ? result : graph_add(graph, deps, NULL, n, type, work, node);
}

cu_result cuGraphAddKernelNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
			       const struct cu_kernel_params_v1 *params)
{
	struct cu_kernel_params v2;

	API(cuGraphAddKernelNode, NEED_CONTEXT);
	if (!params)
		return CU_INVALID_VALUE;
	kernel_params_v2(params, &v2);
	return add(node, graph, deps, n, CU_NODE_KERNEL, &v2, NULL);
}

cu_result cuGraphAddKernelNode_v2(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
				  const struct cu_kernel_params *params)
{
	API(cuGraphAddKernelNode_v2, NEED_CONTEXT);
	return add(node, graph, deps, n, CU_NODE_KERNEL, params, NULL);
}

cu_result cuGraphAddMemcpyNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
			       const struct cu_memcpy_params *params, cu_context ctx)
{
	API(cuGraphAddMemcpyNode, NEED_INIT);
	return add(node, graph, deps, n, CU_NODE_MEMCPY, params, ctx);
}

cu_result cuGraphAddMemsetNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
			       const struct cu_memset_params *params, cu_context ctx)
{
	API(cuGraphAddMemsetNode, NEED_INIT);
	return add(node, graph, deps, n, CU_NODE_MEMSET, params, ctx);
}

cu_result cuGraphAddHostNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
			     const struct cux_host_params *params)
{
	API(cuGraphAddHostNode, NEED_CONTEXT);
	return add(node, graph, deps, n, CU_NODE_HOST, params, context_current());
}

cu_result cuGraphAddEmptyNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n)
{
	API(cuGraphAddEmptyNode, NEED_INIT);
	if (!node)
		return CU_INVALID_VALUE;
	return graph_add(graph, deps, NULL, n, CU_NODE_EMPTY, work_new(WORK_EMPTY, NULL, 0), node);
}

cu_result cuGraphAddChildGraphNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
				   cu_graph child)
{
	cu_result result;

	API(cuGraphAddChildGraphNode, NEED_INIT);
	if (!node || !handle_is(KIND_GRAPH, child) || child == graph)
		return CU_INVALID_VALUE;
	result = graph_add(graph, deps, NULL, n, CU_NODE_GRAPH, work_new(WORK_EMPTY, NULL, 0), node);
	if (result)
		return result;
	(*node)->child = graph_clone(child);
	(*node)->child->embedded = true;
	return CU_SUCCESS;
}

cu_result cuGraphChildGraphNodeGetGraph(cu_graph_node node, cu_graph *graph)
{
	API(cuGraphChildGraphNodeGetGraph, NEED_INIT);
	if (!graph || !handle_is(KIND_NODE, node) || node->type != CU_NODE_GRAPH)
		return CU_INVALID_VALUE;
	*graph = node->child;
	return CU_SUCCESS;
}

/* ---- reading ---- */

static bool is_node(cu_graph_node node, int type)
{
	return handle_is(KIND_NODE, node) && node->type == type;
}

/* The parameters point into the node: good until it is changed or goes, as with the real driver. */
static void read_kernel(cu_graph_node node, struct cu_kernel_params *params)
{
	const struct work *work = node->work;

	*params = (struct cu_kernel_params) { .func = work->kernel.func,
					      .kern = work->kernel.kern,
					      .ctx = work->ctx,
					      .shared_bytes = work->kernel.launch.shared_bytes,
					      .params = work->kernel.n_params ? work->kernel.params : NULL };
	memcpy(params->grid, work->kernel.launch.grid, sizeof(params->grid));
	memcpy(params->block, work->kernel.launch.block, sizeof(params->block));
}

cu_result cuGraphKernelNodeGetParams(cu_graph_node node, struct cu_kernel_params_v1 *params)
{
	struct cu_kernel_params v2;

	API(cuGraphKernelNodeGetParams, NEED_INIT);
	if (!params || !is_node(node, CU_NODE_KERNEL))
		return CU_INVALID_VALUE;
	read_kernel(node, &v2);
	memcpy(params, &v2, sizeof(*params));
	return CU_SUCCESS;
}

cu_result cuGraphKernelNodeGetParams_v2(cu_graph_node node, struct cu_kernel_params *params)
{
	API(cuGraphKernelNodeGetParams_v2, NEED_INIT);
	if (!params || !is_node(node, CU_NODE_KERNEL))
		return CU_INVALID_VALUE;
	read_kernel(node, params);
	return CU_SUCCESS;
}

cu_result cuGraphMemcpyNodeGetParams(cu_graph_node node, struct cu_memcpy_params *params)
{
	API(cuGraphMemcpyNodeGetParams, NEED_INIT);
	if (!params || !is_node(node, CU_NODE_MEMCPY))
		return CU_INVALID_VALUE;
	*params = node->work->memcpy.params;
	return CU_SUCCESS;
}

cu_result cuGraphMemsetNodeGetParams(cu_graph_node node, struct cu_memset_params *params)
{
	API(cuGraphMemsetNodeGetParams, NEED_INIT);
	if (!params || !is_node(node, CU_NODE_MEMSET))
		return CU_INVALID_VALUE;
	*params = node->work->memset;
	return CU_SUCCESS;
}

cu_result cuGraphHostNodeGetParams(cu_graph_node node, struct cux_host_params *params)
{
	API(cuGraphHostNodeGetParams, NEED_INIT);
	if (!params || !is_node(node, CU_NODE_HOST))
		return CU_INVALID_VALUE;
	*params = node->work->host;
	return CU_SUCCESS;
}

/* ---- changing ---- */

void node_set_work(cu_graph_node node, struct work *work)
{
	work_put(node->work);
	node->work = work;
}

static cu_result set(cu_graph_node node, int type, const void *params)
{
	struct work *work;
	cu_result result;

	if (!params || !is_node(node, type))
		return CU_INVALID_VALUE;
	result = node_work(type == CU_NODE_KERNEL ? context_of(params) : node->work->ctx, type, params, &work);
	if (!result)
		node_set_work(node, work);
	return result;
}

cu_result cuGraphKernelNodeSetParams(cu_graph_node node, const struct cu_kernel_params_v1 *params)
{
	struct cu_kernel_params v2;

	API(cuGraphKernelNodeSetParams, NEED_INIT);
	if (!params)
		return CU_INVALID_VALUE;
	kernel_params_v2(params, &v2);
	return set(node, CU_NODE_KERNEL, &v2);
}

cu_result cuGraphKernelNodeSetParams_v2(cu_graph_node node, const struct cu_kernel_params *params)
{
	API(cuGraphKernelNodeSetParams_v2, NEED_INIT);
	return set(node, CU_NODE_KERNEL, params);
}

cu_result cuGraphMemcpyNodeSetParams(cu_graph_node node, const struct cu_memcpy_params *params)
{
	API(cuGraphMemcpyNodeSetParams, NEED_INIT);
	return set(node, CU_NODE_MEMCPY, params);
}

cu_result cuGraphMemsetNodeSetParams(cu_graph_node node, const struct cu_memset_params *params)
{
	API(cuGraphMemsetNodeSetParams, NEED_INIT);
	return set(node, CU_NODE_MEMSET, params);
}

cu_result cuGraphHostNodeSetParams(cu_graph_node node, const struct cux_host_params *params)
{
	API(cuGraphHostNodeSetParams, NEED_INIT);
	return set(node, CU_NODE_HOST, params);
}
