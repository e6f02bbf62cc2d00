/* SPDX-License-Identifier: Apache-2.0
 *
 * usual.c: the claim that a server makes thousands of times a second, written out in one function: a slot of a live device pool,
 * named by the host, on a stream of its own, in the current context, nothing watched beside. Whatever is not usual is left to
 * claim.c, which asks all of it anew: so nothing may have been counted by then, and what was taken is given back.
 *
 * The attempt begins when the launch has succeeded. A thread that is killed before that was in a call that never returned.
 */
#include "core.h"

#include <errno.h>

static inline bool usual(enum log_event_kind kind, const struct slotprobe_claim *c)
{
	return record_recording() && c && c->size == sizeof *c && c->pool >= 0 && c->slot >= 0 &&
	       c->stream > (uintptr_t)CU_PER_THREAD && !(c->slot_ptr | c->state | (uintptr_t)c->key_text | c->flags) &&
	       (kind != LOG_EV_DONATE || !record_hot.options->n_watch);
}

static inline bool usual_pool(const struct probe_pool *p, const struct slotprobe_claim *c)
{
	return __atomic_load_n(&p->state, __ATOMIC_SEQ_CST) == PROBE_POOL_LIVE &&
	       __atomic_load_n(&p->made, __ATOMIC_RELAXED) - 1 == c->pool && p->dev &&
	       (uint64_t)(c->slot - p->first_slot) < (uint64_t)p->n_slots; /* neither is negative */
}

/* The stream captures nothing, and its context is the pool's and the current one. */
static inline bool usual_stream(const struct shim_driver *drv, const struct probe_pool *p, cu_stream stream)
{
	cu_context current, ctx;
	int status;

	return drv->ctx_get_current(&current) == CU_SUCCESS &&
	       drv->stream_is_capturing(stream, &status) == CU_SUCCESS && status == CU_CAPTURE_NONE &&
	       drv->stream_get_ctx(stream, &ctx) == CU_SUCCESS && ctx == current && ctx == p->dev->ctx &&
	       __atomic_load_n(&p->dev->state, __ATOMIC_ACQUIRE) == PROBE_DEVICE_LIVE;
}

static inline cu_result launch(const struct shim_driver *drv, struct probe_pool *p, uint32_t shot,
			       const struct slotprobe_claim *c)
{
	struct probe_shot *s = &p->ring.shot[shot];

	if (probe_region_count())
		s->n_regions = probe_region_table(p->device, probe_entry_regions(&p->ring, shot), s->region);
	s->launch.slot_ptr = 0;
	s->launch.slot = c->slot;
	return probe_shot_launch(drv, p, s, (cu_stream)(uintptr_t)c->stream);
}

static inline void fill_event(struct log_event *e, enum log_event_kind kind, const struct slotprobe_claim *c,
			      const struct probe_pool *p)
{
	record_fill(e, LOG_EVENT);
	e->t_ns = record_now_ns();
	e->kind = kind;
	e->pool = c->pool;
	e->slot = c->slot;
	e->slot_ptr = 0;
	e->claimed_len = c->claimed_len;
	e->key_len = c->key_len;
	e->key = c->key;
	e->src = -1;
	e->stream = c->stream;
	e->context = (uintptr_t)p->dev->ctx;
	e->step = __atomic_load_n(&probe_counts.steps, __ATOMIC_RELAXED);
	e->launches = probe_launches(&probe_counts.launches);
	e->pool_launches = probe_pool_launches(p);
	e->outcome = CTR_COMMITTED;
	e->has_fingerprint = 1;
	e->tid = record_tid();
}

/* The queue has no room, or other threads are at it. */
__attribute__((noinline, cold)) static int64_t put(enum log_event_kind kind, const struct slotprobe_claim *c,
						   struct probe_pool *p, struct probe_shot *s, uint32_t callsite)
{
	struct log_event e;
	bool taken;

	fill_event(&e, kind, c, p);
	e.callsite = callsite;
	e.id = s->event;
	taken = record_put(&e, NULL);
	probe_shot_set(p, (uint32_t)(s - p->ring.shot), taken ? PROBE_SHOT_ARMED : PROBE_SHOT_DISCARD);
	if (!taken)
		ctr_finish(s->row, CTR_DROPPED_QUEUE);
	return taken ? (int64_t)e.id : -EAGAIN;
}

/* The event goes to the writer before its shot is armed: see collect.c. */
static inline int64_t hand_over(enum log_event_kind kind, const struct slotprobe_claim *c, struct probe_pool *p,
				struct ctr_row *row, uint32_t shot)
{
	const uint32_t callsite = record_callsite();
	const uint64_t id = __atomic_add_fetch(&probe_counts.events, 1, __ATOMIC_RELAXED);
	struct probe_shot *s = &p->ring.shot[shot];
	struct record_item *item;
	struct log_event *e;
	uint64_t position;

	s->event = id;
	s->row = row;
	if (__builtin_expect(!record_queue_take(&item, &position), 0))
		return put(kind, c, p, s, callsite);
	e = (struct log_event *)(void *)item->record;
	fill_event(e, kind, c, p);
	e->callsite = callsite;
	e->id = id;
	item->commit = NULL;
	record_queue_give(item, position);
	probe_shot_set(p, shot, PROBE_SHOT_ARMED);
	return (int64_t)id;
}

static inline int64_t measure(enum log_event_kind kind, const struct slotprobe_claim *c, struct probe_pool *p,
			      const struct shim_driver *drv, struct ctr_row *row)
{
	int taken = usual_stream(drv, p, (cu_stream)(uintptr_t)c->stream) ? probe_ring_take(&p->ring) : -1;

	if (taken < 0)
		return 0;
	probe_shot_begin(p, (uint32_t)taken, LOG_ROLE_SUBJECT);
	if (launch(drv, p, (uint32_t)taken, c) != CU_SUCCESS) {
		probe_shot_release(p, (uint32_t)taken);
		return 0;
	}
	ctr_begin(row);
	return hand_over(kind, c, p, row, (uint32_t)taken);
}

int64_t probe_claim_usual(enum log_event_kind kind, struct ctr_row *row, const struct slotprobe_claim *c)
{
	const struct shim_driver *drv = shim_driver_found;
	int mode = CU_MODE_RELAXED;
	struct probe_pool *p;
	int64_t id = 0;

	if (!usual(kind, c) || !drv)
		return 0;
	p = &probe_pools[(uint32_t)c->pool % PROBE_POOLS];
	__asm__("" : "+r"(p)); /* or the compiler multiplies anew for each member */
	__atomic_fetch_add(&p->users, 1, __ATOMIC_SEQ_CST);
	if (usual_pool(p, c) && drv->exchange_capture_mode(&mode) == CU_SUCCESS) {
		id = measure(kind, c, p, drv, row);
		shim_mode_restore(drv, &mode);
	}
	__atomic_fetch_sub(&p->users, 1, __ATOMIC_SEQ_CST);
	return id;
}
