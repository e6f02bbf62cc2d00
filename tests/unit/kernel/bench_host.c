/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_host.c: how fast the host twin is, against memcpy of the same bytes. `make bench-host` prints it.
 */
#include "probes/core/kernel/fingerprint_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Best of several: other work on the machine only ever slows. dtype -1: memcpy. */
static double gigabytes_per_second(int dtype, const char *data, char *copy, size_t bytes)
{
	double best = 1e9;
	size_t repeat = (64u << 20) / bytes;
	for (int i = 0; i < 7; i++) {
		double begun = now();
		for (size_t r = 0; r < repeat; r++) {
			struct fp_print print;
			if (dtype < 0)
				memcpy(copy, data, bytes);
			else
				fp_host_plane(data, bytes, bytes, (uint32_t)dtype, &print);
			__asm__ volatile("" ::"r"(copy) : "memory");
		}
		double took = (now() - begun) / (double)repeat;
		best = took < best ? took : best;
	}
	return (double)bytes / best * 1e-9;
}

int main(void)
{
	static const struct {
		const char *name;
		uint32_t dtype;
	} dtypes[] = { { "f32", FP_F32 }, { "bf16", FP_BF16 },     { "f16", FP_F16 }, { "raw", FP_RAW },
		       { "f64", FP_F64 }, { "f8e4m3", FP_F8E4M3 }, { "i8", FP_I8 } };
	const size_t most = 64u << 20;
	char *data = malloc(most), *copy = malloc(most);
	if (!data || !copy)
		return 1;
	for (size_t i = 0; i < most; i++) /* finite in every dtype */
		data[i] = (char)(i * 2654435761u >> 13 & 0x3b);
	memset(copy, 1, most);
	printf("%-8s %10s %12s %8s\n", "dtype", "KiB", "GB/s", "/memcpy");
	for (size_t bytes = 1u << 20; bytes <= most; bytes <<= 6) {
		double memcpy_rate = gigabytes_per_second(-1, data, copy, bytes);
		printf("%-8s %10zu %12.2f\n", "memcpy", bytes >> 10, memcpy_rate);
		for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
			double rate = gigabytes_per_second((int)dtypes[i].dtype, data, copy, bytes);
			printf("%-8s %10zu %12.2f %8.2f\n", dtypes[i].name, bytes >> 10, rate, rate / memcpy_rate);
		}
	}
	free(data);
	free(copy);
	return 0;
}
