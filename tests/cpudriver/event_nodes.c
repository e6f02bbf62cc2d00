/* SPDX-License-Identifier: Apache-2.0
 *
 * event_nodes.c: graph nodes that record an event or wait for one. What they do is done when the graph is launched
 * (exec.c): the event is then recorded as that launch, and the launch waits for what the event was recorded as before.
 */
#include "cpudriver.h"

cu_result cuGraphAddEventRecordNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
				    cu_event event)
{
	API(cuGraphAddEventRecordNode, NEED_CONTEXT);
	return node_add(node, graph, deps, NULL, n, CU_NODE_EVENT_RECORD, &event, context_current());
}

cu_result cuGraphAddEventWaitNode(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, size_t n,
				  cu_event event)
{
	API(cuGraphAddEventWaitNode, NEED_CONTEXT);
	return node_add(node, graph, deps, NULL, n, CU_NODE_WAIT_EVENT, &event, context_current());
}

static cu_result get_event(cu_graph_node node, int type, cu_event *event)
{
	if (!event || !is_node(node, type))
		return CU_INVALID_VALUE;
	*event = node->work->event;
	return CU_SUCCESS;
}

cu_result cuGraphEventRecordNodeGetEvent(cu_graph_node node, cu_event *event)
{
	API(cuGraphEventRecordNodeGetEvent, NEED_INIT);
	return get_event(node, CU_NODE_EVENT_RECORD, event);
}

cu_result cuGraphEventWaitNodeGetEvent(cu_graph_node node, cu_event *event)
{
	API(cuGraphEventWaitNodeGetEvent, NEED_INIT);
	return get_event(node, CU_NODE_WAIT_EVENT, event);
}

cu_result cuGraphEventRecordNodeSetEvent(cu_graph_node node, cu_event event)
{
	API(cuGraphEventRecordNodeSetEvent, NEED_INIT);
	return node_set(node, CU_NODE_EVENT_RECORD, &event);
}

cu_result cuGraphEventWaitNodeSetEvent(cu_graph_node node, cu_event event)
{
	API(cuGraphEventWaitNodeSetEvent, NEED_INIT);
	return node_set(node, CU_NODE_WAIT_EVENT, &event);
}
