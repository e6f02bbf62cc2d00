/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.c: executable graphs. One holds a plan; changing it changes a copy when launches still hold the old one.
 */
#include <stdlib.h>
#include <string.h>

#include "cpudriver.h"

#define INSTANTIATE_AUTO_FREE 1

/* ---- plans ---- */

void plan_put(struct plan *plan)
{
	if (--plan->refs)
		return;
	for (size_t i = 0; i < plan->n; i++) {
		if (plan->item[i].work)
			work_put(plan->item[i].work);
		free(plan->item[i].dep);
	}
	free(plan);
}

static int by_value(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

/* The work of a conditional node, as its bodies are now; NULL: there is a cycle in one. */
static struct work *with_bodies(cu_graph_node node)
{
	const struct work *from = node->work;
	struct work *work = work_new(WORK_CONDITIONAL, from->ctx, node->n_bodies * sizeof(struct plan *));

	work->conditional = from->conditional;
	work->conditional.condition->refs++;
	work->conditional.body = (struct plan **)work->data;
	work->conditional.n = 0;
	for (unsigned i = 0; i < node->n_bodies; i++) {
		struct plan *body = plan_new(node->body[i]);

		if (!body) {
			work_put(work);
			return NULL;
		}
		work->conditional.body[work->conditional.n++] = body;
	}
	return work;
}

static bool fill_item(struct plan_item *item, cu_graph_node node, const size_t *place)
{
	struct plan *child;

	item->node = node->id;
	item->type = node->type;
	item->enabled = true;
	item->n_deps = node->n_deps;
	item->dep = cpu_alloc(node->n_deps * sizeof(*item->dep));
	for (size_t j = 0; j < node->n_deps; j++)
		item->dep[j] = place[node->dep[j].node->order];
	qsort(item->dep, item->n_deps, sizeof(*item->dep), by_value);
	child = node->child ? plan_new(node->child) : NULL;
	item->work = child ? work_plan(NULL, child) : node->n_bodies ? with_bodies(node) : work_ref(node->work);
	return item->work && (!node->child || child);
}

struct plan *plan_new(cu_graph graph)
{
	cu_graph_node *order = cpu_alloc(graph->n_nodes * sizeof(cu_graph_node));
	size_t *place = cpu_alloc(graph->n_nodes * sizeof(*place)), n;
	struct plan *plan;
	bool good;

	graph_order(graph, order, &n);
	plan = cpu_alloc(sizeof(*plan) + n * sizeof(plan->item[0]));
	plan->refs = 1;
	plan->n = n;
	for (size_t i = 0; i < n; i++)
		place[order[i]->order] = i;
	good = n == graph->n_nodes;
	for (size_t i = 0; i < n; i++)
		good &= fill_item(&plan->item[i], order[i], place);
	free(order);
	free(place);
	if (good)
		return plan;
	plan_put(plan);
	return NULL;
}

static struct plan *plan_copy(const struct plan *old)
{
	struct plan *plan = cpu_alloc(sizeof(*plan) + old->n * sizeof(plan->item[0]));
	plan->refs = 1;
	plan->n = old->n;
	for (size_t i = 0; i < old->n; i++) {
		struct plan_item *item = &plan->item[i];

		*item = old->item[i];
		work_ref(item->work);
		item->dep = cpu_alloc(item->n_deps * sizeof(*item->dep));
		memcpy(item->dep, old->item[i].dep, item->n_deps * sizeof(*item->dep));
	}
	return plan;
}

/* The plan of exec, for changing. */
static struct plan *plan_own(cu_graph_exec exec)
{
	struct plan *old = exec->plan;

	if (old->refs == 1)
		return old;
	exec->plan = plan_copy(old);
	plan_put(old);
	return exec->plan;
}

/* ---- instantiating ---- */

static cu_result instantiate(cu_graph_exec *exec, cu_graph graph, uint64_t flags)
{
	struct plan *plan;
	cu_result result;

	if (!exec || !handle_is(KIND_GRAPH, graph) || flags & ~(uint64_t)15)
		return CU_INVALID_VALUE;
	if (flags & 4)
		return cpu_lacks("graphs that are launched from the device");
	result = capture_unsafe();
	if (result)
		return result;
	plan = plan_new(graph);
	if (!plan)
		return CU_INVALID_VALUE;
	if (!plan_claim_memory(plan)) {
		plan_put(plan);
		return CU_NOT_SUPPORTED;
	}
	*exec = cpu_alloc(sizeof(**exec));
	(*exec)->plan = plan;
	(*exec)->flags = flags;
	handle_add(KIND_EXEC, *exec);
	return CU_SUCCESS;
}

static cu_result instantiate_logged(cu_graph_exec *exec, cu_graph graph, cu_graph_node *error_node, char *log,
				    size_t bytes)
{
	if (error_node)
		*error_node = NULL;
	if (log && bytes)
		*log = 0;
	return instantiate(exec, graph, 0);
}

cu_result cuGraphInstantiate(cu_graph_exec *exec, cu_graph graph, cu_graph_node *error_node, char *log, size_t bytes)
{
	API(cuGraphInstantiate, NEED_CONTEXT);
	return instantiate_logged(exec, graph, error_node, log, bytes);
}

cu_result cuGraphInstantiate_v2(cu_graph_exec *exec, cu_graph graph, cu_graph_node *error_node, char *log, size_t bytes)
{
	API(cuGraphInstantiate_v2, NEED_CONTEXT);
	return instantiate_logged(exec, graph, error_node, log, bytes);
}

cu_result cuGraphInstantiateWithFlags(cu_graph_exec *exec, cu_graph graph, unsigned long long flags)
{
	API(cuGraphInstantiateWithFlags, NEED_CONTEXT);
	return instantiate(exec, graph, flags);
}

static cu_result instantiate_with(cu_graph_exec *exec, cu_graph graph, struct cu_instantiate_params *params)
{
	cu_result result;

	if (!params)
		return CU_INVALID_VALUE;
	params->error_node = NULL;
	result = instantiate(exec, graph, params->flags);
	params->result = result ? 1 : 0;
	return result;
}

cu_result cuGraphInstantiateWithParams(cu_graph_exec *exec, cu_graph graph, struct cu_instantiate_params *params)
{
	API(cuGraphInstantiateWithParams, NEED_CONTEXT);
	return instantiate_with(exec, graph, params);
}

cu_result cuGraphInstantiateWithParams_ptsz(cu_graph_exec *exec, cu_graph graph, struct cu_instantiate_params *params)
{
	API(cuGraphInstantiateWithParams_ptsz, NEED_CONTEXT);
	return instantiate_with(exec, graph, params);
}

cu_result cuGraphExecGetFlags(cu_graph_exec exec, uint64_t *flags)
{
	API(cuGraphExecGetFlags, NEED_INIT);
	if (!flags || !handle_is(KIND_EXEC, exec))
		return CU_INVALID_VALUE;
	*flags = exec->flags;
	return CU_SUCCESS;
}

/* Launches in flight hold the plan, not this. */
cu_result cuGraphExecDestroy(cu_graph_exec exec)
{
	cu_result result;

	API(cuGraphExecDestroy, NEED_INIT);
	if (!handle_is(KIND_EXEC, exec))
		return CU_INVALID_VALUE;
	result = capture_unsafe();
	if (result)
		return result;
	handle_remove(exec);
	plan_leave_memory(exec->plan);
	plan_put(exec->plan);
	if (exec->last.stream)
		stream_put(exec->last.stream);
	free(exec);
	return CU_SUCCESS;
}

/* ---- launching ---- */

/* An operation on the stream that waits for another's. Where even that is forbidden, so is the launch itself. */
static void wait_first(cu_stream stream, const struct wait *wait)
{
	if (wait->stream && wait->stream != stream && wait->stream->completed < wait->sequence &&
	    !(stream->role == STREAM_LEGACY && capture_implicit(stream->ctx, false)))
		stream_enqueue(stream, work_new(WORK_EMPTY, stream->ctx, 0), wait, 1);
}

/* The events that nodes wait for are those recorded before the launch, in whatever place of the graph a node stands. */
static void wait_for_events(const struct plan *plan, cu_stream stream)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct work *work = plan->item[i].work;

		if (work->kind == WORK_PLAN)
			wait_for_events(work->plan, stream);
		else if (work->kind == WORK_WAIT)
			wait_first(stream, &(struct wait) { work->event->stream, work->event->sequence });
	}
}

static void record_events(const struct plan *plan, cu_stream stream, uint64_t sequence)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct work *work = plan->item[i].work;

		if (work->kind == WORK_PLAN)
			record_events(work->plan, stream, sequence);
		else if (work->kind == WORK_RECORD)
			event_mark(work->event, stream, sequence);
	}
}

static cu_result launch(cu_graph_exec exec, cu_stream handle, bool per_thread)
{
	uint64_t sequence;
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (result)
		return result;
	if (!handle_is(KIND_EXEC, exec))
		return CU_INVALID_VALUE;
	if (!stream->capture) {
		result = plan_may_allocate(exec->plan, exec->flags & INSTANTIATE_AUTO_FREE);
		if (result)
			return result;
		/* a graph runs once at a time: wait for its last launch, which may be on another stream */
		wait_first(stream, &exec->last);
		wait_for_events(exec->plan, stream);
	}
	exec->plan->refs++;
	result = submit(stream, work_plan(stream->ctx, exec->plan), &sequence);
	if (result)
		return result;
	plan_allocated(exec->plan);
	record_events(exec->plan, stream, sequence);
	stream->refs++;
	if (exec->last.stream)
		stream_put(exec->last.stream);
	exec->last = (struct wait) { stream, sequence };
	return CU_SUCCESS;
}

cu_result cuGraphLaunch(cu_graph_exec exec, cu_stream stream)
{
	API(cuGraphLaunch, NEED_CONTEXT);
	return launch(exec, stream, false);
}

cu_result cuGraphLaunch_ptsz(cu_graph_exec exec, cu_stream stream)
{
	API(cuGraphLaunch_ptsz, NEED_CONTEXT);
	return launch(exec, stream, true);
}

static cu_result upload(cu_graph_exec exec, cu_stream handle, bool per_thread)
{
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (result)
		return result;
	if (!handle_is(KIND_EXEC, exec))
		return CU_INVALID_VALUE;
	if (stream->capture) {
		capture_break(stream->capture);
		return CU_CAPTURE_UNSUPPORTED;
	}
	return submit(stream, work_new(WORK_EMPTY, stream->ctx, 0), NULL);
}

cu_result cuGraphUpload(cu_graph_exec exec, cu_stream stream)
{
	API(cuGraphUpload, NEED_CONTEXT);
	return upload(exec, stream, false);
}

cu_result cuGraphUpload_ptsz(cu_graph_exec exec, cu_stream stream)
{
	API(cuGraphUpload_ptsz, NEED_CONTEXT);
	return upload(exec, stream, true);
}

/* ---- changing one node ---- */

static bool has_item(const struct plan *plan, uint64_t node)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->item[i].node == node ||
		    (plan->item[i].work->kind == WORK_PLAN && has_item(plan->item[i].work->plan, node)))
			return true;
	return false;
}

/* In a plan that is the caller's own; what is in the plan of a child graph becomes that too. */
static struct plan_item *find_item(struct plan *plan, uint64_t node)
{
	struct plan_item *item = plan->item;
	struct work *child;

	while (item->node != node && !(item->work->kind == WORK_PLAN && has_item(item->work->plan, node)))
		item++;
	if (item->node == node)
		return item;
	child = work_plan(NULL, plan_copy(item->work->plan));
	work_put(item->work);
	item->work = child;
	return find_item(child->plan, node);
}

static struct plan_item *item_of(cu_graph_exec exec, cu_graph_node node)
{
	if (!handle_is(KIND_EXEC, exec) || !handle_is(KIND_NODE, node) || !has_item(exec->plan, node->id))
		return NULL;
	return find_item(plan_own(exec), node->id);
}

/* Only copies and memsets of one row can be exchanged for each other. */
static bool one_row(const struct work *work)
{
	if (work->kind == WORK_MEMSET)
		return work->memset.height == 1;
	return work->kind != WORK_MEMCPY || (work->memcpy.params.height == 1 && work->memcpy.params.depth == 1);
}

static cu_result set(cu_graph_exec exec, cu_graph_node node, int type, const void *params)
{
	struct plan_item *item = item_of(exec, node);
	struct work *work;
	cu_result result;

	if (!item || item->type != type || !params)
		return CU_INVALID_VALUE;
	result = node_work(item->work->ctx, type, params, &work);
	if (result)
		return result;
	if (!one_row(item->work) || !one_row(work)) {
		work_put(work);
		return CU_INVALID_VALUE;
	}
	work_put(item->work);
	item->work = work;
	return CU_SUCCESS;
}

cu_result cuGraphExecKernelNodeSetParams(cu_graph_exec exec, cu_graph_node node,
					 const struct cu_kernel_params_v1 *params)
{
	struct cu_kernel_params v2;

	API(cuGraphExecKernelNodeSetParams, NEED_INIT);
	if (!params)
		return CU_INVALID_VALUE;
	kernel_params_v2(params, &v2);
	return set(exec, node, CU_NODE_KERNEL, &v2);
}

cu_result cuGraphExecKernelNodeSetParams_v2(cu_graph_exec exec, cu_graph_node node,
					    const struct cu_kernel_params *params)
{
	API(cuGraphExecKernelNodeSetParams_v2, NEED_INIT);
	return set(exec, node, CU_NODE_KERNEL, params);
}

cu_result cuGraphExecMemcpyNodeSetParams(cu_graph_exec exec, cu_graph_node node, const struct cu_memcpy_params *params,
					 cu_context ctx)
{
	API(cuGraphExecMemcpyNodeSetParams, NEED_INIT);
	return !ctx || context_ok(ctx) ? set(exec, node, CU_NODE_MEMCPY, params) : CU_INVALID_VALUE;
}

cu_result cuGraphExecMemsetNodeSetParams(cu_graph_exec exec, cu_graph_node node, const struct cu_memset_params *params,
					 cu_context ctx)
{
	API(cuGraphExecMemsetNodeSetParams, NEED_INIT);
	return !ctx || context_ok(ctx) ? set(exec, node, CU_NODE_MEMSET, params) : CU_INVALID_VALUE;
}

cu_result cuGraphExecHostNodeSetParams(cu_graph_exec exec, cu_graph_node node, const struct cux_host_params *params)
{
	API(cuGraphExecHostNodeSetParams, NEED_INIT);
	return set(exec, node, CU_NODE_HOST, params);
}

static cu_result set_child(cu_graph_exec exec, cu_graph_node node, cu_graph child)
{
	struct plan_item *item = item_of(exec, node);
	struct plan *plan;
	size_t at;

	if (!item || item->type != CU_NODE_GRAPH || !handle_is(KIND_GRAPH, child))
		return CU_INVALID_VALUE;
	plan = plan_new(child);
	if (!plan)
		return CU_INVALID_VALUE;
	if (plan_adopt(plan, item->work->plan, &at)) {
		plan_put(plan);
		return CUX_UPDATE_FAILURE;
	}
	work_put(item->work);
	item->work = work_plan(NULL, plan);
	return CU_SUCCESS;
}

cu_result cuGraphExecChildGraphNodeSetParams(cu_graph_exec exec, cu_graph_node node, cu_graph child)
{
	API(cuGraphExecChildGraphNodeSetParams, NEED_INIT);
	return set_child(exec, node, child);
}

cu_result cuGraphExecNodeSetParams(cu_graph_exec exec, cu_graph_node node, struct cux_node_params *params)
{
	API(cuGraphExecNodeSetParams, NEED_INIT);
	if (!params)
		return CU_INVALID_VALUE;
	switch (params->type) {
	case CU_NODE_KERNEL:
		return set(exec, node, CU_NODE_KERNEL, &params->kernel);
	case CU_NODE_MEMCPY:
		return set(exec, node, CU_NODE_MEMCPY, &params->memcpy.copy);
	case CU_NODE_MEMSET:
		return set(exec, node, CU_NODE_MEMSET, &params->memset.set);
	case CU_NODE_HOST:
		return set(exec, node, CU_NODE_HOST, &params->host);
	case CU_NODE_GRAPH:
		return set_child(exec, node, params->child);
	case CU_NODE_EVENT_RECORD:
	case CU_NODE_WAIT_EVENT:
		return set(exec, node, params->type, &params->event);
	case CU_NODE_BATCH_MEM_OP:
		return set(exec, node, params->type, &params->batch);
	case CU_NODE_SEMAS_SIGNAL:
	case CU_NODE_SEMAS_WAIT:
		return cpu_lacks("external semaphore nodes");
	default:
		return CU_INVALID_VALUE;
	}
}

cu_result cuGraphExecEventRecordNodeSetEvent(cu_graph_exec exec, cu_graph_node node, cu_event event)
{
	API(cuGraphExecEventRecordNodeSetEvent, NEED_INIT);
	return set(exec, node, CU_NODE_EVENT_RECORD, &event);
}

cu_result cuGraphExecEventWaitNodeSetEvent(cu_graph_exec exec, cu_graph_node node, cu_event event)
{
	API(cuGraphExecEventWaitNodeSetEvent, NEED_INIT);
	return set(exec, node, CU_NODE_WAIT_EVENT, &event);
}

cu_result cuGraphExecBatchMemOpNodeSetParams(cu_graph_exec exec, cu_graph_node node,
					     const struct cux_batch_params *params)
{
	API(cuGraphExecBatchMemOpNodeSetParams, NEED_INIT);
	return set(exec, node, CU_NODE_BATCH_MEM_OP, params);
}

static bool can_disable(int type)
{
	return type == CU_NODE_KERNEL || type == CU_NODE_MEMCPY || type == CU_NODE_MEMSET;
}

cu_result cuGraphNodeSetEnabled(cu_graph_exec exec, cu_graph_node node, unsigned enabled)
{
	struct plan_item *item;

	API(cuGraphNodeSetEnabled, NEED_INIT);
	item = item_of(exec, node);
	if (!item || !can_disable(item->type))
		return CU_INVALID_VALUE;
	item->enabled = enabled != 0;
	return CU_SUCCESS;
}

cu_result cuGraphNodeGetEnabled(cu_graph_exec exec, cu_graph_node node, unsigned *enabled)
{
	struct plan_item *item;

	API(cuGraphNodeGetEnabled, NEED_INIT);
	item = item_of(exec, node);
	if (!enabled || !item || !can_disable(item->type))
		return CU_INVALID_VALUE;
	*enabled = item->enabled;
	return CU_SUCCESS;
}
