/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: device and pinned memory: mappings of this process, in one table sorted by address.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpudriver.h"

static struct memory *table; /* sorted by base, not overlapping */
static size_t n_memory, room;

/* Index of the first one that ends after address. */
static size_t lower(uint64_t address)
{
	size_t low = 0, high = n_memory;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (table[middle].base + table[middle].bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct memory *memory_find(uint64_t address)
{
	size_t at = lower(address);

	return at < n_memory && table[at].base <= address ? &table[at] : NULL;
}

/* Mappings side by side count as one, as on the device. */
bool memory_has(uint64_t address, uint64_t bytes)
{
	if (!bytes || address + bytes < address)
		return !bytes;
	for (size_t at = lower(address); at < n_memory && table[at].base <= address; at++) {
		uint64_t here = table[at].base + table[at].bytes - address;

		if (table[at].kind == MEMORY_VIRTUAL && !(table[at].flags & MEMORY_VIRTUAL_ACCESS))
			return false;
		if (here >= bytes)
			return true;
		address += here;
		bytes -= here;
	}
	return false;
}

/* NULL where something is already. The result is good until the next insert or remove. */
struct memory *memory_insert(uint64_t base, uint64_t bytes, enum memory_kind kind, cu_context ctx)
{
	size_t at = lower(base);

	if (at < n_memory && table[at].base < base + bytes)
		return NULL;
	if (n_memory == room) {
		struct memory *bigger = cpu_alloc((room ? room * 2 : 64) * sizeof(*table));

		if (n_memory)
			memcpy(bigger, table, n_memory * sizeof(*table));
		free(table);
		table = bigger;
		room = room ? room * 2 : 64;
	}
	memmove(&table[at + 1], &table[at], (n_memory - at) * sizeof(*table));
	n_memory++;
	table[at] = (struct memory) { .base = base, .bytes = bytes, .kind = kind, .ctx = ctx, .id = cpu_next_id() };
	return &table[at];
}

void memory_remove(struct memory *memory)
{
	size_t at = (size_t)(memory - table);

	memmove(&table[at], &table[at + 1], (n_memory - at - 1) * sizeof(*table));
	n_memory--;
}

/* A fresh mapping cannot lie where something is still registered, unless that was unmapped meanwhile. */
static void forget_unmapped(uint64_t base, uint64_t bytes)
{
	for (size_t at = lower(base); at < n_memory && table[at].base < base + bytes; at = lower(base)) {
		if (table[at].kind != MEMORY_REGISTERED)
			return;
		cpu_say("memory at %#llx was unmapped while it was registered", (unsigned long long)table[at].base);
		memory_remove(&table[at]);
	}
}

/* Each with an unmapped page behind it, so that a kernel that runs over the end faults. */
cu_result memory_new(size_t bytes, enum memory_kind kind, int mmap_flags, uint64_t *base)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = (bytes + page - 1) / page * page;
	struct memory *memory;
	char *address;

	if (!bytes)
		return CU_INVALID_VALUE;
	if (bytes > CPU_DEVICE_BYTES ||
	    (kind == MEMORY_DEVICE && memory_in_use(context_current()->device) + bytes > CPU_DEVICE_BYTES))
		return CU_OUT_OF_MEMORY;
	address = mmap(NULL, mapped + page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | mmap_flags, -1, 0);
	if (address == MAP_FAILED)
		return CU_OUT_OF_MEMORY;
	mprotect(address + mapped, page, PROT_NONE);
	forget_unmapped((uint64_t)(uintptr_t)address, mapped + page);
	memory = memory_insert((uint64_t)(uintptr_t)address, bytes, kind, context_current());
	if (!memory) {
		munmap(address, mapped + page);
		return CU_OUT_OF_MEMORY;
	}
	memory->mapped = mapped + page;
	*base = memory->base;
	if (kind == MEMORY_DEVICE)
		api_count_device_bytes(memory_in_use(memory->ctx->device));
	return CU_SUCCESS;
}

void memory_release(uint64_t base)
{
	struct memory *memory = memory_find(base);

	if (!memory)
		return;
	if (memory->mapped)
		munmap((void *)(uintptr_t)memory->base, memory->mapped);
	memory_remove(memory);
}

void memory_end_context(cu_context ctx)
{
	for (size_t i = n_memory; i-- > 0;)
		if (table[i].ctx == ctx && table[i].kind != MEMORY_VIRTUAL && table[i].kind != MEMORY_GRAPH)
			memory_release(table[i].base);
}

size_t memory_in_use(cu_device device)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n_memory; i++)
		if (table[i].kind == MEMORY_DEVICE && table[i].ctx->device == device)
			bytes += table[i].bytes;
	return bytes;
}

/* ---- device memory ---- */

cu_result cuMemAlloc_v2(cu_deviceptr *ptr, size_t bytes)
{
	cu_result result;

	API(cuMemAlloc_v2, NEED_CONTEXT);
	if (!ptr)
		return CU_INVALID_VALUE;
	result = capture_unsafe();
	return result ? result : memory_new(bytes, MEMORY_DEVICE, 0, ptr);
}

cu_result cuMemAlloc(unsigned *ptr, unsigned bytes)
{
	uint64_t base;
	cu_result result;

	API(cuMemAlloc, NEED_CONTEXT);
	if (!ptr)
		return CU_INVALID_VALUE;
	result = capture_unsafe();
	if (!result)
		result = memory_new(bytes, MEMORY_DEVICE, MAP_32BIT, &base);
	if (!result)
		*ptr = (unsigned)base;
	return result;
}

/* Waits for the device first, as the real one does. */
static cu_result free_memory(cu_deviceptr ptr)
{
	struct memory *memory;
	cu_result result;

	result = capture_unsafe();
	if (result || !ptr)
		return result;
	memory = memory_find(ptr);
	if (memory)
		stream_drain(memory->ctx);
	memory = memory_find(ptr);
	if (!memory || memory->base != ptr || (memory->kind != MEMORY_DEVICE && memory->kind != MEMORY_GRAPH))
		return CU_INVALID_VALUE;
	if (memory->kind == MEMORY_DEVICE)
		memory_release(ptr);
	else if (memory->flags & MEMORY_GRAPH_ALLOCATED)
		memory->flags &= ~(unsigned)MEMORY_GRAPH_ALLOCATED;
	else
		return CU_INVALID_VALUE;
	return CU_SUCCESS;
}

cu_result cuMemFree_v2(cu_deviceptr ptr)
{
	API(cuMemFree_v2, NEED_CONTEXT);
	return free_memory(ptr);
}

/* The first form is for contexts of its time, which nobody can make any more. */
cu_result cuMemFree(unsigned ptr)
{
	API(cuMemFree, NEED_CONTEXT);
	(void)ptr;
	return CUX_INVALID_CONTEXT;
}

cu_result cuMemGetAddressRange_v2(cu_deviceptr *base, size_t *bytes, cu_deviceptr ptr)
{
	struct memory *memory;

	API(cuMemGetAddressRange_v2, NEED_CONTEXT);
	memory = memory_find(ptr);
	if (!memory)
		return CU_NOT_FOUND;
	if (base)
		*base = memory->base;
	if (bytes)
		*bytes = memory->bytes;
	return CU_SUCCESS;
}

static cu_result alloc_from_pool(cu_deviceptr *ptr, size_t bytes)
{
	cu_result result = CU_SUCCESS;

	*ptr = 0;
	if (bytes)
		result = memory_new(bytes, MEMORY_DEVICE, 0, ptr);
	if (bytes && !result)
		memory_find(*ptr)->flags = MEMORY_POOL;
	return result;
}

/* In a capture the memory belongs to the graph. */
static cu_result alloc_async(cu_deviceptr *ptr, size_t bytes, cu_stream handle, bool per_thread)
{
	struct work *work;
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (result)
		return result;
	if (!ptr)
		return CU_INVALID_VALUE;
	if (!stream->capture) {
		result = stream->role == STREAM_LEGACY ? capture_implicit(stream->ctx, true) : CU_SUCCESS;
		if (!result)
			result = capture_unsafe();
		return result ? result : alloc_from_pool(ptr, bytes);
	}
	if (stream->capture->broken)
		return CU_CAPTURE_INVALIDATED;
	result = memory_new(bytes, MEMORY_GRAPH, 0, ptr);
	if (result)
		return result;
	work = work_new(WORK_ALLOC, stream->ctx, 0);
	work->alloc.ptr = *ptr;
	work->alloc.bytes = bytes;
	return submit(stream, work, NULL);
}

cu_result cuMemAllocAsync(cu_deviceptr *ptr, size_t bytes, cu_stream stream)
{
	API(cuMemAllocAsync, NEED_CONTEXT);
	return alloc_async(ptr, bytes, stream, false);
}

cu_result cuMemAllocAsync_ptsz(cu_deviceptr *ptr, size_t bytes, cu_stream stream)
{
	API(cuMemAllocAsync_ptsz, NEED_CONTEXT);
	return alloc_async(ptr, bytes, stream, true);
}

static cu_result free_async(cu_deviceptr ptr, cu_stream handle, bool per_thread)
{
	struct memory *memory = memory_find(ptr);
	struct work *work;
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (!result && !stream->capture)
		result = capture_unsafe();
	if (result || !ptr)
		return result;
	if (!memory || memory->base != ptr || (memory->kind != MEMORY_DEVICE && memory->kind != MEMORY_GRAPH))
		return CU_INVALID_VALUE;
	if (stream->capture && memory->kind != MEMORY_GRAPH) {
		capture_break(stream->capture);
		return CU_INVALID_VALUE;
	}
	if (!stream->capture && memory->kind == MEMORY_GRAPH && !(memory->flags & MEMORY_GRAPH_ALLOCATED))
		return CU_INVALID_VALUE;
	if (!stream->capture)
		memory->flags &= ~(unsigned)MEMORY_GRAPH_ALLOCATED;
	work = work_new(memory->kind == MEMORY_GRAPH ? WORK_UNUSED : WORK_FREE, stream->ctx, 0);
	work->ptr = ptr;
	return submit(stream, work, NULL);
}

cu_result cuMemFreeAsync(cu_deviceptr ptr, cu_stream stream)
{
	API(cuMemFreeAsync, NEED_CONTEXT);
	return free_async(ptr, stream, false);
}

cu_result cuMemFreeAsync_ptsz(cu_deviceptr ptr, cu_stream stream)
{
	API(cuMemFreeAsync_ptsz, NEED_CONTEXT);
	return free_async(ptr, stream, true);
}

/* cuIpcOpenMemHandle is not implemented: nothing is open. */
cu_result cuIpcCloseMemHandle(cu_deviceptr ptr)
{
	API(cuIpcCloseMemHandle, NEED_CONTEXT);
	(void)ptr;
	return CU_INVALID_VALUE;
}

/* ---- pinned host memory ---- */

static cu_result alloc_host(void **ptr, size_t bytes, unsigned flags)
{
	uint64_t base;
	cu_result result;

	if (!ptr || flags > 7)
		return CU_INVALID_VALUE;
	result = capture_unsafe();
	if (!result && !bytes) {
		*ptr = NULL;
		return CU_SUCCESS;
	}
	if (!result)
		result = memory_new(bytes, MEMORY_HOST, 0, &base);
	if (result)
		return result;
	memory_find(base)->flags = flags;
	*ptr = (void *)(uintptr_t)base;
	return CU_SUCCESS;
}

cu_result cuMemAllocHost_v2(void **ptr, size_t bytes)
{
	API(cuMemAllocHost_v2, NEED_CONTEXT);
	return alloc_host(ptr, bytes, 0);
}

cu_result cuMemHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
	API(cuMemHostAlloc, NEED_CONTEXT);
	return alloc_host(ptr, bytes, flags);
}

cu_result cuMemFreeHost(void *ptr)
{
	struct memory *memory;
	cu_result result;

	API(cuMemFreeHost, NEED_CONTEXT);
	result = capture_unsafe();
	if (result || !ptr)
		return result;
	stream_drain(context_current());
	memory = memory_find((uint64_t)(uintptr_t)ptr);
	if (!memory || memory->base != (uint64_t)(uintptr_t)ptr || memory->kind != MEMORY_HOST)
		return CU_INVALID_VALUE;
	memory_release(memory->base);
	return CU_SUCCESS;
}

static cu_result host_register(void *ptr, size_t bytes, unsigned flags)
{
	struct memory *memory;
	cu_result result;

	if (!ptr || !bytes || flags > 15)
		return CU_INVALID_VALUE;
	result = capture_unsafe();
	if (result)
		return result;
	memory = memory_insert((uint64_t)(uintptr_t)ptr, bytes, MEMORY_REGISTERED, context_current());
	if (!memory)
		return CUX_HOST_ALREADY_REGISTERED;
	memory->flags = flags;
	return CU_SUCCESS;
}

cu_result cuMemHostRegister(void *ptr, size_t bytes, unsigned flags)
{
	API(cuMemHostRegister, NEED_CONTEXT);
	return host_register(ptr, bytes, flags);
}

cu_result cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags)
{
	API(cuMemHostRegister_v2, NEED_CONTEXT);
	return host_register(ptr, bytes, flags);
}

cu_result cuMemHostUnregister(void *ptr)
{
	struct memory *memory;
	cu_result result;

	API(cuMemHostUnregister, NEED_CONTEXT);
	result = capture_unsafe();
	if (result)
		return result;
	stream_drain(context_current());
	memory = memory_find((uint64_t)(uintptr_t)ptr);
	if (!ptr || (memory && memory->kind == MEMORY_REGISTERED && memory->base != (uint64_t)(uintptr_t)ptr))
		return CU_INVALID_VALUE;
	if (!memory || memory->kind != MEMORY_REGISTERED)
		return CUX_HOST_NOT_REGISTERED;
	memory_remove(memory);
	return CU_SUCCESS;
}

cu_result cuMemHostGetDevicePointer_v2(cu_deviceptr *device, void *host, unsigned flags)
{
	struct memory *memory;

	API(cuMemHostGetDevicePointer_v2, NEED_CONTEXT);
	memory = memory_find((uint64_t)(uintptr_t)host);
	if (!device || flags || !memory || (memory->kind != MEMORY_HOST && memory->kind != MEMORY_REGISTERED))
		return CU_INVALID_VALUE;
	*device = (uint64_t)(uintptr_t)host;
	return CU_SUCCESS;
}

/* ---- asking about a pointer ---- */

/* Memory of a pool, and what is mapped, belong to a device alone. */
static bool has_context(const struct memory *memory)
{
	return memory->kind != MEMORY_VIRTUAL && !(memory->kind == MEMORY_DEVICE && memory->flags & MEMORY_POOL);
}

cu_result cuPointerGetAttribute(void *value, int attribute, cu_deviceptr ptr)
{
	struct memory *memory;
	uint64_t base, bytes;
	bool host;

	API(cuPointerGetAttribute, NEED_INIT);
	memory = memory_find(ptr);
	if (!value || !memory)
		return CU_INVALID_VALUE;
	base = memory->base;
	bytes = memory->bytes;
	if (memory->kind == MEMORY_VIRTUAL)
		virtual_range(ptr, &base, &bytes);
	host = memory->kind == MEMORY_HOST || memory->kind == MEMORY_REGISTERED;
	switch (attribute) {
	case 1: /* context */
		*(cu_context *)value = has_context(memory) ? memory->ctx : NULL;
		return CU_SUCCESS;
	case 2: /* memory type */
		*(unsigned *)value = host ? CUX_MEMORY_HOST : CUX_MEMORY_DEVICE;
		return CU_SUCCESS;
	case 3: /* device pointer */
		*(cu_deviceptr *)value = ptr;
		return CU_SUCCESS;
	case 4: /* host pointer */
		if (!host)
			return CU_INVALID_VALUE;
		*(void **)value = (void *)(uintptr_t)ptr;
		return CU_SUCCESS;
	case 7: /* id of the buffer */
		*(unsigned long long *)value = memory->id;
		return CU_SUCCESS;
	case 8: /* managed */
		*(unsigned *)value = 0;
		return CU_SUCCESS;
	case 9: /* device */
		*(int *)value = memory->ctx->device;
		return CU_SUCCESS;
	case 11: /* start and size of the range */
		*(cu_deviceptr *)value = base;
		return CU_SUCCESS;
	case 12:
		*(size_t *)value = bytes;
		return CU_SUCCESS;
	case 13: /* mapped */
		*(unsigned *)value = 1;
		return CU_SUCCESS;
	default:
		cpu_say("pointer attribute %d is not known", attribute);
		return CU_INVALID_VALUE;
	}
}
