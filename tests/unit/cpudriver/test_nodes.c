/* SPDX-License-Identifier: Apache-2.0
 *
 * test_nodes.c: the nodes beyond the plain ones do their work: events, memory, memory operations, conditions; and
 * launch attributes.
 */
#include <stdlib.h>
#include <unistd.h>

#include "device.h"

static cu_stream stream, other;
static cu_deviceptr list; /* list[0] counts what was appended */
static cu_graph graph;
static cu_graph_exec exec;

static uint32_t word(cu_deviceptr at)
{
	uint32_t value;

	device_read(&value, at, sizeof(value));
	return value;
}

static cu_graph_node add_append(cu_graph to, const cu_graph_node *deps, size_t n)
{
	uint32_t value = 1;
	void *params[] = { &list, &value };
	struct cu_kernel_params p = { .func = append, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .params = params };
	cu_graph_node node;

	OK(cuGraphAddKernelNode_v2(&node, to, deps, n, &p));
	return node;
}

static void launch(void)
{
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
}

static int begin(void **state)
{
	(void)state;
	OK(cuGraphCreate(&graph, 0));
	exec = NULL;
	OK(cuMemsetD32_v2(list, 0, 1));
	OK(cuCtxSynchronize());
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (exec)
		OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuCtxSynchronize());
	return 0;
}

/* ---- events ---- */

static void test_record_node(void **state)
{
	cu_graph_node before, node;
	cu_event event;
	uint32_t *flag = new_flag();
	cu_deviceptr device;
	void *params[] = { &device };
	struct cu_kernel_params p = { .func = hold, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .params = params };

	(void)state;
	OK(cuMemHostGetDevicePointer_v2(&device, flag, 0));
	OK(cuEventCreate(&event, 0));
	OK(cuGraphAddKernelNode_v2(&before, graph, NULL, 0, &p));
	OK(cuGraphAddEventRecordNode(&node, graph, &before, 1, event));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuEventQuery(event)); /* never recorded */
	OK(cuGraphLaunch(exec, stream));
	assert_int_equal(cuEventQuery(event), CUX_NOT_READY);
	set_flag(flag);
	OK(cuEventSynchronize(event));
	OK(cuEventQuery(event));
	OK(cuEventDestroy_v2(event)); /* the graph still has it */
	launch();
}

static void test_wait_node(void **state)
{
	cu_graph_node node;
	cu_event event;
	uint32_t *flag = new_flag();

	(void)state;
	OK(cuEventCreate(&event, 0));
	launch_hold(other, flag);
	OK(cuEventRecord(event, other));
	OK(cuGraphAddEventWaitNode(&node, graph, NULL, 0, event));
	add_append(graph, &node, 1);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	usleep(20000);
	assert_int_equal(cuStreamQuery(stream), CUX_NOT_READY);
	set_flag(flag);
	OK(cuStreamSynchronize(stream));
	assert_int_equal(word(list), 1);
	OK(cuEventDestroy_v2(event));
}

static void test_exec_events(void **state)
{
	cu_graph_node node;
	cu_event first, second;

	(void)state;
	OK(cuEventCreate(&first, 0));
	OK(cuEventCreate(&second, 0));
	OK(cuGraphAddEventRecordNode(&node, graph, NULL, 0, first));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphExecEventRecordNodeSetEvent(exec, node, second));
	launch();
	assert_int_equal(cuEventElapsedTime(&(float) { 0 }, first, first), CUX_INVALID_HANDLE); /* never recorded */
	OK(cuEventElapsedTime(&(float) { 0 }, second, second));
	assert_int_equal(cuGraphExecEventWaitNodeSetEvent(exec, node, second), CU_INVALID_VALUE);
	OK(cuEventDestroy_v2(first));
	OK(cuEventDestroy_v2(second));
}

/* ---- memory ---- */

static struct cux_alloc_params allocation(size_t bytes)
{
	return (struct cux_alloc_params) { .pool = { .alloc_type = 1, .location = { 1, 0 } }, .bytes = bytes };
}

static void test_alloc_and_free(void **state)
{
	struct cux_alloc_params a = allocation(256);
	struct cu_memset_params fill = { .value = 7, .element_bytes = 1, .width = 256, .height = 1 };
	struct cu_memcpy_params copy = { .src_type = CUX_MEMORY_DEVICE,
					 .dst_type = CUX_MEMORY_DEVICE,
					 .dst_device = list,
					 .width = 4,
					 .height = 1,
					 .depth = 1 };
	cu_graph_node alloc, set, copied, freed;
	cu_graph_exec second;
	cu_graph clone;

	(void)state;
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &a));
	fill.dst = copy.src_device = a.ptr;
	OK(cuGraphAddMemsetNode(&set, graph, &alloc, 1, &fill, context));
	OK(cuGraphAddMemcpyNode(&copied, graph, &set, 1, &copy, context));
	OK(cuGraphAddMemFreeNode(&freed, graph, &copied, 1, a.ptr));
	assert_int_equal(cuGraphClone(&clone, graph), CU_NOT_SUPPORTED);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	assert_int_equal(cuGraphInstantiateWithFlags(&second, graph, 0), CU_NOT_SUPPORTED);
	launch();
	launch();
	assert_int_equal(word(list), 0x07070707);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
}

static void test_memory_left_by_a_launch(void **state)
{
	struct cux_alloc_params a = allocation(64);
	cu_graph_node alloc;

	(void)state;
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &a));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	assert_int_equal(cuMemFreeAsync(a.ptr, stream), CU_INVALID_VALUE); /* not yet allocated */
	launch();
	assert_int_equal(cuGraphLaunch(exec, stream), CU_INVALID_VALUE);
	OK(cuMemsetD8Async(a.ptr, 1, 64, stream));
	OK(cuMemFreeAsync(a.ptr, stream));
	launch();
	OK(cuMemFree_v2(a.ptr));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 1)); /* frees by itself when it is launched again */
	launch();
	launch();
}

/* ---- memory operations ---- */

static void test_wait_for_a_value(void **state)
{
	(void)state;
	OK(cuStreamWaitValue32_v2(stream, list, 5, 0));
	launch_append(stream, list, 9); /* not before the value is there: list[6] = 9 */
	usleep(20000);
	assert_int_equal(cuStreamQuery(stream), CUX_NOT_READY);
	OK(cuStreamWriteValue32_v2(other, list, 5, 0));
	OK(cuStreamSynchronize(stream));
	assert_int_equal(word(list), 6);
	assert_int_equal(word(list + 24), 9);
	OK(cuStreamWriteValue64_v2(stream, list + 8, UINT64_C(1) << 40, 0));
	OK(cuStreamWaitValue64_v2(stream, list + 8, UINT64_C(1) << 40, 1));
	OK(cuStreamSynchronize(stream));
	assert_int_equal(cuStreamWriteValue32_v2(stream, list + 2, 1, 0), CU_INVALID_VALUE);
	assert_int_equal(cuStreamWriteValue32_v2(stream, 4096, 1, 0), CU_INVALID_VALUE);
}

static void test_batch_node(void **state)
{
	union cux_mem_op op[2] = { { .value = { .type = CUX_OP_WRITE_32, .address = list, .value = 3 } },
				   { .value = { .type = CUX_OP_WAIT_32, .address = list, .value = 2, .flags = 2 } } };
	struct cux_batch_params batch = { context, 2, op, 0 };
	cu_graph_node node;

	(void)state;
	OK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	op[0].value.value = 99; /* the node has its own */
	launch();
	assert_int_equal(word(list), 3);
	op[0].value.value = 6;
	OK(cuGraphExecBatchMemOpNodeSetParams(exec, node, &batch));
	launch();
	assert_int_equal(word(list), 6);
}

/* ---- conditions ---- */

static cu_graph add_condition(int type, unsigned bodies, unsigned value, uint64_t *handle, cu_graph **all)
{
	struct cux_node_params c = { .type = CU_NODE_CONDITIONAL };
	cu_graph_node node;

	OK(cuGraphConditionalHandleCreate(handle, graph, context, value, CUX_COND_ASSIGN_DEFAULT));
	c.conditional = (struct cux_conditional_params) { *handle, type, bodies, NULL, context };
	OK(cuGraphAddNode(&node, graph, NULL, 0, &c));
	if (all)
		*all = c.conditional.body;
	return c.conditional.body[0];
}

static void test_if(void **state)
{
	uint64_t handle;
	cu_graph clone, *body;

	(void)state;
	add_append(add_condition(CUX_COND_IF, 1, 1, &handle, NULL), NULL, 0);
	add_append(add_condition(CUX_COND_IF, 1, 0, &handle, NULL), NULL, 0);
	add_condition(CUX_COND_IF, 2, 0, &handle, &body);
	for (int i = 0; i < 10; i++)
		add_append(body[1], NULL, 0);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	launch();
	assert_int_equal(word(list), 1 + 10);
	launch();
	assert_int_equal(word(list), 2 * (1 + 10));
	assert_int_equal(cuGraphClone(&clone, graph), CU_NOT_SUPPORTED);
	assert_int_equal(cuGraphDestroy(body[0]), CU_INVALID_VALUE);
}

static void test_switch(void **state)
{
	uint64_t handle;
	cu_graph *body;

	(void)state;
	add_condition(CUX_COND_SWITCH, 3, 2, &handle, &body);
	for (int i = 0; i < 3; i++)
		for (int times = 0; times <= i; times++)
			add_append(body[i], NULL, 0);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	launch();
	assert_int_equal(word(list), 3);
}

/* A kernel in the body says when it is enough; the next launch starts with the default value again. */
static void test_while(void **state)
{
	cu_deviceptr counter = device_new(4);
	uint64_t handle;
	void *params[] = { &handle, &counter };
	struct cu_kernel_params p = { .func = count_down, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .params = params };
	cu_graph_node node;
	cu_graph body;

	(void)state;
	body = add_condition(CUX_COND_WHILE, 1, 1, &handle, NULL);
	node = add_append(body, NULL, 0);
	OK(cuGraphAddKernelNode_v2(&node, body, &node, 1, &p));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (uint32_t times = 1; times < 4; times++) {
		OK(cuMemsetD32_v2(list, 0, 1));
		OK(cuMemsetD32_v2(counter, times, 1));
		OK(cuCtxSynchronize());
		launch();
		assert_int_equal(word(list), times);
	}
	OK(cuMemFree_v2(counter));
}

static void test_bad_conditions(void **state)
{
	struct cux_node_params c = { .type = CU_NODE_CONDITIONAL };
	cu_graph_node node;
	cu_graph elsewhere_graph;
	uint64_t handle;

	(void)state;
	OK(cuGraphCreate(&elsewhere_graph, 0));
	OK(cuGraphConditionalHandleCreate(&handle, graph, context, 1, 0));
	c.conditional = (struct cux_conditional_params) { handle, CUX_COND_WHILE, 2, NULL, context };
	assert_int_equal(cuGraphAddNode(&node, graph, NULL, 0, &c), CU_INVALID_VALUE);
	c.conditional = (struct cux_conditional_params) { handle, CUX_COND_IF, 1, NULL, context };
	assert_int_equal(cuGraphAddNode(&node, elsewhere_graph, NULL, 0, &c), CU_INVALID_VALUE);
	OK(cuGraphAddNode(&node, graph, NULL, 0, &c));
	assert_int_equal(cuGraphAddNode(&node, graph, NULL, 0, &c), CU_INVALID_VALUE); /* one node a handle */
	c.conditional.handle = 12345;
	assert_int_equal(cuGraphAddNode(&node, graph, NULL, 0, &c), CU_INVALID_VALUE);
	OK(cuGraphDestroy(elsewhere_graph));
}

/* ---- structure ---- */

/* The place for the new node and the node that it depends on may be one variable. */
static void test_one_variable_for_both(void **state)
{
	cu_graph_node first = add_append(graph, NULL, 0), node = first;
	size_t n = 0;

	(void)state;
	OK(cuGraphAddEmptyNode(&node, graph, &node, 1));
	assert_ptr_not_equal(node, first);
	OK(cuGraphGetEdges(graph, NULL, NULL, &n));
	assert_int_equal(n, 1);
	assert_int_equal(cuGraphRemoveDependencies(graph, &node, &first, 1), CU_INVALID_VALUE);
	OK(cuGraphRemoveDependencies(graph, &first, &node, 1));
	OK(cuGraphGetEdges(graph, NULL, NULL, &n));
	assert_int_equal(n, 0);
}

static void test_programmatic_launch(void **state)
{
	uint32_t value = 4;
	void *params[] = { &list, &value };
	struct cux_launch_attribute a = { .id = CUX_ATTR_PROGRAMMATIC, .value = { .number = 1 } };
	struct cux_launch_config config = { { 1, 1, 1 }, { 1, 1, 1 }, 0, stream, &a, 1 };
	struct cux_edge_data data[2];
	cu_graph_node from[2], to[2];
	cu_graph captured;
	size_t n = 2;

	(void)state;
	OK(cuStreamBeginCapture_v2(stream, CU_MODE_RELAXED));
	OK(cuLaunchKernelEx(&config, append, params, NULL));
	OK(cuLaunchKernelEx(&config, append, params, NULL));
	OK(cuStreamEndCapture(stream, &captured));
	assert_int_equal(cuGraphGetEdges(captured, from, to, &n), CUX_LOSSY_QUERY);
	OK(cuGraphGetEdges_v2(captured, from, to, data, &n));
	assert_int_equal(n, 1);
	assert_int_equal(data[0].type, 1);
	OK(cuGraphDestroy(captured));
	a = (struct cux_launch_attribute) { .id = CUX_ATTR_CLUSTER, .value = { .cluster = { 2, 1, 1 } } };
	assert_int_equal(cuLaunchKernelEx(&config, append, params, NULL), CUX_INVALID_CLUSTER_SIZE);
	a = (struct cux_launch_attribute) { .id = CUX_ATTR_COMPLETION_EVENT };
	assert_int_equal(cuLaunchKernelEx(&config, append, params, NULL), CU_NOT_SUPPORTED);
	a = (struct cux_launch_attribute) { .id = CUX_ATTR_PRIORITY };
	OK(cuLaunchKernelEx(&config, append, params, NULL));
	assert_int_equal(word(list), 1);
}

static int setup(void **state)
{
	device_setup(state);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	list = device_new(4096);
	return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_record_node),
		TEST(test_wait_node),
		TEST(test_exec_events),
		TEST(test_alloc_and_free),
		TEST(test_memory_left_by_a_launch),
		TEST(test_wait_for_a_value),
		TEST(test_batch_node),
		TEST(test_if),
		TEST(test_switch),
		TEST(test_while),
		TEST(test_bad_conditions),
		TEST(test_one_variable_for_both),
		TEST(test_programmatic_launch),
	};

	return cmocka_run_group_tests(tests, setup, device_teardown);
}
