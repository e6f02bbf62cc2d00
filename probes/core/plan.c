/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: brings a pool's layout to where its fingerprints are made, with room for results and scratch.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

#define SCRATCH_MOST (13u << 19) /* of the arena, for one pool: a batch of requests may end in one step */
#define RING_MOST    (16u << 20) /* of pinned host memory, for one pool */
#define SHOTS_WANTED 8u
#define SHOTS_LEAST  2u /* a copy needs two */

struct plan {
	uint64_t chunks_at, scratch_at, scratch_each, bytes;
	uint32_t shots, stride;
};

static void size_plan(const struct probe_pool *p, struct plan *plan)
{
	uint64_t shots = PROBE_SHOTS;

	plan->stride = probe_ring_stride(p->n_planes);
	plan->scratch_each = probe_round(fp_scratch_bytes(p->n_planes, p->n_chunks), 128);
	plan->chunks_at = probe_round(p->n_planes * sizeof(struct fp_plane), 128);
	plan->scratch_at = probe_round(plan->chunks_at + (uint64_t)p->n_chunks * sizeof(uint32_t), 128);
	if (p->device >= 0 && shots > SCRATCH_MOST / plan->scratch_each)
		shots = SCRATCH_MOST / plan->scratch_each;
	if (shots > RING_MOST / plan->stride)
		shots = RING_MOST / plan->stride;
	plan->shots = shots < SHOTS_WANTED ? SHOTS_WANTED : (uint32_t)shots;
	plan->bytes = plan->scratch_at + plan->shots * plan->scratch_each;
}

/* A crowded arena means fewer results in flight, not no pool. */
static int take_arena(struct probe_pool *p, struct plan *plan)
{
	while ((p->unit = probe_arena_take(p->dev, plan->bytes)) < 0) {
		if (plan->shots / 2 < SHOTS_LEAST)
			return -ENOSPC;
		plan->shots /= 2;
		plan->bytes = plan->scratch_at + plan->shots * plan->scratch_each;
	}
	p->arena_bytes = plan->bytes;
	p->planes_address = p->dev->arena + (uint64_t)p->unit * PROBE_ARENA_UNIT;
	p->chunks_address = p->planes_address + plan->chunks_at;
	p->scratch_address = p->planes_address + plan->scratch_at;
	p->scratch_bytes = plan->scratch_each;
	return 0;
}

static void write_plan(const struct probe_pool *p, const struct plan *plan, unsigned char *to)
{
	struct fp_plane *plane = (struct fp_plane *)to;
	uint32_t *chunk = (uint32_t *)(to + plan->chunks_at), n = 0;

	for (uint32_t i = 0; i < p->n_planes; i++) {
		const struct probe_plane *s = &p->plane[i];
		plane[i] = (struct fp_plane) { .base = s->base,
					       .stride = s->stride,
					       .bytes = s->bytes,
					       .elems = s->elems,
					       .dtype = s->dtype,
					       .first_chunk = n,
					       .n_chunks = fp_plane_chunks(s->bytes) };
		for (uint32_t c = 0; c < plane[i].n_chunks; c++)
			chunk[n++] = i;
	}
}

/* The result buffers serve as pinned source of the copy, and are cleared when it is known to be over. */
static int upload(struct probe_pool *p, const struct shim_driver *drv, const struct plan *plan)
{
	struct probe_device *d = p->dev;
	int rc;

	write_plan(p, plan, p->ring.map);
	p->ring.poisoned = true;
	if (drv->memcpy_htod_async(p->planes_address, p->ring.map, plan->scratch_at, d->stream) != CU_SUCCESS ||
	    drv->memset_d8_async(p->scratch_address, 0, plan->shots * plan->scratch_each, d->stream) != CU_SUCCESS)
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

static int make_on_device(struct probe_pool *p, const struct shim_driver *drv)
{
	struct plan plan;
	bool pushed;
	int rc;

	p->dev = probe_device_get(drv, p->device, &rc);
	if (!p->dev)
		return rc;
	if (!probe_ctx_enter(drv, p->dev->ctx, &pushed))
		return -EAGAIN;
	size_plan(p, &plan);
	rc = check_memory(p, drv);
	if (!rc)
		rc = take_arena(p, &plan);
	if (!rc)
		rc = probe_ring_make(&p->ring, drv, p->dev, plan.shots, plan.stride, plan.scratch_at);
	if (!rc)
		rc = upload(p, drv, &plan);
	probe_ctx_leave(drv, pushed);
	return rc;
}

int probe_plan_make(struct probe_pool *p)
{
	const struct shim_driver *drv;
	struct shim_guard guard;
	struct plan plan;
	int rc;

	if (p->device < 0) {
		size_plan(p, &plan);
		return probe_ring_make(&p->ring, NULL, NULL, plan.shots, plan.stride, 0);
	}
	drv = shim_driver();
	if (!drv || !drv->complete)
		return -ENODEV;
	shim_guard_enter(&guard);
	rc = make_on_device(p, drv);
	shim_guard_leave(&guard);
	return rc;
}
