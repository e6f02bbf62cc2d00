/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.c: what a thread may call while another one captures, or it itself: every call that slotprobe makes, in every
 * mode. A cell is a case: the answer, and how the capture ended.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "conform.h"

static cu_stream capturing, other, spare_stream;
static cu_event event, spare_event;
static cu_graph small, spare_graph;
static cu_graph_node small_node;
static cu_graph_exec exec;
static cu_module module;
static cu_library library;
static cu_kernel kernel;
static cu_function function;
static cu_deviceptr ptr;
static void *host, *page;
static char bytes[64];

/* ---- what a call consumes is made before the capture, and what it makes is ended after it ---- */

static void make_nothing(void)
{
}

static void make_memory(void)
{
	NEED(cuMemAlloc_v2, &ptr, 64);
}

static void make_async(void)
{
	NEED(cuMemAllocAsync, &ptr, 64, other);
	NEED(cuStreamSynchronize, other);
}

static void make_host(void)
{
	NEED(cuMemHostAlloc, &host, 64, 0);
}

static void make_page(void)
{
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void make_registered(void)
{
	make_page();
	NEED(cuMemHostRegister_v2, page, 4096, 0);
}

static void make_module(void)
{
	NEED(cuModuleLoadData, &module, conform_ptx);
}

static void make_library(void)
{
	NEED(cuLibraryLoadData, &library, conform_ptx, NULL, NULL, 0, NULL, NULL, 0);
}

static void make_kernel(void)
{
	make_library();
	NEED(cuLibraryGetKernel, &kernel, library, "conform_store");
}

static void make_function(void)
{
	make_kernel();
	NEED(cuKernelGetFunction, &function, kernel);
}

static void make_stream(void)
{
	NEED(cuStreamCreate, &spare_stream, CU_STREAM_NON_BLOCKING);
}

static void make_event(void)
{
	NEED(cuEventCreate, &spare_event, 0);
}

static void make_exec(void)
{
	NEED(cuGraphInstantiateWithFlags, &exec, small, 0);
}

static void make_retained(void)
{
	cu_context c;

	NEED(cuDevicePrimaryCtxRetain, &c, 0);
}

/* ---- the calls ---- */

#define ROW(call, made, expression)                                                                                    \
	static cu_result call(void)                                                                                    \
	{                                                                                                              \
		return expression;                                                                                     \
	}
#define SCRATCH(type) (&(type) { 0 })

#define ROWS(X)                                                                                                        \
	X(driver_version, make_nothing, cu.cuDriverGetVersion(SCRATCH(int)))                                           \
	X(device_get, make_nothing, cu.cuDeviceGet(SCRATCH(int), 0))                                                   \
	X(device_name, make_nothing, cu.cuDeviceGetName(bytes, 64, 0))                                                 \
	X(device_attribute, make_nothing, cu.cuDeviceGetAttribute(SCRATCH(int), 16, 0))                                \
	X(device_total_mem, make_nothing, cu.cuDeviceTotalMem_v2(SCRATCH(size_t), 0))                                  \
	X(device_uuid, make_nothing, cu.cuDeviceGetUuid_v2(SCRATCH(struct cu_uuid), 0))                                \
	X(get_proc_address, make_nothing, cu.cuGetProcAddress_v2("cuInit", SCRATCH(void *), 12000, 0, NULL))           \
	X(init, make_nothing, cu.cuInit(0))                                                                            \
	X(ctx_current, make_nothing, cu.cuCtxGetCurrent(SCRATCH(cu_context)))                                          \
	X(ctx_push_pop, make_nothing, cu.cuCtxPushCurrent_v2(ctx) || cu.cuCtxPopCurrent_v2(NULL))                      \
	X(ctx_device, make_nothing, cu.cuCtxGetDevice(SCRATCH(int)))                                                   \
	X(ctx_synchronize, make_nothing, cu.cuCtxSynchronize())                                                        \
	X(primary_state, make_nothing, cu.cuDevicePrimaryCtxGetState(0, SCRATCH(unsigned), SCRATCH(int)))              \
	X(primary_retain, make_nothing, cu.cuDevicePrimaryCtxRetain(SCRATCH(cu_context), 0))                           \
	X(primary_release, make_retained, cu.cuDevicePrimaryCtxRelease_v2(0))                                          \
	X(stream_create, make_nothing, cu.cuStreamCreate(SCRATCH(cu_stream), CU_STREAM_NON_BLOCKING))                  \
	X(stream_create_blocking, make_nothing, cu.cuStreamCreate(SCRATCH(cu_stream), 0))                              \
	X(stream_destroy, make_stream, cu.cuStreamDestroy_v2(spare_stream))                                            \
	X(stream_ctx, make_nothing, cu.cuStreamGetCtx(other, SCRATCH(cu_context)))                                     \
	X(stream_ctx_capturing, make_nothing, cu.cuStreamGetCtx(capturing, SCRATCH(cu_context)))                       \
	X(stream_ctx_legacy, make_nothing, cu.cuStreamGetCtx(NULL, SCRATCH(cu_context)))                               \
	X(stream_ctx_per_thread, make_nothing, cu.cuStreamGetCtx(CU_PER_THREAD, SCRATCH(cu_context)))                  \
	X(is_capturing, make_nothing, cu.cuStreamIsCapturing(other, SCRATCH(int)))                                     \
	X(is_capturing_capturing, make_nothing, cu.cuStreamIsCapturing(capturing, SCRATCH(int)))                       \
	X(is_capturing_legacy, make_nothing, cu.cuStreamIsCapturing(CU_LEGACY, SCRATCH(int)))                          \
	X(is_capturing_per_thread, make_nothing, cu.cuStreamIsCapturing(CU_PER_THREAD, SCRATCH(int)))                  \
	X(stream_query, make_nothing, cu.cuStreamQuery(other))                                                         \
	X(stream_query_legacy, make_nothing, cu.cuStreamQuery(NULL))                                                   \
	X(stream_synchronize, make_nothing, cu.cuStreamSynchronize(other))                                             \
	X(stream_synchronize_legacy, make_nothing, cu.cuStreamSynchronize(NULL))                                       \
	X(event_create, make_nothing, cu.cuEventCreate(SCRATCH(cu_event), 0))                                          \
	X(event_destroy, make_event, cu.cuEventDestroy_v2(spare_event))                                                \
	X(event_record, make_nothing, cu.cuEventRecord(event, other))                                                  \
	X(event_record_legacy, make_nothing, cu.cuEventRecord(event, NULL))                                            \
	X(event_query, make_nothing, cu.cuEventQuery(event))                                                           \
	X(event_synchronize, make_nothing, cu.cuEventSynchronize(event))                                               \
	X(wait_event, make_nothing, cu.cuStreamWaitEvent(other, event, 0))                                             \
	X(launch, make_nothing, launch_store(other, memory, 1))                                                        \
	X(launch_legacy, make_nothing, launch_store(NULL, memory, 1))                                                  \
	X(launch_per_thread, make_nothing, launch_store(CU_PER_THREAD, memory, 1))                                     \
	X(memcpy_htod_async, make_nothing, cu.cuMemcpyHtoDAsync_v2(memory, bytes, 8, other))                           \
	X(memcpy_htod, make_nothing, cu.cuMemcpyHtoD_v2(memory, bytes, 8))                                             \
	X(memset_async, make_nothing, cu.cuMemsetD8Async(memory, 0, 8, other))                                         \
	X(memset_async_legacy, make_nothing, cu.cuMemsetD8Async(memory, 0, 8, NULL))                                   \
	X(mem_alloc, make_nothing, cu.cuMemAlloc_v2(SCRATCH(cu_deviceptr), 64))                                        \
	X(mem_free, make_memory, cu.cuMemFree_v2(ptr))                                                                 \
	X(mem_free_null, make_nothing, cu.cuMemFree_v2(0))                                                             \
	X(mem_alloc_async, make_nothing, cu.cuMemAllocAsync(SCRATCH(cu_deviceptr), 64, other))                         \
	X(mem_free_async, make_async, cu.cuMemFreeAsync(ptr, other))                                                   \
	X(mem_host_alloc, make_nothing, cu.cuMemHostAlloc(SCRATCH(void *), 64, 0))                                     \
	X(mem_free_host, make_host, cu.cuMemFreeHost(host))                                                            \
	X(mem_host_register, make_page, cu.cuMemHostRegister_v2(page, 4096, 0))                                        \
	X(mem_host_unregister, make_registered, cu.cuMemHostUnregister(page))                                          \
	X(mem_host_device_pointer, make_host, cu.cuMemHostGetDevicePointer_v2(SCRATCH(cu_deviceptr), host, 0))         \
	X(mem_info, make_nothing, cu.cuMemGetInfo_v2(SCRATCH(size_t), SCRATCH(size_t)))                                \
	X(pointer_attribute, make_nothing, cu.cuPointerGetAttribute(SCRATCH(uint64_t), 2, memory))                     \
	X(module_load, make_nothing, cu.cuModuleLoadData(SCRATCH(cu_module), conform_ptx))                             \
	X(module_unload, make_module, cu.cuModuleUnload(module))                                                       \
	X(module_function, make_module, cu.cuModuleGetFunction(&function, module, "conform_store"))                    \
	X(library_load, make_nothing,                                                                                  \
	  cu.cuLibraryLoadData(SCRATCH(cu_library), conform_ptx, NULL, NULL, 0, NULL, NULL, 0))                        \
	X(library_unload, make_library, cu.cuLibraryUnload(library))                                                   \
	X(library_kernel, make_library, cu.cuLibraryGetKernel(&kernel, library, "conform_store"))                      \
	X(kernel_function, make_kernel, cu.cuKernelGetFunction(&function, kernel))                                     \
	X(func_load, make_function, cu.cuFuncLoad(function))                                                           \
	X(func_name, make_nothing, cu.cuFuncGetName(SCRATCH(const char *), store))                                     \
	X(func_params, make_nothing, cu.cuFuncGetParamInfo(store, 0, SCRATCH(size_t), SCRATCH(size_t)))                \
	X(graph_create, make_nothing, cu.cuGraphCreate(&spare_graph, 0))                                               \
	X(graph_clone, make_nothing, cu.cuGraphClone(&spare_graph, small))                                             \
	X(graph_nodes, make_nothing, cu.cuGraphGetNodes(small, NULL, SCRATCH(size_t)))                                 \
	X(node_type, make_nothing, cu.cuGraphNodeGetType(small_node, SCRATCH(int)))                                    \
	X(node_params, make_nothing, cu.cuGraphKernelNodeGetParams_v2(small_node, SCRATCH(struct cu_kernel_params)))   \
	X(instantiate, make_nothing, cu.cuGraphInstantiateWithFlags(&exec, small, 0))                                  \
	X(exec_update, make_exec, cu.cuGraphExecUpdate_v2(exec, small, SCRATCH(struct cu_update_result)))              \
	X(exec_destroy, make_exec, cu.cuGraphExecDestroy(exec))                                                        \
	X(node_enabled, make_exec, cu.cuGraphNodeSetEnabled(exec, small_node, 0))                                      \
	X(graph_launch, make_exec, cu.cuGraphLaunch(exec, other))                                                      \
	X(graph_launch_legacy, make_exec, cu.cuGraphLaunch(exec, NULL))                                                \
	X(graph_upload, make_exec, cu.cuGraphUpload(exec, other))

ROWS(ROW)

static const struct row {
	const char *name;
	void (*make)(void);
	cu_result (*call)(void);
} rows[] = {
#define ENTRY(name, made, expression) { #name, made, name },
	ROWS(ENTRY)
};

static const struct column {
	const char *name;
	int mode;
	bool blocking, relaxed, own;
} columns[] = {
	{ "GLOBAL", CU_MODE_GLOBAL, false, false, false },
	{ "GLOBAL, call RELAXED", CU_MODE_GLOBAL, false, true, false },
	{ "THREAD_LOCAL", CU_MODE_THREAD_LOCAL, false, false, false },
	{ "blocking stream, call RELAXED", CU_MODE_GLOBAL, true, true, false },
	{ "own GLOBAL", CU_MODE_GLOBAL, false, false, true },
	{ "own GLOBAL, call RELAXED", CU_MODE_GLOBAL, false, true, true },
	{ "own RELAXED", CU_MODE_RELAXED, false, false, true },
};

struct cell {
	const struct row *row;
	const struct column *column;
	cu_result answer;
};

static void make_call(void *argument)
{
	struct cell *cell = argument;
	int mode = CU_MODE_RELAXED;

	if (cell->column->relaxed)
		NEED(cuThreadExchangeStreamCaptureMode, &mode);
	cell->answer = cell->row->call();
	if (cell->column->relaxed)
		NEED(cuThreadExchangeStreamCaptureMode, &mode);
}

static void try_cell(const struct row *row, const struct column *column)
{
	struct cell cell = { row, column, CASE_CRASHED };
	char what[128];
	cu_graph graph = NULL;
	cu_result end;

	snprintf(what, sizeof(what), "during %s", column->name);
	row->make();
	NEED(cuStreamCreate, &capturing, column->blocking ? 0 : CU_STREAM_NON_BLOCKING);
	NEED(cuCtxSynchronize, );
	if (!case_begin(row->name, what))
		return;
	NEED(cuStreamBeginCapture_v2, capturing, column->mode);
	launch_store(capturing, memory, 7);
	if (column->own)
		make_call(&cell);
	else
		in_thread(make_call, &cell);
	end = cu.cuStreamEndCapture(capturing, &graph);
	case_end(cell.answer);
	see("end", end);
	if (graph)
		NEED(cuGraphDestroy, graph);
	NEED(cuCtxSynchronize, );
	NEED(cuStreamDestroy_v2, capturing);
}

void group_matrix(void)
{
	uint32_t value = 1;
	void *params[2];
	struct cu_kernel_params p = store_params(&memory, &value, params);

	device_open();
	p.func = store;
	NEED(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	NEED(cuEventCreate, &event, 0);
	NEED(cuEventRecord, event, other);
	NEED(cuGraphCreate, &small, 0);
	NEED(cuGraphAddKernelNode_v2, &small_node, small, NULL, 0, &p);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t j = 0; j < sizeof(columns) / sizeof(columns[0]); j++)
			try_cell(&rows[i], &columns[j]);
}
