/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c: what most groups of conform start from: the primary context of device 0, kernels, a stream, memory.
 */
#include <pthread.h>

#include "conform.h"

cu_context ctx;
cu_function store, add, wide;
cu_stream stream;
cu_deviceptr memory;

/* A memset is not over when the call returns, and the stream does not wait for it. */
void wipe(void)
{
	NEED(cuMemsetD8_v2, memory, 0, MEMORY_BYTES);
	NEED(cuCtxSynchronize, );
}

void device_open(void)
{
	cu_module module;

	NEED(cuInit, 0);
	NEED(cuDevicePrimaryCtxRetain, &ctx, 0);
	NEED(cuCtxSetCurrent, ctx);
	NEED(cuModuleLoadData, &module, conform_ptx);
	NEED(cuModuleGetFunction, &store, module, "conform_store");
	NEED(cuModuleGetFunction, &add, module, "conform_add");
	NEED(cuModuleGetFunction, &wide, module, "conform_wide");
	/* loaded now, so that no later launch has to */
	NEED(cuFuncLoad, store);
	NEED(cuFuncLoad, add);
	NEED(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	NEED(cuMemAlloc_v2, &memory, MEMORY_BYTES);
	wipe();
}

cu_result launch_store(cu_stream on, cu_deviceptr at, uint32_t value)
{
	void *params[] = { &at, &value };

	return cu.cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, on, params, NULL);
}

uint32_t peek(cu_deviceptr at)
{
	uint32_t value = 0xdead;

	NEED(cuCtxSynchronize, );
	NEED(cuMemcpyDtoH_v2, &value, at, sizeof(value));
	return value;
}

struct cu_kernel_params store_params(cu_deviceptr *at, uint32_t *value, void **params)
{
	params[0] = at;
	params[1] = value;
	return (struct cu_kernel_params) { .func = store, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .params = params };
}

struct errand {
	void (*fn)(void *);
	void *argument;
};

static void *thread_main(void *errand)
{
	const struct errand *e = errand;

	NEED(cuCtxSetCurrent, ctx);
	e->fn(e->argument);
	return NULL;
}

void in_thread(void (*fn)(void *), void *argument)
{
	struct errand errand = { fn, argument };
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_main, &errand) || pthread_join(thread, NULL))
		setup_failed("pthread_create", CASE_ABSENT);
}
