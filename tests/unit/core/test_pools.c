/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pools.c: registering pools and regions, what may go wrong with it, and how their memory goes.
 */
#include "fake.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool result_in(const struct probe_pool *p, uint32_t shot)
{
	uint32_t seen = 0;

	return probe_ring_done(&p->ring, shot, &seen);
}

static int fresh(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

/* ---- registering ---- */

static void layout_is_recorded(void **state)
{
	int pool = toy_add(0);
	const struct fake_record *r;

	(void)state;
	assert_int_equal(pool, 0);
	r = fake_find(LOG_POOL, 0);
	assert_string_equal(r->pool.name, "mamba");
	assert_int_equal(r->pool.n_slots, TOY_SLOTS);
	assert_int_equal(r->pool.n_planes, TOY_PLANES);
	assert_int_equal(r->pool.slot_bytes, 2 * TOY_ELEMS * 6);
	assert_int_equal(fake_count(LOG_PLANE), TOY_PLANES);
	r = fake_find(LOG_PLANE, 1);
	assert_int_equal(r->plane.index, 1);
	assert_string_equal(r->plane.tensor, "conv");
	assert_int_equal(r->plane.layer, 1);
	assert_int_equal(r->plane.bytes, TOY_ELEMS * 2);
	assert_int_equal(fake_count(LOG_DEVICE), 1);
	assert_int_equal(fake_find(LOG_DEVICE, 0)->device.capability, 90);
	assert_string_equal(fake.driver, "CUDA 13.0, Fake");
	assert_int_equal(toy_add(0), 1); /* a context is said once */
	assert_int_equal(fake_count(LOG_DEVICE), 1);
}

static void bad_layouts(void **state)
{
	struct slotprobe_plane plane;
	struct slotprobe_pool said;

	(void)state;
	toy_add(0);
#define REFUSED(error, change)                                                                                         \
	do {                                                                                                           \
		said = toy.said;                                                                                       \
		plane = toy.plane[0];                                                                                  \
		said.planes = &plane;                                                                                  \
		said.n_planes = 1;                                                                                     \
		change;                                                                                                \
		assert_int_equal(slotprobe_pool_add(&said), error);                                                    \
	} while (0)
	assert_int_equal(slotprobe_pool_add(NULL), -EINVAL);
	REFUSED(-EINVAL, said.size = 4);
	REFUSED(-EINVAL, said.name = NULL);
	REFUSED(-EINVAL, said.name = "");
	REFUSED(-EINVAL, said.device = -2);
	REFUSED(-EINVAL, said.n_planes = 0);
	REFUSED(-EINVAL, said.planes = NULL);
	REFUSED(-ENOSPC, said.n_planes = PROBE_PLANES + 1);
	REFUSED(-EINVAL, said.n_slots = 0);
	REFUSED(-EINVAL, said.first_slot = -1);
	REFUSED(-EINVAL, (said.first_slot = INT64_MAX, said.n_slots = 2));
	REFUSED(-EINVAL, plane.tensor = NULL);
	REFUSED(-EINVAL, plane.dtype = SLOTPROBE_RAW + 1);
	REFUSED(-EINVAL, plane.base = 0);
	REFUSED(-EINVAL, plane.elems = UINT64_MAX / 2);
	REFUSED(-EINVAL, plane.slot_stride = INT64_MAX / 2);
	REFUSED(-EINVAL, plane.slot_stride = INT64_MIN);
	REFUSED(-EINVAL, (plane.base = INT64_MAX - 8, plane.slot_stride = 0));
	REFUSED(-EINVAL, plane.slot_stride = -(int64_t)plane.base); /* wraps below 0 */
	REFUSED(-ENODEV, said.device = 7);
	fake_gpu.unknown_low = toy.plane[0].base;
	fake_gpu.unknown_high = toy.plane[0].base + 8;
	REFUSED(-EINVAL, (void)0);
	fake_gpu.unknown_low = toy.plane[0].base + TOY_SLOTS * sizeof toy.ssm[0][0] - 1;
	fake_gpu.unknown_high = fake_gpu.unknown_low + 1;
	REFUSED(-EINVAL, (void)0);
	fake_gpu.unknown_low = 0;
	fake_gpu.unknown_high = 0;
	/* two planes of one name */
	struct slotprobe_plane twice[2] = { toy.plane[0], toy.plane[0] };
	REFUSED(-EINVAL, (said.planes = twice, said.n_planes = 2));
	REFUSED(1, (void)0); /* and nothing of all that was left behind */
	fake_gpu.unknown_low = toy.plane[0].base + TOY_SLOTS * sizeof toy.ssm[0][0];
	fake_gpu.unknown_high = fake_gpu.unknown_low + 1;
	REFUSED(2, (void)0); /* what lies behind the last slot is nobody's business */
	assert_int_equal(fake_count(LOG_POOL), 3);
}

static void no_driver_or_context(void **state)
{
	(void)state;
	fake_gpu.absent = true;
	shim_driver_found = NULL;
	assert_int_equal(toy_add(0), -ENODEV);
	fake_gpu.absent = false;
	fake_gpu.current = fake_gpu.primary = NULL;
	assert_int_equal(toy_add(0), -ENODEV); /* none is made for it */
	assert_int_equal(fake_gpu.retains, 0);
	fake_gpu.primary = FAKE_CTX;
	assert_int_equal(toy_add(0), 0);
	assert_int_equal(fake_gpu.retains, 1);
	assert_int_equal(fake_gpu.releases, 1); /* it must go when its owner lets go of it */
	assert_true(fake_gpu.pushes > 0);
	assert_int_equal(fake_gpu.pushes, fake_gpu.pops);
	assert_null(fake_gpu.current);
	assert_int_equal(fake_row(CTR_ROW_INTERNAL)->outcome[0], 2);
}

static void device_trouble_can_be_got_over(void **state)
{
	(void)state;
	fake_gpu.alloc_rc = CU_OUT_OF_MEMORY;
	assert_int_equal(toy_add(0), -EAGAIN);
	fake_gpu.alloc_rc = 0;
	fake_gpu.register_rc = 1;
	for (int i = 0; i < 2 * (int)PROBE_ARENA_UNITS; i++) /* none of it leaves anything behind */
		assert_int_equal(toy_add(0), -EAGAIN);
	fake_gpu.register_rc = 0;
	fake_gpu.map_rc = 1;
	fake_gpu.registers = fake_gpu.unregisters = 0;
	assert_int_equal(toy_add(0), -EAGAIN);
	assert_int_equal(fake_gpu.registers, 5);   /* each a quarter of the one before */
	assert_int_equal(fake_gpu.unregisters, 5); /* they are given back to the system */
	fake_gpu.map_rc = 0;
	fake_gpu.copy_rc = 1;
	assert_int_equal(toy_add(0), -EAGAIN);
	fake_gpu.copy_rc = 0;
	fake_gpu.library_rc = 1; /* an old driver: modules */
	assert_int_equal(toy_add(0), 0);
	assert_int_equal(fake_gpu.pushes, fake_gpu.pops);
	assert_int_equal(fake_gpu.guards_open, 0);
}

static void device_that_does_not_answer(void **state)
{
	struct slotprobe_claim c;
	uint64_t chunks;

	(void)state;
	fake_gpu.ready_dead = true;
	assert_int_equal(toy_add(0), -ETIMEDOUT);
	chunks = probe_pools[0].chunks_address;
	fake_gpu.ready_dead = false;
	assert_int_equal(toy_add(0), 0);
	assert_int_not_equal(probe_pools[0].chunks_address, chunks); /* the copy may still come there */
	c = toy_claim(0, 1);
	slotprobe_donate(&c);
	fake_turns(2);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 0), &toy, 1);
}

static void odd_layouts_are_measured(void **state)
{
	static unsigned char raw[4096];
	struct slotprobe_plane plane[3] = {
		{ "odd", -1, SLOTPROBE_RAW, (uintptr_t)raw + 1, 37, 33 },
		{ "down", 0, SLOTPROBE_F16, (uintptr_t)raw + 4001, -64, 9 },
		{ "empty", 0, SLOTPROBE_F32, 0, 0, 0 },
	};
	struct slotprobe_pool said = { sizeof said, "odd", 0, 5, 10, plane, 3, 0 };
	struct slotprobe_claim c;
	struct fp_print print;

	(void)state;
	for (size_t i = 0; i < sizeof raw; i++)
		raw[i] = (unsigned char)(i * 7);
	c = toy_claim(slotprobe_pool_add(&said), 7);
	assert_true(slotprobe_donate(&c) > 0);
	fake_turns(2);
	fp_host_plane(raw + 1 + 2 * 37, 33, 33, SLOTPROBE_RAW, &print);
	assert_memory_equal(&print, &fake_find(LOG_FINGERPRINT, 0)->fingerprint.plane[0], sizeof print);
	fp_host_plane(raw + 4001 - 2 * 64, 18, 9, SLOTPROBE_F16, &print);
	assert_memory_equal(&print, &fake_find(LOG_FINGERPRINT, 0)->fingerprint.plane[1], sizeof print);
}

static void many_planes_come_in_parts(void **state)
{
	static float data[2][200][8];
	static struct slotprobe_plane plane[200];
	struct slotprobe_pool said = { sizeof said, "many", 0, 0, 2, plane, 200, 0 };
	struct slotprobe_claim c;
	uint32_t planes = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		data[1][i][3] = (float)i;
		plane[i] = (struct slotprobe_plane) { "t", i, SLOTPROBE_F32, (uintptr_t)data[0][i], sizeof data[0], 8 };
	}
	c = toy_claim(slotprobe_pool_add(&said), 1);
	slotprobe_donate(&c);
	fake_turns(2);
	assert_true(fake_count(LOG_FINGERPRINT) > 1);
	for (unsigned k = 0; k < fake_count(LOG_FINGERPRINT); k++) {
		const struct log_fingerprint *f = &fake_find(LOG_FINGERPRINT, k)->fingerprint;
		assert_int_equal(f->first_plane, planes);
		assert_int_equal(f->total_planes, 200);
		assert_int_equal(f->rollup, fake_find(LOG_FINGERPRINT, 0)->fingerprint.rollup);
		for (uint32_t i = 0; i < f->n_planes; i++)
			assert_true(f->plane[i].absmax == (double)(planes + i));
		planes += f->n_planes;
	}
	assert_int_equal(planes, 200);
	assert_ptr_equal(&fake.record[fake.committed], fake_find(LOG_FINGERPRINT, fake_count(LOG_FINGERPRINT) - 1));
	assert_row(CTR_ROW_DONATE, 1, CTR_COMMITTED);
}

static void places_and_ids_come_back(void **state)
{
	struct slotprobe_claim c;
	int last = -1;

	(void)state;
	for (int i = 0; i < 700; i++) {
		int pool = toy_add(-1);
		assert_int_equal(pool, i); /* an id is never used twice */
		c = toy_claim(pool, 1);
		assert_true(slotprobe_donate(&c) > 0);
		assert_int_equal(slotprobe_pool_remove(pool), 0);
		assert_int_equal(slotprobe_donate(&c), -EINVAL);
		fake_turns(2);
		if (last >= 0) {
			c = toy_claim(last, 1);
			assert_int_equal(slotprobe_restore(&c), -EINVAL);
		}
		last = pool;
	}
	c = toy_claim(3, 1); /* long gone, and others were in its place */
	assert_int_equal(slotprobe_restore(&c), -EINVAL);
	assert_int_equal(fake_row(CTR_ROW_DONATE)->outcome[CTR_COMMITTED], 700);
	assert_row(CTR_ROW_RESTORE, 700, CTR_SKIPPED_POOL_GONE);
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 700);
}

static void table_full(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PROBE_POOLS; i++)
		assert_int_equal(toy_add(-1), i);
	assert_int_equal(toy_add(-1), -ENOSPC);
	assert_int_equal(slotprobe_pool_remove(17), 0);
	assert_int_equal(toy_add(-1), 17 + PROBE_POOLS);
}

static void device_memory_comes_back(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) { /* more than there is room for at once */
		int pool = toy_add(0);
		assert_int_equal(pool, i);
		assert_int_equal(probe_pools[(unsigned)pool % PROBE_POOLS].ring.shots, toy_shots());
		assert_int_equal(slotprobe_pool_remove(pool), 0);
	}
}

/* Asking about page 0 must not be mistaken for asking about nothing. */
static void page_zero_is_not_readable(void **state)
{
	char here[16] = "here";

	(void)state;
	for (uint64_t at = 0; at < 16; at++)
		assert_false(probe_readable(at, 4));
	assert_false(probe_readable(4095, 1));
	assert_true(probe_readable((uint64_t)(uintptr_t)here, sizeof here));
}

/* A slot of 20 GiB has descriptions of 240 KiB: the arena holds some thirty such pools, and small ones beside them. */
static void full_arena_refuses(void **state)
{
	enum { PLANES = 20 };
	struct slotprobe_plane plane[PLANES];
	struct slotprobe_pool huge = {
		.size = sizeof huge, .name = "huge", .n_slots = 1, .planes = plane, .n_planes = PLANES
	};
	int small, last = -1, rc;

	(void)state;
	for (int32_t i = 0; i < PLANES; i++)
		plane[i] = (struct slotprobe_plane) { .tensor = "h",
						      .layer = i,
						      .dtype = SLOTPROBE_RAW,
						      .base = (uint64_t)(uintptr_t)fake_gpu.held + ((uint64_t)i << 30),
						      .slot_stride = 1 << 30,
						      .elems = 1 << 30 };
	plane[0].elems = 1ull << 42; /* its result would be larger than any buffer */
	assert_int_equal(slotprobe_pool_add(&huge), -ENOSPC);
	plane[0].elems = 1 << 30;
	while ((rc = slotprobe_pool_add(&huge)) == last + 1 && rc < 100)
		last = rc;
	assert_int_equal(rc, -ENOSPC);
	assert_in_range(last, 20, 40);
	small = toy_add(0);
	assert_true(small > last);
	assert_int_equal(probe_pools[(unsigned)small % PROBE_POOLS].ring.shots,
			 512); /* the large ones have all the memory */
	assert_int_equal(slotprobe_pool_remove(0), 0);
	assert_true(slotprobe_pool_add(&huge) > small);
}

/* Pinned memory of all pools is bounded: the first have 16 MiB each, later ones room for a few. */
static void later_pools_pin_little(void **state)
{
	uint64_t bytes = 0;

	(void)state;
	for (int i = 0; i < 5; i++) /* nothing is pinned for these */
		assert_int_equal(toy_add(-1), i);
	for (int i = 5; i < 45; i++) {
		assert_int_equal(toy_add(0), i);
		assert_int_equal(probe_pools[i].ring.shots, i < 9 ? toy_shots() : 512);
		bytes += probe_pools[i].ring.map_bytes;
	}
	assert_in_range(bytes, 64u << 20, (64u << 20) + 36 * 3 * (1u << 20));
	assert_true(probe_pools[toy_add(-1)].ring.shots > 512);
	for (int i = 5; i < 45; i++) /* what the first had is there for others */
		assert_int_equal(slotprobe_pool_remove(i), 0);
	assert_int_equal(probe_pools[toy_add(0)].ring.shots, toy_shots());
}

/* A server that may pin little is measured all the same. */
static void buffers_are_few_where_memory_is_short(void **state)
{
	struct slotprobe_claim c;

	(void)state;
	fake_gpu.register_most = 4u << 20;
	c = toy_claim(toy_add(0), 1);
	assert_int_equal(c.pool, 0);
	assert_int_equal(probe_pools[0].ring.shots, toy_shots() / 4);
	assert_true(slotprobe_donate(&c) > 0);
	assert_int_equal(fake_turns(2), 0);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 0), &toy, 1);
	fake_gpu.register_most = 64u << 10; /* the least that is asked for */
	assert_int_equal(toy_add(0), 1);
	assert_in_range(probe_pools[1].ring.shots, 8, 13);
	fake_gpu.register_most = 1;
	assert_int_equal(toy_add(0), -EAGAIN);
}

/* However many pools there were at once, and whichever goes first: those that come after them register nothing new. */
static void buffers_of_many_pools_serve_again(void **state)
{
	unsigned registers;

	(void)state;
	for (int round = 0; round < 4; round++) {
		int pool[40];

		for (unsigned i = 0; i < 40; i++)
			pool[i] = toy_add(0);
		if (round == 0)
			registers = fake_gpu.registers;
		assert_int_equal(fake_gpu.registers, registers);
		for (unsigned i = 40; i--;)
			assert_int_equal(slotprobe_pool_remove(pool[i]), 0);
	}
}

/* ---- going ---- */

static void *let_run(void *arg)
{
	(void)arg;
	usleep(50000);
	fake_run();
	return NULL;
}

static void removal_waits_for_reads_in_flight(void **state)
{
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 1);
	pthread_t t;

	(void)state;
	fake_gpu.hold = true;
	slotprobe_donate(&c);
	pthread_create(&t, NULL, let_run, NULL);
	assert_int_equal(slotprobe_pool_remove(pool), 0);
	assert_true(result_in(&probe_pools[0], 0)); /* it was waited for */
	pthread_join(t, NULL);
	fake_turns(2);
	assert_row(CTR_ROW_DONATE, 1, CTR_COMMITTED); /* and commits */
	assert_int_equal(fake_find(LOG_POOL_REMOVE, 0)->removed.why, PROBE_GONE_ASKED);
}

static void *donate_once(void *arg)
{
	struct slotprobe_claim c = toy_claim(0, 1);

	(void)arg;
	slotprobe_donate(&c);
	return NULL;
}

static void *unstall(void *arg)
{
	(void)arg;
	usleep(50000);
	__atomic_store_n(&fake_gpu.stall, 0, __ATOMIC_RELEASE);
	return NULL;
}

/* A thread that has passed every check and is about to launch: its read has not even begun. */
static void release_waits_for_a_launch_on_its_way(void **state)
{
	pthread_t t[2];

	(void)state;
	toy_add(0);
	fake_gpu.stall = 1;
	pthread_create(&t[0], NULL, donate_once, NULL);
	while (__atomic_load_n(&fake_gpu.stall, __ATOMIC_ACQUIRE) != 2)
		usleep(100);
	pthread_create(&t[1], NULL, unstall, NULL);
	shim_observer.releasing((uintptr_t)&toy, sizeof toy, SHIM_RELEASE_FREE);
	assert_int_equal(__atomic_load_n(&fake_gpu.launches, __ATOMIC_ACQUIRE), 1);
	assert_true(result_in(&probe_pools[0], 0));
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	fake_turns(2);
	assert_row(CTR_ROW_DONATE, 1, CTR_COMMITTED);
}

static void removal_does_not_wait_for_ever(void **state)
{
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 1);
	uint64_t before;

	(void)state;
	fake_gpu.hold = true;
	slotprobe_donate(&c);
	before = record_now_ns();
	assert_int_equal(slotprobe_pool_remove(pool), 0);
	assert_true(record_now_ns() - before > 900000000ull);
	assert_true(record_now_ns() - before < 3000000000ull);
	assert_int_equal(fake_row(CTR_ROW_INTERNAL)->outcome[0], 1);
	assert_int_equal(toy_add(0), 1); /* its place is not touched while a kernel may write there */
	assert_int_equal(probe_pools[0].in_flight, 1);
	fake_run();
	fake_turns(2);
	assert_row(CTR_ROW_DONATE, 1, CTR_COMMITTED);
}

static void released_memory_takes_its_pools(void **state)
{
	struct slotprobe_claim c;
	int pool = toy_add(0);

	(void)state;
	shim_observer.releasing((uintptr_t)&toy - 4096, 4096, SHIM_RELEASE_FREE);
	shim_observer.releasing((uintptr_t)(&toy.plane), 64, SHIM_RELEASE_FREE);
	shim_observer.releasing((uintptr_t)toy.conv + 8, 0, SHIM_RELEASE_FREE); /* no allocation starts there */
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 0);
	shim_observer.releasing((uintptr_t)toy.ssm[1][7] + sizeof toy.ssm[1][7] - 1, 1, SHIM_RELEASE_UNMAP);
	assert_int_equal(fake_find(LOG_POOL_REMOVE, 0)->removed.pool, pool);
	assert_int_equal(fake_find(LOG_POOL_REMOVE, 0)->removed.why, PROBE_GONE_FREED);
	c = toy_claim(pool, 1);
	assert_int_equal(slotprobe_donate(&c), -EINVAL);
	assert_row(CTR_ROW_DONATE, 1, CTR_SKIPPED_POOL_GONE);
	/* of unknown length: the allocation that starts there */
	assert_int_equal(toy_add(0), 1);
	shim_observer.releasing((uintptr_t)&toy, 0, SHIM_RELEASE_FREE);
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 2);
	shim_observer.releasing((uintptr_t)&toy, UINT64_MAX, SHIM_RELEASE_FREE);
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 2);
	toy_add(0);
	shim_observer.releasing((uintptr_t)&toy, UINT64_MAX, SHIM_RELEASE_FREE); /* to the end of all memory */
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 3);
}

/* A thread that has found the pool may look into it for as long as it likes. */
static void a_pool_in_use_keeps_its_memory(void **state)
{
	enum ctr_outcome why;
	struct probe_pool *p;

	(void)state;
	toy_add(-1);
	p = probe_pool_get(0, &why);
	slotprobe_pool_remove(0);
	toy_add(-1);
	assert_non_null(p->plane);
	probe_pool_put(p);
	toy_add(-1);
	assert_null(p->plane);
}

static void memory_between_and_beside_its_planes_is_not_the_pools(void **state)
{
	const uint64_t high = (uintptr_t)(&toy.conv[1]), low = (uintptr_t)(&toy.ssm[1]);
	struct slotprobe_plane plane[2];
	struct slotprobe_pool said;

	(void)state;
	toy_add(0);
	slotprobe_pool_remove(0);
	said = toy.said;
	said.planes = plane;
	said.n_planes = 2;
	plane[0] = toy.plane[0]; /* ssm of layer 1 */
	plane[1] = toy.plane[3]; /* conv of layer 0 */
	assert_int_equal(slotprobe_pool_add(&said), 1);
	shim_observer.releasing(high, low - high, SHIM_RELEASE_UNMAP);
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 1);
	shim_observer.releasing(high, low - high + 1, SHIM_RELEASE_UNMAP);
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 2);
	said.n_planes = 1;
	assert_int_equal(slotprobe_pool_add(&said), 2);
	shim_observer.releasing(low, 0, SHIM_RELEASE_FREE); /* no allocation starts there, */
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 2);
	shim_observer.releasing((uintptr_t)&toy, 0, SHIM_RELEASE_FREE); /* but here */
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 3);
}

static void context_takes_its_pools_and_what_is_in_flight(void **state)
{
	int pool = toy_add(0), host = toy_add(-1);
	const unsigned char *results = probe_pools[0].ring.map;
	struct slotprobe_claim c = toy_claim(pool, 1);
	const struct ctr_row *row = fake_row(CTR_ROW_DONATE);

	(void)state;
	slotprobe_donate(&c);
	fake_gpu.hold = true;
	slotprobe_donate(&c);
	slotprobe_slot(SLOTPROBE_COPY, &c, 2);
	shim_observer.context_going(FAKE_OTHER, -1);
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 0);
	shim_observer.context_going(FAKE_CTX, -1);
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 1);
	assert_int_equal(fake_find(LOG_POOL_REMOVE, 0)->removed.why, PROBE_GONE_CONTEXT);
	fake_turns(2);
	assert_int_equal(row->outcome[CTR_COMMITTED], 1);
	assert_int_equal(row->outcome[CTR_DROPPED_CONTEXT], 1);
	assert_int_equal(CTR_IN_FLIGHT(row->begun), 0);
	assert_row(CTR_ROW_COPY, 1, CTR_DROPPED_CONTEXT);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 1)->fingerprint.outcome, CTR_DROPPED_CONTEXT);
	c = toy_claim(host, 1);
	assert_true(slotprobe_donate(&c) > 0); /* host memory has no context */
	/* the device again: everything is made anew */
	fake_gpu.n_held = 0;
	fake_gpu.hold = false;
	pool = toy_add(0);
	assert_true(pool > host);
	assert_int_equal(fake_count(LOG_DEVICE), 2);
	c = toy_claim(pool, 3);
	assert_true(slotprobe_donate(&c) > 0);
	fake_turns(2);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, fake_count(LOG_FINGERPRINT) - 1), &toy, 3);
	assert_ptr_not_equal(probe_pools[pool].ring.map, results); /* a kernel that was given up may write there */
}

/* Results that nobody wants, and that never come: their place is not used again. */
static void context_goes_with_what_was_thrown_away(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);
	const unsigned char *results = probe_pools[0].ring.map;

	(void)state;
	fake_gpu.hold = fake.queue_full = true;
	assert_int_equal(slotprobe_donate(&c), -EAGAIN);
	fake.queue_full = false;
	shim_observer.context_going(FAKE_CTX, -1);
	fake_turns(2);
	assert_int_equal(probe_pools[0].in_flight, 0);
	assert_row(CTR_ROW_DONATE, 1, CTR_DROPPED_QUEUE);
	assert_int_equal(toy_add(0), 1);
	assert_ptr_not_equal(probe_pools[1].ring.map, results);
	assert_int_equal(fake_count(LOG_FINGERPRINT), 0);
}

/* Where results come is registered with a context, which takes that along: it is made known to the next one anew. */
static void memory_for_results_is_registered_once_for_each_context(void **state)
{
	const int pool = toy_add(0);
	const unsigned each = fake_gpu.registers;
	const unsigned char *results = probe_pools[pool].ring.map;

	(void)state;
	assert_true(each > 0);
	slotprobe_pool_remove(pool);
	toy_add(0);
	assert_int_equal(fake_gpu.registers, each);
	shim_observer.context_going(FAKE_CTX, -1); /* in use when its context goes */
	const int second = toy_add(0);
	assert_int_equal(fake_gpu.registers, 2 * each);
	assert_ptr_equal(probe_pools[second].ring.map, results); /* the same memory again */
	slotprobe_pool_remove(second);
	toy_add(-1);
	shim_observer.context_going(FAKE_CTX, -1); /* spare when its context goes */
	assert_ptr_equal(probe_pools[toy_add(0)].ring.map, results);
	assert_int_equal(fake_gpu.registers, 3 * each);
	assert_int_equal(fake_gpu.unregisters, 0); /* that may wait for the device */
}

static void device_takes_its_contexts(void **state)
{
	toy_add(0);
	(void)state;
	shim_observer.context_going(NULL, 1);
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 0);
	shim_observer.context_going(NULL, 0);
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 1);
}

static void removed_before_its_context_went(void **state)
{
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 1);

	(void)state;
	fake_gpu.hold = true;
	slotprobe_donate(&c);
	slotprobe_pool_remove(pool);
	shim_observer.context_going(FAKE_CTX, -1);
	fake_turns(2);
	assert_row(CTR_ROW_DONATE, 1, CTR_DROPPED_CONTEXT);
}

/* ---- regions ---- */

static int32_t indices[16];

static void regions_are_read_with_each_subject(void **state)
{
	int64_t wide[2] = { -5, 1ll << 40 };
	struct slotprobe_claim c;
	int a, b;

	(void)state;
	fake.options.n_watch = 1;
	toy_add(0);
	for (int i = 0; i < 16; i++)
		indices[i] = -i;
	a = slotprobe_region("indices", (uintptr_t)indices, sizeof indices, SLOTPROBE_I32);
	b = slotprobe_region("wide", (uintptr_t)wide, sizeof wide, SLOTPROBE_RAW);
	assert_int_equal(slotprobe_region("indices", (uintptr_t)indices, sizeof indices, SLOTPROBE_I32), a);
	assert_int_equal(fake_count(LOG_REGION), 2);
	c = toy_claim(0, 2);
	slotprobe_donate(&c);
	fake_turns(2);
	assert_int_equal(fake_count(LOG_REGION_VALUES), 2); /* none for the watched slot */
	const struct log_region_values *v = &fake_find(LOG_REGION_VALUES, 0)->values;
	assert_int_equal(v->region, a);
	assert_int_equal(v->n_values, 16);
	assert_int_equal(v->event, fake_find(LOG_EVENT, 0)->event.id);
	assert_int_equal(v->value[15], -15);
	v = &fake_find(LOG_REGION_VALUES, 1)->values;
	assert_int_equal(v->region, b);
	assert_int_equal(v->n_values, 2);
	assert_int_equal(v->value[0], -5);
	assert_int_equal(v->value[1], 1ll << 40);
	assert_true(fake_find(LOG_REGION_VALUES, 1) < fake_find(LOG_FINGERPRINT, 0));
}

static void a_region_that_comes_late_is_not_read_by_what_is_in_flight(void **state)
{
	struct slotprobe_claim c;

	(void)state;
	toy_add(0);
	c = toy_claim(0, 2);
	fake_gpu.hold = true;
	slotprobe_donate(&c);
	assert_int_equal(slotprobe_region("late", (uintptr_t)indices, sizeof indices, SLOTPROBE_I32), 0);
	slotprobe_donate(&c);
	fake_run();
	fake_turns(2);
	assert_int_equal(fake_count(LOG_REGION_VALUES), 1);
	assert_int_equal(fake_find(LOG_REGION_VALUES, 0)->values.event, fake_find(LOG_EVENT, 1)->event.id);
}

static void at_most_eight_regions_are_read(void **state)
{
	struct slotprobe_claim c;

	(void)state;
	toy_add(0);
	for (int i = 0; i < 12; i++)
		assert_int_equal(slotprobe_region("r", (uintptr_t)&indices[i], 4, SLOTPROBE_I32), i);
	c = toy_claim(0, 2);
	slotprobe_donate(&c);
	fake_turns(2);
	assert_int_equal(fake_count(LOG_REGION_VALUES), FP_MAX_REGIONS);
}

static void freed_regions_are_waited_for_and_dropped(void **state)
{
	struct slotprobe_claim c;
	pthread_t t;

	(void)state;
	toy_add(0);
	slotprobe_region("r", (uintptr_t)indices, sizeof indices, SLOTPROBE_I32);
	c = toy_claim(0, 2);
	fake_gpu.hold = true;
	slotprobe_donate(&c);
	pthread_create(&t, NULL, let_run, NULL);
	shim_observer.releasing((uintptr_t)indices, sizeof indices, SHIM_RELEASE_FREE);
	assert_true(result_in(&probe_pools[0], 0));
	pthread_join(t, NULL);
	fake_gpu.hold = false;
	slotprobe_donate(&c);
	fake_turns(2);
	assert_int_equal(fake_count(LOG_REGION_VALUES), 1);
	assert_row(CTR_ROW_DONATE, 2, CTR_COMMITTED); /* the pool stays */
}

static void regions_end_with_their_own_memory(void **state)
{
	static int32_t page[2][1024] __attribute__((aligned(4096)));
	const uint64_t at = (uintptr_t)&page[0][16];

	(void)state;
	assert_int_equal(slotprobe_region("r", at, 64, SLOTPROBE_I32), 0);
	shim_observer.releasing(at - 64, 64, SHIM_RELEASE_UNMAP);
	shim_observer.releasing(at + 64, 64, SHIM_RELEASE_UNMAP);
	shim_observer.releasing(at, 0, SHIM_RELEASE_FREE); /* no allocation starts there */
	assert_true(probe_region_live(&probe_regions[0]));
	shim_observer.releasing((uintptr_t)page, 0, SHIM_RELEASE_FREE);
	assert_false(probe_region_live(&probe_regions[0]));
	assert_int_equal(slotprobe_region("r", at, 64, SLOTPROBE_I32), 1);
	shim_observer.releasing(at + 63, 1, SHIM_RELEASE_UNMAP);
	assert_false(probe_region_live(&probe_regions[1]));
}

static void a_region_that_goes_waits_for_its_own_readers(void **state)
{
	struct slotprobe_claim c;
	uint64_t before;

	(void)state;
	c = toy_claim(toy_add(0), 1);
	slotprobe_region("read", (uintptr_t)indices, 32, SLOTPROBE_I32);
	fake_gpu.hold = true;
	slotprobe_donate(&c);
	slotprobe_region("not read yet", (uintptr_t)&indices[8], 32, SLOTPROBE_I32);
	before = record_now_ns();
	shim_observer.releasing((uintptr_t)&indices[8], 32, SHIM_RELEASE_UNMAP);
	assert_true(record_now_ns() - before < PROBE_WAIT_MS * 500000ull);
	fake_run();
	fake_turns(2);
}

static void regions_of_odd_places_are_read_by_the_byte(void **state)
{
	static unsigned char page[2][4096] __attribute__((aligned(4096)));
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);
	const struct log_region_values *v;

	(void)state;
	page[0][65] = 7;
	page[0][4095] = 9;
	slotprobe_region("base", (uintptr_t)&page[0][65], 8, SLOTPROBE_I32);
	slotprobe_region("bytes", (uintptr_t)&page[0][64], 6, SLOTPROBE_I32);
	slotprobe_region("across two allocations", (uintptr_t)&page[0][4092], 8, SLOTPROBE_I32);
	slotprobe_region("the end of one", (uintptr_t)&page[0][4092], 4, SLOTPROBE_I32);
	slotprobe_donate(&c);
	fake_turns(2);
	assert_int_equal(fake_count(LOG_REGION_VALUES), 3);
	v = &fake_find(LOG_REGION_VALUES, 0)->values;
	assert_true(v->region == 0 && v->n_values == 8 && v->value[0] == 7);
	v = &fake_find(LOG_REGION_VALUES, 1)->values;
	assert_true(v->region == 1 && v->n_values == 6 && v->value[1] == 7);
	v = &fake_find(LOG_REGION_VALUES, 2)->values;
	assert_true(v->region == 3 && v->n_values == 1 && v->value[0] == 9 << 24);
}

/* The description of the layout comes by the same memory. */
static void room_for_results_begins_empty(void **state)
{
	(void)state;
	toy_add(0);
	for (size_t i = 0; i < probe_pools[0].ring.map_bytes; i++)
		assert_int_equal(probe_pools[0].ring.map[i], 0);
}

static void regions_are_so_many(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PROBE_REGIONS - 3; i++)
		assert_int_equal(slotprobe_region("r", 0x10000 + 64 * i, 64, SLOTPROBE_I32), i);
	assert_int_equal(slotprobe_region("r", 0x10000, 32, SLOTPROBE_I32), PROBE_REGIONS - 3);
	assert_int_equal(slotprobe_region("r", 0x10000, 64, SLOTPROBE_F32), PROBE_REGIONS - 2);
	assert_int_equal(slotprobe_region("other", 0x10000, 64, SLOTPROBE_I32), PROBE_REGIONS - 1);
	assert_int_equal(slotprobe_region("r", 0x10000, 64, SLOTPROBE_I32), 0); /* known */
	assert_int_equal(slotprobe_region("one more", 0x10000, 64, SLOTPROBE_I32), -ENOSPC);
}

static void regions_elsewhere_are_not_read(void **state)
{
	static int32_t here[2] = { 8, 9 };
	struct slotprobe_claim c;

	(void)state;
	toy_add(0);
	fake_gpu.other_low = (uintptr_t)indices;
	fake_gpu.other_high = (uintptr_t)(indices + 16);
	assert_int_equal(slotprobe_region("other", (uintptr_t)indices, 64, SLOTPROBE_I32), 0);
	fake_gpu.unknown_low = 0x1000;
	fake_gpu.unknown_high = 0x2000;
	assert_int_equal(slotprobe_region("unknown", 0x1000, 64, SLOTPROBE_I32), 1);
	assert_int_equal(slotprobe_region("null", 0, 64, SLOTPROBE_I32), -EINVAL);
	assert_int_equal(slotprobe_region("none", 64, 0, SLOTPROBE_I32), -EINVAL);
	assert_int_equal(slotprobe_region("wraps", 64, UINT64_MAX, SLOTPROBE_I32), -EINVAL);
	assert_int_equal(slotprobe_region(NULL, 64, 64, SLOTPROBE_I32), -EINVAL);
	assert_int_equal(slotprobe_region("type", 64, 64, 9), -EINVAL);
	c = toy_claim(0, 2);
	slotprobe_donate(&c);
	fake_turns(2);
	assert_int_equal(fake_count(LOG_REGION_VALUES), 0);
	assert_int_equal(slotprobe_region("here", (uintptr_t)here, sizeof here, SLOTPROBE_I32), 2);
	slotprobe_donate(&c);
	fake_turns(2);
	assert_int_equal(fake_find(LOG_REGION_VALUES, 0)->values.region, 2); /* the numbers of the others are theirs */
	assert_int_equal(fake_find(LOG_REGION_VALUES, 0)->values.value[1], 9);
	shim_observer.context_going(FAKE_CTX, -1);
	assert_true(probe_region_live(&probe_regions[0]) && probe_region_live(&probe_regions[1]));
	assert_false(probe_region_live(&probe_regions[2]));
}

/* ---- many threads ---- */

#define THREADS 4
#define ROUNDS  400

static uint32_t stop;

static void *donor(void *arg)
{
	uint64_t *done = arg;
	struct slotprobe_claim c = toy_claim(0, 1);

	for (int i = 0; i < ROUNDS; i++) {
		c.slot = i % TOY_SLOTS;
		done[0] += slotprobe_donate(&c) > 0;
		done[1]++;
	}
	return NULL;
}

static void *collector(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		record_source.poll();
	return NULL;
}

static void *adder(void *arg)
{
	(void)arg;
	for (int i = 0; i < 60; i++) {
		struct slotprobe_pool said = toy.said;
		said.device = -1;
		int pool = slotprobe_pool_add(&said);
		struct slotprobe_claim c = toy_claim(pool, 2);
		slotprobe_restore(&c);
		slotprobe_pool_remove(pool);
	}
	return NULL;
}

static void counts_agree_whatever_the_threads_do(void **state)
{
	pthread_t t[THREADS], writer, other;
	uint64_t done[THREADS][2] = { 0 };
	const struct ctr_row *row = fake_row(CTR_ROW_DONATE);
	uint64_t ok = 0;

	(void)state;
	toy_add(-1);
	stop = 0;
	pthread_create(&writer, NULL, collector, NULL);
	pthread_create(&other, NULL, adder, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, donor, done[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		ok += done[i][0];
	}
	pthread_join(other, NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(writer, NULL);
	assert_int_equal(fake_turns(3), 0);
	assert_int_equal(CTR_ATTEMPTED(row->begun), THREADS * ROUNDS);
	assert_int_equal(CTR_IN_FLIGHT(row->begun), 0);
	assert_int_equal(row->outcome[CTR_COMMITTED], ok);
	assert_int_equal(row->outcome[CTR_COMMITTED] + row->outcome[CTR_DROPPED_RING], THREADS * ROUNDS);
	assert_row(CTR_ROW_RESTORE, 60, CTR_COMMITTED);
	for (unsigned i = 0; i < PROBE_POOLS; i++)
		assert_int_equal(probe_pools[i].users + probe_pools[i].in_flight, 0);
}

static void *donor_on_device(void *arg)
{
	struct slotprobe_claim c = toy_claim(0, 1);

	for (unsigned gone = 0; gone < 20;) {
		gone += slotprobe_donate(&c) == -EINVAL;
		usleep(20);
	}
	return arg;
}

/* When releasing returns, the memory is the server's to unmap: the thread sanitizer sees any read that comes later. */
static void nothing_reads_memory_that_was_released(void **state)
{
	pthread_t t[2], writer;

	(void)state;
	for (int round = 0; round < 5; round++) {
		fake_reset();
		toy_add(0);
		stop = 0;
		pthread_create(&writer, NULL, collector, NULL);
		for (int i = 0; i < 2; i++)
			pthread_create(&t[i], NULL, donor_on_device, NULL);
		while (__atomic_load_n(&fake_gpu.launches, __ATOMIC_RELAXED) < 20)
			usleep(100);
		shim_observer.releasing((uintptr_t)&toy, sizeof toy, SHIM_RELEASE_FREE);
		unsigned launches = __atomic_load_n(&fake_gpu.launches, __ATOMIC_RELAXED);
		memset(toy.ssm, 0, sizeof toy.ssm);
		usleep(1000);
		assert_int_equal(__atomic_load_n(&fake_gpu.launches, __ATOMIC_RELAXED), launches);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
		__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
		pthread_join(writer, NULL);
		assert_int_equal(fake_turns(3), 0);
		assert_int_equal(CTR_IN_FLIGHT(fake_row(CTR_ROW_DONATE)->begun), 0);
		assert_int_equal(fake_row(CTR_ROW_DONATE)->outcome[CTR_COMMITTED], launches);
		assert_int_equal(fake_row(CTR_ROW_DONATE)->outcome[CTR_SKIPPED_POOL_GONE], 40);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, fresh)
	const struct CMUnitTest tests[] = {
		T(layout_is_recorded),
		T(bad_layouts),
		T(no_driver_or_context),
		T(device_trouble_can_be_got_over),
		T(device_that_does_not_answer),
		T(odd_layouts_are_measured),
		T(many_planes_come_in_parts),
		T(places_and_ids_come_back),
		T(table_full),
		T(device_memory_comes_back),
		T(full_arena_refuses),
		T(later_pools_pin_little),
		T(buffers_are_few_where_memory_is_short),
		T(buffers_of_many_pools_serve_again),
		T(page_zero_is_not_readable),
		T(removal_waits_for_reads_in_flight),
		T(release_waits_for_a_launch_on_its_way),
		T(removal_does_not_wait_for_ever),
		T(released_memory_takes_its_pools),
		T(a_pool_in_use_keeps_its_memory),
		T(memory_between_and_beside_its_planes_is_not_the_pools),
		T(context_takes_its_pools_and_what_is_in_flight),
		T(context_goes_with_what_was_thrown_away),
		T(memory_for_results_is_registered_once_for_each_context),
		T(device_takes_its_contexts),
		T(removed_before_its_context_went),
		T(regions_are_read_with_each_subject),
		T(a_region_that_comes_late_is_not_read_by_what_is_in_flight),
		T(at_most_eight_regions_are_read),
		T(freed_regions_are_waited_for_and_dropped),
		T(regions_end_with_their_own_memory),
		T(a_region_that_goes_waits_for_its_own_readers),
		T(regions_of_odd_places_are_read_by_the_byte),
		T(room_for_results_begins_empty),
		T(regions_are_so_many),
		T(regions_elsewhere_are_not_read),
		T(counts_agree_whatever_the_threads_do),
		T(nothing_reads_memory_that_was_released),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	fake_usual = false;
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
