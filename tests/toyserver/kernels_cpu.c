/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels_cpu.c: the model's kernels as a shared object for the CPU driver.
 */
#include "kernels.cu"
#include "tests/cpudriver/cpukernel.h"

#define ARG(type, i) (*(const type *)params[i])
#define FOR_BLOCKS   for (uint32_t block = 0; block < launch->grid[0]; block++)

CPU_KERNEL(toy_embed)
{
	FOR_BLOCKS toy_embed(block, ARG(struct toy_rows, 0));
}

CPU_KERNEL(toy_layer)
{
	FOR_BLOCKS toy_layer(block, ARG(struct toy_layer_args, 0));
}

CPU_KERNEL(toy_output)
{
	FOR_BLOCKS toy_output(block, ARG(struct toy_rows, 0), ARG(uint64_t, 1));
}

CPU_KERNEL(toy_track)
{
	FOR_BLOCKS toy_track(block, ARG(uint64_t, 0), ARG(uint64_t, 1), ARG(uint64_t, 2), ARG(uint64_t, 3),
			     ARG(uint64_t, 4), ARG(int64_t, 5), ARG(int64_t, 6));
}

CPU_KERNEL(toy_wipe)
{
	FOR_BLOCKS toy_wipe(block, ARG(uint64_t, 0), ARG(uint64_t, 1), ARG(uint64_t, 2), ARG(int64_t, 3),
			    ARG(int64_t, 4), ARG(int32_t, 5));
}

CPU_KERNEL(toy_stray)
{
	FOR_BLOCKS toy_stray(block, ARG(uint64_t, 0));
}
