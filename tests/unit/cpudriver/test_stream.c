/* SPDX-License-Identifier: Apache-2.0
 *
 * test_stream.c: asynchrony and order: streams, events, the legacy rules, copies, memory.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

static void expect_list(cu_deviceptr list, const uint32_t *values, uint32_t n)
{
	uint32_t got[64];

	device_read(got, list, sizeof(got));
	assert_int_equal(got[0], n);
	assert_memory_equal(&got[1], values, n * sizeof(*values));
}

/* What was launched runs later, in order, and the launching thread does not wait. */
static void test_asynchrony(void **state)
{
	static const uint32_t order[] = { 1, 2, 3 };
	uint32_t *flag = new_flag();
	cu_deviceptr list = device_new(256);
	cu_stream stream;
	cu_event event;

	(void)state;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	OK(cuEventQuery(event)); /* never recorded: nothing to wait for */
	launch_hold(stream, flag);
	for (uint32_t i = 1; i <= 3; i++)
		launch_append(stream, list, i);
	OK(cuEventRecord(event, stream));
	assert_int_equal(cuStreamQuery(stream), CUX_NOT_READY);
	assert_int_equal(cuEventQuery(event), CUX_NOT_READY);
	set_flag(flag);
	OK(cuStreamSynchronize(stream));
	OK(cuStreamQuery(stream));
	OK(cuEventQuery(event));
	expect_list(list, order, 3);
	OK(cuEventDestroy_v2(event));
	OK(cuStreamDestroy_v2(stream));
	assert_int_equal(cuStreamSynchronize(stream), CUX_INVALID_HANDLE);
}

/* Two streams run at the same time; an event orders them. */
static void test_event_order(void **state)
{
	static const uint32_t order[] = { 1, 2 };
	uint32_t *flag = new_flag();
	cu_deviceptr list = device_new(256), aside = device_new(256);
	cu_stream first, second, free_one;
	cu_event event;

	(void)state;
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	launch_hold(first, flag);
	launch_append(first, list, 1);
	OK(cuEventRecord(event, first));
	OK(cuStreamWaitEvent(second, event, 0));
	launch_append(second, list, 2);
	launch_append(free_one, aside, 3);
	OK(cuStreamSynchronize(free_one)); /* not held up by the others */
	assert_int_equal(cuStreamQuery(second), CUX_NOT_READY);
	/* a later record does not move what was already waited for */
	OK(cuEventRecord(event, free_one));
	OK(cuEventSynchronize(event));
	usleep(30000);
	assert_int_equal(cuStreamQuery(second), CUX_NOT_READY);
	set_flag(flag);
	OK(cuStreamSynchronize(second));
	expect_list(list, order, 2);
}

static void test_elapsed_time(void **state)
{
	uint32_t *flag = new_flag();
	cu_event start, end, untimed;
	cu_stream stream;
	float ms = -1;

	(void)state;
	OK(cuStreamCreate(&stream, 0));
	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&end, 0));
	OK(cuEventCreate(&untimed, CUX_EVENT_DISABLE_TIMING));
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUX_INVALID_HANDLE);
	OK(cuEventRecord(start, stream));
	OK(cuEventRecord(untimed, stream));
	launch_hold(stream, flag);
	OK(cuEventRecord(end, stream));
	assert_int_equal(cuEventElapsedTime(&ms, start, end), CUX_NOT_READY);
	usleep(20000);
	set_flag(flag);
	OK(cuEventSynchronize(end));
	OK(cuEventElapsedTime(&ms, start, end));
	assert_true(ms >= 15 && ms < 60000);
	assert_int_equal(cuEventElapsedTime(&ms, untimed, end), CUX_INVALID_HANDLE);
}

/* The legacy stream waits for blocking streams and they for it; others are left alone. */
static void test_legacy_rules(void **state)
{
	static const uint32_t order[] = { 1, 2, 3 };
	uint32_t *flag = new_flag();
	cu_deviceptr list = device_new(256), aside = device_new(256);
	cu_stream one, two, other;

	(void)state;
	OK(cuStreamCreate(&one, 0));
	OK(cuStreamCreate(&two, 0));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	launch_hold(one, flag);
	launch_append(one, list, 1);
	launch_append(NULL, list, 2);
	launch_append(two, list, 3);
	launch_append(other, aside, 4);
	OK(cuStreamSynchronize(other));
	usleep(30000);
	assert_int_equal(cuStreamQuery(two), CUX_NOT_READY);
	assert_int_equal(cuStreamQuery(CU_LEGACY), CUX_NOT_READY);
	set_flag(flag);
	OK(cuStreamSynchronize(two));
	expect_list(list, order, 3);
}

/* 0 means the legacy stream or the per-thread one, by the form of the call. */
static void test_default_streams(void **state)
{
	uint32_t *flag = new_flag();
	unsigned long long legacy, mine, again;
	cu_deviceptr device;
	void *params[] = { &device };

	(void)state;
	OK(cuStreamGetId(NULL, &legacy));
	OK(cuStreamGetId_ptsz(NULL, &mine));
	OK(cuStreamGetId(CU_PER_THREAD, &again));
	assert_true(mine == again);
	assert_true(mine != legacy);
	OK(cuStreamGetId_ptsz(CU_LEGACY, &again));
	assert_true(legacy == again);
	OK(cuMemHostGetDevicePointer_v2(&device, flag, 0));
	OK(cuLaunchKernel_ptsz(hold, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	assert_int_equal(cuStreamQuery(CU_PER_THREAD), CUX_NOT_READY);
	assert_int_equal(cuStreamQuery_ptsz(NULL), CUX_NOT_READY);
	set_flag(flag);
	OK(cuStreamSynchronize_ptsz(NULL));
}

static void add_one(void *data)
{
	cu_event event;

	++*(int *)data;
	assert_int_equal(cuEventCreate(&event, 0), CUX_NOT_PERMITTED);
}

static void test_host_function(void **state)
{
	cu_stream stream;
	int n = 0;

	(void)state;
	OK(cuStreamCreate(&stream, 0));
	for (int i = 0; i < 10; i++)
		OK(cuLaunchHostFunc(stream, add_one, &n));
	OK(cuStreamSynchronize(stream));
	assert_int_equal(n, 10);
}

/* A pageable source is taken at the call, a pinned one when the copy runs. */
static void test_copies(void **state)
{
	uint32_t *flag = new_flag(), *pinned = new_flag(), pageable[2] = { 1, 1 }, back[2] = { 0 };
	cu_deviceptr device = device_new(64);
	cu_stream stream;

	(void)state;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	*pinned = 1;
	launch_hold(stream, flag);
	OK(cuMemcpyHtoDAsync_v2(device, pageable, 4, stream));
	OK(cuMemcpyHtoDAsync_v2(device + 4, pinned, 4, stream));
	pageable[0] = *pinned = 2;
	set_flag(flag);
	OK(cuMemcpyDtoHAsync_v2(back, device, 8, stream)); /* to pageable memory: complete on return */
	assert_int_equal(back[0], 1);
	assert_int_equal(back[1], 2);
	OK(cuMemcpyAsync(device + 8, device, 8, stream));
	OK(cuMemsetD32Async(device + 16, 0x01020304, 3, stream));
	OK(cuMemsetD16Async(device + 28, 0x0506, 1, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpy((cu_deviceptr)(uintptr_t)back, device + 8, 8));
	assert_int_equal(back[1], 2);
	OK(cuMemcpyDtoH_v2(back, device + 24, 8));
	assert_int_equal(back[0], 0x01020304);
	assert_int_equal(back[1] & 0xffff, 0x0506);
}

static void test_bad_copies(void **state)
{
	cu_deviceptr device = device_new(64);
	char host[128] = "";

	(void)state;
	OK(cuMemcpyHtoD_v2(device, host, 64));
	assert_int_equal(cuMemcpyHtoD_v2(device, host, 65), CU_INVALID_VALUE);
	assert_int_equal(cuMemcpyHtoD_v2(device + 60, host, 5), CU_INVALID_VALUE);
	assert_int_equal(cuMemcpyDtoH_v2(host, (cu_deviceptr)(uintptr_t)host, 4), CU_INVALID_VALUE);
	assert_int_equal(cuMemsetD8_v2(device - 1, 0, 2), CU_INVALID_VALUE);
	assert_int_equal(cuMemsetD32_v2(device, 0, 17), CU_INVALID_VALUE);
	assert_int_equal(cuMemsetD32_v2(device + 2, 0, 1), CU_INVALID_VALUE);
	OK(cuMemFree_v2(device));
	assert_int_equal(cuMemcpyHtoD_v2(device, host, 4), CU_INVALID_VALUE);
	assert_int_equal(cuMemFree_v2(device), CU_INVALID_VALUE);
	OK(cuMemFree_v2(0));
}

static void test_host_memory(void **state)
{
	char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cu_deviceptr device;
	unsigned type;
	int ordinal;

	(void)state;
	assert_int_equal(cuMemHostGetDevicePointer_v2(&device, memory, 0), CU_INVALID_VALUE);
	OK(cuMemHostRegister_v2(memory, 8192, CU_HOSTREGISTER_PORTABLE | CU_HOSTREGISTER_DEVICEMAP));
	assert_int_equal(cuMemHostRegister_v2(memory + 4096, 4096, 0), CUX_HOST_ALREADY_REGISTERED);
	OK(cuMemHostGetDevicePointer_v2(&device, memory + 8, 0));
	assert_true(device == (cu_deviceptr)(uintptr_t)memory + 8);
	OK(cuPointerGetAttribute(&type, 2, device));
	assert_int_equal(type, CUX_MEMORY_HOST);
	OK(cuMemHostUnregister(memory));
	assert_int_equal(cuMemHostUnregister(memory), CUX_HOST_NOT_REGISTERED);
	assert_int_equal(cuPointerGetAttribute(&type, 2, device), CU_INVALID_VALUE);
	/* unmapped while registered: what comes to lie there is not disturbed by it */
	OK(cuMemHostRegister_v2(memory, 8192, 0));
	munmap(memory, 8192);
	for (int i = 0; i < 64; i++)
		OK(cuMemAlloc_v2(&device, 100));
	assert_int_equal(cuMemAlloc_v2(&device, (size_t)1 << 40), CU_OUT_OF_MEMORY);
	device = device_new(100);
	OK(cuPointerGetAttribute(&type, 2, device + 99));
	assert_int_equal(type, CUX_MEMORY_DEVICE);
	assert_int_equal(cuPointerGetAttribute(&type, 2, device + 100), CU_INVALID_VALUE);
	OK(cuPointerGetAttribute(&ordinal, 9, device));
	assert_int_equal(ordinal, 0);
}

static void *let_go(void *flag)
{
	usleep(20000);
	set_flag(flag);
	return NULL;
}

/* Freeing waits for the device. */
static void test_free_waits(void **state)
{
	uint32_t *flag = new_flag();
	cu_deviceptr list = device_new(64);
	cu_stream stream;
	pthread_t thread;

	(void)state;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	launch_hold(stream, flag);
	launch_append(stream, list, 1);
	pthread_create(&thread, NULL, let_go, flag);
	OK(cuMemFree_v2(list)); /* were it unmapped at once, the kernel would fault */
	OK(cuStreamQuery(stream));
	pthread_join(thread, NULL);
}

static void test_stream_ordered_memory(void **state)
{
	uint32_t *flag = new_flag();
	cu_deviceptr list;
	cu_context ctx;
	cu_stream stream;

	(void)state;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAllocAsync(&list, 64, stream));
	OK(cuMemsetD8Async(list, 0, 64, stream));
	launch_hold(stream, flag);
	launch_append(stream, list, 1);
	OK(cuPointerGetAttribute(&ctx, 1, list));
	assert_null(ctx); /* memory of a pool belongs to the device */
	OK(cuMemFreeAsync(list, stream));
	set_flag(flag);
	OK(cuStreamSynchronize(stream));
	assert_int_equal(cuMemsetD8Async(list, 0, 64, stream), CU_INVALID_VALUE);
}

static void test_virtual_memory(void **state)
{
	struct cux_mem_prop prop = { .type = 1, .location = { 1, 0 } };
	struct cux_mem_access access = { { 1, 0 }, 3 };
	cu_deviceptr space;
	cux_mem_handle handle;
	cu_deviceptr start;
	size_t granule, bytes;

	(void)state;
	OK(cuMemGetAllocationGranularity(&granule, &prop, 0));
	OK(cuMemAddressReserve(&space, 2 * granule, 0, 0, 0));
	OK(cuMemCreate(&handle, granule, &prop, 0));
	assert_int_equal(cuMemsetD8_v2(space, 1, 8), CU_INVALID_VALUE);
	OK(cuMemMap(space, granule, 0, handle, 0));
	assert_int_equal(cuMemsetD8_v2(space, 1, 8), CU_INVALID_VALUE); /* no access yet */
	OK(cuMemSetAccess(space, granule, &access, 1));
	OK(cuMemsetD8_v2(space, 1, granule));
	OK(cuCtxSynchronize());
	OK(cuMemUnmap(space, granule));
	assert_int_equal(cuMemsetD8_v2(space, 1, 8), CU_INVALID_VALUE);
	/* the physical memory kept what was written */
	OK(cuMemMap(space + granule, granule, 0, handle, 0));
	OK(cuMemSetAccess(space + granule, granule, &access, 1));
	assert_int_equal(*(volatile unsigned char *)(uintptr_t)(space + granule + 5), 1);
	/* the range that is told is the one that was reserved */
	OK(cuPointerGetAttribute(&start, 11, space + granule));
	OK(cuPointerGetAttribute(&bytes, 12, space + granule));
	assert_true(start == space && bytes == 2 * granule);
	assert_int_equal(cuPointerGetAttribute(&start, 11, space), CU_INVALID_VALUE);
	OK(cuMemRelease(handle));
	OK(cuMemUnmap(space + granule, granule));
	OK(cuMemUnmap(space + granule, granule)); /* nothing is there any more */
	assert_int_equal(cuMemUnmap(space, granule / 2), CU_INVALID_VALUE);
	OK(cuMemAddressFree(space, 2 * granule));
}

/* A context ends with everything that is in it; the current one of a thread can be a dead one. */
static void test_context_end(void **state)
{
	cu_context ctx, current;
	cu_stream stream;
	cu_deviceptr ptr;
	cu_graph graph;

	(void)state;
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemAlloc_v2(&ptr, 64));
	OK(cuMemsetD8Async(ptr, 1, 64, stream));
	OK(cuStreamGetCtx(stream, &current));
	assert_ptr_equal(current, ctx);
	OK(cuStreamBeginCapture_v2(stream, CU_MODE_GLOBAL));
	OK(cuCtxPushCurrent_v2(context));
	OK(cuCtxDestroy_v2(ctx));
	assert_int_equal(cuStreamEndCapture(stream, &graph), CUX_INVALID_HANDLE);
	assert_int_equal(cuMemsetD8_v2(ptr, 1, 64), CU_INVALID_VALUE);
	assert_int_equal(cuCtxDestroy_v2(ctx), CUX_INVALID_CONTEXT);
	OK(cuCtxPopCurrent_v2(&current));
	assert_int_equal(cuStreamCreate(&stream, 0), CUX_CONTEXT_IS_DESTROYED);
	OK(cuCtxSetCurrent(context));
	/* it is not forgotten that a capture was open: nothing of it is left to forbid anything */
	OK(cuMemAlloc_v2(&ptr, 64));
}

static void test_primary_context(void **state)
{
	cu_context primary, again;
	cu_stream stream;
	unsigned flags;
	int active;

	(void)state;
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 0);
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuDevicePrimaryCtxRetain(&again, 0));
	assert_ptr_equal(primary, again);
	OK(cuCtxPushCurrent_v2(primary));
	OK(cuStreamCreate(&stream, 0));
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuStreamQuery(stream));
	OK(cuDevicePrimaryCtxReset_v2(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 0);
	assert_int_equal(cuStreamQuery(stream), CUX_CONTEXT_IS_DESTROYED);
	OK(cuDevicePrimaryCtxRetain(&again, 0));
	assert_ptr_equal(primary, again);
	assert_int_equal(cuStreamQuery(stream), CUX_INVALID_HANDLE);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 0);
	assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), CUX_INVALID_CONTEXT);
	OK(cuCtxPopCurrent_v2(&again));
}

static void test_green_context(void **state)
{
	struct cux_dev_resource resource;
	cux_resource_desc desc;
	cu_green_ctx green, answer;
	cu_context ctx, its;
	cu_stream stream;

	(void)state;
	OK(cuDeviceGetDevResource(0, &resource, 1));
	OK(cuDevResourceGenerateDesc(&desc, &resource, 1));
	OK(cuGreenCtxCreate(&green, desc, 0, 1));
	OK(cuCtxFromGreenCtx(&ctx, green));
	OK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	OK(cuStreamGetCtx(stream, &its));
	assert_ptr_equal(its, ctx);
	assert_ptr_not_equal(its, context);
	OK(cuStreamGetCtx_v2(stream, &its, &answer));
	assert_ptr_equal(answer, green);
	assert_null(its);
	OK(cuGreenCtxDestroy(green));
	assert_int_equal(cuStreamQuery(stream), CUX_INVALID_HANDLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asynchrony),
		cmocka_unit_test(test_event_order),
		cmocka_unit_test(test_elapsed_time),
		cmocka_unit_test(test_legacy_rules),
		cmocka_unit_test(test_default_streams),
		cmocka_unit_test(test_host_function),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_bad_copies),
		cmocka_unit_test(test_host_memory),
		cmocka_unit_test(test_free_waits),
		cmocka_unit_test(test_stream_ordered_memory),
		cmocka_unit_test(test_virtual_memory),
		cmocka_unit_test(test_context_end),
		cmocka_unit_test(test_primary_context),
		cmocka_unit_test(test_green_context),
	};

	return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
