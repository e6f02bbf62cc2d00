/* SPDX-License-Identifier: Apache-2.0
 *
 * update.c: updating an executable graph as a whole, by a graph of the same shape.
 *
 * Which node stands for which is found from the ends: sinks in the order in which they were made, then what each depends
 * on. The nodes that later calls name stay those of the graph that was instantiated.
 */
#include <stdlib.h>

#include "cpudriver.h"

static size_t find_sinks(const struct plan *plan, size_t *sink)
{
	bool *inner = cpu_alloc(plan->n * sizeof(*inner));
	size_t n = 0;

	for (size_t i = 0; i < plan->n; i++)
		for (size_t j = 0; j < plan->item[i].n_deps; j++)
			inner[plan->item[i].dep[j]] = true;
	for (size_t i = 0; i < plan->n; i++)
		if (!inner[i])
			sink[n++] = i;
	free(inner);
	return n;
}

static enum cux_update_code same_condition(const struct work *a, const struct work *b)
{
	size_t at;

	if (a->conditional.condition != b->conditional.condition || a->conditional.type != b->conditional.type ||
	    a->conditional.n != b->conditional.n)
		return CUX_UPDATE_PARAMETERS_CHANGED;
	for (unsigned i = 0; i < a->conditional.n; i++) {
		enum cux_update_code code = plan_adopt(b->conditional.body[i], a->conditional.body[i], &at);

		if (code)
			return code;
	}
	return CUX_UPDATE_SUCCESS;
}

static enum cux_update_code same_item(const struct plan_item *a, const struct plan_item *b)
{
	size_t at;

	if (a->type != b->type)
		return CUX_UPDATE_TYPE_CHANGED;
	if (a->n_deps != b->n_deps)
		return CUX_UPDATE_TOPOLOGY_CHANGED;
	if (a->type == CU_NODE_MEM_ALLOC)
		return a->work->alloc.ptr == b->work->alloc.ptr ? CUX_UPDATE_SUCCESS : CUX_UPDATE_NOT_SUPPORTED;
	if (a->type == CU_NODE_MEM_FREE)
		return a->work->ptr == b->work->ptr ? CUX_UPDATE_SUCCESS : CUX_UPDATE_NOT_SUPPORTED;
	if (a->type == CU_NODE_KERNEL && a->work->ctx != b->work->ctx)
		return CUX_UPDATE_UNSUPPORTED_FUNCTION;
	if (a->work->kind == WORK_PLAN)
		return plan_adopt(b->work->plan, a->work->plan, &at);
	if (a->work->kind == WORK_CONDITIONAL)
		return same_condition(a->work, b->work);
	return CUX_UPDATE_SUCCESS;
}

#define NOBODY SIZE_MAX

/* Who stands for whom, both ways. */
struct pairs {
	size_t *new_of, *old_of;
};

static bool pair(struct pairs *pairs, size_t old, size_t new)
{
	if (pairs->new_of[old] == NOBODY && pairs->old_of[new] == NOBODY) {
		pairs->new_of[old] = new;
		pairs->old_of[new] = old;
	}
	return pairs->new_of[old] == new;
}

/* Item `i` of the old plan has its counterpart; what it depends on gets one. */
static enum cux_update_code adopt_item(struct plan *plan, const struct plan *old, size_t i, struct pairs *pairs)
{
	const struct plan_item *from = &old->item[i];
	struct plan_item *to = &plan->item[pairs->new_of[i]];
	enum cux_update_code code = same_item(from, to);

	for (size_t j = 0; !code && j < from->n_deps; j++)
		if (!pair(pairs, from->dep[j], to->dep[j]))
			code = CUX_UPDATE_TOPOLOGY_CHANGED;
	if (code)
		return code;
	to->node = from->node;
	to->enabled = from->enabled;
	return CUX_UPDATE_SUCCESS;
}

static enum cux_update_code adopt(struct plan *plan, const struct plan *old, size_t *at, struct pairs *pairs,
				  size_t *sink)
{
	size_t n = find_sinks(old, sink), n_new = find_sinks(plan, sink + old->n);

	if (n != n_new) {
		*at = n_new > n ? sink[old->n + n] : plan->n;
		return CUX_UPDATE_TOPOLOGY_CHANGED;
	}
	for (size_t i = 0; i < plan->n; i++)
		pairs->new_of[i] = pairs->old_of[i] = NOBODY;
	for (size_t i = 0; i < n; i++)
		pair(pairs, sink[i], sink[old->n + i]);
	/* a plan is in topological order: from its end, everything that depends on an item comes before it */
	for (size_t i = old->n; i-- > 0;) {
		enum cux_update_code code = adopt_item(plan, old, i, pairs);

		if (code) {
			*at = pairs->new_of[i];
			return code;
		}
	}
	return CUX_UPDATE_SUCCESS;
}

enum cux_update_code plan_adopt(struct plan *plan, const struct plan *old, size_t *at)
{
	enum cux_update_code code;
	struct pairs pairs;
	size_t *room;

	*at = plan->n;
	if (plan->n != old->n)
		return CUX_UPDATE_TOPOLOGY_CHANGED;
	room = cpu_alloc(4 * plan->n * sizeof(*room));
	pairs = (struct pairs) { room, room + plan->n };
	code = adopt(plan, old, at, &pairs, room + 2 * plan->n);
	free(room);
	return code;
}

/* ---- the calls ---- */

static cu_graph_node node_with(cu_graph graph, uint64_t id)
{
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (graph->node[i]->id == id)
			return graph->node[i];
	return NULL;
}

static cu_result update(cu_graph_exec exec, cu_graph graph, struct cu_update_result *out)
{
	struct plan *plan;
	size_t at;

	*out = (struct cu_update_result) { 0 };
	if (!handle_is(KIND_EXEC, exec) || !handle_is(KIND_GRAPH, graph))
		return CU_INVALID_VALUE;
	plan = plan_new(graph);
	if (!plan) {
		out->result = CUX_UPDATE_ERROR;
		return CUX_UPDATE_FAILURE;
	}
	out->result = (int)plan_adopt(plan, exec->plan, &at);
	if (out->result) {
		if (at < plan->n)
			out->error_node = node_with(graph, plan->item[at].node);
		plan_put(plan);
		return CUX_UPDATE_FAILURE;
	}
	plan_put(exec->plan);
	exec->plan = plan;
	return CU_SUCCESS;
}

/* The first form calls another shape not supported, and names no node. */
cu_result cuGraphExecUpdate(cu_graph_exec exec, cu_graph graph, cu_graph_node *error_node, int *code)
{
	struct cu_update_result out;
	cu_result result;

	API(cuGraphExecUpdate, NEED_CONTEXT);
	if (!error_node || !code)
		return CU_INVALID_VALUE;
	result = update(exec, graph, &out);
	if (out.result == CUX_UPDATE_TOPOLOGY_CHANGED)
		out = (struct cu_update_result) { .result = CUX_UPDATE_NOT_SUPPORTED };
	*error_node = out.error_node;
	*code = out.result;
	return result;
}

cu_result cuGraphExecUpdate_v2(cu_graph_exec exec, cu_graph graph, struct cu_update_result *result)
{
	struct cu_update_result out;

	API(cuGraphExecUpdate_v2, NEED_CONTEXT);
	return update(exec, graph, result ? result : &out);
}
