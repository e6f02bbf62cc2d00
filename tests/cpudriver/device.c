/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c: initialisation, devices, versions and the names of errors.
 */
#include <stdio.h>
#include <string.h>

#include "cpudriver.h"

cu_result cuInit(unsigned flags)
{
	API(cuInit, NEED_NOTHING);
	return flags ? CU_INVALID_VALUE : cpu_init();
}

cu_result cuDriverGetVersion(int *version)
{
	API(cuDriverGetVersion, NEED_NOTHING);
	if (!version)
		return CU_INVALID_VALUE;
	*version = CPU_DRIVER_VERSION;
	return CU_SUCCESS;
}

cu_result cuDeviceGet(cu_device *device, int ordinal)
{
	API(cuDeviceGet, NEED_INIT);
	if (!device)
		return CU_INVALID_VALUE;
	if (!cpu_device_ok(ordinal))
		return CUX_INVALID_DEVICE;
	*device = ordinal;
	return CU_SUCCESS;
}

cu_result cuDeviceGetCount(int *count)
{
	API(cuDeviceGetCount, NEED_INIT);
	if (!count)
		return CU_INVALID_VALUE;
	*count = cpu_device_count();
	return CU_SUCCESS;
}

cu_result cuDeviceGetName(char *name, int bytes, cu_device device)
{
	API(cuDeviceGetName, NEED_INIT);
	if (!name || bytes < 1)
		return CU_INVALID_VALUE;
	if (!cpu_device_ok(device))
		return CUX_INVALID_DEVICE;
	snprintf(name, (size_t)bytes, "slotprobe CPU driver");
	return CU_SUCCESS;
}

static const struct {
	int attribute, value;
} attributes[] = {
	{ 1, 1024 },                                    /* threads per block */
	{ 2, 1024 },       { 3, 1024 },   { 4, 64 },    /* block */
	{ 5, 0x7fffffff }, { 6, 65535 },  { 7, 65535 }, /* grid */
	{ 8, 49152 },                                   /* shared memory per block */
	{ 9, 65536 },                                   /* constant memory */
	{ 10, 32 },                                     /* warp */
	{ 12, 65536 },                                  /* registers per block */
	{ 13, 1000000 },   { 15, 1 },     { 16, 16 },   /* multiprocessors */
	{ 18, 0 },                                      /* integrated */
	{ 19, 1 },                                      /* maps host memory */
	{ 20, 0 },                                      /* compute mode */
	{ 31, 1 },                                      /* concurrent kernels */
	{ 32, 0 },         { 33, 0 },     { 34, 0 },    { 36, 1000000 }, { 37, 128 }, { 38, 4 << 20 }, /* L2 */
	{ 39, 2048 },                                /* threads per multiprocessor */
	{ 40, 2 },                                   /* copy engines */
	{ 41, 1 },                                   /* unified addressing */
	{ 50, 0 },         { 75, 9 },     { 76, 0 }, /* compute capability */
	{ 78, 1 },                                   /* stream priorities */
	{ 81, 233472 },    { 82, 65536 }, { 83, 0 }, /* managed memory */
	{ 86, 0 },                                   /* host atomics */
	{ 88, 0 },                                   /* pageable memory access */
	{ 91, 1 },                                   /* host pointer usable for registered memory */
	{ 95, 0 },                                   /* cooperative launch */
	{ 97, 232448 },    { 99, 1 },                /* host register */
	{ 102, 1 },                                  /* virtual memory */
	{ 106, 32 },       { 115, 1 },               /* memory pools */
	{ 110, 0 },                                  /* RDMA to virtual memory */
	{ 120, 0 },                                  /* clusters */
};

cu_result cuDeviceGetAttribute(int *value, int attribute, cu_device device)
{
	API(cuDeviceGetAttribute, NEED_INIT);
	if (!value || attribute < 1)
		return CU_INVALID_VALUE;
	if (!cpu_device_ok(device))
		return CUX_INVALID_DEVICE;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		if (attributes[i].attribute == attribute) {
			*value = attributes[i].value;
			return CU_SUCCESS;
		}
	}
	cpu_say("device attribute %d is not known", attribute);
	return CU_INVALID_VALUE;
}

cu_result cuDeviceTotalMem_v2(size_t *bytes, cu_device device)
{
	API(cuDeviceTotalMem_v2, NEED_INIT);
	if (!bytes)
		return CU_INVALID_VALUE;
	if (!cpu_device_ok(device))
		return CUX_INVALID_DEVICE;
	*bytes = CPU_DEVICE_BYTES;
	return CU_SUCCESS;
}

cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	API(cuMemGetInfo_v2, NEED_CONTEXT);
	if (!free_bytes || !total)
		return CU_INVALID_VALUE;
	*total = CPU_DEVICE_BYTES;
	*free_bytes = CPU_DEVICE_BYTES - memory_in_use(context_current()->device);
	return CU_SUCCESS;
}

static cu_result uuid_of(struct cu_uuid *uuid, cu_device device)
{
	if (!uuid)
		return CU_INVALID_VALUE;
	if (!cpu_device_ok(device))
		return CUX_INVALID_DEVICE;
	memcpy(uuid->bytes, "slotprobe-cpu-\0", 16);
	uuid->bytes[15] = (unsigned char)device;
	return CU_SUCCESS;
}

cu_result cuDeviceGetUuid(struct cu_uuid *uuid, cu_device device)
{
	API(cuDeviceGetUuid, NEED_INIT);
	return uuid_of(uuid, device);
}

cu_result cuDeviceGetUuid_v2(struct cu_uuid *uuid, cu_device device)
{
	API(cuDeviceGetUuid_v2, NEED_INIT);
	return uuid_of(uuid, device);
}

static const struct {
	cu_result error;
	const char *name, *text;
} errors[] = {
	{ CU_SUCCESS, "CUDA_SUCCESS", "no error" },
	{ CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ CU_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down" },
	{ CUX_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
	{ CUX_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
	{ CUX_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
	{ CUX_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
	{ CUX_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
	  "no kernel image is available for execution on the device" },
	{ CUX_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
	{ CUX_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
	{ CUX_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state" },
	{ CUX_LOSSY_QUERY, "CUDA_ERROR_LOSSY_QUERY", "attempted introspection would be semantically lossy" },
	{ CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
	{ CUX_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
	{ CUX_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
	{ CUX_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
	{ CUX_HOST_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
	  "part or all of the requested memory range is already mapped" },
	{ CUX_HOST_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
	  "pointer does not correspond to a registered memory region" },
	{ CUX_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted" },
	{ CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
	{ CU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	  "operation not permitted when stream is capturing" },
	{ CU_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	  "operation failed due to a previous error during capture" },
	{ CUX_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
	  "operation would result in a merge of separate capture sequences" },
	{ CUX_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
	  "capture was not ended in the same stream as it began" },
	{ CUX_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work" },
	{ CUX_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
	  "dependency created on uncaptured work in another stream" },
	{ CU_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
	  "operation would make the legacy stream depend on a capturing blocking stream" },
	{ CUX_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
	  "operation not permitted on an event last recorded in a capturing stream" },
	{ CUX_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
	  "attempt to terminate a thread-local capture sequence from another thread" },
	{ CUX_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
	  "the graph update was not performed because it included changes which violated constraints" },
};

static cu_result describe(cu_result error, const char **text, bool name)
{
	if (!text)
		return CU_INVALID_VALUE;
	*text = NULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		if (errors[i].error == error) {
			*text = name ? errors[i].name : errors[i].text;
			return CU_SUCCESS;
		}
	}
	return CU_INVALID_VALUE;
}

cu_result cuGetErrorName(cu_result error, const char **text)
{
	API(cuGetErrorName, NEED_NOTHING);
	return describe(error, text, true);
}

cu_result cuGetErrorString(cu_result error, const char **text)
{
	API(cuGetErrorString, NEED_NOTHING);
	return describe(error, text, false);
}
