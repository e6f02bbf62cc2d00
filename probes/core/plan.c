/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: brings a pool's layout to where its fingerprints are made, with room for results.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

#define RING_MOST    (16u << 20) /* of pinned host memory, for one pool: a batch of requests may end in one step */
#define RINGS_MOST   (64u << 20) /* for all that live; a pool that comes later than that has few shots */
#define SHOTS_FEW    512u
#define SHOTS_WANTED 8u

static uint64_t pinned_bytes(void)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < PROBE_POOLS; i++)
		bytes += probe_pools[i].ring.owner ? probe_pools[i].ring.map_bytes : 0;
	return bytes;
}

static uint32_t shots_of(const struct probe_pool *p)
{
	const uint64_t most = p->dev && pinned_bytes() >= RINGS_MOST ? SHOTS_FEW : PROBE_SHOTS;
	const uint64_t shots = RING_MOST / probe_ring_stride(p->ring.n_records);

	return (uint32_t)(shots > most ? most : shots < SHOTS_WANTED ? SHOTS_WANTED : shots);
}

/* A server that may have no more memory, or pin no more, has few shots rather than none. */
static int make_ring(struct probe_pool *p, const struct shim_driver *drv)
{
	const uint64_t least = p->dev ? p->arena_bytes : 0; /* they serve for the upload */

	for (uint32_t shots = shots_of(p);; shots /= 4) {
		int rc = probe_ring_make(&p->ring, drv, p->dev, shots, least);
		if (!rc || shots / 4 < SHOTS_WANTED)
			return rc;
	}
}

static int take_arena(struct probe_pool *p)
{
	p->arena_bytes = (uint64_t)p->n_chunks * sizeof(struct fp_chunk);
	p->unit = probe_arena_take(p->dev, p->arena_bytes);
	if (p->unit < 0)
		return -ENOSPC;
	p->chunks_address = p->dev->arena + (uint64_t)p->unit * PROBE_ARENA_UNIT;
	return 0;
}

static void write_chunks(const struct probe_pool *p, struct fp_chunk *to)
{
	uint32_t record = 0;

	for (uint32_t i = 0; i < p->n_planes; i++) {
		const struct probe_plane *s = &p->plane[i];
		for (uint32_t k = 0; k < s->n_chunks; k++)
			*to++ = fp_chunk_of(s->base, s->stride, s->bytes, s->elems, s->dtype, p->chunk_bytes, k,
					    record);
		record += 1 + s->n_chunks;
	}
}

/* The result buffers serve as pinned source of the copy, and are cleared when it is known to be over. */
static int upload(struct probe_pool *p, const struct shim_driver *drv)
{
	struct probe_device *d = p->dev;
	int rc;

	write_chunks(p, (struct fp_chunk *)(void *)p->ring.map);
	p->ring.poisoned = true;
	if (drv->memcpy_htod_async(p->chunks_address, p->ring.map, p->arena_bytes, d->stream) != CU_SUCCESS)
		return -EAGAIN;
	rc = probe_device_settle(drv, d);
	if (rc)
		return rc;
	p->ring.poisoned = false;
	memset(p->ring.map, 0, p->ring.map_bytes);
	return 0;
}

/* Memory that the driver does not know is refused: reading it would end the server. */
static int check_memory(struct probe_pool *p, const struct shim_driver *drv)
{
	for (uint32_t i = 0; i < p->n_planes; i++) {
		struct probe_plane *s = &p->plane[i];
		if (!s->bytes)
			continue;
		if (!probe_pointer_known(drv, s->low) || !probe_pointer_known(drv, s->high - 1))
			return -EINVAL;
		s->allocation = probe_pointer_allocation(drv, s->low);
	}
	return 0;
}

/* Whoever takes a shot finds its launch made up. */
static void write_launches(struct probe_pool *p)
{
	for (uint32_t i = 0; i < p->ring.shots; i++) {
		const uint64_t at = p->ring.address + (uint64_t)i * p->ring.stride;
		p->ring.shot[i].launch = (struct fp_launch) { .chunks = p->chunks_address,
							      .entry = at + PROBE_ENTRY_OFFSET,
							      .regions = at,
							      .first_slot = p->first_slot,
							      .n_slots = p->n_slots,
							      .n_chunks = p->n_chunks };
	}
}

static int make_on_device(struct probe_pool *p, const struct shim_driver *drv)
{
	bool pushed;
	int rc;

	p->dev = probe_device_get(drv, p->device, &rc);
	if (!p->dev)
		return rc;
	if (!probe_ctx_enter(drv, p->dev->ctx, &pushed))
		return -EAGAIN;
	rc = check_memory(p, drv);
	if (!rc)
		rc = take_arena(p);
	if (!rc)
		rc = make_ring(p, drv);
	if (!rc)
		rc = upload(p, drv);
	probe_ctx_leave(drv, pushed);
	if (!rc)
		write_launches(p);
	return rc;
}

int probe_plan_make(struct probe_pool *p)
{
	const struct shim_driver *drv;
	struct shim_guard guard;
	int rc;

	p->ring.n_records = p->n_planes + p->n_chunks;
	if (p->device < 0)
		return make_ring(p, NULL);
	drv = shim_driver();
	if (!drv || !drv->complete)
		return -ENODEV;
	shim_guard_enter(&guard);
	rc = make_on_device(p, drv);
	shim_guard_leave(&guard);
	return rc;
}
