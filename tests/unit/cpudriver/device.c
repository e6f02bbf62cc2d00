/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c: what the tests of the CPU driver have in common.
 */
#include "device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char kernels_ptx[] = "// the kernels of kernels.c\n"
			   ".version 7.0\n.target sm_70\n.address_size 64\n"
			   ".visible .entry axpy(\n"
			   "\t.param .u64 .ptr .global .align 4 axpy_param_0,\n\t.param .u64 axpy_param_1,\n"
			   "\t.param .f32 axpy_param_2,\n\t.param .u32 axpy_param_3\n)\n"
			   ".maxntid 256, 1, 1\n{\n\t.reg .b32 %r<2>; /* .entry nonsense( */\n\tret;\n}\n"
			   ".visible .entry append(.param .u64 a, .param .u32 b) { ret; }\n"
			   ".visible .entry hold(.param .u64 a)\n{\n\tret;\n}\n"
			   ".entry record(.param .u8 a, .param .align 8 .b8 b[14], .param .u64 c) { ret; }\n"
			   ".visible .entry count_down(.param .u64 a, .param .u64 b) { ret; }\n"
			   ".visible .entry nothing() { ret; }\n"
			   ".visible .entry no_parameters\n{ ret; }\n";

cu_context context;
cu_function axpy, append, hold, record, count_down;

/* The kernels lie beside the program. */
static void name_kernels(void)
{
	char self[4096], path[4200];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = 0;
	*strrchr(self, '/') = 0;
	snprintf(path, sizeof(path), "%s/cpudriver-kernels.so", self);
	setenv("CPUDRIVER_KERNELS", path, 1);
}

int device_setup(void **state)
{
	cu_device device;
	cu_module module;

	(void)state;
	alarm(120); /* a failure while a kernel holds a stream must end, not hang */
	name_kernels();
	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuCtxCreate_v2(&context, 0, device));
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuModuleGetFunction(&axpy, module, "axpy"));
	OK(cuModuleGetFunction(&append, module, "append"));
	OK(cuModuleGetFunction(&hold, module, "hold"));
	OK(cuModuleGetFunction(&record, module, "record"));
	OK(cuModuleGetFunction(&count_down, module, "count_down"));
	return 0;
}

int device_teardown(void **state)
{
	(void)state;
	OK(cuCtxDestroy_v2(context));
	return 0;
}

cu_deviceptr device_new(size_t bytes)
{
	cu_deviceptr ptr;

	OK(cuMemAlloc_v2(&ptr, bytes));
	OK(cuMemsetD8_v2(ptr, 0, bytes));
	OK(cuCtxSynchronize());
	return ptr;
}

void device_read(void *to, cu_deviceptr from, size_t bytes)
{
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH_v2(to, from, bytes));
}

void launch_append(cu_stream stream, cu_deviceptr list, uint32_t value)
{
	void *params[] = { &list, &value };

	OK(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

uint32_t *new_flag(void)
{
	void *flag;

	OK(cuMemHostAlloc(&flag, sizeof(uint32_t), 0));
	*(uint32_t *)flag = 0;
	return flag;
}

void set_flag(uint32_t *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

void launch_hold(cu_stream stream, uint32_t *flag)
{
	cu_deviceptr device;
	void *params[] = { &device };

	OK(cuMemHostGetDevicePointer_v2(&device, flag, 0));
	OK(cuLaunchKernel(hold, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

struct errand {
	void (*fn)(void *);
	void *data;
};

static void *run_errand(void *argument)
{
	struct errand *errand = argument;

	OK(cuCtxSetCurrent(context));
	errand->fn(errand->data);
	return NULL;
}

void elsewhere(void (*fn)(void *), void *data)
{
	struct errand errand = { fn, data };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_errand, &errand), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}
