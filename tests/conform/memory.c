/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: allocations of every kind, what can be asked about an address, copies and memsets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "conform.h"

/* The attributes whose value is the same wherever the memory lies. */
static void ask_address(const char *whose, cu_deviceptr ptr, cu_deviceptr base)
{
	static const struct {
		const char *name;
		int attribute;
	} asked[] = { { "context", 1 }, { "type", 2 },   { "device pointer", 3 }, { "host pointer", 4 },
		      { "managed", 8 }, { "device", 9 }, { "start", 11 },         { "size", 12 },
		      { "mapped", 13 }, { "-1", -1 },    { "999", 999 } };

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		char what[96];
		uint64_t value = 0;

		snprintf(what, sizeof(what), "%s: %s", whose, asked[i].name);
		if (T(what, cuPointerGetAttribute, &value, asked[i].attribute, ptr))
			continue;
		switch (asked[i].attribute) {
		case 1:
			see("context", value == (uint64_t)(uintptr_t)ctx ? 1 : value ? 2 : 0);
			break;
		case 3:
		case 4:
			see("same", value == ptr);
			break;
		case 8:
			see("value", (long long)(value & 0xff));
			break;
		case 11:
			see("base", value == base);
			break;
		default:
			see("value", (long long)value);
		}
	}
}

void group_memory(void)
{
	cu_deviceptr ptr = 0, base = 0, other = 0;
	size_t bytes = 0, total = 0;
	unsigned number = 0;

	device_open();
	T("", cuMemAlloc_v2, &ptr, 1000);
	see("aligned to 256", !(ptr % 256));
	T("0 bytes", cuMemAlloc_v2, &other, 0);
	T("no place", cuMemAlloc_v2, NULL, 64);
	T("too much", cuMemAlloc_v2, &other, (size_t)1 << 60);
	T("", cuMemGetAddressRange_v2, &base, &bytes, ptr + 10);
	see("base", base == ptr);
	see("bytes", (long long)bytes);
	T("NULL", cuMemGetAddressRange_v2, &base, &bytes, 0);
	T("", cuMemGetInfo_v2, &bytes, &total);
	see("some", bytes > 0 && bytes <= total);
	ask_address("device", ptr, ptr);
	ask_address("inside", ptr + 8, ptr);
	ask_address("NULL", 0, 0);
	ask_address("stack", (cu_deviceptr)(uintptr_t)&number, 0);
	T("no place", cuPointerGetAttribute, NULL, 2, ptr);
	T("inside", cuMemFree_v2, ptr + 16);
	T("", cuMemFree_v2, ptr);
	T("again", cuMemFree_v2, ptr);
	T("NULL", cuMemFree_v2, 0);
	T("stack", cuMemFree_v2, (cu_deviceptr)(uintptr_t)&number);
	T("NULL, first form", cuMemFree, 0);
	T("", cuMemAllocAsync, &ptr, 1000, stream);
	NEED(cuStreamSynchronize, stream);
	T("0 bytes", cuMemAllocAsync, &other, 0, stream);
	T("no place", cuMemAllocAsync, NULL, 64, stream);
	ask_address("async", ptr, ptr);
	T("", cuMemFreeAsync, ptr, stream);
	NEED(cuStreamSynchronize, stream);
	T("again", cuMemFreeAsync, ptr, stream);
	T("NULL", cuMemFreeAsync, 0, stream);
	T("per thread", cuMemAllocAsync_ptsz, &ptr, 1000, NULL);
	T("per thread", cuMemFreeAsync_ptsz, ptr, NULL);
	NEED(cuMemAllocAsync, &ptr, 64, stream);
	NEED(cuStreamSynchronize, stream);
	T("of cuMemAllocAsync", cuMemFree_v2, ptr);
	NEED(cuMemAlloc_v2, &ptr, 64);
	T("of cuMemAlloc", cuMemFreeAsync, ptr, stream);
	NEED(cuCtxSynchronize, );
	T("not ours", cuIpcCloseMemHandle, memory);
	T("NULL", cuIpcCloseMemHandle, 0);
}

void group_host_memory(void)
{
	void *host = NULL, *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *shared = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cu_deviceptr device = 0;

	device_open();
	T("", cuMemHostAlloc, &host, 100, 0);
	ask_address("pinned", (cu_deviceptr)(uintptr_t)host, (cu_deviceptr)(uintptr_t)host);
	T("pinned", cuMemHostGetDevicePointer_v2, &device, host, 0);
	see("same", device == (cu_deviceptr)(uintptr_t)host);
	T("flags 1", cuMemHostGetDevicePointer_v2, &device, host, 1);
	T("no place", cuMemHostGetDevicePointer_v2, NULL, host, 0);
	T("NULL", cuMemHostGetDevicePointer_v2, &device, NULL, 0);
	T("not pinned", cuMemHostGetDevicePointer_v2, &device, page, 0);
	T("0 bytes", cuMemHostAlloc, &host, 0, 0);
	T("flags 255", cuMemHostAlloc, &host, 100, 255);
	T("no place", cuMemHostAlloc, NULL, 100, 0);
	NEED(cuMemHostAlloc, &host, 100, 0);
	T("", cuMemFreeHost, host);
	T("NULL", cuMemFreeHost, NULL);
	T("not pinned", cuMemFreeHost, page);
	T("", cuMemAllocHost_v2, &host, 100);
	T("of cuMemAllocHost", cuMemFreeHost, host);

	memset(page, 3, 8192);
	T("", cuMemHostRegister_v2, page, 4096, 0);
	T("again", cuMemHostRegister_v2, page, 4096, 0);
	T("over it", cuMemHostRegister_v2, page, 8192, 0);
	ask_address("registered", (cu_deviceptr)(uintptr_t)page, (cu_deviceptr)(uintptr_t)page);
	T("registered", cuMemHostGetDevicePointer_v2, &device, page, 0);
	see("same", device == (cu_deviceptr)(uintptr_t)page);
	T("registered", cuMemFreeHost, page);
	T("inside", cuMemHostUnregister, (char *)page + 64);
	T("", cuMemHostUnregister, page);
	T("again", cuMemHostUnregister, page);
	T("NULL", cuMemHostUnregister, NULL);
	T("NULL", cuMemHostRegister_v2, NULL, 4096, 0);
	T("0 bytes", cuMemHostRegister_v2, page, 0, 0);
	T("flags 255", cuMemHostRegister_v2, page, 4096, 255);
	T("not aligned", cuMemHostRegister_v2, (char *)page + 100, 200, 0);
	T("not aligned", cuMemHostUnregister, (char *)page + 100);
	T("portable, mapped, shared", cuMemHostRegister_v2, shared, 65536,
	  CU_HOSTREGISTER_PORTABLE | CU_HOSTREGISTER_DEVICEMAP);
	T("portable, mapped, shared", cuMemHostGetDevicePointer_v2, &device, shared, 0);
	NEED(cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, stream, ((void *[]) { &device, &(uint32_t) { 42 } }), NULL);
	NEED(cuStreamSynchronize, stream);
	see("stored", *(uint32_t *)shared);
	T("shared", cuMemHostUnregister, shared);
}

void group_virtual_memory(void)
{
	struct cux_mem_prop prop = { .type = 1, .location = { 1, 0 } };
	struct cux_mem_access access = { { 1, 0 }, 3 };
	size_t granularity = 0;
	cux_mem_handle handle = 0;
	cu_deviceptr ptr = 0;

	device_open();
	T("", cuMemGetAllocationGranularity, &granularity, &prop, 0);
	see("bytes", (long long)granularity);
	T("", cuMemAddressReserve, &ptr, granularity * 2, 0, 0, 0);
	T("", cuMemCreate, &handle, granularity, &prop, 0);
	ask_address("reserved", ptr, ptr);
	T("", cuMemMap, ptr, granularity, 0, handle, 0);
	T("", cuMemSetAccess, ptr, granularity, &access, 1);
	ask_address("mapped", ptr, ptr);
	T("mapped", cuMemsetD8Async, ptr, 1, 16, stream);
	T("mapped", cuMemFree_v2, ptr);
	see("first byte", peek(ptr) & 255);
	T("half", cuMemUnmap, ptr, granularity / 2);
	T("NULL", cuMemUnmap, 0, granularity);
	T("nothing there", cuMemUnmap, ptr + granularity, granularity);
	T("", cuMemUnmap, ptr, granularity);
	T("again", cuMemUnmap, ptr, granularity);
	T("", cuMemRelease, handle);
	T("", cuMemAddressFree, ptr, granularity * 2);
}

void group_copies(void)
{
	cu_deviceptr ptr = 0;
	uint32_t value = 0x01020304;

	device_open();
	NEED(cuMemAlloc_v2, &ptr, 4096);
	T("", cuMemsetD8Async, ptr, 7, 64, stream);
	see("read", peek(ptr));
	T("0 bytes", cuMemsetD8Async, ptr, 7, 0, stream);
	T("NULL", cuMemsetD8Async, 0, 7, 64, stream);
	T("NULL, 0 bytes", cuMemsetD8Async, 0, 7, 0, stream);
	T("legacy", cuMemsetD8Async, ptr, 8, 64, NULL);
	see("read", peek(ptr));
	T("per thread", cuMemsetD8Async_ptsz, ptr, 9, 64, NULL);
	see("read", peek(ptr));
	T("", cuMemsetD32Async, ptr, 0x11223344, 4, stream);
	see("read", peek(ptr + 12));
	T("not aligned", cuMemsetD32Async, ptr + 2, 1, 4, stream);
	T("", cuMemsetD16Async, ptr, 0x1122, 4, stream);
	T("not aligned", cuMemsetD16Async, ptr + 1, 1, 4, stream);
	T("", cuMemcpyHtoDAsync_v2, ptr, &value, 4, stream);
	see("read", peek(ptr));
	T("0 bytes", cuMemcpyHtoDAsync_v2, ptr, &value, 0, stream);
	T("no destination", cuMemcpyHtoDAsync_v2, 0, &value, 4, stream);
	T("no source", cuMemcpyHtoDAsync_v2, ptr, NULL, 4, stream);
	value = 5;
	T("legacy", cuMemcpyHtoDAsync_v2, ptr, &value, 4, NULL);
	see("read", peek(ptr));
	T("", cuMemcpyHtoD_v2, ptr + 4, &value, 4);
	see("read", peek(ptr + 4));
	value = 0;
	T("", cuMemcpyDtoH_v2, &value, ptr, 4);
	see("read", value);
	T("no destination", cuMemcpyDtoH_v2, NULL, ptr, 4);
	T("no source", cuMemcpyDtoH_v2, &value, 0, 4);
	T("", cuMemcpyDtoDAsync_v2, ptr + 64, ptr, 4, stream);
	see("read", peek(ptr + 64));
	T("", cuMemcpyAsync, ptr + 128, ptr, 4, stream);
	see("read", peek(ptr + 128));
	T("", cuMemcpyDtoHAsync_v2, &value, ptr, 4, stream);
	T("", cuMemFree_v2, ptr);
}
