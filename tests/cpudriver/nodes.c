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

	if (from == CUX_MEMORY_ARRAY || to == CUX_MEMORY_ARRAY)
		return cpu_lacks("arrays");
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

/* Unlike a launch, a node does not take a kernel in the place of a function: it has a member of its own. */
static cu_result node_kernel_work(cu_context ctx, const struct cu_kernel_params *params, struct work **work)
{
	if (params->func && !handle_is(KIND_FUNCTION, params->func))
		return CUX_INVALID_HANDLE;
	return kernel_work(ctx, params, work);
}

/* params: struct cu_kernel_params, cu_memcpy_params, cu_memset_params, cux_host_params, cu_event or cux_batch_params,
 * by type */
cu_result node_work(cu_context ctx, int type, const void *params, struct work **work)
{
	const struct cux_host_params *host = params;
	cu_result result;

	if (!params)
		return CU_INVALID_VALUE;
	switch (type) {
	case CU_NODE_KERNEL:
		result = node_kernel_work(ctx, params, work);
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
	case CU_NODE_EVENT_RECORD:
	case CU_NODE_WAIT_EVENT:
		if (!handle_is(KIND_EVENT, *(const cu_event *)params))
			return CU_INVALID_VALUE;
		*work = work_event(type == CU_NODE_WAIT_EVENT ? WORK_WAIT : WORK_RECORD, ctx,
				   *(const cu_event *)params);
		return CU_SUCCESS;
	case CU_NODE_BATCH_MEM_OP:
		return batch_work(ctx, params, work);
	case CU_NODE_EMPTY:
		*work = work_new(WORK_EMPTY, NULL, 0);
		return CU_SUCCESS;
	case CU_NODE_SEMAS_SIGNAL:
	case CU_NODE_SEMAS_WAIT:
		return cpu_lacks("external semaphore nodes");
	default:
		return CU_INVALID_VALUE;
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

cu_result node_add(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, const struct cux_edge_data *edges,
		   size_t n, int type, const void *params, cu_context ctx)
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
	return result ? result : graph_add(graph, deps, edges, n, type, work, node);
}

static cu_result add(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n, int type,
		     const void *params, cu_context ctx)
{
	return node_add(node, graph, deps, NULL, n, type, params, ctx);
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
	return add(node, graph, deps, n, CU_NODE_MEMCPY, params, ctx ? ctx : context_current());
}

cu_result cuGraphAddMemsetNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
			       const struct cu_memset_params *params, cu_context ctx)
{
	API(cuGraphAddMemsetNode, NEED_INIT);
	return add(node, graph, deps, n, CU_NODE_MEMSET, params, ctx ? ctx : context_current());
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

static cu_result add_child(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps,
			   const struct cux_edge_data *edges, size_t n, cu_graph child)
{
	cu_result result;

	if (!node || !handle_is(KIND_GRAPH, child) || child == graph)
		return CU_INVALID_VALUE;
	if (!graph_can_clone(child))
		return CU_NOT_SUPPORTED;
	result = graph_add(graph, deps, edges, n, CU_NODE_GRAPH, work_new(WORK_EMPTY, NULL, 0), node);
	if (result)
		return result;
	(*node)->child = graph_clone(child);
	(*node)->child->embedded = true;
	return CU_SUCCESS;
}

cu_result cuGraphAddChildGraphNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
				   cu_graph child)
{
	API(cuGraphAddChildGraphNode, NEED_INIT);
	return add_child(node, graph, deps, NULL, n, child);
}

/* Where the parameters of a type lie. */
static const void *params_in(const struct cux_node_params *params)
{
	return params->type == CU_NODE_MEMCPY ? (const void *)&params->memcpy.copy : &params->reserved1;
}

static cu_context context_in(const struct cux_node_params *params)
{
	cu_context ctx = params->type == CU_NODE_MEMCPY         ? params->memcpy.ctx
			 : params->type == CU_NODE_MEMSET       ? params->memset.ctx
			 : params->type == CU_NODE_BATCH_MEM_OP ? params->batch.ctx
								: NULL;

	return ctx ? ctx : context_current();
}

static bool reserved_is_zero(const struct cux_node_params *params)
{
	return !params->reserved0[0] && !params->reserved0[1] && !params->reserved0[2] && !params->reserved2;
}

static cu_result add_any(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps,
			 const struct cux_edge_data *edges, size_t n, struct cux_node_params *params)
{
	if (!node || !params || !handle_is(KIND_GRAPH, graph) || !reserved_is_zero(params))
		return CU_INVALID_VALUE;
	switch (params->type) {
	case CU_NODE_GRAPH:
		return add_child(node, graph, deps, edges, n, params->child);
	case CU_NODE_MEM_ALLOC:
		return memory_node_add(node, graph, deps, edges, n, &params->alloc);
	case CU_NODE_MEM_FREE:
		return memory_node_free(node, graph, deps, edges, n, params->free);
	case CU_NODE_CONDITIONAL:
		return conditional_node_add(node, graph, deps, edges, n, &params->conditional);
	default:
		return node_add(node, graph, deps, edges, n, params->type, params_in(params), context_in(params));
	}
}

cu_result cuGraphAddNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
			 struct cux_node_params *params)
{
	API(cuGraphAddNode, NEED_CONTEXT);
	return add_any(node, graph, deps, NULL, n, params);
}

cu_result cuGraphAddNode_v2(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps,
			    const struct cux_edge_data *edges, size_t n, struct cux_node_params *params)
{
	API(cuGraphAddNode_v2, NEED_CONTEXT);
	return add_any(node, graph, deps, edges, n, params);
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

bool is_node(cu_graph_node node, int type)
{
	return handle_is(KIND_NODE, node) && node->type == type;
}

/* The parameters point into the node: good until it is changed or goes, as with the real driver. */
static void read_kernel(cu_graph_node node, struct cu_kernel_params *params)
{
	const struct work *work = node->work;

	*params = (struct cu_kernel_params) {
		.func = work->kernel.func ? work->kernel.func : function_in(work->ctx, work->kernel.kern),
		.kern = work->kernel.kern,
		.ctx = work->ctx,
		.shared_bytes = work->kernel.launch.shared_bytes,
		.params = work->kernel.n_params && !work->kernel.by_extra ? work->kernel.params : NULL,
		.extra = work->kernel.by_extra ? node->work->kernel.extra : NULL
	};
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

cu_result node_set(cu_graph_node node, int type, const void *params)
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

cu_result cuGraphNodeSetParams(cu_graph_node node, struct cux_node_params *params)
{
	API(cuGraphNodeSetParams, NEED_INIT);
	if (!params || !reserved_is_zero(params))
		return CU_INVALID_VALUE;
	switch (params->type) {
	case CU_NODE_GRAPH:
	case CU_NODE_EMPTY:
	case CU_NODE_MEM_ALLOC:
	case CU_NODE_MEM_FREE:
	case CU_NODE_CONDITIONAL:
		return CU_INVALID_VALUE;
	default:
		return node_set(node, params->type, params_in(params));
	}
}

cu_result cuGraphKernelNodeSetParams(cu_graph_node node, const struct cu_kernel_params_v1 *params)
{
	struct cu_kernel_params v2;

	API(cuGraphKernelNodeSetParams, NEED_INIT);
	if (!params)
		return CU_INVALID_VALUE;
	kernel_params_v2(params, &v2);
	return node_set(node, CU_NODE_KERNEL, &v2);
}

cu_result cuGraphKernelNodeSetParams_v2(cu_graph_node node, const struct cu_kernel_params *params)
{
	API(cuGraphKernelNodeSetParams_v2, NEED_INIT);
	return node_set(node, CU_NODE_KERNEL, params);
}

cu_result cuGraphMemcpyNodeSetParams(cu_graph_node node, const struct cu_memcpy_params *params)
{
	API(cuGraphMemcpyNodeSetParams, NEED_INIT);
	return node_set(node, CU_NODE_MEMCPY, params);
}

cu_result cuGraphMemsetNodeSetParams(cu_graph_node node, const struct cu_memset_params *params)
{
	API(cuGraphMemsetNodeSetParams, NEED_INIT);
	return node_set(node, CU_NODE_MEMSET, params);
}

cu_result cuGraphHostNodeSetParams(cu_graph_node node, const struct cux_host_params *params)
{
	API(cuGraphHostNodeSetParams, NEED_INIT);
	return node_set(node, CU_NODE_HOST, params);
}

/* ---- attributes of kernel nodes: kept and told, since they only steer where and when a kernel runs ---- */

static bool attribute_ok(int attribute)
{
	switch (attribute) {
	case CUX_ATTR_PROGRAMMATIC_EVENT:
	case CUX_ATTR_COMPLETION_EVENT:
	case CUX_ATTR_DEVICE_UPDATABLE:
		return !cpu_lacks("launch attributes that name an event or make a node updatable from the device");
	default:
		return attribute > CUX_ATTR_IGNORE && attribute <= CUX_ATTR_CARVEOUT;
	}
}

cu_result cuGraphKernelNodeGetAttribute(cu_graph_node node, int attribute, union cux_attribute_value *value)
{
	API(cuGraphKernelNodeGetAttribute, NEED_INIT);
	if (!value || !is_node(node, CU_NODE_KERNEL) || !attribute_ok(attribute))
		return CU_INVALID_VALUE;
	*value = node->attribute[attribute];
	return CU_SUCCESS;
}

cu_result cuGraphKernelNodeSetAttribute(cu_graph_node node, int attribute, const union cux_attribute_value *value)
{
	API(cuGraphKernelNodeSetAttribute, NEED_INIT);
	if (!value || !is_node(node, CU_NODE_KERNEL) || !attribute_ok(attribute))
		return CU_INVALID_VALUE;
	node->attribute[attribute] = *value;
	return CU_SUCCESS;
}

cu_result cuGraphKernelNodeCopyAttributes(cu_graph_node to, cu_graph_node from)
{
	API(cuGraphKernelNodeCopyAttributes, NEED_INIT);
	if (!is_node(to, CU_NODE_KERNEL) || !is_node(from, CU_NODE_KERNEL))
		return CU_INVALID_VALUE;
	memcpy(to->attribute, from->attribute, sizeof(to->attribute));
	return CU_SUCCESS;
}
