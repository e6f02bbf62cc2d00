/* SPDX-License-Identifier: Apache-2.0
 *
 * test_graph.c: graphs: what a capture or the node calls build, what replays do, and how both are changed.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"

static cu_stream stream;

static void expect_list(cu_deviceptr list, const uint32_t *values, uint32_t n)
{
	uint32_t got[64];

	device_read(got, list, sizeof(got));
	assert_int_equal(got[0], n);
	assert_memory_equal(&got[1], values, n * sizeof(*values));
}

static cu_graph capture_appends(cu_deviceptr list, const uint32_t *values, size_t n)
{
	cu_graph graph;

	OK(cuStreamBeginCapture_v2(stream, CU_MODE_THREAD_LOCAL));
	for (size_t i = 0; i < n; i++)
		launch_append(stream, list, values[i]);
	OK(cuStreamEndCapture(stream, &graph));
	return graph;
}

static cu_graph_node append_node(cu_graph to, cu_deviceptr list, uint32_t value, const cu_graph_node *before)
{
	void *params[] = { &list, &value };
	struct cu_kernel_params p = { .func = append, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .params = params };
	cu_graph_node node;

	OK(cuGraphAddKernelNode_v2(&node, to, before, before != NULL, &p));
	return node;
}

static size_t nodes_of(cu_graph graph, cu_graph_node *nodes, size_t room)
{
	size_t n = room;

	OK(cuGraphGetNodes(graph, nodes, &n));
	return n;
}

static void step(cu_stream on, cu_deviceptr y, cu_deviceptr x, uint32_t n)
{
	float a = 0.37f;
	void *params[] = { &y, &x, &a, &n };

	OK(cuMemsetD32Async(x + 4, 0x3f800000, 2, on));
	OK(cuMemcpyAsync(x + 12, y, 16, on));
	OK(cuLaunchKernel(axpy, (n + 31) / 32, 1, 1, 32, 1, 1, 0, on, params, NULL));
}

/* The same calls, eager and replayed, give the same bytes. */
static void test_replay_equals_eager(void **state)
{
	enum { N = 100, BYTES = N * 4 };
	float start[N], eager[N], replayed[N];
	cu_deviceptr y[2], x[2];
	cu_graph graph;
	cu_graph_exec exec;

	(void)state;
	for (int i = 0; i < N; i++)
		start[i] = (float)i * 0.1f;
	for (int i = 0; i < 2; i++) {
		y[i] = device_new(BYTES);
		x[i] = device_new(BYTES);
		OK(cuMemcpyHtoD_v2(y[i], start, BYTES));
		OK(cuMemcpyHtoD_v2(x[i], start, BYTES));
	}
	for (int i = 0; i < 3; i++)
		step(stream, y[0], x[0], N);
	OK(cuStreamBeginCapture_v2(stream, CU_MODE_GLOBAL));
	step(stream, y[1], x[1], N);
	OK(cuStreamEndCapture(stream, &graph));
	device_read(replayed, y[1], BYTES);
	assert_memory_equal(replayed, start, BYTES); /* recording runs nothing */
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch(exec, stream));
	OK(cuGraphExecDestroy(exec)); /* launches in flight go on */
	device_read(eager, y[0], BYTES);
	device_read(replayed, y[1], BYTES);
	assert_memory_equal(eager, replayed, BYTES);
	assert_memory_not_equal(eager, start, BYTES);
}

/* Of the kernel `record`: parameters lie at 0, 8 and 24 of a buffer. */
static void parameters_of(const struct cu_kernel_params *params, bool by_extra, const unsigned char **at)
{
	static const size_t offset[] = { 0, 8, 24 };

	assert_true(by_extra ? params->extra && !params->params : params->params && !params->extra);
	if (by_extra) {
		assert_ptr_equal(params->extra[0], CU_EXTRA_BUFFER);
		assert_ptr_equal(params->extra[2], CU_EXTRA_SIZE);
		assert_int_equal(*(size_t *)params->extra[3], 32);
		assert_ptr_equal(params->extra[4], CU_EXTRA_END);
	}
	for (int i = 0; i < 3; i++)
		at[i] = by_extra ? (unsigned char *)params->extra[1] + offset[i] : params->params[i];
}

/* Bound parameters can be read back: values, structs by value, and what was launched with `extra`. */
static void test_kernel_params(void **state)
{
	struct cu_kernel_params params;
	struct cu_kernel_params_v1 old;
	struct {
		uint64_t a;
		uint32_t b;
		uint16_t c;
	} by_value = { 0x1122334455667788, 0x99aabbcc, 0xddee };
	unsigned char first = 0x5a, buffer[32] = { 0 };
	cu_deviceptr out = device_new(64);
	void *direct[] = { &first, &by_value, &out };
	size_t bytes = sizeof(buffer), offset, size;
	void *extra[] = { CU_EXTRA_BUFFER, buffer, CU_EXTRA_SIZE, &bytes, CU_EXTRA_END };
	uint64_t got[6];
	cu_graph graph;
	cu_graph_exec exec;
	cu_graph_node nodes[2];

	(void)state;
	OK(cuFuncGetParamInfo(record, 0, &offset, &size));
	assert_true(offset == 0 && size == 1);
	OK(cuFuncGetParamInfo(record, 1, &offset, &size));
	assert_true(offset == 8 && size == 14);
	OK(cuFuncGetParamInfo(record, 2, &offset, &size));
	assert_true(offset == 24 && size == 8);
	assert_int_equal(cuFuncGetParamInfo(record, 3, &offset, &size), CU_INVALID_VALUE);

	buffer[0] = first;
	memcpy(buffer + 8, &by_value, 14);
	memcpy(buffer + 24, &out, 8);
	OK(cuStreamBeginCapture_v2(stream, CU_MODE_GLOBAL));
	OK(cuLaunchKernel(record, 1, 2, 3, 4, 5, 6, 64, stream, direct, NULL));
	OK(cuLaunchKernel(record, 1, 7, 1, 1, 1, 1, 0, stream, NULL, extra));
	OK(cuStreamEndCapture(stream, &graph));
	memset(&by_value, 0, sizeof(by_value)); /* the nodes have copies */
	memset(buffer, 0, sizeof(buffer));
	assert_int_equal(nodes_of(graph, nodes, 2), 2);
	for (int i = 0; i < 2; i++) {
		const unsigned char *at[3];
		uint64_t address;

		OK(cuGraphKernelNodeGetParams_v2(nodes[i], &params));
		OK(cuGraphKernelNodeGetParams(nodes[i], &old));
		assert_ptr_equal(params.func, record);
		assert_null(params.kern);
		assert_ptr_equal(old.params, params.params);
		assert_ptr_equal(old.extra, params.extra);
		assert_int_equal(params.grid[1], i ? 7 : 2);
		/* told in the form in which they were given */
		parameters_of(&params, i == 1, at);
		assert_int_equal(*at[0], 0x5a);
		assert_int_equal(*((const uint16_t *)(const void *)at[1] + 6), 0xddee);
		memcpy(&address, at[2], sizeof(address));
		assert_true(address == out);
	}
	OK(cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
	OK(cuGraphLaunch(exec, stream));
	device_read(got, out, sizeof(got));
	assert_true(got[0] == 0x5a && got[1] == 0x1122334455667788 && got[2] == 0x99aabbcc && got[3] == 0xddee);
	assert_true(got[4] == 7 && got[5] == 0);
}

/* A library's kernel stands in `kern`, and as a function of its context in `func`. */
static void test_library_kernels(void **state)
{
	cu_deviceptr list = device_new(256);
	uint32_t value = 5;
	struct cu_kernel_params params = { .grid = { 1, 1, 1 },
					   .block = { 1, 1, 1 },
					   .params = (void *[]) { &list, &value } };
	struct cu_kernel_params back;
	cu_library library;
	cu_kernel kernel;
	cu_function f;
	cu_graph graph;
	cu_graph_node node;
	const char *name;
	int loaded;

	(void)state;
	OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "append"));
	OK(cuKernelGetName(&name, kernel));
	assert_string_equal(name, "append");
	OK(cuKernelGetFunction(&f, kernel));
	OK(cuFuncIsLoaded(&loaded, f));
	assert_int_equal(loaded, 0);
	OK(cuFuncLoad(f));
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params.params, NULL));
	OK(cuLaunchKernel((cu_function)kernel, 1, 1, 1, 1, 1, 1, 0, stream, params.params, NULL));
	expect_list(list, (uint32_t[]) { 5, 5 }, 2);
	OK(cuGraphCreate(&graph, 0));
	params.kern = kernel;
	OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
	OK(cuGraphKernelNodeGetParams_v2(node, &back));
	assert_ptr_equal(back.func, f);
	assert_ptr_equal(back.kern, kernel);
	params.kern = NULL;
	params.func = (cu_function)kernel; /* a launch takes that, a node does not */
	assert_int_equal(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params), CUX_INVALID_HANDLE);
	OK(cuLibraryUnload(library));
	assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params.params, NULL), CUX_INVALID_HANDLE);
}

/* An executable graph changes by a whole graph or by one node; what is in flight does not. */
static void test_update(void **state)
{
	cu_deviceptr list = device_new(256), other = device_new(256);
	cu_graph first = capture_appends(list, (uint32_t[]) { 1, 2 }, 2);
	cu_graph second = capture_appends(list, (uint32_t[]) { 3, 4 }, 2);
	cu_graph longer = capture_appends(list, (uint32_t[]) { 5, 6, 7 }, 3);
	struct cu_update_result result;
	struct cu_kernel_params_v1 params;
	uint32_t value = 9;
	void *values[] = { &other, &value };
	uint32_t *flag = new_flag();
	cu_graph_node nodes[3], foreign[2], error_node;
	cu_graph_exec exec;
	int code;

	(void)state;
	nodes_of(first, nodes, 2);
	nodes_of(second, foreign, 2);
	OK(cuGraphInstantiateWithFlags(&exec, first, 0));
	launch_hold(stream, flag);
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphExecUpdate_v2(exec, second, &result));
	assert_int_equal(result.result, CUX_UPDATE_SUCCESS);
	OK(cuGraphLaunch(exec, stream));
	assert_int_equal(cuGraphExecUpdate_v2(exec, longer, &result), CUX_UPDATE_FAILURE);
	assert_int_equal(result.result, CUX_UPDATE_TOPOLOGY_CHANGED);
	assert_null(result.error_node);
	assert_int_equal(cuGraphExecUpdate(exec, longer, &error_node, &code), CUX_UPDATE_FAILURE);
	assert_int_equal(code, CUX_UPDATE_NOT_SUPPORTED); /* of the same graph, in the first form */
	/* nodes are named by the graph that was instantiated, also after an update */
	OK(cuGraphKernelNodeGetParams(nodes[1], &params));
	params.params = values;
	OK(cuGraphExecKernelNodeSetParams(exec, nodes[1], &params));
	assert_int_equal(cuGraphExecKernelNodeSetParams(exec, foreign[1], &params), CU_INVALID_VALUE);
	OK(cuGraphLaunch(exec, stream));
	value = 10;
	OK(cuGraphExecKernelNodeSetParams(exec, nodes[1], &params));
	OK(cuGraphNodeSetEnabled(exec, nodes[0], 0));
	OK(cuGraphLaunch(exec, stream));
	set_flag(flag);
	expect_list(list, (uint32_t[]) { 1, 2, 3, 4, 3 }, 5);
	expect_list(other, (uint32_t[]) { 9, 10 }, 2);
	/* the graph itself was never changed */
	OK(cuGraphKernelNodeGetParams(nodes[1], &params));
	assert_int_equal(*(uint32_t *)params.params[1], 2);
}

/* Which node stands for which is seen from the ends of the two graphs, whatever lies where in their lists. */
static void test_update_pairs_by_shape(void **state)
{
	cu_deviceptr list = device_new(256);
	cu_graph_node head[2], tail[2], more;
	struct cu_update_result result;
	cu_graph graph[2];
	cu_graph_exec exec;

	(void)state;
	for (int i = 0; i < 2; i++)
		OK(cuGraphCreate(&graph[i], 0));
	OK(cuGraphAddEmptyNode(&head[0], graph[0], NULL, 0));
	tail[0] = append_node(graph[0], list, 1, &head[0]);
	tail[1] = append_node(graph[1], list, 2, NULL);
	OK(cuGraphAddEmptyNode(&head[1], graph[1], NULL, 0));
	OK(cuGraphAddDependencies(graph[1], &head[1], &tail[1], 1));
	OK(cuGraphInstantiateWithFlags(&exec, graph[0], 0));
	OK(cuGraphExecUpdate_v2(exec, graph[1], &result));
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphNodeSetEnabled(exec, tail[0], 0));
	OK(cuGraphLaunch(exec, stream));
	expect_list(list, (uint32_t[]) { 2 }, 1);
	/* the same number of nodes and one end more */
	OK(cuGraphRemoveDependencies(graph[1], &head[1], &tail[1], 1));
	assert_int_equal(cuGraphExecUpdate_v2(exec, graph[1], &result), CUX_UPDATE_FAILURE);
	assert_int_equal(result.result, CUX_UPDATE_TOPOLOGY_CHANGED);
	assert_ptr_equal(result.error_node, head[1]);
	/* the same shape and another type */
	OK(cuGraphDestroyNode(tail[1]));
	OK(cuGraphAddEmptyNode(&more, graph[1], &head[1], 1));
	assert_int_equal(cuGraphExecUpdate_v2(exec, graph[1], &result), CUX_UPDATE_FAILURE);
	assert_int_equal(result.result, CUX_UPDATE_TYPE_CHANGED);
	assert_ptr_equal(result.error_node, more);
}

/* Setting parameters of a graph's node changes later instantiations, not earlier ones. */
static void test_set_params_of_graph(void **state)
{
	cu_deviceptr list = device_new(256);
	cu_graph graph = capture_appends(list, (uint32_t[]) { 1 }, 1);
	struct cu_kernel_params params;
	uint32_t value = 2;
	cu_graph_node node;
	cu_graph_exec before, after;

	(void)state;
	nodes_of(graph, &node, 1);
	OK(cuGraphInstantiateWithFlags(&before, graph, 0));
	OK(cuGraphKernelNodeGetParams_v2(node, &params));
	params.params = (void *[]) { &list, &value };
	OK(cuGraphKernelNodeSetParams_v2(node, &params));
	OK(cuGraphInstantiateWithFlags(&after, graph, 0));
	OK(cuGraphLaunch(after, stream));
	OK(cuGraphLaunch(before, stream));
	expect_list(list, (uint32_t[]) { 2, 1 }, 2);
}

static void test_copy_nodes(void **state)
{
	cu_deviceptr a = device_new(64), b = device_new(64);
	struct cu_memset_params set = { .dst = a, .value = 7, .element_bytes = 4, .width = 4, .height = 1 }, set_back;
	struct cu_memcpy_params copy = { .src_type = CUX_MEMORY_DEVICE,
					 .src_device = a,
					 .dst_type = CUX_MEMORY_DEVICE,
					 .dst_device = b,
					 .width = 16,
					 .height = 1,
					 .depth = 1 },
				copy_back;
	struct cux_node_params any = { .type = CU_NODE_MEMSET };
	cu_graph graph, clone;
	cu_graph_node set_node, copy_node, cloned;
	cu_graph_exec exec;
	uint32_t got[4];
	int type;

	(void)state;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemsetNode(&set_node, graph, NULL, 0, &set, context));
	OK(cuGraphAddMemcpyNode(&copy_node, graph, &set_node, 1, &copy, context));
	set.dst = 64;
	assert_int_equal(cuGraphAddMemsetNode(&cloned, graph, NULL, 0, &set, context), CU_INVALID_VALUE);
	OK(cuGraphNodeGetType(copy_node, &type));
	assert_int_equal(type, CU_NODE_MEMCPY);
	OK(cuGraphMemsetNodeGetParams(set_node, &set_back));
	assert_true(set_back.dst == a && set_back.width == 4);
	OK(cuGraphMemcpyNodeGetParams(copy_node, &copy_back));
	assert_true(copy_back.src_device == a && copy_back.dst_device == b && copy_back.width == 16);
	assert_int_equal(cuGraphMemcpyNodeGetParams(set_node, &copy_back), CU_INVALID_VALUE);

	OK(cuGraphClone(&clone, graph));
	OK(cuGraphNodeFindInClone(&cloned, set_node, clone));
	assert_ptr_not_equal(cloned, set_node);
	OK(cuGraphInstantiate(&exec, clone, NULL, NULL, 0));
	OK(cuGraphLaunch(exec, stream));
	device_read(got, b, sizeof(got));
	assert_int_equal(got[3], 7);
	set.dst = a;
	set.value = 8;
	assert_int_equal(cuGraphExecMemsetNodeSetParams(exec, set_node, &set, context), CU_INVALID_VALUE);
	OK(cuGraphExecMemsetNodeSetParams(exec, cloned, &set, context));
	OK(cuGraphLaunch(exec, stream));
	device_read(got, b, sizeof(got));
	assert_int_equal(got[3], 8);
	set.value = 9;
	any.memset.set = set;
	OK(cuGraphExecNodeSetParams(exec, cloned, &any));
	OK(cuGraphLaunch(exec, stream));
	device_read(got, b, sizeof(got));
	assert_int_equal(got[3], 9);
	set.height = 2;
	assert_int_equal(cuGraphExecMemsetNodeSetParams(exec, cloned, &set, context), CU_INVALID_VALUE);
}

/* Order is by edges, not by creation; a cycle cannot be instantiated. */
static void test_edges(void **state)
{
	cu_deviceptr list = device_new(256);
	cu_graph graph;
	cu_graph_node node[3], from[4], to[4];
	struct cux_edge_data edges[4];
	struct cux_edge_data programmatic = { .from_port = 1, .type = 1 };
	cu_graph_exec exec;
	size_t n = 4;

	(void)state;
	OK(cuGraphCreate(&graph, 0));
	for (uint32_t i = 0; i < 3; i++) {
		struct cu_kernel_params_v1 params = { append, { 1, 1, 1 }, { 1, 1, 1 }, 0, (void *[]) { &list, &i },
						      NULL };

		OK(cuGraphAddKernelNode(&node[i], graph, NULL, 0, &params));
	}
	OK(cuGraphAddDependencies(graph, (cu_graph_node[]) { node[2], node[1] }, (cu_graph_node[]) { node[1], node[0] },
				  2));
	OK(cuGraphGetEdges(graph, from, to, &n));
	assert_int_equal(n, 2);
	assert_null(from[2]);
	assert_int_equal(cuGraphAddDependencies(graph, &node[2], &node[1], 1), CU_INVALID_VALUE);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	expect_list(list, (uint32_t[]) { 2, 1, 0 }, 3);
	n = 1;
	OK(cuGraphNodeGetDependentNodes(node[2], from, &n));
	assert_true(n == 1 && from[0] == node[1]);
	n = 1;
	OK(cuGraphGetRootNodes(graph, from, &n));
	assert_true(n == 1 && from[0] == node[2]);
	/* an edge with data is not shown to who cannot see the data */
	OK(cuGraphAddDependencies_v2(graph, &node[2], &node[0], &programmatic, 1));
	n = 4;
	assert_int_equal(cuGraphGetEdges(graph, from, to, &n), CUX_LOSSY_QUERY);
	n = 4;
	OK(cuGraphGetEdges_v2(graph, from, to, edges, &n));
	assert_int_equal(n, 3);
	OK(cuGraphAddDependencies(graph, &node[0], &node[2], 1));
	assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), CU_INVALID_VALUE);
}

static void test_child_graph(void **state)
{
	cu_deviceptr list = device_new(256);
	cu_graph child = capture_appends(list, (uint32_t[]) { 1, 2 }, 2);
	cu_graph other = capture_appends(list, (uint32_t[]) { 3, 4 }, 2);
	cu_graph longer = capture_appends(list, (uint32_t[]) { 3, 4, 5 }, 3);
	cu_graph graph, inside;
	unsigned enabled = 9;
	cu_graph_node node, empty, first;
	cu_graph_exec exec;

	(void)state;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
	OK(cuGraphAddChildGraphNode(&node, graph, &empty, 1, child));
	OK(cuGraphDestroy(child)); /* the node has its own copy */
	OK(cuGraphChildGraphNodeGetGraph(node, &inside));
	assert_int_equal(nodes_of(inside, &first, 1), 1);
	assert_int_equal(cuGraphDestroy(inside), CU_INVALID_VALUE);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	assert_int_equal(cuGraphExecChildGraphNodeSetParams(exec, node, longer), CUX_UPDATE_FAILURE);
	OK(cuGraphExecChildGraphNodeSetParams(exec, node, other));
	OK(cuGraphLaunch(exec, stream));
	/* a node of the child is one of the whole, under the name that it has in the graph of the node */
	OK(cuGraphNodeSetEnabled(exec, first, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphExecUpdate_v2(exec, graph, NULL));
	OK(cuGraphNodeGetEnabled(exec, first, &enabled));
	assert_int_equal(enabled, 0);
	OK(cuGraphLaunch(exec, stream));
	expect_list(list, (uint32_t[]) { 1, 2, 3, 4, 4, 2 }, 6);
	OK(cuGraphDestroy(graph));
	assert_int_equal(cuGraphNodeGetType(node, &(int) { 0 }), CU_INVALID_VALUE);
}

/* One executable graph runs once at a time, on whatever streams. */
static void test_launches_are_serial(void **state)
{
	cu_deviceptr list = device_new(64 * 4);
	cu_graph graph = capture_appends(list, (uint32_t[]) { 1, 2 }, 2);
	uint32_t *flag = new_flag(), got[64];
	cu_graph_exec exec;
	cu_stream other;

	(void)state;
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	launch_hold(stream, flag);
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphLaunch(exec, other));
	usleep(30000); /* time enough to run, if nothing held it */
	assert_int_equal(cuStreamQuery(other), CUX_NOT_READY);
	set_flag(flag);
	device_read(got, list, sizeof(got));
	assert_int_equal(got[0], 4);
	OK(cuGraphExecDestroy(exec));
	assert_int_equal(cuGraphLaunch(exec, other), CU_INVALID_VALUE);
}

static void test_capture_to_graph(void **state)
{
	cu_deviceptr list = device_new(256);
	cu_graph graph = capture_appends(list, (uint32_t[]) { 1 }, 1), same, seen;
	const cu_graph_node *deps;
	cu_graph_node node;
	cu_graph_exec exec;
	uint64_t id;
	size_t n;
	int status;

	(void)state;
	nodes_of(graph, &node, 1);
	OK(cuStreamBeginCaptureToGraph(stream, graph, &node, NULL, 1, CU_MODE_GLOBAL));
	OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &seen, &deps, &n));
	assert_int_equal(status, CU_CAPTURE_ACTIVE);
	assert_ptr_equal(seen, graph);
	assert_true(n == 1 && deps[0] == node);
	assert_int_equal(cuGraphDestroy(graph), CU_INVALID_VALUE);
	launch_append(stream, list, 2);
	OK(cuStreamEndCapture(stream, &same));
	assert_ptr_equal(same, graph);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	expect_list(list, (uint32_t[]) { 1, 2 }, 2);
}

static int setup(void **state)
{
	device_setup(state);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replay_equals_eager),
		cmocka_unit_test(test_kernel_params),
		cmocka_unit_test(test_library_kernels),
		cmocka_unit_test(test_update),
		cmocka_unit_test(test_update_pairs_by_shape),
		cmocka_unit_test(test_set_params_of_graph),
		cmocka_unit_test(test_copy_nodes),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_child_graph),
		cmocka_unit_test(test_launches_are_serial),
		cmocka_unit_test(test_capture_to_graph),
	};

	return cmocka_run_group_tests(tests, setup, device_teardown);
}
