/* SPDX-License-Identifier: Apache-2.0
 *
 * cpukernel.h: how a kernel is written for the CPU driver.
 *
 * The module image that the program loads is PTX text: from its `.visible .entry NAME(...)` lines the driver takes names
 * and parameter layout. The code comes from shared objects, which export for each entry
 *
 *	void cpu_kernel_NAME(const struct cpu_kernel_launch *launch, void **params);
 *
 * One call executes the whole grid. params[i] points to a copy of the bytes of the i-th parameter (a struct passed by
 * value is one parameter). Device addresses are plain host addresses. It runs on the thread of the stream, so two
 * kernels on two streams run at the same time, as on a GPU: what others poll must be written with release ordering.
 *
 * Searched in this order: the shared objects of $CPUDRIVER_KERNELS (paths, colon-separated), then every *.so in the
 * folder `kernels` beside libcuda.so.1. An entry that none of them exports cannot be got (CUDA_ERROR_NOT_FOUND).
 */
#ifndef CPUKERNEL_H
#define CPUKERNEL_H

#include <stdint.h>

struct cpu_kernel_launch {
	unsigned grid[3], block[3], shared_bytes;
	/* cudaGraphSetConditional() of device code */
	void (*set_conditional)(uint64_t handle, unsigned value);
};

/* Put before a kernel's definition, so that it is exported from an object built with hidden symbols; declares it too:
 *	CPU_KERNEL(saxpy) { float a = *(float *)params[0]; ... } */
#define CPU_KERNEL(name)                                                                                               \
	__attribute__((visibility("default"))) void cpu_kernel_##name(const struct cpu_kernel_launch *launch,          \
								      void **params);                                  \
	__attribute__((visibility("default"))) void cpu_kernel_##name(const struct cpu_kernel_launch *launch,          \
								      void **params)

#endif
