/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels_cpu.c: what the kernels of conform do on the CPU driver.
 */
#include <stdint.h>

#include "tests/cpudriver/cpukernel.h"

#define ARG(type, i) (*(const type *)params[i])

static uint32_t *at(uint64_t address)
{
	return (uint32_t *)(uintptr_t)address;
}

CPU_KERNEL(conform_store)
{
	(void)launch;
	__atomic_store_n(at(ARG(uint64_t, 0)), ARG(uint32_t, 1), __ATOMIC_RELEASE);
}

CPU_KERNEL(conform_add)
{
	for (unsigned i = 0; i < launch->grid[0] * launch->block[0]; i++)
		__atomic_fetch_add(at(ARG(uint64_t, 0)), ARG(uint32_t, 1), __ATOMIC_ACQ_REL);
}

CPU_KERNEL(conform_wide)
{
	(void)launch;
	*at(ARG(uint64_t, 3)) = ((const unsigned char *)params[1])[23];
}

CPU_KERNEL(conform_count_down)
{
	uint32_t left = --*at(ARG(uint64_t, 1));

	launch->set_conditional(ARG(uint64_t, 0), left != 0);
}
