/* SPDX-License-Identifier: Apache-2.0
 *
 * cudart.c: stands in for libcudart.so.13 where there is no toolkit: the few functions that torch_memory_saver's library
 * and the test beside it need, on top of libcuda.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern int cuMemAlloc_v2(uint64_t *ptr, size_t bytes), cuMemFree_v2(uint64_t ptr), cuCtxSynchronize(void);
extern int cuMemcpy(uint64_t dst, uint64_t src, size_t bytes), cuMemGetInfo_v2(size_t *free_bytes, size_t *total);

#define EXPORT __attribute__((visibility("default")))
#define CUDART(result, name, ...)                                                                                      \
	EXPORT result name(__VA_ARGS__);                                                                               \
	result name(__VA_ARGS__)

CUDART(int, cudaMalloc, void **ptr, size_t bytes)
{
	uint64_t made = 0;
	int result = cuMemAlloc_v2(&made, bytes);

	*ptr = (void *)(uintptr_t)made;
	return result;
}

CUDART(int, cudaFree, void *ptr)
{
	return cuMemFree_v2((uintptr_t)ptr);
}

CUDART(int, cudaMallocHost, void **ptr, size_t bytes)
{
	*ptr = malloc(bytes);
	return *ptr ? 0 : 2;
}

CUDART(int, cudaFreeHost, void *ptr)
{
	free(ptr);
	return 0;
}

CUDART(int, cudaMemcpy, void *dst, const void *src, size_t bytes, int kind)
{
	if (kind == 1) /* from the host; the stand-in's device memory is the process's */
		memcpy(dst, src, bytes);
	else if (kind == 2)
		memcpy(dst, src, bytes);
	else
		return cuMemcpy((uintptr_t)dst, (uintptr_t)src, bytes);
	return 0;
}

CUDART(int, cudaMemGetInfo, size_t *free_bytes, size_t *total)
{
	return cuMemGetInfo_v2(free_bytes, total);
}

CUDART(int, cudaGetDevice, int *device)
{
	*device = 0;
	return 0;
}

CUDART(int, cudaSetDevice, int device)
{
	return device ? 101 : 0;
}

CUDART(int, cudaDeviceSynchronize, void)
{
	return cuCtxSynchronize();
}

CUDART(const char *, cudaGetErrorString, int error)
{
	return error ? "error" : "no error";
}
