/* SPDX-License-Identifier: Apache-2.0
 *
 * ring.c: the result buffers of one pool. Any thread takes one by a compare-and-swap, the writer gives it back.
 *
 * A buffer that is registered with the driver is never unregistered, which may wait for the device: when its pool is
 * gone it waits here as a spare for the next one.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

/* As many as there were pools at once: one that finds no place stays pinned, and serves nobody. */
#define SPARES PROBE_POOLS

_Static_assert(PROBE_SHOTS % 64 == 0, "the words of `free`");
_Static_assert(PROBE_POOLS *PROBE_SHOTS + RECORD_QUEUE_ITEMS <= CTR_IN_FLIGHT(UINT64_MAX),
	       "attempts in flight do not carry into the count of attempts");

struct spare {
	unsigned char *map;
	size_t bytes;
	uint64_t address;
	struct probe_device *owner; /* NULL: it is not registered any more, its context went */
};
static struct spare spares[SPARES];

uint32_t probe_ring_stride(uint32_t n_records)
{
	return (uint32_t)probe_round(
		PROBE_ENTRY_OFFSET + sizeof(struct fp_entry) + n_records * sizeof(struct fp_record), 128);
}

/* ---- memory; under probe_registry ---- */

static bool take_spare(struct probe_ring *r, const struct probe_device *owner, size_t bytes)
{
	for (uint32_t i = 0; i < SPARES; i++) {
		struct spare *s = &spares[i];
		if (!s->map || s->bytes < bytes || s->bytes / 4 > bytes || s->owner != owner)
			continue;
		r->map = s->map;
		r->map_bytes = s->bytes;
		r->address = s->address;
		memset(s, 0, sizeof *s);
		return true;
	}
	return false;
}

static bool map_registered(struct probe_ring *r, const struct shim_driver *drv, size_t bytes)
{
	const unsigned flags = CU_HOSTREGISTER_PORTABLE | CU_HOSTREGISTER_DEVICEMAP;

	if (!take_spare(r, NULL, bytes)) {
		r->map = probe_map(bytes, true);
		r->map_bytes = bytes;
	}
	if (!r->map)
		return false;
	if (drv->mem_host_register(r->map, r->map_bytes, flags) == CU_SUCCESS) {
		if (drv->mem_host_get_device_pointer(&r->address, r->map, 0) == CU_SUCCESS)
			return true;
		drv->mem_host_unregister(r->map);
	}
	probe_unmap(r->map, r->map_bytes);
	r->map = NULL;
	return false;
}

int probe_ring_make(struct probe_ring *r, const struct shim_driver *drv, struct probe_device *owner, uint32_t shots,
		    size_t least_bytes)
{
	const uint32_t stride = probe_ring_stride(r->n_records);
	size_t bytes = (size_t)shots * stride;

	if (bytes < least_bytes)
		bytes = least_bytes;
	bytes = probe_round(bytes, 65536);
	r->owner = owner;
	if (!owner) {
		r->map = probe_map(bytes, false);
		r->map_bytes = bytes;
	} else if (!take_spare(r, owner, bytes)) {
		map_registered(r, drv, bytes);
	}
	if (!r->map)
		return -EAGAIN;
	r->shots = shots;
	r->stride = stride;
	r->wake_every = shots / 8;
	r->wake_from = r->wake_every ? 2 * r->wake_every : UINT32_MAX;
	memset(r->free, 0, sizeof r->free);
	for (uint32_t i = 0; i < shots; i++)
		r->free[i / 64] |= 1ull << i % 64;
	return 0;
}

void probe_ring_retire(struct probe_ring *r)
{
	if (r->map && !r->owner)
		probe_unmap(r->map, r->map_bytes);
	for (uint32_t i = 0; r->map && r->owner && !r->poisoned && i < SPARES; i++) {
		struct spare *s = &spares[i];
		if (s->map)
			continue;
		bool registered = __atomic_load_n(&r->owner->state, __ATOMIC_ACQUIRE) == PROBE_DEVICE_LIVE;
		*s = (struct spare) { r->map, r->map_bytes, r->address, registered ? r->owner : NULL };
		break;
	}
	memset(r, 0, sizeof *r);
}

void probe_rings_going(struct probe_device *owner)
{
	for (uint32_t i = 0; i < SPARES; i++)
		if (spares[i].owner == owner)
			spares[i].owner = NULL;
}

void probe_rings_forget(void)
{
	memset(spares, 0, sizeof spares);
}

/* ---- shots; any thread ---- */

int probe_ring_search(struct probe_ring *r)
{
	for (uint32_t w = 0; w < PROBE_SHOTS / 64; w++) {
		uint64_t free = __atomic_load_n(&r->free[w], __ATOMIC_RELAXED);
		while (free) {
			if (__atomic_compare_exchange_n(&r->free[w], &free, free & (free - 1), true, __ATOMIC_ACQUIRE,
							__ATOMIC_RELAXED))
				return (int)(w * 64) + __builtin_ctzll(free);
		}
	}
	return -1;
}

void probe_ring_give(struct probe_ring *r, uint32_t i)
{
	__atomic_fetch_or(&r->free[i / 64], 1ull << i % 64, __ATOMIC_RELEASE);
}
