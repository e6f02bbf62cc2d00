/* SPDX-License-Identifier: Apache-2.0
 *
 * vmm.c: virtual memory: reserved addresses, physical memory (a memfd each), mappings of the one at the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpudriver.h"

#define GRANULE ((size_t)2 << 20)

struct reservation {
	uint64_t base, bytes;
	struct reservation *next;
};

struct physical {
	cux_mem_handle handle;
	int fd;
	size_t bytes;
	struct physical *next;
};

static struct reservation *reservations;
static struct physical *physicals;

static bool good_size(size_t bytes)
{
	return bytes && bytes % GRANULE == 0;
}

static struct reservation *reservation_of(uint64_t ptr, size_t bytes)
{
	struct reservation *r = reservations;

	while (r && (ptr < r->base || ptr + bytes > r->base + r->bytes))
		r = r->next;
	return r;
}

/* To who asks about a pointer, memory extends as far as the addresses that were reserved with it, holes included. */
void virtual_range(uint64_t address, uint64_t *base, uint64_t *bytes)
{
	const struct reservation *r = reservation_of(address, 1);

	if (!r)
		return;
	*base = r->base;
	*bytes = r->bytes;
}

cu_result cuMemGetAllocationGranularity(size_t *bytes, const struct cux_mem_prop *prop, int option)
{
	API(cuMemGetAllocationGranularity, NEED_INIT);
	if (!bytes || !prop || option < 0 || option > 1)
		return CU_INVALID_VALUE;
	*bytes = GRANULE;
	return CU_SUCCESS;
}

cu_result cuMemAddressReserve(cu_deviceptr *ptr, size_t bytes, size_t alignment, cu_deviceptr hint,
			      unsigned long long flags)
{
	struct reservation *r;
	char *address, *aligned;

	API(cuMemAddressReserve, NEED_INIT);
	if (!ptr || !good_size(bytes) || flags || alignment > GRANULE)
		return CU_INVALID_VALUE;
	address = mmap((void *)(uintptr_t)hint, bytes + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);
	if (address == MAP_FAILED)
		return CU_OUT_OF_MEMORY;
	aligned = (char *)(((uintptr_t)address + GRANULE - 1) / GRANULE * GRANULE);
	if (aligned != address)
		munmap(address, (size_t)(aligned - address));
	if (aligned + bytes != address + bytes + GRANULE)
		munmap(aligned + bytes, (size_t)(address + GRANULE - aligned));
	r = cpu_alloc(sizeof(*r));
	*r = (struct reservation) { (uint64_t)(uintptr_t)aligned, bytes, reservations };
	reservations = r;
	*ptr = r->base;
	return CU_SUCCESS;
}

cu_result cuMemAddressFree(cu_deviceptr ptr, size_t bytes)
{
	API(cuMemAddressFree, NEED_INIT);
	for (struct reservation **link = &reservations; *link; link = &(*link)->next) {
		struct reservation *r = *link;

		if (r->base != ptr || r->bytes != bytes)
			continue;
		*link = r->next;
		munmap((void *)(uintptr_t)ptr, bytes);
		free(r);
		return CU_SUCCESS;
	}
	return CU_INVALID_VALUE;
}

cu_result cuMemCreate(cux_mem_handle *handle, size_t bytes, const struct cux_mem_prop *prop, unsigned long long flags)
{
	struct physical *p;
	cu_result result;
	int fd;

	API(cuMemCreate, NEED_INIT);
	if (!handle || !prop || !good_size(bytes) || flags || prop->type != 1)
		return CU_INVALID_VALUE;
	if (prop->location.type != 1 || !cpu_device_ok(prop->location.id))
		return CUX_INVALID_DEVICE;
	result = capture_unsafe();
	if (result)
		return result;
	fd = memfd_create("cpudriver", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)bytes)) {
		if (fd >= 0)
			close(fd);
		return CU_OUT_OF_MEMORY;
	}
	p = cpu_alloc(sizeof(*p));
	*p = (struct physical) { cpu_next_id(), fd, bytes, physicals };
	physicals = p;
	*handle = p->handle;
	return CU_SUCCESS;
}

/* What is mapped stays mapped: the memfd lives as long as its mappings. */
cu_result cuMemRelease(cux_mem_handle handle)
{
	API(cuMemRelease, NEED_INIT);
	for (struct physical **link = &physicals; *link; link = &(*link)->next) {
		struct physical *p = *link;

		if (p->handle != handle)
			continue;
		*link = p->next;
		close(p->fd);
		free(p);
		return CU_SUCCESS;
	}
	return CU_INVALID_VALUE;
}

cu_result cuMemMap(cu_deviceptr ptr, size_t bytes, size_t offset, cux_mem_handle handle, unsigned long long flags)
{
	struct physical *p = physicals;
	struct memory *memory;

	API(cuMemMap, NEED_CONTEXT);
	while (p && p->handle != handle)
		p = p->next;
	if (!p || !good_size(bytes) || offset || bytes > p->bytes || flags || !reservation_of(ptr, bytes))
		return CU_INVALID_VALUE;
	memory = memory_insert(ptr, bytes, MEMORY_VIRTUAL, context_current());
	if (!memory)
		return CU_INVALID_VALUE;
	if (mmap((void *)(uintptr_t)ptr, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, p->fd, 0) == MAP_FAILED) {
		memory_remove(memory);
		return CU_OUT_OF_MEMORY;
	}
	return CU_SUCCESS;
}

/* Does not wait for what may still use it: that is the caller's part, as on the real driver. Where nothing is mapped
 * there is nothing to do. */
cu_result cuMemUnmap(cu_deviceptr ptr, size_t bytes)
{
	struct memory *memory;
	uint64_t end = ptr + bytes;

	API(cuMemUnmap, NEED_INIT);
	if (!good_size(bytes) || !reservation_of(ptr, bytes))
		return CU_INVALID_VALUE;
	for (uint64_t at = ptr; at < end; at += GRANULE) {
		memory = memory_find(at);
		if (memory && (memory->base < ptr || memory->base + memory->bytes > end))
			return CU_INVALID_VALUE;
	}
	for (uint64_t at = ptr; at < end; at += GRANULE) {
		memory = memory_find(at);
		if (memory)
			memory_remove(memory);
	}
	if (mmap((void *)(uintptr_t)ptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
		 0) == MAP_FAILED)
		return CU_OUT_OF_MEMORY;
	return CU_SUCCESS;
}

cu_result cuMemSetAccess(cu_deviceptr ptr, size_t bytes, const struct cux_mem_access *access, size_t n)
{
	uint64_t end = ptr + bytes;
	struct memory *memory;
	unsigned flags;

	API(cuMemSetAccess, NEED_INIT);
	if (!access || n != 1 || !good_size(bytes))
		return CU_INVALID_VALUE;
	flags = (unsigned)access[0].flags;
	for (uint64_t at = ptr; at < end; at = memory->base + memory->bytes) {
		memory = memory_find(at);
		if (!memory || memory->kind != MEMORY_VIRTUAL)
			return CU_INVALID_VALUE;
		memory->flags = flags;
	}
	if (mprotect((void *)(uintptr_t)ptr, bytes, flags & 2 ? PROT_READ | PROT_WRITE : flags ? PROT_READ : PROT_NONE))
		return CU_INVALID_VALUE;
	return CU_SUCCESS;
}
