/* SPDX-License-Identifier: Apache-2.0
 *
 * nodes.c: graph nodes beyond the plain ones: events, memory, batches of memory operations, conditions.
 */
#include <stdio.h>
#include <string.h>

#include "conform.h"

extern const char conditional_ptx[];

static void see_type(cu_graph_node node)
{
	int type = -1;

	NEED(cuGraphNodeGetType, node, &type);
	see("type", type);
}

void group_event_nodes(void)
{
	cu_event a = NULL, b = NULL, got = NULL;
	cu_graph graph = NULL, clone = NULL;
	cu_graph_node record = NULL, wait = NULL, n = NULL;
	cu_graph_exec exec = NULL;
	struct cux_node_params any = { .type = CU_NODE_EVENT_RECORD };

	device_open();
	NEED(cuEventCreate, &a, 0);
	NEED(cuEventCreate, &b, 0);
	NEED(cuGraphCreate, &graph, 0);
	T("", cuGraphAddEventRecordNode, &record, graph, NULL, 0, a);
	see_type(record);
	T("", cuGraphAddEventWaitNode, &wait, graph, NULL, 0, b);
	see_type(wait);
	T("NULL", cuGraphAddEventRecordNode, &n, graph, NULL, 0, NULL);
	T("NULL", cuGraphAddEventWaitNode, &n, graph, NULL, 0, NULL);
	T("", cuGraphEventRecordNodeGetEvent, record, &got);
	see("it", got == a);
	T("", cuGraphEventWaitNodeGetEvent, wait, &got);
	see("it", got == b);
	T("of a wait", cuGraphEventRecordNodeGetEvent, wait, &got);
	T("", cuGraphEventRecordNodeSetEvent, record, b);
	T("", cuGraphEventWaitNodeSetEvent, wait, a);
	T("with events", cuGraphClone, &clone, graph);
	T("with events", cuGraphInstantiateWithFlags, &exec, graph, 0);
	T("", cuGraphExecEventRecordNodeSetEvent, exec, record, a);
	T("of a wait", cuGraphExecEventRecordNodeSetEvent, exec, wait, a);
	T("NULL", cuGraphExecEventRecordNodeSetEvent, exec, record, NULL);
	T("", cuGraphExecEventWaitNodeSetEvent, exec, wait, b);
	T("NULL", cuGraphExecEventWaitNodeSetEvent, exec, wait, NULL);
	T("with events", cuGraphLaunch, exec, stream);
	NEED(cuStreamSynchronize, stream);
	T("recorded by a graph", cuEventQuery, a);
	T("an event node", cuGraphNodeSetEnabled, exec, record, 0);
	any.event = b;
	T("event record", cuGraphExecNodeSetParams, exec, record, &any);
	T("event record", cuGraphNodeSetParams, record, &any);
	T("event record", cuGraphAddNode, &n, graph, NULL, 0, &any);
	any.type = CU_NODE_WAIT_EVENT;
	T("event wait", cuGraphAddNode_v2, &n, graph, NULL, NULL, 0, &any);
	see_type(n);
}

static struct cux_alloc_params allocation(size_t bytes)
{
	return (struct cux_alloc_params) { .pool = { .alloc_type = 1, .location = { 1, 0 } }, .bytes = bytes };
}

void group_memory_nodes(void)
{
	struct cux_alloc_params a, got;
	struct cu_memset_params fill = { .value = 5, .element_bytes = 1, .width = 64, .height = 1 };
	struct cux_node_params any = { .type = CU_NODE_MEM_ALLOC };
	cu_graph graph = NULL, clone = NULL, parent = NULL;
	cu_graph_node alloc = NULL, set = NULL, release = NULL, n = NULL;
	cu_graph_exec exec = NULL;
	cu_deviceptr ptr = 0;
	struct cu_update_result info = { 99, NULL, NULL };

	device_open();
	NEED(cuGraphCreate, &graph, 0);
	a = allocation(64);
	T("", cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &a);
	see("address", a.ptr != 0);
	see_type(alloc);
	a = allocation(0);
	T("0 bytes", cuGraphAddMemAllocNode, &n, graph, NULL, 0, &a);
	T("no params", cuGraphAddMemAllocNode, &n, graph, NULL, 0, NULL);
	T("", cuGraphMemAllocNodeGetParams, alloc, &got);
	see("bytes", (long long)got.bytes);
	fill.dst = got.ptr;
	T("of a memory node", cuGraphAddMemsetNode, &set, graph, &alloc, 1, &fill, ctx);
	T("", cuGraphAddMemFreeNode, &release, graph, &set, 1, got.ptr);
	see_type(release);
	T("again", cuGraphAddMemFreeNode, &n, graph, &release, 1, got.ptr);
	T("not of a graph", cuGraphAddMemFreeNode, &n, graph, NULL, 0, memory);
	T("NULL", cuGraphAddMemFreeNode, &n, graph, NULL, 0, 0);
	T("", cuGraphMemFreeNodeGetParams, release, &ptr);
	see("it", ptr == got.ptr);
	T("with memory", cuGraphClone, &clone, graph);
	NEED(cuGraphCreate, &parent, 0);
	T("with memory", cuGraphAddChildGraphNode, &n, parent, NULL, 0, graph);
	T("a memory node", cuGraphDestroyNode, set);
	T("with memory", cuGraphInstantiateWithFlags, &exec, graph, 0);
	T("with memory", cuGraphLaunch, exec, stream);
	T("with memory, again", cuGraphLaunch, exec, stream);
	T("with memory", cuStreamSynchronize, stream);
	T("with memory", cuGraphExecUpdate_v2, exec, graph, &info);
	see("info", info.result);
	T("a memory node", cuGraphNodeSetEnabled, exec, alloc, 0);
	T("with memory", cuGraphExecDestroy, exec);
	T("", cuDeviceGraphMemTrim, 0);
	any.alloc = allocation(64);
	T("alloc", cuGraphAddNode, &n, parent, NULL, 0, &any);
	see("address", any.alloc.ptr != 0);
	ptr = any.alloc.ptr;
	any = (struct cux_node_params) { .type = CU_NODE_MEM_FREE, .free = ptr };
	T("free", cuGraphAddNode, &set, parent, &n, 1, &any);
	T("of a node", cuGraphDestroy, parent);
}

void group_batch_nodes(void)
{
	union cux_mem_op op[2];
	struct cux_batch_params batch = { .n = 2, .op = op }, got;
	cu_graph graph = NULL, clone = NULL;
	cu_graph_node node = NULL, n = NULL;
	cu_graph_exec exec = NULL;

	device_open();
	memset(op, 0, sizeof(op));
	op[0].value.type = CUX_OP_WRITE_32;
	op[0].value.address = memory;
	op[0].value.value = 17;
	op[1].value.type = CUX_OP_WAIT_32;
	op[1].value.address = memory;
	op[1].value.value = 17;
	op[1].value.flags = 0;
	T("", cuStreamBatchMemOp_v2, stream, 2, op, 0);
	see("stored", peek(memory));
	T("0", cuStreamBatchMemOp_v2, stream, 0, op, 0);
	T("no list", cuStreamBatchMemOp_v2, stream, 2, NULL, 0);
	T("flags 1", cuStreamBatchMemOp_v2, stream, 2, op, 1);
	T("", cuStreamWriteValue32_v2, stream, memory, 18, 0);
	see("stored", peek(memory));
	T("", cuStreamWriteValue64_v2, stream, memory + 8, 19, 0);
	see("stored", peek(memory + 8));
	T("not aligned", cuStreamWriteValue32_v2, stream, memory + 1, 18, 0);
	T("NULL", cuStreamWriteValue32_v2, stream, 0, 18, 0);
	T("", cuStreamWaitValue32_v2, stream, memory, 18, 1);
	T("", cuStreamWaitValue64_v2, stream, memory + 8, 18, 0);
	T("flags 99", cuStreamWaitValue32_v2, stream, memory, 18, 99);
	NEED(cuStreamSynchronize, stream);
	batch.ctx = ctx;
	NEED(cuGraphCreate, &graph, 0);
	T("", cuGraphAddBatchMemOpNode, &node, graph, NULL, 0, &batch);
	see_type(node);
	batch.n = 0;
	T("0", cuGraphAddBatchMemOpNode, &n, graph, NULL, 0, &batch);
	batch.n = 2;
	T("no params", cuGraphAddBatchMemOpNode, &n, graph, NULL, 0, NULL);
	T("", cuGraphBatchMemOpNodeGetParams, node, &got);
	see("n", got.n);
	see("value", (long long)(got.op[0].value.value & 0xffffffff));
	op[0].value.value = op[1].value.value = 27;
	T("", cuGraphBatchMemOpNodeSetParams, node, &batch);
	T("with memory operations", cuGraphClone, &clone, graph);
	T("with memory operations", cuGraphInstantiateWithFlags, &exec, graph, 0);
	T("with memory operations", cuGraphLaunch, exec, stream);
	see("stored", peek(memory));
	op[0].value.value = op[1].value.value = 28;
	T("", cuGraphExecBatchMemOpNodeSetParams, exec, node, &batch);
	NEED(cuGraphLaunch, exec, stream);
	see("stored", peek(memory));
	T("no params", cuGraphExecBatchMemOpNodeSetParams, exec, node, NULL);
	T("a batch node", cuGraphNodeSetEnabled, exec, node, 0);
	T("after all", cuCtxSynchronize, );
}

/* ---- conditions ---- */

static uint32_t one = 1;
static void *add_params[2] = { &memory, &one };

static void add_one(cu_graph graph, const cu_graph_node *deps, size_t n, cu_graph_node *node)
{
	struct cu_kernel_params p = { .func = add, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .params = add_params };

	NEED(cuGraphAddKernelNode_v2, node, graph, deps, n, &p);
}

/* A graph that consists of one conditional node, whose body adds 1: how much is added in two launches? */
static void conditional(const char *what, int type, unsigned bodies, unsigned value, unsigned flags)
{
	struct cux_node_params c = { .type = CU_NODE_CONDITIONAL };
	cu_graph graph = NULL;
	cu_graph_node node = NULL, n = NULL;
	cu_graph_exec exec = NULL;
	uint64_t handle = 0;

	NEED(cuGraphCreate, &graph, 0);
	if (T(what, cuGraphConditionalHandleCreate, &handle, graph, ctx, value, flags))
		return;
	c.conditional = (struct cux_conditional_params) { handle, type, bodies, NULL, ctx };
	if (T(what, cuGraphAddNode, &node, graph, NULL, 0, &c))
		return;
	see("bodies", c.conditional.body != NULL);
	see_type(node);
	for (unsigned i = 0; i < bodies; i++)
		for (unsigned times = 0; times <= i; times++)
			add_one(c.conditional.body[i], NULL, 0, &n);
	wipe();
	if (T(what, cuGraphInstantiateWithFlags, &exec, graph, 0))
		return;
	T(what, cuGraphLaunch, exec, stream);
	NEED(cuStreamSynchronize, stream);
	see("added", peek(memory));
	T(what, cuGraphExecDestroy, exec);
	T(what, cuGraphDestroy, graph);
}

/* The body counts down in memory + 8 and sets the handle: it runs as often as that says. */
static void loop(cu_function count_down)
{
	struct cux_node_params c = { .type = CU_NODE_CONDITIONAL };
	struct cu_kernel_params p = { .func = count_down, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
	cu_deviceptr counter = memory + 8;
	uint64_t handle = 0;
	void *params[] = { &handle, &counter };
	cu_graph graph = NULL;
	cu_graph_node node = NULL, n = NULL;
	cu_graph_exec exec = NULL;

	p.params = params;
	NEED(cuGraphCreate, &graph, 0);
	NEED(cuGraphConditionalHandleCreate, &handle, graph, ctx, 1, CUX_COND_ASSIGN_DEFAULT);
	c.conditional = (struct cux_conditional_params) { handle, CUX_COND_WHILE, 1, NULL, ctx };
	NEED(cuGraphAddNode, &node, graph, NULL, 0, &c);
	add_one(c.conditional.body[0], NULL, 0, &n);
	if (T("that sets a handle", cuGraphAddKernelNode_v2, &n, c.conditional.body[0], &n, 1, &p))
		return; /* the loop would have no end */
	wipe();
	NEED(cuMemsetD32_v2, counter, 5, 1);
	NEED(cuCtxSynchronize, );
	T("a loop", cuGraphInstantiateWithFlags, &exec, graph, 0);
	T("a loop", cuGraphLaunch, exec, stream);
	T("a loop", cuStreamSynchronize, stream);
	see("added", peek(memory));
}

static void refusals(void)
{
	struct cux_node_params c = { .type = CU_NODE_CONDITIONAL };
	cu_graph graph = NULL, other = NULL, clone = NULL;
	cu_graph_node node = NULL, n = NULL;
	cu_graph_exec exec = NULL;
	uint64_t handle = 0;
	size_t count = 0;
	struct cu_update_result info = { 99, NULL, NULL };

	NEED(cuGraphCreate, &graph, 0);
	NEED(cuGraphCreate, &other, 0);
	T("no place", cuGraphConditionalHandleCreate, NULL, graph, ctx, 0, 0);
	T("no graph", cuGraphConditionalHandleCreate, &handle, NULL, ctx, 0, 0);
	T("no context", cuGraphConditionalHandleCreate, &handle, graph, NULL, 0, 0);
	T("flags 2", cuGraphConditionalHandleCreate, &handle, graph, ctx, 0, 2);
	NEED(cuGraphConditionalHandleCreate, &handle, graph, ctx, 1, CUX_COND_ASSIGN_DEFAULT);
	c.conditional = (struct cux_conditional_params) { handle, 9, 1, NULL, ctx };
	T("type 9", cuGraphAddNode, &node, graph, NULL, 0, &c);
	c.conditional = (struct cux_conditional_params) { handle, CUX_COND_IF, 0, NULL, ctx };
	T("no body", cuGraphAddNode, &node, graph, NULL, 0, &c);
	c.conditional = (struct cux_conditional_params) { handle, CUX_COND_WHILE, 2, NULL, ctx };
	T("a loop with two bodies", cuGraphAddNode, &node, graph, NULL, 0, &c);
	c.conditional = (struct cux_conditional_params) { handle, CUX_COND_IF, 1, NULL, ctx };
	T("a handle of another graph", cuGraphAddNode, &node, other, NULL, 0, &c);
	T("without edges", cuGraphAddNode_v2, &node, graph, NULL, NULL, 0, &c);
	c.conditional.body = NULL;
	T("a handle twice", cuGraphAddNode, &n, graph, NULL, 0, &c);
	T("with a condition", cuGraphClone, &clone, graph);
	T("with a condition", cuGraphAddChildGraphNode, &n, other, NULL, 0, graph);
	T("with an empty body", cuGraphInstantiateWithFlags, &exec, graph, 0);
	T("with a condition", cuGraphExecUpdate_v2, exec, graph, &info);
	see("info", info.result);
	T("a conditional node", cuGraphNodeSetEnabled, exec, node, 0);
	T("with a condition", cuGraphGetNodes, graph, NULL, &count);
	see("n", (long long)count);
	T("a conditional node", cuGraphDestroyNode, node);
}

void group_conditional_nodes(void)
{
	cu_module module = NULL;
	cu_function count_down = NULL;

	device_open();
	conditional("IF 1", CUX_COND_IF, 1, 1, CUX_COND_ASSIGN_DEFAULT);
	conditional("IF 0", CUX_COND_IF, 1, 0, CUX_COND_ASSIGN_DEFAULT);
	conditional("IF 0 with ELSE", CUX_COND_IF, 2, 0, CUX_COND_ASSIGN_DEFAULT);
	conditional("IF 1 with ELSE", CUX_COND_IF, 2, 1, CUX_COND_ASSIGN_DEFAULT);
	conditional("WHILE 0", CUX_COND_WHILE, 1, 0, CUX_COND_ASSIGN_DEFAULT);
	conditional("SWITCH 1 of 3", CUX_COND_SWITCH, 3, 1, CUX_COND_ASSIGN_DEFAULT);
	conditional("SWITCH 7 of 3", CUX_COND_SWITCH, 3, 7, CUX_COND_ASSIGN_DEFAULT);
	refusals();
	if (!T("that sets a handle", cuModuleLoadData, &module, conditional_ptx) &&
	    !T("that sets a handle", cuModuleGetFunction, &count_down, module, "conform_count_down"))
		loop(count_down);
	T("after all", cuCtxSynchronize, );
}

void group_other_nodes(void)
{
	cu_graph graph = NULL;
	cu_graph_node node = NULL, empty = NULL, kernel = NULL, second = NULL;
	cu_graph_exec exec = NULL;
	struct cux_node_params any;
	union cux_attribute_value value = { .number = -3 };

	device_open();
	NEED(cuGraphCreate, &graph, 0);
	add_one(graph, NULL, 0, &kernel);
	add_one(graph, &kernel, 1, &second);
	NEED(cuGraphInstantiateWithFlags, &exec, graph, 0);
	T("no params", cuGraphAddExternalSemaphoresSignalNode, &node, graph, NULL, 0, NULL);
	T("no params", cuGraphAddExternalSemaphoresWaitNode, &node, graph, NULL, 0, NULL);
	T("no params", cuGraphExecExternalSemaphoresSignalNodeSetParams, exec, kernel, NULL);
	T("no params", cuGraphExecExternalSemaphoresWaitNodeSetParams, exec, kernel, NULL);
	T("no params", cuGraphAddNode, &node, graph, NULL, 0, NULL);
	any = (struct cux_node_params) { .type = CU_NODE_EMPTY };
	T("empty", cuGraphAddNode, &empty, graph, &second, 1, &any);
	see_type(empty);
	any = (struct cux_node_params) { .type = 99 };
	T("type 99", cuGraphAddNode, &node, graph, NULL, 0, &any);
	any = (struct cux_node_params) { .type = CU_NODE_KERNEL };
	any.kernel = (struct cu_kernel_params) {
		.func = add, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .params = add_params
	};
	T("kernel", cuGraphAddNode_v2, &node, graph, &second, &(struct cux_edge_data) { 0 }, 1, &any);
	see_type(node);
	any.reserved2 = 1;
	T("reserved not 0", cuGraphAddNode_v2, &node, graph, NULL, NULL, 0, &any);
	T("priority", cuGraphKernelNodeSetAttribute, kernel, CUX_ATTR_PRIORITY, &value);
	value.number = 99;
	T("priority", cuGraphKernelNodeGetAttribute, kernel, CUX_ATTR_PRIORITY, &value);
	see("value", value.number);
	T("no such attribute", cuGraphKernelNodeGetAttribute, kernel, 99, &value);
	T("of an empty node", cuGraphKernelNodeGetAttribute, empty, CUX_ATTR_PRIORITY, &value);
	T("", cuGraphKernelNodeCopyAttributes, second, kernel);
	value.number = 99;
	T("copied", cuGraphKernelNodeGetAttribute, second, CUX_ATTR_PRIORITY, &value);
	see("value", value.number);
}
