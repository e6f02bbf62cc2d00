/* SPDX-License-Identifier: Apache-2.0
 *
 * test_counters.c: rows of the counters page: named once, kept where they are, counted before the start and after it.
 */
#include "harness.h"
#include "reader.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8
#define NAMES   150

static struct ctr_row *rows[THREADS][NAMES];
static pthread_barrier_t together;

/* All threads ask for a name in the same moment. */
static void meet(uint32_t round)
{
	static uint32_t arrivals;

	__atomic_fetch_add(&arrivals, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&arrivals, __ATOMIC_ACQUIRE) < THREADS * (round + 1))
		sched_yield();
}

static void *name_all(void *arg)
{
	uintptr_t thread = (uintptr_t)arg;
	char name[32];

	pthread_barrier_wait(&together);
	for (uint32_t round = 0; round < NAMES; round++) {
		/* two threads each want the same name, four pairs want different ones */
		uint32_t i = (round + (uint32_t)(thread / 2) * 37) % NAMES;
		snprintf(name, sizeof name, "same.prefix.%u", i);
		meet(round);
		rows[thread][i] = ctr_named(name, i % 2 ? CTR_PROBE : CTR_PLAIN);
		CHECK(rows[thread][i]);
		ctr_add(rows[thread][i], 1);
	}
	return NULL;
}

/* While threads name and count, the page moves from memory into the file: no row moves, and none is named twice. What is
 * counted in that very moment may be lost, so the counts are compared for the two halves apart. */
static void scenario_names(void)
{
	pthread_t thread[THREADS];
	char long_name[100];

	pthread_barrier_init(&together, NULL, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, name_all, (void *)i));
	pthread_barrier_wait(&together);
	if (getenv("TEST_START_AMONG"))
		CHECK(record_start() == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK(record_start() == 0);
	for (int i = 0; i < NAMES; i++)
		for (int t = 1; t < THREADS; t++)
			CHECK(rows[t][i] == rows[0][i]);
	CHECK(ctr_named("core.donate", CTR_PROBE) == ctr_core(CTR_ROW_DONATE));
	memset(long_name, 'x', sizeof long_name);
	long_name[99] = '\0';
	CHECK(ctr_named(long_name, CTR_PROBE) == ctr_named(long_name, CTR_PROBE));
	CHECK(strlen(ctr_named(long_name, CTR_PROBE)->name) == 47);
}

static void check_names(bool counts)
{
	struct ctr_page *page = page_read(run_file(".ctr", 0));
	char name[32];

	for (int i = 0; i < NAMES; i++) {
		struct ctr_row *row;
		snprintf(name, sizeof name, "same.prefix.%d", i);
		row = page_row(page, name);
		assert_non_null(row);
		assert_int_equal(row->kind, i % 2 ? CTR_PROBE : CTR_PLAIN);
		if (counts)
			assert_int_equal(row->outcome[0], THREADS);
		for (struct ctr_row *other = row + 1; other < page->row + page->n_rows; other++)
			assert_string_not_equal(other->name, name);
	}
	assert_int_equal(page->n_rows, CTR_CORE_ROW_COUNT + NAMES + 1);
	free(page);
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		fresh_run();
		assert_int_equal(wait_for(spawn("names", NULL)), 0);
		check_names(true);
		fresh_run();
		assert_int_equal(wait_for(spawn("names", "TEST_START_AMONG=1", NULL)), 0);
		check_names(false);
	}
}

static void scenario_rows(void)
{
	char name[16];
	int n = 0;

	CHECK(record_start() == 0);
	for (; n < 1000; n++) {
		snprintf(name, sizeof name, "p%d", n);
		if (!ctr_named(name, CTR_PROBE))
			break;
	}
	CHECK(n == (int)(CTR_MAX_ROWS - CTR_CORE_ROW_COUNT));
	CHECK(ctr_named("p0", CTR_PROBE) && !ctr_named("one more", CTR_PROBE));
	for (int i = 0; i < 1000; i++)
		CHECK(!ctr_named("one more", CTR_PROBE));
	CHECK(ctr_named("p5", CTR_PROBE));
}

static void test_rows(void **state)
{
	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("rows", NULL)), 0);
}

/* What the process counted and said before it began to record is in the file; adapters' points are there at 0. */
static void scenario_before(void)
{
	ctr_add(ctr_core(CTR_ROW_UNROUTED), 5);
	ctr_begin(ctr_core(CTR_ROW_DONATE));
	record_set_driver("CUDA 13.0, a device");
	CHECK(record_start() == 0);
	ctr_finish(ctr_core(CTR_ROW_DONATE), CTR_SKIPPED_NOT_READY);
	CHECK(__atomic_load_n(&record_page()->state, __ATOMIC_ACQUIRE) == CTR_RUNNING);
	if (getenv("TEST_RANK"))
		record_set_rank("tp1.pp0.dp3");
}

static void test_before(void **state)
{
	struct ctr_page *page;

	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("before", "SLOTPROBE_PROBES=sglang.donate,,sglang.restore", NULL)), 0);
	page = page_read(run_file(".ctr", 0));
	assert_int_equal(page->row[CTR_ROW_UNROUTED].outcome[0], 5);
	assert_int_equal(page->row[CTR_ROW_DONATE].outcome[CTR_SKIPPED_NOT_READY], 1);
	assert_int_equal(row_in_flight(&page->row[CTR_ROW_DONATE]), 0);
	assert_int_equal(page->row[CTR_ROW_DONATE].begun, 1 << CTR_FLIGHT_BITS);
	assert_string_equal(page->driver, "CUDA 13.0, a device");
	assert_string_equal(page->rank, "tp0.pp0.dp0");
	assert_int_equal(page->driver_seen, 1);
	assert_int_equal(page->n_rows, CTR_CORE_ROW_COUNT + 2);
	assert_int_equal(page_row(page, "sglang.donate")->kind, CTR_PROBE);
	assert_int_equal(page_row(page, "sglang.restore")->begun, 0);
	free(page);
	fresh_run();
	assert_int_equal(wait_for(spawn("before", "TEST_RANK=1", NULL)), 0);
	page = page_read(run_file(".ctr", 0));
	assert_string_equal(page->rank, "tp1.pp0.dp3");
	free(page);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "names", scenario_names }, { "rows", scenario_rows }, { "before", scenario_before }, { NULL, NULL }
	};
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names), cmocka_unit_test(test_rows),
					    cmocka_unit_test(test_before) };

	return harness_main(argc, argv, scenarios, tests, sizeof tests / sizeof tests[0]);
}
