/* SPDX-License-Identifier: Apache-2.0
 *
 * enqueue.c: launches fingerprints on the server's stream, or makes them here and now for host memory. Hot: no lock, no
 * allocation, nothing that waits.
 *
 * A stay on a stream is what one call of the server needs: the capture mode, the stream's context, and for the legacy
 * stream the promise that nothing begins to capture, all held from the check to the last launch.
 */
#include "core.h"

#include <string.h>

/* ---- the stay ---- */

static bool is_legacy(cu_stream stream)
{
	return (uintptr_t)stream <= (uintptr_t)CU_LEGACY;
}

/* The special handles mean a stream of the context that is current, whichever that is. */
static bool is_special(cu_stream stream)
{
	return (uintptr_t)stream <= (uintptr_t)CU_PER_THREAD;
}

static enum ctr_outcome check_capture(const struct probe_stay *stay)
{
	const enum ctr_outcome busy = stay->legacy ? CTR_SKIPPED_LEGACY : CTR_SKIPPED_CAPTURING;
	int status = CU_CAPTURE_NONE;

	switch (stay->drv->stream_is_capturing(stay->stream, &status)) {
	case CU_SUCCESS:
		return status == CU_CAPTURE_NONE ? CTR_COMMITTED : busy;
	case CU_CAPTURE_UNSUPPORTED:
	case CU_CAPTURE_INVALIDATED:
	case CU_CAPTURE_IMPLICIT:
		return busy;
	default:
		return CTR_ERROR_DRIVER;
	}
}

/* The kernel of one context must not meet the memory of another: that fault would end the server. */
static enum ctr_outcome check_context(struct probe_stay *stay, cu_context current)
{
	stay->ctx = current;
	if (!is_special(stay->stream) && stay->drv->stream_get_ctx(stay->stream, &stay->ctx) != CU_SUCCESS)
		return CTR_ERROR_DRIVER;
	if (!probe_device_matches(stay->pool->dev, stay->ctx, stay->pool->device))
		return CTR_SKIPPED_NO_CONTEXT;
	if (stay->ctx == current)
		return CTR_COMMITTED;
	stay->pushed = stay->drv->ctx_push(stay->ctx) == CU_SUCCESS;
	return stay->pushed ? CTR_COMMITTED : CTR_ERROR_DRIVER;
}

static enum ctr_outcome begin_on_device(struct probe_stay *stay)
{
	const struct shim_driver *drv = stay->drv;
	cu_context current = NULL;
	enum ctr_outcome outcome;

	if (drv->ctx_get_current(&current) != CU_SUCCESS)
		return CTR_SKIPPED_NO_CONTEXT;
	if (!current && is_special(stay->stream)) {
		current = stay->pool->dev->ctx;
		stay->pushed = drv->ctx_push(current) == CU_SUCCESS;
		if (!stay->pushed)
			return CTR_SKIPPED_NO_CONTEXT;
	}
	if (is_legacy(stay->stream)) {
		stay->legacy = shim_legacy_begin();
		if (!stay->legacy)
			return CTR_SKIPPED_LEGACY;
	}
	outcome = check_capture(stay);
	return outcome == CTR_COMMITTED ? check_context(stay, current) : outcome;
}

enum ctr_outcome probe_stay_begin(struct probe_stay *stay, struct probe_pool *pool, uint64_t stream)
{
	memset(stay, 0, sizeof *stay);
	stay->pool = pool;
	stay->stream = (cu_stream)(uintptr_t)stream;
	if (!pool->dev)
		return CTR_COMMITTED;
	stay->drv = shim_driver();
	if (!stay->drv)
		return CTR_SKIPPED_NO_CONTEXT;
	shim_guard_enter(&stay->guard);
	stay->guarded = true;
	return begin_on_device(stay);
}

void probe_stay_end(struct probe_stay *stay)
{
	if (stay->legacy)
		shim_legacy_end();
	if (stay->pushed)
		probe_ctx_leave(stay->drv, true);
	if (stay->guarded)
		shim_guard_leave(&stay->guard);
}

/* ---- one shot ---- */

static uint64_t host_row(const struct probe_pool *p, const struct probe_plane *s, const struct probe_aim *aim)
{
	return s->base + (p->floating ? aim->state : (uint64_t)(aim->slot - p->first_slot) * (uint64_t)s->stride);
}

/* All before the first byte is read. Rows that follow one another in memory are asked about as one. */
static bool host_rows_readable(const struct probe_pool *p, const struct probe_aim *aim)
{
	uint64_t from = 0, to = 0;

	for (uint32_t i = 0; i < p->n_planes; i++) {
		uint64_t at = host_row(p, &p->plane[i], aim);
		if (at == to) {
			to += p->plane[i].bytes;
			continue;
		}
		if (!probe_readable(from, to - from))
			return false;
		from = at;
		to = at + p->plane[i].bytes;
	}
	return probe_readable(from, to - from);
}

static enum ctr_outcome fire_on_host(struct probe_pool *p, uint32_t shot, const struct probe_aim *aim)
{
	struct fp_entry *e = probe_entry(&p->ring, shot);
	uint32_t record = 0;

	if (!host_rows_readable(p, aim))
		return CTR_ERROR_ARGUMENT;
	for (uint32_t i = 0; i < p->n_planes; i++) {
		const struct probe_plane *s = &p->plane[i];
		for (uint32_t k = 0; k < s->n_chunks; k++) {
			const struct fp_chunk c = fp_chunk_of(host_row(p, s, aim), 0, s->bytes, s->elems, s->dtype,
							      p->chunk_bytes, k, record);
			fp_host_chunk(&c, (const void *)(uintptr_t)c.address, aim->slot, p->ring.shot[shot].sequence,
				      e);
		}
		record += 1 + s->n_chunks;
	}
	return CTR_COMMITTED;
}

static enum ctr_outcome fire_on_device(struct probe_stay *stay, uint32_t shot, const struct probe_aim *aim)
{
	struct probe_pool *p = stay->pool;
	struct probe_shot *s = &p->ring.shot[shot];
	struct fp_launch *launch = &s->launch;
	cu_result rc;

	if (aim->role == LOG_ROLE_SUBJECT)
		s->n_regions = probe_region_table(p->device, probe_entry_regions(&p->ring, shot), s->region);
	launch->slot_ptr = aim->slot_ptr;
	launch->slot_ptr_bytes = aim->slot_ptr_bytes;
	launch->slot = aim->slot;
	rc = probe_shot_launch(stay->drv, p, s, stay->stream);
	if (rc == CU_SUCCESS)
		return CTR_COMMITTED;
	if (rc == CU_CAPTURE_UNSUPPORTED || rc == CU_CAPTURE_INVALIDATED || rc == CU_CAPTURE_IMPLICIT)
		return stay->legacy ? CTR_SKIPPED_LEGACY : CTR_SKIPPED_CAPTURING;
	return CTR_ERROR_DRIVER;
}

enum ctr_outcome probe_fire(struct probe_stay *stay, const struct probe_aim *aim, uint32_t *shot)
{
	struct probe_pool *p = stay->pool;
	enum ctr_outcome outcome = CTR_COMMITTED;
	int taken;

	if (aim->slot_ptr && !probe_pointer_on(stay->drv, aim->slot_ptr, p->device))
		return CTR_ERROR_ARGUMENT;
	taken = probe_ring_take(&p->ring);
	if (taken < 0)
		return CTR_DROPPED_RING;
	*shot = (uint32_t)taken;
	probe_shot_begin(p, *shot, aim->role);
	if (stay->drv)
		outcome = fire_on_device(stay, *shot, aim);
	else
		outcome = fire_on_host(p, *shot, aim);
	if (outcome != CTR_COMMITTED)
		probe_shot_release(p, *shot);
	return outcome;
}
