/* SPDX-License-Identifier: Apache-2.0
 *
 * empty_kernel.c: the kernel of costs.c for the CPU driver.
 */
#include "tests/cpudriver/cpukernel.h"

CPU_KERNEL(bench_empty)
{
	(void)launch;
	(void)params;
}
