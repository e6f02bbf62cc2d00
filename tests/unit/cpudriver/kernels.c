/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.c: host code of the kernels of kernels_ptx (device.c), for the tests of the CPU driver.
 */
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "tests/cpudriver/cpukernel.h"

static uint64_t u64(const void *param)
{
	uint64_t value;

	memcpy(&value, param, sizeof(value));
	return value;
}

static uint32_t u32(const void *param)
{
	uint32_t value;

	memcpy(&value, param, sizeof(value));
	return value;
}

/* axpy(u64 y, u64 x, f32 a, u32 n): y += a * x, one element a thread */
CPU_KERNEL(axpy)
{
	float *y = (float *)(uintptr_t)u64(params[0]), *x = (float *)(uintptr_t)u64(params[1]), a;
	uint32_t n = u32(params[3]);

	memcpy(&a, params[2], sizeof(a));
	for (unsigned i = 0; i < launch->grid[0] * launch->block[0] && i < n; i++)
		y[i] += a * x[i];
}

/* append(u64 list, u32 value): list[++list[0]] = value */
CPU_KERNEL(append)
{
	uint32_t *list = (uint32_t *)(uintptr_t)u64(params[0]);

	(void)launch;
	list[++list[0]] = u32(params[1]);
}

/* hold(u64 flag): until *flag is not 0 */
CPU_KERNEL(hold)
{
	uint32_t *flag = (uint32_t *)(uintptr_t)u64(params[0]);

	(void)launch;
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		sched_yield();
}

/* record(u8 first, struct { u64 a; u32 b; u16 c } by value, u64 out): out = { first, a, b, c, grid.y, shared } */
CPU_KERNEL(record)
{
	uint64_t *out = (uint64_t *)(uintptr_t)u64(params[2]);
	const unsigned char *s = params[1];
	uint16_t c;

	memcpy(&c, s + 12, sizeof(c));
	out[0] = *(unsigned char *)params[0];
	out[1] = u64(s);
	out[2] = u32(s + 8);
	out[3] = c;
	out[4] = launch->grid[1];
	out[5] = launch->shared_bytes;
}

/* count_down(u64 handle, u64 counter): --*counter, and the conditional handle is set while that is not 0 */
CPU_KERNEL(count_down)
{
	uint32_t left = --*(uint32_t *)(uintptr_t)u64(params[1]);

	launch->set_conditional(u64(params[0]), left != 0);
}
