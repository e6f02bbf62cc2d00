/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: the life of an executable graph: instantiated, updated, its nodes set, destroyed. All is told with the
 * result, after the call; only a destruction is told before, because the handle is free for reuse once it returns.
 */
#include "hook.h"

/* `exec` is where the driver wrote the handle; it is read only if it did. */
static void tell_instantiated(cu_graph_exec *exec, cu_graph graph, cu_result result)
{
	SHIM_TELL(instantiated, result == CU_SUCCESS && exec ? *exec : NULL, graph, result);
}

cu_result shim_wrap_instantiate(cu_result (*real)(cu_graph_exec *, cu_graph, cu_graph_node *, char *, size_t),
				cu_graph_exec *exec, cu_graph graph, cu_graph_node *node, char *log, size_t bytes)
{
	cu_result result = real(exec, graph, node, log, bytes);

	tell_instantiated(exec, graph, result);
	return result;
}

cu_result shim_wrap_instantiate_flags(cu_result (*real)(cu_graph_exec *, cu_graph, unsigned long long),
				      cu_graph_exec *exec, cu_graph graph, unsigned long long flags)
{
	cu_result result = real(exec, graph, flags);

	tell_instantiated(exec, graph, result);
	return result;
}

cu_result shim_wrap_instantiate_params(cu_result (*real)(cu_graph_exec *, cu_graph, struct cu_instantiate_params *),
				       cu_graph_exec *exec, cu_graph graph, struct cu_instantiate_params *params)
{
	cu_result result = real(exec, graph, params);

	tell_instantiated(exec, graph, result);
	return result;
}

cu_result shim_wrap_exec_destroy(cu_result (*real)(cu_graph_exec), cu_graph_exec exec)
{
	SHIM_TELL(destroying, exec);
	return real(exec);
}

cu_result shim_wrap_exec_update(cu_result (*real)(cu_graph_exec, cu_graph, cu_graph_node *, int *), cu_graph_exec exec,
				cu_graph graph, cu_graph_node *node, int *info)
{
	cu_result result = real(exec, graph, node, info);

	SHIM_TELL(updated, exec, graph, result);
	return result;
}

cu_result shim_wrap_exec_update_v2(cu_result (*real)(cu_graph_exec, cu_graph, struct cu_update_result *),
				   cu_graph_exec exec, cu_graph graph, struct cu_update_result *info)
{
	cu_result result = real(exec, graph, info);

	SHIM_TELL(updated, exec, graph, result);
	return result;
}

cu_result shim_wrap_set_kernel_v1(cu_result (*real)(cu_graph_exec, cu_graph_node, const struct cu_kernel_params_v1 *),
				  cu_graph_exec exec, cu_graph_node node, const struct cu_kernel_params_v1 *params)
{
	cu_result result = real(exec, node, params);

	SHIM_TELL(node_set, exec, node, SHIM_NODE_KERNEL_V1, params, result);
	return result;
}

cu_result shim_wrap_set_kernel_v2(cu_result (*real)(cu_graph_exec, cu_graph_node, const struct cu_kernel_params *),
				  cu_graph_exec exec, cu_graph_node node, const struct cu_kernel_params *params)
{
	cu_result result = real(exec, node, params);

	SHIM_TELL(node_set, exec, node, SHIM_NODE_KERNEL_V2, params, result);
	return result;
}

cu_result
shim_wrap_set_memcpy(cu_result (*real)(cu_graph_exec, cu_graph_node, const struct cu_memcpy_params *, cu_context),
		     cu_graph_exec exec, cu_graph_node node, const struct cu_memcpy_params *params, cu_context ctx)
{
	cu_result result = real(exec, node, params, ctx);

	SHIM_TELL(node_set, exec, node, SHIM_NODE_MEMCPY, params, result);
	return result;
}

cu_result
shim_wrap_set_memset(cu_result (*real)(cu_graph_exec, cu_graph_node, const struct cu_memset_params *, cu_context),
		     cu_graph_exec exec, cu_graph_node node, const struct cu_memset_params *params, cu_context ctx)
{
	cu_result result = real(exec, node, params, ctx);

	SHIM_TELL(node_set, exec, node, SHIM_NODE_MEMSET, params, result);
	return result;
}

cu_result shim_wrap_set_child(cu_result (*real)(cu_graph_exec, cu_graph_node, cu_graph), cu_graph_exec exec,
			      cu_graph_node node, cu_graph child)
{
	cu_result result = real(exec, node, child);

	SHIM_TELL(node_set, exec, node, SHIM_NODE_CHILD, child, result);
	return result;
}

cu_result shim_wrap_set_other(cu_result (*real)(cu_graph_exec, cu_graph_node, const void *), cu_graph_exec exec,
			      cu_graph_node node, const void *params)
{
	cu_result result = real(exec, node, params);

	SHIM_TELL(node_set, exec, node, SHIM_NODE_OTHER, NULL, result);
	return result;
}

cu_result shim_wrap_set_event(cu_result (*real)(cu_graph_exec, cu_graph_node, cu_event), cu_graph_exec exec,
			      cu_graph_node node, cu_event event)
{
	cu_result result = real(exec, node, event);

	SHIM_TELL(node_set, exec, node, SHIM_NODE_OTHER, NULL, result);
	return result;
}

static enum shim_node_kind generic_kind(const struct cu_node_params *params, const void **of_kind)
{
	*of_kind = NULL;
	switch (params ? params->type : -1) {
	case CU_NODE_KERNEL:
		*of_kind = &params->kernel;
		return SHIM_NODE_KERNEL_V2;
	case CU_NODE_MEMCPY:
		*of_kind = &params->copy.params;
		return SHIM_NODE_MEMCPY;
	case CU_NODE_MEMSET:
		*of_kind = &params->memset;
		return SHIM_NODE_MEMSET;
	case CU_NODE_GRAPH:
		*of_kind = params->graph;
		return SHIM_NODE_CHILD;
	default:
		return SHIM_NODE_OTHER;
	}
}

cu_result shim_wrap_set_node(cu_result (*real)(cu_graph_exec, cu_graph_node, struct cu_node_params *),
			     cu_graph_exec exec, cu_graph_node node, struct cu_node_params *params)
{
	cu_result result = real(exec, node, params);
	const void *of_kind;
	enum shim_node_kind kind = generic_kind(result == CU_SUCCESS ? params : NULL, &of_kind);

	SHIM_TELL(node_set, exec, node, kind, of_kind, result);
	return result;
}
