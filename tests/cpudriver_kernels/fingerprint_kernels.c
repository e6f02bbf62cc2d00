/* SPDX-License-Identifier: Apache-2.0
 *
 * fingerprint_kernels.c: the library's own kernels for the CPU driver, by the host twin.
 */
#include "tests/cpudriver/cpukernel.h"
#include "probes/core/kernel/fingerprint.h"

CPU_KERNEL(slotprobe_fingerprint)
{
	(void)launch;
	fp_host_launch(params[0]);
}

CPU_KERNEL(slotprobe_ready)
{
	(void)launch;
	uint64_t word = *(uint64_t *)params[0];
	__atomic_store_n((uint32_t *)(uintptr_t)word, *(uint32_t *)params[1], __ATOMIC_RELEASE);
}
