/* SPDX-License-Identifier: Apache-2.0
 *
 * region.c: named small buffers that graphs bind, and the tables of them that a launch reads.
 *
 * Each launch carries a table of its own, beside its result: a table that launches share could not change while one of
 * them is in flight. A place is never used twice, so an id means one region for the life of the process.
 */
#include "core.h"
#include "graph.h"

#include <errno.h>
#include <string.h>

enum { REGION_FREE, REGION_LIVE, REGION_GONE };

struct probe_region probe_regions[PROBE_REGIONS];
uint32_t probe_regions_used;

/* ---- adding; under probe_registry ---- */

static uint32_t width_of(uint32_t dtype, uint64_t base, uint64_t bytes)
{
	uint32_t width = 1;

	if (dtype == SLOTPROBE_I32 || dtype == SLOTPROBE_F32)
		width = 4;
	else if (dtype == SLOTPROBE_RAW || dtype == SLOTPROBE_F64) /* 64-bit indices come as RAW */
		width = 8;
	return base % width || bytes % width ? 1 : width;
}

/* The kernel may read it only where the driver says that all of it is one device's memory. */
static void look_up(struct probe_region *r)
{
	const struct shim_driver *drv = shim_driver();
	struct shim_guard guard;

	r->device = -1;
	if (!drv)
		return;
	shim_guard_enter(&guard);
	r->allocation = probe_pointer_allocation(drv, r->base);
	if (r->allocation && r->allocation == probe_pointer_allocation(drv, r->base + r->bytes - 1))
		r->device = probe_pointer_device(drv, r->base);
	shim_guard_leave(&guard);
}

static void say(uint32_t id, const struct probe_region *r)
{
	struct log_region record;

	memset(&record, 0, sizeof record);
	record_fill(&record, LOG_REGION);
	record.t_ns = record_now_ns();
	record.region = id;
	record.dtype = r->dtype;
	record.base = r->base;
	record.bytes = r->bytes;
	memcpy(record.name, r->name, sizeof record.name);
	record_put_meta(&record);
}

static int same(const struct probe_region *wanted)
{
	for (uint32_t i = 0; i < probe_regions_used; i++) {
		const struct probe_region *r = &probe_regions[i];
		if (probe_region_live(r) && r->base == wanted->base && r->bytes == wanted->bytes &&
		    r->dtype == wanted->dtype && !strncmp(r->name, wanted->name, sizeof r->name))
			return (int)i;
	}
	return -1;
}

static int add(struct probe_region *wanted)
{
	int id = same(wanted);
	uint64_t n;

	if (id >= 0)
		return id;
	if (probe_regions_used == PROBE_REGIONS)
		return -ENOSPC;
	look_up(wanted);
	wanted->value_bytes = width_of(wanted->dtype, wanted->base, wanted->bytes);
	n = wanted->bytes / wanted->value_bytes;
	wanted->n_values = n < FP_REGION_VALUES ? (uint32_t)n : FP_REGION_VALUES;
	id = (int)probe_regions_used;
	probe_regions[id] = *wanted;
	say((uint32_t)id, wanted);
	__atomic_store_n(&probe_regions[id].state, REGION_LIVE, __ATOMIC_RELEASE);
	__atomic_store_n(&probe_regions_used, probe_regions_used + 1, __ATOMIC_RELEASE);
	probe_graphs_rescan(false);
	return id;
}

int probe_region_add(const char *name, uint64_t base, uint64_t bytes, uint32_t dtype)
{
	struct probe_region wanted = { .dtype = dtype, .base = base, .bytes = bytes };
	int id;

	if (!probe_start())
		return -ENOSYS;
	if (!name || !*name || !base || !bytes || bytes > UINT64_MAX - base || dtype > SLOTPROBE_RAW)
		return -EINVAL;
	probe_text(wanted.name, sizeof wanted.name, name);
	if (!probe_lock(&probe_registry, PROBE_REGISTRY_MS))
		return -EAGAIN;
	id = add(&wanted);
	probe_unlock(&probe_registry);
	return id;
}

/* ---- reading; hot ---- */

uint32_t probe_region_table(int32_t device, struct fp_region *table, uint16_t *ids)
{
	uint32_t count = probe_region_count(), n = 0;

	for (uint32_t i = 0; i < count && n < FP_MAX_REGIONS; i++) {
		const struct probe_region *r = &probe_regions[i];
		/* In one order with the use of the pool: see probe_pools_settle_region. */
		if (r->device != device || __atomic_load_n(&r->state, __ATOMIC_SEQ_CST) != REGION_LIVE)
			continue;
		table[n] = (struct fp_region) { r->base, r->n_values, r->value_bytes };
		ids[n++] = (uint16_t)i;
	}
	return n;
}

/* ---- going ---- */

static void go(uint32_t i)
{
	uint32_t live = REGION_LIVE;

	if (__atomic_compare_exchange_n(&probe_regions[i].state, &live, REGION_GONE, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST) &&
	    probe_regions[i].device >= 0)
		probe_pools_settle_region(i);
}

void probe_regions_releasing(uint64_t address, uint64_t bytes)
{
	uint32_t count = probe_region_count();

	if (bytes > UINT64_MAX - address)
		bytes = UINT64_MAX - address;
	for (uint32_t i = 0; i < count; i++) {
		const struct probe_region *r = &probe_regions[i];
		if (bytes ? address < r->base + r->bytes && address + bytes > r->base
			  : address == (r->allocation ? r->allocation : r->base))
			go(i);
	}
}

void probe_regions_going(const struct probe_device *d)
{
	uint32_t count = probe_region_count();

	for (uint32_t i = 0; i < count; i++)
		if (probe_regions[i].device == d->ordinal)
			go(i);
}

void probe_regions_forget(void)
{
	memset(probe_regions, 0, probe_regions_used * sizeof probe_regions[0]);
	probe_regions_used = 0;
}
