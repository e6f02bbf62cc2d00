/* SPDX-License-Identifier: Apache-2.0
 *
 * core.h: what the parts of probes/core share. Nobody outside of this folder includes it.
 *
 * Life of a measurement ("shot"): claim.c checks what was said, enqueue.c takes a shot from the pool's ring (ring.c) and
 * launches the fingerprint kernel, claim.c records the event and arms the shot, collect.c sees the result on the
 * writer's thread, records it and gives the shot back. What is usual goes all of the way on the server's side in usual.c.
 *
 * Who may touch what without a lock: a thread that holds a use of a pool (probe_pool_get) may read everything in it;
 * the writer may read a pool while it has shots in flight. Only under `probe_registry` are pools and devices made and
 * reaped, and a pool is reaped only when nobody uses it and nothing is in flight.
 */
#ifndef PROBE_CORE_H
#define PROBE_CORE_H

#include <stdbool.h>

#include "probes/core/kernel/fingerprint.h"
#define SLOTPROBE_IMPLEMENTATION /* the calls themselves, not the look-up of them */
#include "probes/core/slotprobe.h"
#include "shim/hook/driver.h"
#include "shim/record/own.h"
#include "shim/record/record.h"

#define PROBE_POOLS        256u /* live at once */
#define PROBE_PLANES       1024u
#define PROBE_SHOTS        3840u         /* of a pool, at most: plan.c */
#define PROBE_SLOT_BYTES   (20ull << 30) /* each of its chunks is a record in every result */
#define PROBE_SET_WORDS    (PROBE_POOLS / 64)
#define PROBE_ARENA_UNIT   4096u
#define PROBE_ARENA_UNITS  2048u /* 8 MiB */
#define PROBE_WAIT_MS      1000u /* for reads in flight in memory that goes */
#define PROBE_READY_MS     2000u /* for a layout to reach the device */
#define PROBE_REGISTRY_MS  3000u /* for another thread's registration */
#define PROBE_KEY_TEXT_MAX (1u << 20)

/* ---- util.c ---- */

void *probe_map(size_t bytes, bool shared); /* zeroed; NULL: no memory */
void probe_unmap(void *p, size_t bytes);
void probe_text(char *to, size_t room, const char *from); /* cut, zero-padded */
static inline uint64_t probe_round(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* A lock for registration, never for a hot path: waiting is bounded, and a signal handler that meets its own thread's
 * lock is refused at once. */
bool probe_lock(uint32_t *lock, unsigned wait_ms);
void probe_unlock(uint32_t *lock);
/* Polls memory until done(arg) or the time is up. */
bool probe_wait(bool (*done)(void *arg), void *arg, unsigned wait_ms);

/* ---- readable.c ---- */

/* Whether every byte may be read: not unmapped, protected, or cut off from its file. Makes one cheap system call for each
 * page, and memory that goes afterwards is not helped. */
bool probe_readable(uint64_t address, uint64_t bytes);

/* ---- state.c: counts of the process, and what waits for the recording to start ---- */

/* Launches of the thread that has words of its own, and of all others. */
struct probe_launches {
	uint64_t own, shared;
};
static inline uint64_t probe_launches(const struct probe_launches *launches)
{
	return __atomic_load_n(&launches->own, __ATOMIC_RELAXED) + __atomic_load_n(&launches->shared, __ATOMIC_RELAXED);
}
static inline void probe_launches_add(struct probe_launches *launches, bool own)
{
	own_or_shared_add(own, &launches->own, &launches->shared, 1);
}

struct probe_counts {
	uint64_t steps;                 /* reported so far */
	uint64_t events;                /* ids handed out */
	struct probe_launches launches; /* of graphs, that succeeded */
	uint64_t launches_at_step;      /* of these, before the last step that asked what was seen */
};
extern struct probe_counts probe_counts RECORD_HIDDEN;
extern uint32_t probe_registry; /* the lock over pools, devices and regions */

bool probe_start(void); /* starts the recording if need be, and says what could not be said before */
/* This process is recorded; for calls that start no recording but in the child of a process that recorded. Such a child may speak of its
 * parent's pools: were it not recorded, the run would look as if it had said nothing. */
bool probe_start_inherited(void);
static inline bool probe_on_or_inherits(void)
{
	return __builtin_expect(record_active(), 1) || probe_start_inherited();
}
void probe_forked(void);

/* ---- device.c: what we hold in one context ---- */

enum probe_device_state { PROBE_DEVICE_FREE, PROBE_DEVICE_MAKING, PROBE_DEVICE_LIVE, PROBE_DEVICE_GONE };

struct probe_device {
	uint32_t state;
	cu_context ctx;
	cu_device handle;
	int32_t ordinal;
	bool said; /* LOG_DEVICE is out */
	cu_function print, ready;
	cu_stream stream; /* ours, non-blocking */
	cu_deviceptr arena;
	uint32_t units;
	unsigned char used[PROBE_ARENA_UNITS];
	uint32_t *word; /* the kernel FP_READY stores here */
	uint64_t word_address;
	uint32_t ready_value;
};

/* Of the device with this ordinal, made if need be; under probe_registry and a shim_guard. NULL: *error says why. */
struct probe_device *probe_device_get(const struct shim_driver *drv, int32_t ordinal, int *error);
/* First unit of a run in the arena, or -1. */
int probe_arena_take(struct probe_device *d, uint64_t bytes);
void probe_arena_give(struct probe_device *d, int unit, uint64_t bytes);
/* Waits until everything enqueued on the device's own stream before is done. 0, -ETIMEDOUT or -EAGAIN. */
int probe_device_settle(const struct shim_driver *drv, struct probe_device *d);
bool probe_ctx_enter(const struct shim_driver *drv, cu_context ctx, bool *pushed);
void probe_ctx_leave(const struct shim_driver *drv, bool pushed);
/* What the driver says of an address. A driver that cannot say is believed to know it. */
bool probe_pointer_known(const struct shim_driver *drv, uint64_t address);
uint64_t probe_pointer_allocation(const struct shim_driver *drv, uint64_t address); /* 0: unknown */
/* Whether kernels on this device may read there: false when the driver knows better. */
bool probe_pointer_on(const struct shim_driver *drv, uint64_t address, int32_t ordinal);
/* Ordinal of the device whose memory this is; -1: host memory, or unknown. */
int32_t probe_pointer_device(const struct shim_driver *drv, uint64_t address);
void probe_devices_going(cu_context ctx, cu_device device);
void probe_devices_forget(void);
bool probe_device_matches(const struct probe_device *d, cu_context ctx, cu_device device);

/* ---- ring.c: result buffers of one pool ---- */

enum probe_shot_state {
	PROBE_SHOT_FREE,
	PROBE_SHOT_TAKEN,   /* its thread has not launched yet, or not said so */
	PROBE_SHOT_ARMED,   /* the writer awaits it */
	PROBE_SHOT_PAIRED,  /* launched; handled with the shot that names it */
	PROBE_SHOT_DISCARD, /* launched, but nobody wants the result: free once it has come */
};

struct probe_shot {
	uint32_t state;
	uint32_t sequence;
	uint64_t event;
	struct ctr_row *row; /* NULL in a paired shot: its partner carries the attempt */
	uint32_t role;
	int32_t pair;   /* index of the copy's source, or -1 */
	uint32_t turns; /* of the writer since it was armed */
	uint32_t seen;  /* records that the writer found in; its own, from armed on */
	uint32_t n_regions;
	uint16_t region[FP_MAX_REGIONS];
	struct fp_launch launch; /* on a device: all there but for what each claim says */
};

struct probe_ring {
	unsigned char *map; /* shared and anonymous: survives every context, and no fork splits it */
	size_t map_bytes;
	uint64_t address; /* of the map, for the device */
	struct probe_device *owner;
	bool poisoned; /* a kernel that we gave up may still write here: never used again */
	uint32_t shots, stride, n_records;
	uint32_t wake_from, wake_every; /* in flight */
	uint64_t free[PROBE_SHOTS / 64];
	struct probe_shot *shot;
};

/* In each stride of the map: the regions that the launch reads, then its fp_entry. */
#define PROBE_ENTRY_OFFSET (FP_MAX_REGIONS * sizeof(struct fp_region))

static inline struct fp_entry *probe_entry(const struct probe_ring *r, uint32_t i)
{
	return (struct fp_entry *)(r->map + (size_t)i * r->stride + PROBE_ENTRY_OFFSET);
}
static inline struct fp_region *probe_entry_regions(const struct probe_ring *r, uint32_t i)
{
	return (struct fp_region *)(r->map + (size_t)i * r->stride);
}

uint32_t probe_ring_stride(uint32_t n_records);
/* For results of r->n_records records. `owner` NULL: plain memory. 0 or -errno. */
int probe_ring_make(struct probe_ring *r, const struct shim_driver *drv, struct probe_device *owner, uint32_t shots,
		    size_t least_bytes);
void probe_ring_retire(struct probe_ring *r);
void probe_rings_forget(void);
void probe_rings_going(struct probe_device *owner);
int probe_ring_search(struct probe_ring *r);
/* Index, or -1: every one is in flight. */
static inline int probe_ring_take(struct probe_ring *r)
{
	uint64_t free = __atomic_load_n(&r->free[0], __ATOMIC_RELAXED);

	if (__builtin_expect(free && __atomic_compare_exchange_n(&r->free[0], &free, free & (free - 1), false,
								 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED),
			     1))
		return __builtin_ctzll(free);
	return probe_ring_search(r);
}
void probe_ring_give(struct probe_ring *r, uint32_t i);
static inline bool probe_ring_busy(const struct probe_ring *r, uint32_t i)
{
	return !(__atomic_load_n(&r->free[i / 64], __ATOMIC_ACQUIRE) >> i % 64 & 1);
}
/* Of the w-th 64 shots: one bit each that is taken. */
static inline uint64_t probe_ring_busy_set(const struct probe_ring *r, uint32_t w)
{
	const uint32_t left = r->shots - w * 64;

	return ~__atomic_load_n(&r->free[w], __ATOMIC_ACQUIRE) & (left < 64 ? (1ull << left) - 1 : UINT64_MAX);
}
/* The result of shot i is in, of whose records the first *seen are known to be. */
static inline bool probe_ring_done(const struct probe_ring *r, uint32_t i, uint32_t *seen)
{
	const struct probe_shot *s = &r->shot[i];

	*seen = fp_records_in(probe_entry(r, i), s->sequence, *seen, r->n_records);
	return *seen == r->n_records &&
	       fp_regions_in(probe_entry(r, i), s->sequence, probe_entry_regions(r, i), s->n_regions);
}

/* ---- pool.c, layout.c, plan.c ---- */

enum probe_pool_state {
	PROBE_POOL_FREE,
	PROBE_POOL_ADDING,
	PROBE_POOL_LIVE,
	PROBE_POOL_GONE,
	PROBE_POOL_REAPING, /* somebody looks whether it may be freed */
};
enum probe_gone_why { PROBE_GONE_ASKED, PROBE_GONE_FREED, PROBE_GONE_CONTEXT };

struct probe_plane {
	char tensor[64];
	int32_t layer;
	uint32_t dtype;
	uint64_t base;
	int64_t stride;
	uint64_t elems, bytes;
	uint32_t n_chunks;
	uint64_t low, high;  /* of its slots */
	uint64_t reach_low;  /* from slot 0: a kernel binds the tensor, reserved slots included */
	uint64_t allocation; /* base of the allocation it lies in; 0: unknown */
};

struct probe_pool {
	uint32_t state;
	int32_t made; /* id + 1 of the last pool that was here, 0: none yet */
	uint32_t users, in_flight;
	uint32_t lost; /* its context went: results that are not in will never come */
	int32_t device;
	bool floating; /* host memory at the claim's state; the planes' bases are offsets */
	int64_t first_slot, n_slots;
	uint32_t n_planes, n_chunks, chunk_bytes;
	uint64_t slot_bytes;
	uint64_t low, high, reach_low;  /* over all planes */
	struct probe_launches launches; /* of graphs that touch a pool in this place, ever */
	uint64_t launches_before;       /* of these, before this pool */
	char name[64];
	struct probe_plane *plane;
	uint32_t *order; /* planes by (layer, tensor) */
	void *block;     /* one mapping: planes, order, shots */
	size_t block_bytes;
	struct probe_device *dev; /* NULL: host memory */
	int unit;                 /* in the arena, -1: none */
	uint64_t arena_bytes;
	uint64_t chunks_address;
	struct probe_ring ring;
};

extern struct probe_pool probe_pools[PROBE_POOLS] RECORD_HIDDEN;

static inline int32_t probe_pool_id(const struct probe_pool *p)
{
	return p->made - 1;
}
static inline uint32_t probe_pool_index(const struct probe_pool *p)
{
	return (uint32_t)(p - probe_pools);
}
static inline bool probe_pool_live(const struct probe_pool *p)
{
	return __atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == PROBE_POOL_LIVE;
}

/* A use of the pool with this id, or NULL: *why is the outcome of the attempt. */
struct probe_pool *probe_pool_get(int32_t id, enum ctr_outcome *why);
void probe_pool_put(struct probe_pool *p);

/* Checks and copies what the server says; 0 or -errno. */
int probe_layout_check(const struct slotprobe_pool *said);
int probe_layout_copy(struct probe_pool *p, const struct slotprobe_pool *said);
void probe_layout_say(const struct probe_pool *p);
/* Index of the plane that [address, address + span) reaches, or -1. */
int probe_layout_find(const struct probe_pool *p, uint64_t address, uint64_t span);

/* Brings the layout to where fingerprints are made, with a ring. 0 or -errno. */
int probe_plan_make(struct probe_pool *p);

int probe_pool_add(const struct slotprobe_pool *said);
int probe_pool_remove(int32_t id);
void probe_pools_releasing(uint64_t address, uint64_t bytes);
void probe_pools_going(cu_context ctx, cu_device device);
void probe_pools_forget(void);
/* Waits, bounded, until no launch that may read this region is on its way or in flight. */
void probe_pools_settle_region(uint32_t region);
/* What a launch must look at beyond the first word of the sets. */
enum {
	PROBE_BLIND = 1, /* a pool is not matched against the graphs yet: every launch counts */
	PROBE_MANY = 2   /* there was a pool beyond the first 64 */
};

/* Pools by their place in the table: those that are there, those in host memory, which any graph may touch. */
struct probe_sets {
	uint64_t live[PROBE_SET_WORDS], host[PROBE_SET_WORDS];
	uint32_t unusual;
};
extern struct probe_sets probe_sets RECORD_HIDDEN;

/* Launches since the pool was registered. */
static inline uint64_t probe_pool_launches(const struct probe_pool *p)
{
	return probe_launches(&p->launches) - p->launches_before;
}
/* Counts one launch of a graph that touches the pools of this word of the sets. True: it counts for some pool. */
static inline __attribute__((always_inline)) bool probe_pools_count_launch(uint32_t word, uint64_t touched, bool own)
{
	uint64_t hit = __atomic_load_n(&probe_sets.live[word], __ATOMIC_RELAXED) &
		       (touched | __atomic_load_n(&probe_sets.host[word], __ATOMIC_RELAXED));
	bool any = hit != 0;

	for (; hit; hit &= hit - 1)
		probe_launches_add(&probe_pools[word * 64 + (uint32_t)__builtin_ctzll(hit)].launches, own);
	return any;
}
/* A use of every pool that is live. */
uint32_t probe_pools_use(struct probe_pool *list[PROBE_POOLS]);
/* The writer holds a pool with shots in flight while it looks into it; false: there is nothing to look at. */
bool probe_pool_hold(struct probe_pool *p);
void probe_pool_let_go(struct probe_pool *p);

/* ---- region.c ---- */

#define PROBE_REGIONS 256u

struct probe_region {
	uint32_t state; /* 0 free, 1 live, 2 its memory was freed */
	uint32_t dtype;
	uint64_t base, bytes;
	uint64_t allocation; /* base of the allocation that it lies in; 0: unknown */
	int32_t device;      /* the kernel may read it in this device's launches; -1: it is only matched */
	uint32_t n_values, value_bytes;
	char name[64];
};
extern struct probe_region probe_regions[PROBE_REGIONS];

extern uint32_t probe_regions_used RECORD_HIDDEN;
static inline uint32_t probe_region_count(void)
{
	return __atomic_load_n(&probe_regions_used, __ATOMIC_ACQUIRE);
}
static inline bool probe_region_live(const struct probe_region *r)
{
	return __atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == 1;
}
int probe_region_add(const char *name, uint64_t base, uint64_t bytes, uint32_t dtype);
/* Writes the table of one launch; returns its length. */
uint32_t probe_region_table(int32_t device, struct fp_region *table, uint16_t *ids);
void probe_regions_releasing(uint64_t address, uint64_t bytes);
void probe_regions_going(const struct probe_device *d);
void probe_regions_forget(void);

/* ---- enqueue.c: one stay on a stream, in which shots are launched ---- */

struct probe_stay {
	const struct shim_driver *drv;
	struct probe_pool *pool;
	cu_stream stream;
	cu_context ctx;
	struct shim_guard guard;
	bool guarded, pushed, legacy;
};

struct probe_aim {
	int64_t slot;
	uint64_t slot_ptr;
	uint32_t slot_ptr_bytes;
	uint32_t role;
	uint64_t state; /* of a floating pool */
};

/* CTR_COMMITTED: shots may be fired until probe_stay_end, which is to be called whatever this returns. */
enum ctr_outcome probe_stay_begin(struct probe_stay *stay, struct probe_pool *pool, uint64_t stream);
void probe_stay_end(struct probe_stay *stay);
/* CTR_COMMITTED: *shot is launched and still TAKEN; else nothing is. */
enum ctr_outcome probe_fire(struct probe_stay *stay, const struct probe_aim *aim, uint32_t *shot);

static inline void probe_shot_set(struct probe_pool *p, uint32_t shot, enum probe_shot_state state)
{
	__atomic_store_n(&p->ring.shot[shot].state, state, __ATOMIC_RELEASE);
}
/* The writer naps while nothing happens: a burst must not fill the ring meanwhile. A wake costs a system call, so few. */
static inline void probe_count_in_flight(struct probe_pool *p)
{
	uint32_t n = __atomic_add_fetch(&p->in_flight, 1, __ATOMIC_SEQ_CST);

	if (__builtin_expect(n >= p->ring.wake_from, 0) && n % p->ring.wake_every == 0)
		record_wake(false);
}

/* Makes a shot that was taken from the ring ready for its launch. */
static inline struct probe_shot *probe_shot_begin(struct probe_pool *p, uint32_t shot, uint32_t role)
{
	struct probe_shot *s = &p->ring.shot[shot];

	probe_count_in_flight(p);
	probe_shot_set(p, shot, PROBE_SHOT_TAKEN);
	if (++s->sequence == 0)
		s->sequence = 1;
	s->pair = -1;
	s->turns = s->seen = s->n_regions = 0;
	s->role = role;
	return s;
}

/* The kernel of a shot whose regions are in its table. Every other word of the argument was written with the pool. */
static inline cu_result probe_shot_launch(const struct shim_driver *drv, const struct probe_pool *p,
					  struct probe_shot *s, cu_stream stream)
{
	void *params[] = { &s->launch };

	s->launch.n_regions = s->n_regions;
	s->launch.sequence = s->sequence;
	return drv->launch_kernel(p->dev->print, p->n_chunks, 1, 1, FP_THREADS, 1, 1, 0, stream, params, NULL);
}

/* Gives a shot back: the last thing that is done with it, and maybe with its pool. */
static inline void probe_shot_release(struct probe_pool *p, uint32_t shot)
{
	probe_shot_set(p, shot, PROBE_SHOT_FREE);
	probe_ring_give(&p->ring, shot);
	__atomic_fetch_sub(&p->in_flight, 1, __ATOMIC_SEQ_CST);
}

/* ---- claim.c ---- */

int64_t probe_claim(enum log_event_kind kind, const struct slotprobe_claim *claim, int64_t src);
/* The same for what is usual; 0: it is not, and nothing has happened yet. */
int64_t probe_claim_usual(enum log_event_kind kind, struct ctr_row *row, const struct slotprobe_claim *claim);

/* ---- collect.c ---- */

unsigned probe_poll(void);
void probe_abandon(enum ctr_outcome why);

/* ---- kept.c ---- */

void probe_keep(uint64_t event, bool measured, uint64_t hash); /* the writer's thread */
int probe_kept(uint64_t event, uint64_t *hash);

/* ---- step.c, rank.c, points.c ---- */

int probe_step(const struct slotprobe_step *step);
int probe_rank(const char *axis, int32_t index, int32_t count);
void probe_rank_say(void);
void probe_rank_forked(void);
int probe_point(const char *name);
int probe_hit(int point, uint32_t outcome);

#endif
