/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c: the table of pools: who is there, who uses it, and how one goes.
 *
 * A user adds itself to `users` and then looks at the state; whoever takes a pool away changes the state and then looks
 * at `users`. Both in one total order, so one of them sees the other.
 */
#include "core.h"
#include "graph.h"

#include <errno.h>
#include <string.h>

struct probe_pool probe_pools[PROBE_POOLS];
struct probe_sets probe_sets;

/* ---- use ---- */

void probe_pool_put(struct probe_pool *p)
{
	__atomic_fetch_sub(&p->users, 1, __ATOMIC_SEQ_CST);
}

struct probe_pool *probe_pool_get(int32_t id, enum ctr_outcome *why)
{
	struct probe_pool *p;
	uint32_t state;
	int32_t last;

	*why = CTR_ERROR_ARGUMENT;
	if (id < 0)
		return NULL;
	p = &probe_pools[(uint32_t)id % PROBE_POOLS];
	__atomic_fetch_add(&p->users, 1, __ATOMIC_SEQ_CST);
	state = __atomic_load_n(&p->state, __ATOMIC_SEQ_CST);
	last = __atomic_load_n(&p->made, __ATOMIC_RELAXED) - 1;
	if (state == PROBE_POOL_LIVE && last == id)
		return p;
	if (last == id)
		*why = state == PROBE_POOL_ADDING ? CTR_SKIPPED_NOT_READY : CTR_SKIPPED_POOL_GONE;
	else if (last > id)
		*why = CTR_SKIPPED_POOL_GONE;
	probe_pool_put(p);
	return NULL;
}

bool probe_pool_hold(struct probe_pool *p)
{
	uint32_t state;

	if (!__atomic_load_n(&p->in_flight, __ATOMIC_ACQUIRE))
		return false;
	__atomic_fetch_add(&p->in_flight, 1, __ATOMIC_SEQ_CST);
	state = __atomic_load_n(&p->state, __ATOMIC_SEQ_CST);
	if (state == PROBE_POOL_LIVE || state == PROBE_POOL_GONE)
		return true;
	probe_pool_let_go(p);
	return false;
}

void probe_pool_let_go(struct probe_pool *p)
{
	__atomic_fetch_sub(&p->in_flight, 1, __ATOMIC_SEQ_CST);
}

/* ---- which of them a launch counts for ---- */

static void set_bit(uint64_t *set, uint32_t i, bool on)
{
	if (on)
		__atomic_fetch_or(&set[i / 64], 1ull << i % 64, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(&set[i / 64], ~(1ull << i % 64), __ATOMIC_SEQ_CST);
}

/* ---- adding; under probe_registry ---- */

static void drop_memory(struct probe_pool *p)
{
	/* After a time-out the device may still write there: the arena keeps what it took. */
	if (p->dev && !p->ring.poisoned && probe_device_matches(p->dev, p->dev->ctx, 0))
		probe_arena_give(p->dev, p->unit, p->arena_bytes);
	p->unit = -1;
	probe_ring_retire(&p->ring);
	probe_unmap(p->block, p->block_bytes);
	p->block = NULL;
	p->plane = NULL;
	p->order = NULL;
	p->dev = NULL;
}

/* REAPING first and then the counts, as users and the writer count themselves first and then look at the state. */
static void reap(struct probe_pool *p)
{
	uint32_t gone = PROBE_POOL_GONE;

	if (!__atomic_compare_exchange_n(&p->state, &gone, PROBE_POOL_REAPING, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	if (__atomic_load_n(&p->users, __ATOMIC_SEQ_CST) || __atomic_load_n(&p->in_flight, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&p->state, PROBE_POOL_GONE, __ATOMIC_SEQ_CST);
		return;
	}
	drop_memory(p);
	__atomic_store_n(&p->state, PROBE_POOL_FREE, __ATOMIC_SEQ_CST);
}

/* The place whose last id is the lowest: ids stay small, and one comes back as late as can be. */
static struct probe_pool *place(void)
{
	struct probe_pool *best = NULL;

	for (uint32_t i = 0; i < PROBE_POOLS; i++) {
		struct probe_pool *p = &probe_pools[i];
		if (__atomic_load_n(&p->state, __ATOMIC_RELAXED) != PROBE_POOL_FREE)
			continue;
		if (p->made > INT32_MAX - (int32_t)PROBE_POOLS - 1)
			continue;
		if (!best || p->made < best->made)
			best = p;
	}
	return best;
}

static int add(const struct slotprobe_pool *said)
{
	struct probe_pool *p;
	int rc;

	for (uint32_t i = 0; i < PROBE_POOLS; i++)
		reap(&probe_pools[i]);
	p = place();
	if (!p)
		return -ENOSPC;
	rc = probe_layout_copy(p, said);
	if (!rc)
		rc = probe_plan_make(p);
	if (rc) {
		drop_memory(p);
		return rc;
	}
	__atomic_store_n(&p->made, p->made ? p->made + (int32_t)PROBE_POOLS : (int32_t)probe_pool_index(p) + 1,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&p->state, PROBE_POOL_ADDING, __ATOMIC_SEQ_CST);
	probe_layout_say(p);
	set_bit(probe_sets.host, probe_pool_index(p), p->device < 0);
	if (probe_pool_index(p) >= 64)
		__atomic_fetch_or(&probe_sets.unusual, PROBE_MANY, __ATOMIC_RELEASE);
	__atomic_store_n(&p->state, PROBE_POOL_LIVE, __ATOMIC_SEQ_CST);
	/* Graphs know the pool before launches count for it; its id is not out yet, so no donation can miss one. */
	probe_graphs_rescan(true);
	set_bit(probe_sets.live, probe_pool_index(p), true);
	if (__atomic_load_n(&p->state, __ATOMIC_SEQ_CST) != PROBE_POOL_LIVE)
		set_bit(probe_sets.live, probe_pool_index(p), false); /* it went meanwhile */
	return probe_pool_id(p);
}

int probe_pool_add(const struct slotprobe_pool *said)
{
	int rc;

	if (!probe_start())
		return -ENOSYS;
	rc = probe_layout_check(said);
	if (!rc && !probe_lock(&probe_registry, PROBE_REGISTRY_MS))
		rc = -EAGAIN;
	else if (!rc) {
		rc = add(said);
		probe_unlock(&probe_registry);
	}
	/* Every donation to it will count as an error of argument; this says that it began here. */
	if (rc < 0 && rc != -EINVAL)
		ctr_add(ctr_core(CTR_ROW_INTERNAL), 1);
	return rc;
}

/* ---- going: no lock, since it happens inside the server's free ---- */

/* False: somebody else was first. */
static bool mark_gone(struct probe_pool *p)
{
	uint32_t live = PROBE_POOL_LIVE;

	if (!__atomic_compare_exchange_n(&p->state, &live, PROBE_POOL_GONE, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return false;
	set_bit(probe_sets.live, probe_pool_index(p), false);
	return true;
}

static bool shot_over(const struct probe_ring *r, uint32_t i)
{
	uint32_t seen = 0;

	return !probe_ring_busy(r, i) || __atomic_load_n(&r->shot[i].state, __ATOMIC_ACQUIRE) <= PROBE_SHOT_TAKEN ||
	       probe_ring_done(r, i, &seen);
}

/* Nobody but the caller is about to launch, and every launch has written its result: our reads of the pool are over. */
static bool quiet(void *arg)
{
	const struct probe_pool *p = arg;

	if (__atomic_load_n(&p->users, __ATOMIC_SEQ_CST) > 1)
		return false;
	for (uint32_t i = 0; i < p->ring.shots; i++)
		if (!shot_over(&p->ring, i))
			return false;
	return true;
}

static void say_gone(const struct probe_pool *p, enum probe_gone_why why)
{
	struct log_pool_remove r;

	memset(&r, 0, sizeof r);
	record_fill(&r, LOG_POOL_REMOVE);
	r.t_ns = record_now_ns();
	r.pool = probe_pool_id(p);
	r.why = why;
	record_put_meta(&r);
}

/* The caller holds a use, so that nobody reaps the pool meanwhile. */
static void go(struct probe_pool *p, enum probe_gone_why why)
{
	bool over;

	if (!mark_gone(p))
		return;
	over = probe_wait(quiet, p, PROBE_WAIT_MS);
	if (!over && why != PROBE_GONE_CONTEXT)
		ctr_add(ctr_core(CTR_ROW_INTERNAL), 1);
	say_gone(p, why);
}

int probe_pool_remove(int32_t id)
{
	enum ctr_outcome why;
	struct probe_pool *p;

	if (!probe_on_or_inherits())
		return -ENOSYS;
	p = probe_pool_get(id, &why);
	if (!p)
		return -EINVAL;
	go(p, PROBE_GONE_ASKED);
	probe_pool_put(p);
	return 0;
}

/* A use of the live pool in this place, whichever it is. */
static struct probe_pool *use_place(uint32_t i)
{
	struct probe_pool *p = &probe_pools[i];

	__atomic_fetch_add(&p->users, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&p->state, __ATOMIC_SEQ_CST) == PROBE_POOL_LIVE)
		return p;
	probe_pool_put(p);
	return NULL;
}

static bool lies_in(const struct probe_pool *p, uint64_t address, uint64_t bytes)
{
	if (bytes && (address >= p->high || address + bytes <= p->low))
		return false;
	for (uint32_t i = 0; i < p->n_planes; i++) {
		const struct probe_plane *s = &p->plane[i];
		if (!s->bytes)
			continue;
		if (bytes ? address < s->high && address + bytes > s->low
			  : address == (s->allocation ? s->allocation : s->low))
			return true;
	}
	return false;
}

/* The live set is read first: this runs in every free of the server. */
#define FOR_LIVE_POOLS(p)                                                                                              \
	for (uint32_t w = 0; w < PROBE_SET_WORDS; w++)                                                                 \
		for (uint64_t left = __atomic_load_n(&probe_sets.live[w], __ATOMIC_SEQ_CST); left; left &= left - 1)   \
			if ((p = use_place(w * 64 + (uint32_t)__builtin_ctzll(left))) != NULL)

void probe_pools_releasing(uint64_t address, uint64_t bytes)
{
	struct probe_pool *p;

	if (bytes > UINT64_MAX - address)
		bytes = UINT64_MAX - address;
	FOR_LIVE_POOLS(p)
	{
		if (lies_in(p, address, bytes))
			go(p, PROBE_GONE_FREED);
		probe_pool_put(p);
	}
}

void probe_pools_going(cu_context ctx, cu_device device)
{
	struct probe_pool *p;

	FOR_LIVE_POOLS(p)
	{
		if (p->dev && probe_device_matches(p->dev, ctx, device))
			go(p, PROBE_GONE_CONTEXT);
		probe_pool_put(p);
	}
	/* Now, or removed before: results that are still out will not come. */
	for (uint32_t i = 0; i < PROBE_POOLS; i++) {
		const struct probe_device *d = __atomic_load_n(&probe_pools[i].dev, __ATOMIC_ACQUIRE);
		if (d && __atomic_load_n(&probe_pools[i].state, __ATOMIC_SEQ_CST) == PROBE_POOL_GONE &&
		    probe_device_matches(d, ctx, device))
			__atomic_store_n(&probe_pools[i].lost, 1, __ATOMIC_RELEASE);
	}
}

/* ---- regions are read by the launches of every pool ---- */

struct region_wait {
	struct probe_pool *pool;
	uint32_t region;
	bool idle; /* has been seen without a user: whoever comes now sees that the region is gone */
};

static bool region_over(void *arg)
{
	struct region_wait *w = arg;
	const struct probe_ring *r = &w->pool->ring;

	w->idle = w->idle || __atomic_load_n(&w->pool->users, __ATOMIC_SEQ_CST) == 1; /* us */
	if (!w->idle)
		return false;
	for (uint32_t i = 0; i < r->shots; i++) {
		const struct probe_shot *s = &r->shot[i];
		if (shot_over(r, i))
			continue;
		for (uint32_t k = 0; k < s->n_regions; k++)
			if (s->region[k] == w->region)
				return false;
	}
	return true;
}

void probe_pools_settle_region(uint32_t region)
{
	struct probe_pool *p;

	FOR_LIVE_POOLS(p)
	{
		struct region_wait wait = { p, region, false };
		if (!probe_wait(region_over, &wait, PROBE_WAIT_MS))
			ctr_add(ctr_core(CTR_ROW_INTERNAL), 1);
		probe_pool_put(p);
	}
}

uint32_t probe_pools_use(struct probe_pool *list[PROBE_POOLS])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < PROBE_POOLS; i++)
		if (probe_pool_live(&probe_pools[i]) && (list[n] = use_place(i)) != NULL)
			n++;
	return n;
}

/* Only what was touched is cleared: this runs in every child of a fork, where each page written is a page copied. The ids
 * stay used up: the child may still hold some, and they are to mean pools that are gone, none of its own. */
void probe_pools_forget(void)
{
	for (uint32_t i = 0; i < PROBE_POOLS; i++) {
		int32_t made = probe_pools[i].made;
		if (!made && !probe_pools[i].block)
			continue;
		memset(&probe_pools[i], 0, sizeof probe_pools[i]);
		probe_pools[i].made = made;
	}
	memset(&probe_sets, 0, sizeof probe_sets);
}
