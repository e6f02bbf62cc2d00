/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_nodes.c: graph nodes that allocate and free. The address is known when the node is made and the mapping lasts
 * as long as anything holds the node's work; whether it counts as allocated follows the launches, at the time when
 * they are made.
 */
#include "cpudriver.h"

bool graph_has_memory(cu_graph graph)
{
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (graph->node[i]->type == CU_NODE_MEM_ALLOC || graph->node[i]->type == CU_NODE_MEM_FREE)
			return true;
	return false;
}

/* ---- making and reading ---- */

cu_result memory_node_add(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps,
			  const struct cux_edge_data *edges, size_t n, struct cux_alloc_params *params)
{
	struct work *work;
	uint64_t base;
	cu_result result;

	if (!node || !params || !handle_is(KIND_GRAPH, graph))
		return CU_INVALID_VALUE;
	if (params->pool.alloc_type != 1 || params->pool.location.type != 1 ||
	    params->pool.location.id != context_current()->device)
		return cpu_lacks("memory nodes for other than pinned memory of the current device");
	result = memory_new(params->bytes, MEMORY_GRAPH, 0, &base);
	if (result)
		return result;
	work = work_new(WORK_ALLOC, context_current(), 0);
	work->alloc.ptr = base;
	work->alloc.bytes = params->bytes;
	result = graph_add(graph, deps, edges, n, CU_NODE_MEM_ALLOC, work, node);
	if (!result)
		params->ptr = base;
	return result;
}

static bool freed_in(cu_graph graph, cu_deviceptr ptr)
{
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (graph->node[i]->type == CU_NODE_MEM_FREE && graph->node[i]->work->ptr == ptr)
			return true;
	return false;
}

cu_result memory_node_free(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps,
			   const struct cux_edge_data *edges, size_t n, cu_deviceptr ptr)
{
	struct memory *memory = memory_find(ptr);
	struct work *work;

	if (!node || !handle_is(KIND_GRAPH, graph) || !memory || memory->kind != MEMORY_GRAPH || memory->base != ptr ||
	    freed_in(graph, ptr))
		return CU_INVALID_VALUE;
	work = work_new(WORK_UNUSED, context_current(), 0);
	work->ptr = ptr;
	return graph_add(graph, deps, edges, n, CU_NODE_MEM_FREE, work, node);
}

cu_result cuGraphAddMemAllocNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
				 struct cux_alloc_params *params)
{
	API(cuGraphAddMemAllocNode, NEED_CONTEXT);
	return memory_node_add(node, graph, deps, NULL, n, params);
}

cu_result cuGraphAddMemFreeNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
				cu_deviceptr ptr)
{
	API(cuGraphAddMemFreeNode, NEED_CONTEXT);
	return memory_node_free(node, graph, deps, NULL, n, ptr);
}

cu_result cuGraphMemAllocNodeGetParams(cu_graph_node node, struct cux_alloc_params *params)
{
	API(cuGraphMemAllocNodeGetParams, NEED_INIT);
	if (!params || !is_node(node, CU_NODE_MEM_ALLOC))
		return CU_INVALID_VALUE;
	*params = (struct cux_alloc_params) { .pool = { .alloc_type = 1, .location = { 1, node->work->ctx->device } },
					      .bytes = node->work->alloc.bytes,
					      .ptr = node->work->alloc.ptr };
	return CU_SUCCESS;
}

cu_result cuGraphMemFreeNodeGetParams(cu_graph_node node, cu_deviceptr *ptr)
{
	API(cuGraphMemFreeNodeGetParams, NEED_INIT);
	if (!ptr || !is_node(node, CU_NODE_MEM_FREE))
		return CU_INVALID_VALUE;
	*ptr = node->work->ptr;
	return CU_SUCCESS;
}

/* Nothing is kept back for graphs, so there is nothing to trim. */
cu_result cuDeviceGraphMemTrim(cu_device device)
{
	API(cuDeviceGraphMemTrim, NEED_INIT);
	return cpu_device_ok(device) ? CU_SUCCESS : CUX_INVALID_DEVICE;
}

/* ---- in executable graphs ---- */

static void leave(const struct plan *plan, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (plan->item[i].type == CU_NODE_MEM_ALLOC)
			plan->item[i].work->alloc.instantiated = false;
}

bool plan_claim_memory(struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		if (plan->item[i].type != CU_NODE_MEM_ALLOC)
			continue;
		if (plan->item[i].work->alloc.instantiated) {
			leave(plan, i);
			return false;
		}
		plan->item[i].work->alloc.instantiated = true;
	}
	return true;
}

void plan_leave_memory(struct plan *plan)
{
	leave(plan, plan->n);
}

/* `again`: what an earlier launch left allocated is freed first */
cu_result plan_may_allocate(const struct plan *plan, bool again)
{
	for (size_t i = 0; i < plan->n && !again; i++)
		if (plan->item[i].type == CU_NODE_MEM_ALLOC &&
		    memory_find(plan->item[i].work->alloc.ptr)->flags & MEMORY_GRAPH_ALLOCATED)
			return CU_INVALID_VALUE;
	return CU_SUCCESS;
}

void plan_allocated(const struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct work *work = plan->item[i].work;
		struct memory *memory;

		if (work->kind == WORK_ALLOC) {
			memory_find(work->alloc.ptr)->flags |= MEMORY_GRAPH_ALLOCATED;
		} else if (work->kind == WORK_UNUSED) {
			memory = memory_find(work->ptr);
			if (memory)
				memory->flags &= ~(unsigned)MEMORY_GRAPH_ALLOCATED;
		}
	}
}
