/* SPDX-License-Identifier: Apache-2.0
 *
 * test_matrix.c: what a thread may call while another one captures: the matrix that was measured on an H200 with
 * driver 580, row by row, and the rules around it.
 */
#include <sys/mman.h>

#include "device.h"

static cu_stream other, capturing; /* `other`: not capturing, not blocking */
static cu_event event;
static cu_deviceptr list;
static char host[64];

/* ---- the calls ---- */

static cu_result launch_on(cu_stream stream)
{
	uint32_t value = 1;
	void *params[] = { &list, &value };

	return cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static cu_result call_launch(void)
{
	return launch_on(other);
}

static cu_result call_launch_per_thread(void)
{
	return launch_on(CU_PER_THREAD);
}

static cu_result call_event_record(void)
{
	return cuEventRecord(event, other);
}

static cu_result call_htod_async(void)
{
	return cuMemcpyHtoDAsync_v2(list, host, 8, other);
}

static cu_result call_is_capturing(void)
{
	int status = -1;
	cu_result result = cuStreamIsCapturing(other, &status);

	assert_int_equal(status, CU_CAPTURE_NONE);
	return result;
}

static cu_result call_get_ctx(void)
{
	cu_context ctx;

	return cuStreamGetCtx(other, &ctx);
}

static cu_result call_pointer(void)
{
	unsigned type;

	return cuPointerGetAttribute(&type, 2, list);
}

static cu_result call_stream_create(void)
{
	cu_stream stream;
	cu_result result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);

	if (!result)
		cuStreamDestroy_v2(stream);
	return result;
}

static cu_result call_graph_create(void)
{
	cu_graph graph, clone;
	cu_result result = cuGraphCreate(&graph, 0);

	if (!result)
		result = cuGraphClone(&clone, graph);
	return result;
}

static cu_result call_launch_legacy(void)
{
	return launch_on(NULL);
}

static cu_result call_copy_legacy(void)
{
	return cuMemcpyHtoD_v2(list, host, 8);
}

static cu_result call_is_capturing_legacy(void)
{
	int status;

	return cuStreamIsCapturing(CU_LEGACY, &status);
}

static cu_result call_alloc(void)
{
	cu_deviceptr ptr;

	return cuMemAlloc_v2(&ptr, 64);
}

static cu_result call_alloc_async(void)
{
	cu_deviceptr ptr;

	return cuMemAllocAsync(&ptr, 64, other);
}

static cu_result call_host_alloc(void)
{
	void *ptr;

	return cuMemHostAlloc(&ptr, 64, 0);
}

static cu_result call_host_register(void)
{
	void *ptr = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return cuMemHostRegister_v2(ptr, 4096, 0);
}

static cu_result call_event_query(void)
{
	cu_result result = cuEventQuery(event);

	return result == CUX_NOT_READY ? CU_SUCCESS : result;
}

static cu_result call_stream_query(void)
{
	cu_result result = cuStreamQuery(other);

	return result == CUX_NOT_READY ? CU_SUCCESS : result;
}

static cu_result call_stream_synchronize(void)
{
	return cuStreamSynchronize(other);
}

static cu_result call_module_load(void)
{
	cu_module module;

	return cuModuleLoadData(&module, kernels_ptx);
}

static cu_result call_library_load(void)
{
	cu_library library;
	cu_kernel kernel;
	cu_function f;
	cu_result result = cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0);

	if (!result)
		result = cuLibraryGetKernel(&kernel, library, "append");
	if (!result)
		result = cuKernelGetFunction(&f, kernel);
	return result ? result : cuFuncLoad(f);
}

static cu_module spare_module;
static cu_library spare_library;
static cu_graph empty;
static cu_graph_exec spare_exec;

static cu_result call_module_unload(void)
{
	return cuModuleUnload(spare_module);
}

static cu_result call_library_unload(void)
{
	return cuLibraryUnload(spare_library);
}

static cu_result call_instantiate(void)
{
	cu_graph_exec exec;

	return cuGraphInstantiateWithFlags(&exec, empty, 0);
}

static cu_result call_exec_destroy(void)
{
	return cuGraphExecDestroy(spare_exec);
}

static cu_result call_free_nothing(void)
{
	return cuMemFree_v2(0);
}

static cu_result call_free_async(void)
{
	return cuMemFreeAsync(0, other);
}

static cu_result call_get_ctx_legacy(void)
{
	cu_context ctx;

	return cuStreamGetCtx(NULL, &ctx);
}

static void make_spares(void)
{
	OK(cuModuleLoadData(&spare_module, kernels_ptx));
	OK(cuLibraryLoadData(&spare_library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuGraphInstantiateWithFlags(&spare_exec, empty, 0));
}

static cu_result call_ctx_synchronize(void)
{
	return cuCtxSynchronize();
}

/* ---- the matrix ---- */

enum column { GLOBAL, GLOBAL_RELAXED, LOCAL, BLOCKING_RELAXED, N_COLUMNS };

struct cell {
	cu_result answer;
	bool survives;
};

#define FINE                                                                                                           \
	{                                                                                                              \
		CU_SUCCESS, true                                                                                       \
	}
#define REFUSED                                                                                                        \
	{                                                                                                              \
		CU_CAPTURE_UNSUPPORTED, false                                                                          \
	}
#define SILENT                                                                                                         \
	{                                                                                                              \
		CU_SUCCESS, false                                                                                      \
	}

static const struct row {
	const char *name;
	cu_result (*call)(void);
	struct cell cell[N_COLUMNS];
} matrix[] = {
	{ "cuLaunchKernel", call_launch, { FINE, FINE, FINE, FINE } },
	{ "cuLaunchKernel, per-thread stream", call_launch_per_thread, { FINE, FINE, FINE, FINE } },
	{ "cuEventRecord", call_event_record, { FINE, FINE, FINE, FINE } },
	{ "cuMemcpyHtoDAsync", call_htod_async, { FINE, FINE, FINE, FINE } },
	{ "cuStreamIsCapturing", call_is_capturing, { FINE, FINE, FINE, FINE } },
	{ "cuStreamGetCtx", call_get_ctx, { FINE, FINE, FINE, FINE } },
	{ "cuPointerGetAttribute", call_pointer, { FINE, FINE, FINE, FINE } },
	{ "cuStreamCreate", call_stream_create, { FINE, FINE, FINE, FINE } },
	{ "cuGraphCreate, cuGraphClone", call_graph_create, { FINE, FINE, FINE, FINE } },
	{ "cuLaunchKernel, legacy", call_launch_legacy, { FINE, FINE, FINE, { CU_CAPTURE_IMPLICIT, false } } },
	{ "cuMemcpyHtoD", call_copy_legacy, { FINE, FINE, FINE, { CU_CAPTURE_IMPLICIT, false } } },
	{ "cuStreamIsCapturing, legacy",
	  call_is_capturing_legacy,
	  { FINE, FINE, FINE, { CU_CAPTURE_IMPLICIT, true } } },
	{ "cuMemAlloc", call_alloc, { REFUSED, FINE, FINE, FINE } },
	{ "cuMemAllocAsync", call_alloc_async, { REFUSED, FINE, FINE, FINE } },
	{ "cuMemHostAlloc", call_host_alloc, { REFUSED, FINE, FINE, FINE } },
	{ "cuMemHostRegister", call_host_register, { REFUSED, FINE, FINE, FINE } },
	{ "cuEventQuery", call_event_query, { REFUSED, FINE, FINE, FINE } },
	{ "cuStreamQuery", call_stream_query, { REFUSED, FINE, FINE, FINE } },
	{ "cuStreamSynchronize", call_stream_synchronize, { REFUSED, FINE, FINE, FINE } },
	{ "cuModuleLoadData", call_module_load, { SILENT, FINE, FINE, FINE } },
	{ "cuLibraryLoadData, cuFuncLoad", call_library_load, { SILENT, FINE, FINE, FINE } },
	{ "cuStreamGetCtx, legacy", call_get_ctx_legacy, { FINE, FINE, FINE, { CU_CAPTURE_IMPLICIT, false } } },
	{ "cuMemFree of nothing", call_free_nothing, { REFUSED, FINE, FINE, FINE } },
	{ "cuMemFreeAsync of nothing", call_free_async, { REFUSED, FINE, FINE, FINE } },
	{ "cuModuleUnload", call_module_unload, { REFUSED, FINE, FINE, FINE } },
	{ "cuLibraryUnload", call_library_unload, { REFUSED, FINE, FINE, FINE } },
	{ "cuGraphInstantiate", call_instantiate, { REFUSED, FINE, FINE, FINE } },
	{ "cuGraphExecDestroy", call_exec_destroy, { REFUSED, FINE, FINE, FINE } },
	{ "cuCtxSynchronize", call_ctx_synchronize, { REFUSED, REFUSED, REFUSED, REFUSED } },
};

struct errand {
	const struct row *row;
	enum column column;
	cu_result answer;
};

static void make_call(void *argument)
{
	struct errand *errand = argument;
	int mode = CU_MODE_RELAXED;
	bool relaxed = errand->column == GLOBAL_RELAXED || errand->column == BLOCKING_RELAXED;

	if (relaxed)
		OK(cuThreadExchangeStreamCaptureMode(&mode));
	errand->answer = errand->row->call();
	if (relaxed)
		OK(cuThreadExchangeStreamCaptureMode(&mode));
}

static void check_cell(const struct row *row, enum column column)
{
	struct errand errand = { row, column, -1 };
	const struct cell *expected = &row->cell[column];
	cu_graph graph;
	cu_result end;

	make_spares();
	OK(cuStreamCreate(&capturing, column == BLOCKING_RELAXED ? 0 : CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture_v2(capturing, column == LOCAL ? CU_MODE_THREAD_LOCAL : CU_MODE_GLOBAL));
	launch_append(capturing, list, 7);
	elsewhere(make_call, &errand);
	if (errand.answer != expected->answer)
		fail_msg("%s, column %d: answered %d", row->name, column, errand.answer);
	end = cuStreamEndCapture(capturing, &graph);
	if (end != (expected->survives ? CU_SUCCESS : CU_CAPTURE_INVALIDATED))
		fail_msg("%s, column %d: the capture ended with %d", row->name, column, end);
	if (!end)
		OK(cuGraphDestroy(graph));
	else
		assert_null(graph);
	OK(cuCtxSynchronize());
	OK(cuStreamDestroy_v2(capturing));
}

static void test_matrix(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(matrix) / sizeof(matrix[0]); i++)
		for (int column = 0; column < N_COLUMNS; column++)
			check_cell(&matrix[i], (enum column)column);
}

/* ---- the same thread, and what else ends a capture ---- */

static void begin(unsigned flags, int mode)
{
	OK(cuStreamCreate(&capturing, flags));
	OK(cuStreamBeginCapture_v2(capturing, mode));
	launch_append(capturing, list, 7);
}

static void end(cu_result expected)
{
	cu_graph graph;

	assert_int_equal(cuStreamEndCapture(capturing, &graph), expected);
	if (!expected)
		OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(capturing));
}

static void test_own_capture(void **state)
{
	static const int modes[] = { CU_MODE_GLOBAL, CU_MODE_THREAD_LOCAL };
	int mode = CU_MODE_THREAD_LOCAL, relaxed = CU_MODE_RELAXED;

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(CU_STREAM_NON_BLOCKING, modes[i]);
		assert_int_equal(call_alloc(), CU_CAPTURE_UNSUPPORTED);
		end(CU_CAPTURE_INVALIDATED);
	}
	/* one's own capture is not excused by THREAD_LOCAL, only by RELAXED */
	begin(CU_STREAM_NON_BLOCKING, CU_MODE_GLOBAL);
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, CU_MODE_GLOBAL);
	assert_int_equal(call_alloc(), CU_CAPTURE_UNSUPPORTED);
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	end(CU_CAPTURE_INVALIDATED);
	begin(CU_STREAM_NON_BLOCKING, CU_MODE_GLOBAL);
	OK(cuThreadExchangeStreamCaptureMode(&relaxed));
	OK(call_alloc());
	OK(cuThreadExchangeStreamCaptureMode(&relaxed));
	end(CU_SUCCESS);
	begin(CU_STREAM_NON_BLOCKING, CU_MODE_RELAXED);
	OK(call_alloc());
	end(CU_SUCCESS);
}

static void test_forbidden_on_the_stream(void **state)
{
	int status;

	(void)state;
	begin(CU_STREAM_NON_BLOCKING, CU_MODE_RELAXED);
	assert_int_equal(cuStreamSynchronize(capturing), CU_CAPTURE_UNSUPPORTED);
	OK(cuStreamIsCapturing(capturing, &status));
	assert_int_equal(status, CU_CAPTURE_BROKEN);
	assert_int_equal(launch_on(capturing), CU_CAPTURE_INVALIDATED);
	assert_int_equal(cuStreamQuery(capturing), CU_CAPTURE_UNSUPPORTED);
	end(CU_CAPTURE_INVALIDATED);
	begin(CU_STREAM_NON_BLOCKING, CU_MODE_RELAXED);
	assert_int_equal(cuStreamQuery(capturing), CU_CAPTURE_UNSUPPORTED);
	end(CU_CAPTURE_INVALIDATED);
}

static void test_graph_launch_in_capture(void **state)
{
	cu_graph graph;
	cu_graph_exec exec;

	(void)state;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	begin(CU_STREAM_NON_BLOCKING, CU_MODE_RELAXED);
	assert_int_equal(cuGraphLaunch(exec, capturing), CU_CAPTURE_UNSUPPORTED);
	end(CU_CAPTURE_INVALIDATED);
	OK(cuGraphLaunch(exec, other));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	/* a launch that is refused for its arguments costs the capture too */
	begin(CU_STREAM_NON_BLOCKING, CU_MODE_RELAXED);
	assert_int_equal(cuLaunchKernel(append, 0, 1, 1, 1, 1, 1, 0, capturing, NULL, NULL), CU_INVALID_VALUE);
	end(CU_CAPTURE_INVALIDATED);
}

static void end_elsewhere(void *argument)
{
	cu_graph graph;

	*(cu_result *)argument = cuStreamEndCapture(capturing, &graph);
}

static void test_begin_and_end(void **state)
{
	cu_result answer;
	cu_graph graph;

	(void)state;
	assert_int_equal(cuStreamBeginCapture_v2(NULL, CU_MODE_GLOBAL), CU_CAPTURE_UNSUPPORTED);
	assert_int_equal(cuStreamBeginCapture_v2(other, 3), CU_INVALID_VALUE);
	assert_int_equal(cuStreamEndCapture(other, &graph), CUX_ILLEGAL_STATE);
	begin(CU_STREAM_NON_BLOCKING, CU_MODE_THREAD_LOCAL);
	assert_int_equal(cuStreamBeginCapture_v2(capturing, CU_MODE_GLOBAL), CUX_ILLEGAL_STATE);
	elsewhere(end_elsewhere, &answer);
	assert_int_equal(answer, CUX_CAPTURE_WRONG_THREAD);
	end(CUX_ILLEGAL_STATE); /* it is over all the same */
	begin(CU_STREAM_NON_BLOCKING, CU_MODE_RELAXED);
	elsewhere(end_elsewhere, &answer);
	OK(answer);
	OK(cuStreamDestroy_v2(capturing));
}

/* A second stream joins by an event, and must be joined back. */
static void test_fork_and_join(void **state)
{
	cu_event forked, joined, outside;
	cu_stream side;
	cu_graph graph;
	size_t n;

	(void)state;
	OK(cuEventCreate(&forked, 0));
	OK(cuEventCreate(&joined, 0));
	OK(cuEventCreate(&outside, 0));
	OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
	OK(cuEventRecord(outside, other));

	begin(CU_STREAM_NON_BLOCKING, CU_MODE_RELAXED);
	OK(cuEventRecord(forked, capturing));
	OK(cuStreamWaitEvent(side, forked, 0));
	launch_append(side, list, 8);
	assert_int_equal(cuStreamEndCapture(capturing, &graph), CUX_CAPTURE_UNJOINED);
	OK(cuStreamDestroy_v2(capturing));
	assert_int_equal(cuEventQuery(forked), CU_INVALID_VALUE);
	assert_int_equal(cuStreamWaitEvent(side, forked, 0), CU_INVALID_VALUE);

	/* who asks about an event that is being captured loses the capture */
	begin(CU_STREAM_NON_BLOCKING, CU_MODE_RELAXED);
	OK(cuEventRecord(forked, capturing));
	assert_int_equal(cuEventQuery(forked), CUX_CAPTURED_EVENT);
	assert_int_equal(cuEventSynchronize(forked), CU_INVALID_VALUE);
	end(CU_CAPTURE_INVALIDATED);
	assert_int_equal(cuEventRecordWithFlags(outside, other, CUX_EVENT_EXTERNAL), CUX_ILLEGAL_STATE);
	assert_int_equal(cuStreamWaitEvent(other, outside, CUX_EVENT_EXTERNAL), CUX_ILLEGAL_STATE);

	begin(CU_STREAM_NON_BLOCKING, CU_MODE_RELAXED);
	OK(cuEventRecord(forked, capturing));
	OK(cuStreamWaitEvent(side, forked, 0));
	launch_append(side, list, 8);
	launch_append(capturing, list, 9);
	assert_int_equal(cuStreamEndCapture(side, &graph), CUX_CAPTURE_UNMATCHED);
	end(CU_CAPTURE_INVALIDATED);

	begin(CU_STREAM_NON_BLOCKING, CU_MODE_RELAXED);
	OK(cuEventRecord(forked, capturing));
	OK(cuStreamWaitEvent(side, forked, 0));
	launch_append(side, list, 8);
	OK(cuEventRecord(joined, side));
	OK(cuStreamWaitEvent(capturing, joined, 0));
	launch_append(capturing, list, 9);
	OK(cuStreamEndCapture(capturing, &graph));
	OK(cuGraphGetNodes(graph, NULL, &n));
	assert_int_equal(n, 3);
	OK(cuGraphGetEdges(graph, NULL, NULL, &n));
	assert_int_equal(n, 3); /* 7 -> 8, 7 -> 9, 8 -> 9 */
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(capturing));

	begin(CU_STREAM_NON_BLOCKING, CU_MODE_RELAXED);
	assert_int_equal(cuStreamWaitEvent(capturing, outside, 0), CUX_CAPTURE_ISOLATION);
	end(CU_CAPTURE_INVALIDATED);
	OK(cuStreamDestroy_v2(side));
}

static void test_memory_nodes(void **state)
{
	cu_deviceptr ptr;
	cu_graph graph, clone;
	cu_graph_exec exec;

	(void)state;
	OK(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture_v2(capturing, CU_MODE_GLOBAL));
	OK(cuMemAllocAsync(&ptr, 64, capturing));
	OK(cuMemsetD8Async(ptr, 1, 64, capturing));
	OK(cuMemFreeAsync(ptr, capturing));
	OK(cuStreamEndCapture(capturing, &graph));
	assert_int_equal(cuGraphClone(&clone, graph), CU_NOT_SUPPORTED);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	OK(cuGraphLaunch(exec, capturing));
	OK(cuStreamSynchronize(capturing));
	OK(cuGraphExecDestroy(exec));
	assert_int_equal(cuMemsetD8Async(ptr, 1, 64, capturing), CU_INVALID_VALUE);
	OK(cuStreamDestroy_v2(capturing));
}

static int setup(void **state)
{
	device_setup(state);
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	OK(cuEventRecord(event, other));
	list = device_new(65536);
	OK(cuGraphCreate(&empty, 0));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_own_capture),
		cmocka_unit_test(test_forbidden_on_the_stream),
		cmocka_unit_test(test_graph_launch_in_capture),
		cmocka_unit_test(test_begin_and_end),
		cmocka_unit_test(test_fork_and_join),
		cmocka_unit_test(test_memory_nodes),
	};

	return cmocka_run_group_tests(tests, setup, device_teardown);
}
