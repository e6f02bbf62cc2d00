/* SPDX-License-Identifier: Apache-2.0
 *
 * conditional.c: nodes whose body graphs run by the value of a handle: IF with or without ELSE, WHILE, SWITCH. A handle
 * has its default value when a launch begins, and kernels set it.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpudriver.h"

void condition_put(struct condition *condition)
{
	if (--condition->refs)
		return;
	handle_remove(condition);
	free(condition);
}

void conditions_end(cu_graph graph)
{
	struct condition *next;

	for (struct condition *condition = graph->conditions; condition; condition = next) {
		next = condition->next;
		condition->graph = NULL;
		condition_put(condition);
	}
}

cu_result cuGraphConditionalHandleCreate(uint64_t *handle, cu_graph graph, cu_context ctx, unsigned value,
					 unsigned flags)
{
	struct condition *condition;

	API(cuGraphConditionalHandleCreate, NEED_CONTEXT);
	if (!handle || !handle_is(KIND_GRAPH, graph) || flags > CUX_COND_ASSIGN_DEFAULT)
		return CU_INVALID_VALUE;
	if (!context_ok(ctx))
		return CUX_INVALID_CONTEXT;
	condition = cpu_alloc(sizeof(*condition));
	*condition = (struct condition) {
		.refs = 1, .graph = graph, .initial = value, .flags = flags, .next = graph->conditions
	};
	graph->conditions = condition;
	handle_add(KIND_CONDITION, condition);
	*handle = (uint64_t)(uintptr_t)condition;
	return CU_SUCCESS;
}

static struct condition *condition_of(uint64_t handle)
{
	struct condition *condition = (struct condition *)(uintptr_t)handle;

	return handle_is(KIND_CONDITION, condition) ? condition : NULL;
}

void condition_set(uint64_t handle, unsigned value)
{
	struct condition *condition;

	cpu_lock();
	condition = condition_of(handle);
	if (condition)
		condition->value = value;
	else
		cpu_say("a kernel sets a conditional handle that there is not: %#llx", (unsigned long long)handle);
	cpu_unlock();
}

/* ---- the node ---- */

static bool bodies_ok(const struct cux_conditional_params *params)
{
	switch (params->type) {
	case CUX_COND_IF:
		return params->n_bodies == 1 || params->n_bodies == 2;
	case CUX_COND_WHILE:
		return params->n_bodies == 1;
	case CUX_COND_SWITCH:
		return params->n_bodies > 0;
	default:
		return false;
	}
}

static void add_bodies(cu_graph_node node, unsigned n)
{
	node->body = cpu_alloc(n * sizeof(cu_graph));
	node->n_bodies = n;
	for (unsigned i = 0; i < n; i++) {
		node->body[i] = graph_new();
		node->body[i]->embedded = true;
	}
}

cu_result conditional_node_add(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps,
			       const struct cux_edge_data *edges, size_t n, struct cux_conditional_params *params)
{
	struct condition *condition = condition_of(params->handle);
	struct work *work;
	cu_result result;

	if (!condition || condition->graph != graph || condition->has_node || !bodies_ok(params))
		return CU_INVALID_VALUE;
	work = work_new(WORK_CONDITIONAL, params->ctx ? params->ctx : context_current(), 0);
	work->conditional.condition = condition;
	work->conditional.type = params->type;
	condition->refs++;
	result = graph_add(graph, deps, edges, n, CU_NODE_CONDITIONAL, work, node);
	if (result)
		return result;
	condition->has_node = true;
	add_bodies(*node, params->n_bodies);
	params->body = (*node)->body;
	return CU_SUCCESS;
}

/* ---- executing ---- */

static void reset(const struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct work *work = plan->item[i].work;
		struct condition *condition;

		if (work->kind == WORK_PLAN)
			reset(work->plan);
		if (work->kind != WORK_CONDITIONAL)
			continue;
		condition = work->conditional.condition;
		if (condition->flags & CUX_COND_ASSIGN_DEFAULT)
			condition->value = condition->initial;
		for (unsigned body = 0; body < work->conditional.n; body++)
			reset(work->conditional.body[body]);
	}
}

void conditions_reset(const struct plan *plan)
{
	cpu_lock();
	reset(plan);
	cpu_unlock();
}

static unsigned value_now(const struct work *work)
{
	unsigned value;

	cpu_lock();
	value = work->conditional.condition->value;
	cpu_unlock();
	return value;
}

static void run_body(const struct work *work, unsigned body)
{
	if (body < work->conditional.n)
		plan_execute(work->conditional.body[body]);
}

void conditional_execute(const struct work *work)
{
	switch (work->conditional.type) {
	case CUX_COND_IF:
		run_body(work, value_now(work) ? 0 : 1);
		break;
	case CUX_COND_WHILE:
		while (value_now(work) && !atomic_load(&cpu_stopping))
			run_body(work, 0);
		break;
	default:
		run_body(work, value_now(work));
	}
}
