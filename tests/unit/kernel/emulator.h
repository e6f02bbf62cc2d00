/* SPDX-License-Identifier: Apache-2.0
 *
 * emulator.h: enough of CUDA C++ to compile fingerprint.cu with g++ and to run its blocks on the CPU, one after the
 * other, each block's threads as coroutines of one thread. In what order blocks and threads get their turn is chosen by
 * the test. What it cannot show: anything about memory ordering between blocks, and the device's own conversions.
 */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FP_EMULATED
#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__      static
#define __launch_bounds__(...)

struct emulated_index {
	uint32_t x;
};
extern struct emulated_index threadIdx, blockIdx;

struct uint4 {
	uint32_t x, y, z, w;
};

static inline struct uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
	struct uint4 v = { x, y, z, w };
	return v;
}

/* Vectors must be aligned, as on the device. */
static inline struct uint4 __ldcs(const struct uint4 *p)
{
	if ((uintptr_t)p % 16)
		abort();
	return *p;
}

static inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift)
{
	return (uint32_t)(((uint64_t)high << 32 | low) >> (shift & 31));
}

template <typename T> static inline T min(T a, T b)
{
	return a < b ? a : b;
}

template <typename T> static inline T max(T a, T b)
{
	return a > b ? a : b;
}

/* Waits until all of the block's (warp's) live threads are here. The block's returns how many came with p != 0. */
int emulated_barrier(int p);
void emulated_warp_barrier(void);
extern unsigned char emulated_exchange[1024][16];

static inline void __syncthreads(void)
{
	emulated_barrier(0);
}

static inline int __syncthreads_or(int p)
{
	return emulated_barrier(p) != 0;
}

template <typename T> static inline T __shfl_xor_sync(unsigned mask, T v, int apart)
{
	T other;
	(void)mask;
	memcpy(emulated_exchange[threadIdx.x], &v, sizeof(v));
	emulated_warp_barrier();
	memcpy(&other, emulated_exchange[threadIdx.x ^ (unsigned)apart], sizeof(v));
	emulated_warp_barrier();
	return other;
}

static inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long v)
{
	unsigned long long old = *p;
	*p += v;
	return old;
}

static inline void store_relaxed_system(unsigned long long *p, unsigned long long v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

static inline void store_release_system(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

#endif
