/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_record.c: a recorder that keeps every record in memory.
 */
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fake_recorder fake;
struct record_hot record_hot;
union record_area record_area;
struct record_queue record_queue = { NULL, 1ull << 63 }; /* closed: every record comes by record_put */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const struct record_options *record_options(void)
{
	return &fake.options;
}

int record_start(void)
{
	if (!fake.options.dir)
		return -2;
	__atomic_store_n(&record_hot.inherited, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&record_hot.state, RECORD_ACTIVE, __ATOMIC_RELEASE);
	return 0;
}

struct ctr_row *ctr_named(const char *name, enum ctr_kind kind)
{
	for (uint32_t i = 0; i < record_area.page.n_rows; i++)
		if (!strcmp(record_area.page.row[i].name, name))
			return &record_area.page.row[i];
	if (record_area.page.n_rows == CTR_MAX_ROWS)
		return NULL;
	strcpy(record_area.page.row[record_area.page.n_rows].name, name);
	record_area.page.row[record_area.page.n_rows].kind = kind;
	return &record_area.page.row[record_area.page.n_rows++];
}

void record_set_rank(const char *rank)
{
	strncpy(fake.rank, rank, sizeof fake.rank - 1);
}

void record_set_driver(const char *driver)
{
	strncpy(fake.driver, driver, sizeof fake.driver - 1);
}

static void keep(const void *record, struct ctr_row *commit)
{
	const struct log_record *h = record;

	assert_true(h->type > 0 && h->type < LOG_TYPE_COUNT);
	assert_true(h->bytes >= sizeof *h && h->bytes <= LOG_RECORD_MAX && h->bytes % 8 == 0);
	pthread_mutex_lock(&lock);
	assert_true(fake.n < FAKE_RECORDS);
	memcpy(&fake.record[fake.n], record, h->bytes);
	if (commit)
		fake.committed = fake.n;
	fake.n++;
	pthread_mutex_unlock(&lock);
	if (commit)
		ctr_finish(commit, CTR_COMMITTED);
}

bool record_put(const void *record, struct ctr_row *commit)
{
	if (!record_active())
		return false;
	if (fake.queue_full) {
		__atomic_fetch_add(&fake.refused, 1, __ATOMIC_RELAXED);
		return false;
	}
	if (fake.room && !--fake.room)
		fake.queue_full = true;
	assert_true(((const struct log_record *)record)->bytes <= RECORD_ITEM_MAX);
	keep(record, commit);
	return true;
}

bool record_put_meta(const void *record)
{
	return record_put(record, NULL);
}

void record_append(const void *record, struct ctr_row *commit)
{
	keep(record, commit);
}

void record_wake(bool flush)
{
	(void)flush;
	__atomic_fetch_add(&fake.wakes, 1, __ATOMIC_RELAXED);
}

uint32_t record_callsite(void)
{
	return 77;
}

uint64_t record_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

__thread struct record_thread record_thread;

uint32_t record_tid_ask(void)
{
	return (uint32_t)((uintptr_t)pthread_self() >> 8) | 1;
}

const struct fake_record *fake_find(enum log_type type, unsigned k)
{
	for (uint32_t i = 0; i < fake.n; i++)
		if (fake.record[i].h.type == type && k-- == 0)
			return &fake.record[i];
	return NULL;
}

unsigned fake_count(enum log_type type)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < fake.n; i++)
		n += fake.record[i].h.type == type;
	return n;
}

void fake_graph_launch(cu_graph_exec exec, cu_result result)
{
	static unsigned number;

	if (number++ % 2) {
		ctr_begin(ctr_core(CTR_ROW_GRAPH_LAUNCH));
		shim_observer.launch_end(exec, NULL, result);
		return;
	}
	own_add(shim_observer.own_launch_begun, CTR_BEGIN_ONE);
	shim_observer.own_launch_end(exec, NULL, result);
}

uint64_t fake_committed(enum ctr_core_row row)
{
	return fake_row(row)->outcome[0] + fake_row(row)->own_committed;
}

const struct ctr_row *fake_row(enum ctr_core_row row)
{
	return &record_area.page.row[row];
}

unsigned fake_turns(unsigned turns)
{
	unsigned awaited = 0;

	for (unsigned i = 0; i < turns; i++)
		awaited = record_source.poll();
	return awaited;
}

static void fresh_record(void)
{
	struct fake_record *record = fake.record ? fake.record : malloc(FAKE_RECORDS * sizeof *record);
	uint32_t i = 0;

	memset(&fake, 0, sizeof fake);
	fake.record = record;
	fake.options.dir = "/run";
	memset(&record_hot, 0, sizeof record_hot);
	memset(&record_area, 0, sizeof record_area);
	record_hot.recording = 1;
	record_hot.options = &fake.options;
#define NAME(id, text, row_kind, meaning)                                                                              \
	strcpy(record_area.page.row[i].name, text);                                                                    \
	record_area.page.row[i++].kind = row_kind;
	CTR_CORE_ROWS(NAME)
#undef NAME
	record_area.page.n_rows = i;
}

void fake_reset(void)
{
	record_source.forked();
	for (unsigned i = 0; i < PROBE_POOLS; i++)
		probe_pools[i].made = 0; /* a fork's child uses no id again, a test does */
	fresh_record();
	memset(&fake_gpu, 0, sizeof fake_gpu);
	fake_gpu.current = fake_gpu.stream_ctx = fake_gpu.primary = FAKE_CTX;
	fake_find_driver();
	shim_observer.cuda_ready();
}

/* ---- the toy pool ---- */

struct toy_pool toy;

static void describe(void)
{
	for (int l = 0; l < 2; l++) {
		toy.plane[2 * l] = (struct slotprobe_plane) {
			"ssm", 1 - l, SLOTPROBE_F32, (uintptr_t)toy.ssm[1 - l], sizeof toy.ssm[0][0], TOY_ELEMS
		};
		toy.plane[2 * l + 1] = (struct slotprobe_plane) {
			"conv", 1 - l, SLOTPROBE_BF16, (uintptr_t)toy.conv[1 - l], sizeof toy.conv[0][0], TOY_ELEMS
		};
	}
}

int toy_add(int32_t device)
{
	for (int l = 0; l < 2; l++)
		for (int s = 0; s < TOY_SLOTS; s++)
			for (unsigned e = 0; e < TOY_ELEMS; e++) {
				toy.ssm[l][s][e] = (float)(l * 1000 + s * 10) + (float)e / 7;
				toy.conv[l][s][e] = (uint16_t)(0x3f80 + l * 64 + s * 8 + (int)e % 7);
			}
	describe();
	toy.said = (struct slotprobe_pool) { sizeof toy.said, "mamba", device, 0, TOY_SLOTS, toy.plane, TOY_PLANES, 0 };
	return slotprobe_pool_add(&toy.said);
}

uint32_t toy_shots(void)
{
	return (16u << 20) / probe_ring_stride(2 * TOY_PLANES);
}

struct slotprobe_claim toy_claim(int pool, int64_t slot)
{
	return (struct slotprobe_claim) { .size = sizeof(struct slotprobe_claim),
					  .pool = pool,
					  .slot = slot,
					  .claimed_len = 42,
					  .stream = FAKE_STREAM };
}

void assert_row(enum ctr_core_row row, unsigned attempted, enum ctr_outcome outcome)
{
	const struct ctr_row *r = fake_row(row);

	assert_int_equal(CTR_ATTEMPTED(r->begun) + CTR_ATTEMPTED(r->own_begun), attempted);
	assert_int_equal(CTR_IN_FLIGHT(r->begun) + CTR_IN_FLIGHT(r->own_begun), 0);
	for (int i = 0; i < CTR_OUTCOME_COUNT; i++)
		assert_int_equal(r->outcome[i] + (i ? 0 : r->own_committed), i == (int)outcome ? attempted : 0);
}

/* Hash, roll-up order and all, computed here anew from the bytes. */
void assert_print_is_of(const struct fake_record *r, const struct toy_pool *pool, int64_t slot)
{
	static const int by_layer_and_name[TOY_PLANES] = { 3, 2, 1,
							   0 }; /* planes came as ssm 1, conv 1, ssm 0, conv 0 */
	uint64_t rollup = LOG_ROLLUP_START;

	assert_non_null(r);
	assert_int_equal(r->fingerprint.outcome, CTR_COMMITTED);
	assert_int_equal(r->fingerprint.slot, slot);
	assert_int_equal(r->fingerprint.n_planes, TOY_PLANES);
	for (int i = 0; i < TOY_PLANES; i++) {
		const struct slotprobe_plane *s = &pool->plane[i];
		uint64_t at = s->base + (uint64_t)(slot - pool->said.first_slot) * (uint64_t)s->slot_stride;
		struct fp_print print;
		fp_host_plane((const void *)(uintptr_t)at, s->elems * (s->dtype == SLOTPROBE_F32 ? 4 : 2), s->elems,
			      s->dtype, &print);
		assert_memory_equal(&print, &r->fingerprint.plane[i], sizeof print);
	}
	for (int i = 0; i < TOY_PLANES; i++)
		rollup = log_rollup_add(rollup, r->fingerprint.plane[by_layer_and_name[i]].hash);
	assert_int_equal(rollup, r->fingerprint.rollup);
}
