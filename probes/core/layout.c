/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.c: what a server says of a pool: is it sensible, what does it mean in addresses, and the record of it.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

static const uint32_t dtype_bytes[] = {
	[SLOTPROBE_F64] = 8,    [SLOTPROBE_F32] = 4, [SLOTPROBE_F16] = 2, [SLOTPROBE_BF16] = 2, [SLOTPROBE_F8E4M3] = 1,
	[SLOTPROBE_F8E5M2] = 1, [SLOTPROBE_I8] = 1,  [SLOTPROBE_I32] = 4, [SLOTPROBE_RAW] = 1,
};
#define DTYPES (sizeof dtype_bytes / sizeof dtype_bytes[0])

/* ---- checks ---- */

/* Lowest and highest byte of slots from ... to; false when an address would wrap. */
static bool span_of(const struct slotprobe_plane *s, uint64_t bytes, int64_t from, int64_t to, uint64_t *low,
		    uint64_t *high)
{
	int64_t first, last, end;

	if (s->base > INT64_MAX || __builtin_mul_overflow(from, s->slot_stride, &first) ||
	    __builtin_mul_overflow(to, s->slot_stride, &last))
		return false;
	if (first > last) {
		int64_t swap = first;
		first = last;
		last = swap;
	}
	if (__builtin_add_overflow((int64_t)s->base, first, &first) || first < 0)
		return false;
	if (__builtin_add_overflow((int64_t)s->base, last, &last) || bytes > INT64_MAX ||
	    __builtin_add_overflow(last, (int64_t)bytes, &end))
		return false;
	*low = (uint64_t)first;
	*high = (uint64_t)end;
	return true;
}

static bool plane_bytes(const struct slotprobe_plane *s, uint64_t *bytes)
{
	return s->dtype < DTYPES && !__builtin_mul_overflow(s->elems, dtype_bytes[s->dtype], bytes);
}

/* Callers that were built before the field existed do not have it. */
static uint64_t flags_of(const struct slotprobe_pool *said)
{
	return said->size >= offsetof(struct slotprobe_pool, flags) + sizeof said->flags ? said->flags : 0;
}

static bool flags_sound(const struct slotprobe_pool *said)
{
	uint64_t flags = flags_of(said);

	return !(flags & ~(uint64_t)SLOTPROBE_POOL_FLOATING) && (!flags || said->device == -1);
}

static bool plane_sound(const struct slotprobe_plane *s, int64_t n_slots, bool floating)
{
	uint64_t bytes, low, high;

	if (!s->tensor || !*s->tensor || !plane_bytes(s, &bytes))
		return false;
	if (floating)
		return span_of(s, bytes, 0, 0, &low, &high);
	if (bytes && !s->base)
		return false;
	return span_of(s, bytes, 0, n_slots - 1, &low, &high);
}

int probe_layout_check(const struct slotprobe_pool *said)
{
	const uint32_t least = offsetof(struct slotprobe_pool, n_planes) + sizeof said->n_planes;
	uint64_t total = 0, bytes;
	int64_t end;

	if (!said || said->size < least || !said->name || !*said->name || !said->planes || said->device < -1)
		return -EINVAL;
	if (!flags_sound(said) || !said->n_planes || said->n_slots < 1 || said->first_slot < 0 ||
	    __builtin_add_overflow(said->first_slot, said->n_slots, &end))
		return -EINVAL;
	if (said->n_planes > PROBE_PLANES)
		return -ENOSPC;
	for (uint32_t i = 0; i < said->n_planes; i++) {
		if (!plane_sound(&said->planes[i], said->n_slots, flags_of(said) != 0))
			return -EINVAL;
		plane_bytes(&said->planes[i], &bytes);
		if (__builtin_add_overflow(total, bytes, &total))
			return -EINVAL;
	}
	return total > PROBE_SLOT_BYTES ? -ENOSPC : 0;
}

/* ---- the copy ---- */

static int plane_order(const struct probe_plane *a, const struct probe_plane *b)
{
	if (a->layer != b->layer)
		return a->layer < b->layer ? -1 : 1;
	return strncmp(a->tensor, b->tensor, sizeof a->tensor);
}

/* By (layer, tensor), so that the roll-up does not depend on the order of registration. -EINVAL: two are the same. */
static int sort_planes(struct probe_pool *p)
{
	for (uint32_t i = 0; i < p->n_planes; i++) {
		uint32_t at = i;
		for (; at; at--) {
			int order = plane_order(&p->plane[p->order[at - 1]], &p->plane[i]);
			if (order == 0)
				return -EINVAL;
			if (order < 0)
				break;
			p->order[at] = p->order[at - 1];
		}
		p->order[at] = i;
	}
	return 0;
}

static void copy_plane(struct probe_pool *p, struct probe_plane *to, const struct slotprobe_plane *from)
{
	uint64_t high;

	probe_text(to->tensor, sizeof to->tensor, from->tensor);
	to->layer = from->layer;
	to->dtype = from->dtype;
	to->base = from->base;
	to->stride = from->slot_stride;
	to->elems = from->elems;
	plane_bytes(from, &to->bytes);
	p->slot_bytes += to->bytes;
	if (p->floating) { /* no address is its own */
		to->low = to->reach_low = UINT64_MAX;
		return;
	}
	span_of(from, to->bytes, 0, p->n_slots - 1, &to->low, &to->high);
	/* Slots below the first one are there, only not handed out: a kernel binds the tensor's own address. */
	if (!span_of(from, to->bytes, -p->first_slot, p->n_slots - 1, &to->reach_low, &high))
		to->reach_low = to->low;
	if (!to->bytes)
		return;
	p->low = to->low < p->low ? to->low : p->low;
	p->high = to->high > p->high ? to->high : p->high;
	p->reach_low = to->reach_low < p->reach_low ? to->reach_low : p->reach_low;
}

static void count_chunks(struct probe_pool *p)
{
	p->chunk_bytes = fp_chunk_bytes(&p->plane[0].bytes, sizeof p->plane[0], p->n_planes);
	for (uint32_t i = 0; i < p->n_planes; i++) {
		p->plane[i].n_chunks = (uint32_t)fp_plane_chunks(p->plane[i].bytes, p->chunk_bytes);
		p->n_chunks += p->plane[i].n_chunks;
	}
}

static int make_block(struct probe_pool *p)
{
	size_t planes = probe_round(p->n_planes * sizeof *p->plane, 64);
	size_t order = probe_round(p->n_planes * sizeof *p->order, 64);
	unsigned char *block;

	p->block_bytes = planes + order + PROBE_SHOTS * sizeof *p->ring.shot;
	block = probe_map(p->block_bytes, false);
	if (!block)
		return -EAGAIN;
	p->block = block;
	p->plane = (struct probe_plane *)block;
	p->order = (uint32_t *)(block + planes);
	p->ring.shot = (struct probe_shot *)(block + planes + order);
	return 0;
}

int probe_layout_copy(struct probe_pool *p, const struct slotprobe_pool *said)
{
	int rc;

	p->device = said->device;
	p->floating = flags_of(said) != 0;
	p->first_slot = said->first_slot;
	p->n_slots = said->n_slots;
	p->n_planes = said->n_planes;
	p->n_chunks = 0;
	p->slot_bytes = 0;
	p->launches_before = probe_launches(&p->launches);
	p->low = p->reach_low = UINT64_MAX;
	p->high = 0;
	p->dev = NULL;
	p->unit = -1;
	p->lost = 0;
	probe_text(p->name, sizeof p->name, said->name);
	rc = make_block(p);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < p->n_planes; i++)
		copy_plane(p, &p->plane[i], &said->planes[i]);
	count_chunks(p);
	return sort_planes(p);
}

/* ---- the record ---- */

static bool say_plane(const struct probe_pool *p, uint32_t i)
{
	const struct probe_plane *s = &p->plane[i];
	struct log_plane r;

	memset(&r, 0, sizeof r);
	record_fill(&r, LOG_PLANE);
	r.pool = probe_pool_id(p);
	r.index = i;
	r.layer = s->layer;
	r.dtype = s->dtype;
	r.base = s->base;
	r.slot_stride = s->stride;
	r.elems = s->elems;
	r.bytes = s->bytes;
	memcpy(r.tensor, s->tensor, sizeof r.tensor);
	return record_put_meta(&r);
}

void probe_layout_say(const struct probe_pool *p)
{
	struct log_pool r;

	memset(&r, 0, sizeof r);
	record_fill(&r, LOG_POOL);
	r.t_ns = record_now_ns();
	r.pool = probe_pool_id(p);
	r.device = p->device;
	r.first_slot = p->first_slot;
	r.n_slots = p->n_slots;
	r.n_planes = p->n_planes;
	r.slot_bytes = p->slot_bytes;
	r.launches = probe_launches(&probe_counts.launches);
	memcpy(r.name, p->name, sizeof r.name);
	if (!record_put_meta(&r))
		return;
	for (uint32_t i = 0; i < p->n_planes; i++)
		if (!say_plane(p, i))
			return;
}

/* ---- looking up ---- */

/* Inside a row, not in the gap between two: planes of a page-major pool lie in each other's gaps. */
static bool in_row(const struct probe_plane *s, uint64_t address)
{
	uint64_t step = s->stride < 0 ? 0 - (uint64_t)s->stride : (uint64_t)s->stride;

	return !step || (address - s->reach_low) % step < s->bytes;
}

int probe_layout_find(const struct probe_pool *p, uint64_t address, uint64_t span)
{
	int loose = -1;

	if (address >= p->high || span > UINT64_MAX - address || address + span <= p->reach_low)
		return -1;
	for (uint32_t i = 0; i < p->n_planes; i++) {
		const struct probe_plane *s = &p->plane[i];
		if (!s->bytes || address >= s->high || address + span <= s->reach_low)
			continue;
		if (address >= s->reach_low && in_row(s, address))
			return (int)i;
		if (loose < 0)
			loose = (int)i;
	}
	return loose;
}
