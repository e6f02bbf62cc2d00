/* SPDX-License-Identifier: Apache-2.0
 *
 * test_disk.c: disks that are full, capped, broken or slow to take a whole chunk.
 */
#include "harness.h"
#include "reader.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENTS 20000u

static uint64_t outcome(enum ctr_outcome which)
{
	return __atomic_load_n(&ctr_core(CTR_ROW_DONATE)->outcome[which], __ATOMIC_ACQUIRE);
}

static uint64_t in_flight(void)
{
	return CTR_IN_FLIGHT(__atomic_load_n(&ctr_core(CTR_ROW_DONATE)->begun, __ATOMIC_ACQUIRE));
}

static uint32_t state(void)
{
	return __atomic_load_n(&record_page()->state, __ATOMIC_ACQUIRE);
}

static void settle(void)
{
	record_wake(true);
	for (int i = 0; i < 5000 && in_flight(); i++)
		usleep(1000);
	CHECK(in_flight() == 0);
}

/* ---- the guard ---- */

static void scenario_guard(void)
{
	CHECK(record_start() == 0);
	for (uint64_t i = 1; i <= EVENTS; i++)
		put_noise(i);
	settle();
	if (record_disk_stopped())
		CHECK(!record_recording() && record_active());
}

/* Reads the run of `guard`: the log holds what is committed, the rest is skipped, nothing else happened. */
static struct log *check_guard(unsigned why, uint64_t *committed)
{
	struct log *log = log_read(run_file(".log", 0));
	struct ctr_page *page = page_read(run_file(".ctr", 0));
	struct ctr_row *row = &page->row[CTR_ROW_DONATE];
	const struct log_disk_stop *stop = log_first(log, LOG_DISK_STOP);

	assert_reconciled(log, page, true);
	assert_int_equal(log->gaps, 0);
	assert_int_equal(log_count(log, LOG_END), 1);
	*committed = row->outcome[CTR_COMMITTED];
	assert_int_equal(log_count(log, LOG_EVENT), *committed);
	assert_int_equal(CTR_ATTEMPTED(row->begun), EVENTS);
	assert_int_equal(row->outcome[CTR_SKIPPED_DISK], EVENTS - *committed);
	assert_int_equal(page->row[CTR_ROW_WRITE_ERRORS].outcome[0], 0);
	assert_int_equal(log_count(log, LOG_DISK_STOP), why ? 1 : 0);
	assert_int_equal(page->disk_stop_real_ns != 0, why != 0);
	if (why)
		assert_int_equal(stop->why, why);
	free(page);
	return log;
}

static void test_max_size(void **unused)
{
	uint64_t committed;
	struct log *log;

	(void)unused;
	fresh_run();
	assert_int_equal(wait_for(spawn("guard", "SLOTPROBE_MAX_SIZE=300K", "SLOTPROBE_MIN_FREE=0", NULL)), 0);
	log = check_guard(2, &committed);
	assert_in_range(committed, 500, EVENTS - 1);
	assert_in_range(log->good_bytes, 150 << 10, 300 << 10);
	log_free(log);
}

/* The cap is the run's, not the process's: another process has used most of it up. */
static void test_max_size_shared(void **unused)
{
	uint64_t committed;
	char path[400];
	FILE *f;

	(void)unused;
	fresh_run();
	assert_int_equal(mkdir(run_dir, 0700), 0);
	snprintf(path, sizeof path, "%s/other.1.1.log", run_dir);
	f = fopen(path, "w");
	assert_int_equal(ftruncate(fileno(f), 10 << 20), 0);
	fclose(f);
	assert_int_equal(wait_for(spawn("guard", "SLOTPROBE_MAX_SIZE=10m", "SLOTPROBE_MIN_FREE=0", NULL)), 0);
	unlink(path);
	log_free(check_guard(2, &committed));
	assert_int_equal(committed, 0);
}

static void test_min_free(void **unused)
{
	uint64_t committed;
	struct log *log;

	(void)unused;
	fresh_run();
	assert_int_equal(wait_for(spawn("guard", "SLOTPROBE_MIN_FREE=1000000T", NULL)), 0);
	log = check_guard(1, &committed);
	assert_int_equal(committed, 0);
	assert_true(((const struct log_disk_stop *)log_first(log, LOG_DISK_STOP))->free_bytes > 0);
	log_free(log);
}

static void test_no_guard(void **unused)
{
	uint64_t committed;

	(void)unused;
	fresh_run();
	assert_int_equal(wait_for(spawn("guard", "SLOTPROBE_MAX_SIZE=1G", "SLOTPROBE_MIN_FREE=0", NULL)), 0);
	log_free(check_guard(0, &committed));
	assert_int_equal(committed, EVENTS);
}

/* ---- writes that fail for a while ---- */

static void scenario_broken(void)
{
	struct log_rank rank = { .index = 1 };
	struct log_launch launch = { .number = 1 };
	uint64_t id = 1;

	CHECK(record_start() == 0);
	for (; id <= 1000; id++)
		CHECK(put_donation(id));
	settle();
	CHECK(outcome(CTR_COMMITTED) == 1000);
	fault_writes(0, 3, EIO);
	for (unsigned chunk = 0; chunk < 3; chunk++) {
		for (unsigned i = 0; i < 10; i++)
			CHECK(put_donation(id++));
		record_fill(&rank, LOG_RANK);
		record_fill(&launch, LOG_LAUNCH);
		CHECK(record_put_meta(&rank) && record_put(&launch, NULL));
		settle();
		CHECK(state() == CTR_WRITE_ERROR);
	}
	CHECK(record_recording());
	CHECK(outcome(CTR_DROPPED_WRITE) == 30);
	for (unsigned i = 0; i < 10; i++)
		CHECK(put_donation(id++));
	settle();
	CHECK(state() == CTR_RUNNING);
}

static void test_broken(void **unused)
{
	struct ctr_page *page;
	struct log *log;

	(void)unused;
	fresh_run();
	assert_int_equal(wait_for(spawn("broken", "SLOTPROBE_MIN_FREE=0", NULL)), 0);
	log = log_read(run_file(".log", 0));
	page = page_read(run_file(".ctr", 0));
	assert_reconciled(log, page, true);
	assert_int_equal(log->gaps, 3);
	assert_int_equal(log->lost_records, 36);
	assert_int_equal(log_count(log, LOG_EVENT), 1010);
	assert_int_equal(page->row[CTR_ROW_DONATE].outcome[CTR_COMMITTED], 1010);
	assert_int_equal(page->row[CTR_ROW_DONATE].outcome[CTR_DROPPED_WRITE], 30);
	assert_int_equal(page->row[CTR_ROW_WRITE_ERRORS].outcome[0], 3);
	assert_int_equal(page->row[CTR_ROW_META_LOST].outcome[0], 3);
	assert_int_equal(page->row[CTR_ROW_LAUNCH_LOST].outcome[0], 3);
	log_free(log);
	free(page);
}

/* ---- the disk is full all the same ---- */

static void scenario_enospc(void)
{
	CHECK(record_start() == 0);
	CHECK(put_donation(1));
	settle();
	fault_writes(0, 1, ENOSPC);
	CHECK(put_donation(2));
	settle();
	for (int i = 0; i < 1000 && record_recording(); i++) /* under an emulator the writer may take its time */
		usleep(10000);
	CHECK(record_disk_stopped() && !record_recording());
	CHECK(state() == CTR_DISK_STOP);
	CHECK(outcome(CTR_DROPPED_WRITE) == 1);
	CHECK(put_donation(3));
	settle();
	CHECK(outcome(CTR_SKIPPED_DISK) == 1);
}

static void test_enospc(void **unused)
{
	const struct log_disk_stop *stop;
	struct ctr_page *page;
	struct log *log;

	(void)unused;
	fresh_run();
	assert_int_equal(wait_for(spawn("enospc", "SLOTPROBE_MIN_FREE=0", NULL)), 0);
	log = log_read(run_file(".log", 0));
	page = page_read(run_file(".ctr", 0));
	assert_reconciled(log, page, true);
	assert_int_equal(log->gaps, 1);
	assert_int_equal(log_count(log, LOG_EVENT), 1);
	stop = log_first(log, LOG_DISK_STOP);
	assert_non_null(stop);
	assert_int_equal(stop->why, 3);
	assert_int_equal(stop->error, ENOSPC);
	log_free(log);
	free(page);
}

/* ---- a file size limit: EFBIG, and a SIGXFSZ that nobody may see ---- */

static void scenario_limit(void)
{
	struct rlimit limit;

	CHECK(record_start() == 0);
	CHECK(!getrlimit(RLIMIT_FSIZE, &limit));
	limit.rlim_cur = 200 << 10;
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	for (uint64_t i = 1; i <= 5000; i++)
		put_noise(i);
	settle();
	CHECK(outcome(CTR_COMMITTED) > 500 && outcome(CTR_DROPPED_WRITE) > 500);
	CHECK(outcome(CTR_COMMITTED) + outcome(CTR_DROPPED_WRITE) == 5000);
	limit.rlim_cur = limit.rlim_max;
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	for (uint64_t i = 5001; i <= 5010; i++)
		put_noise(i);
	settle();
}

static void test_limit(void **unused)
{
	struct ctr_page *page;
	struct log *log;

	(void)unused;
	fresh_run();
	assert_int_equal(wait_for(spawn("limit", "SLOTPROBE_MIN_FREE=0", NULL)), 0);
	log = log_read(run_file(".log", 0));
	page = page_read(run_file(".ctr", 0));
	assert_reconciled(log, page, true);
	assert_true(log->gaps > 0);
	assert_int_equal(log_count(log, LOG_EVENT), page->row[CTR_ROW_DONATE].outcome[CTR_COMMITTED]);
	assert_int_equal(log->lost_records, page->row[CTR_ROW_DONATE].outcome[CTR_DROPPED_WRITE]);
	log_free(log);
	free(page);
}

/* ---- writes that take a byte at a time and are interrupted in between ---- */

static void scenario_slow(void)
{
	CHECK(record_start() == 0);
	fault_writes(0, 1 << 20, -3);
	for (uint64_t i = 1; i <= 200; i++)
		CHECK(put_donation(i));
}

static void test_slow(void **unused)
{
	struct ctr_page *page;
	struct log *log;

	(void)unused;
	fresh_run();
	assert_int_equal(wait_for(spawn("slow", "SLOTPROBE_MIN_FREE=0", NULL)), 0);
	log = log_read(run_file(".log", 0));
	page = page_read(run_file(".ctr", 0));
	assert_reconciled(log, page, true);
	assert_int_equal(log_count(log, LOG_EVENT), 200);
	assert_int_equal(page->row[CTR_ROW_WRITE_ERRORS].outcome[0], 0);
	log_free(log);
	free(page);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = { { "guard", scenario_guard },   { "broken", scenario_broken },
						     { "enospc", scenario_enospc }, { "limit", scenario_limit },
						     { "slow", scenario_slow },     { NULL, NULL } };
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_max_size), cmocka_unit_test(test_max_size_shared),
					    cmocka_unit_test(test_min_free), cmocka_unit_test(test_no_guard),
					    cmocka_unit_test(test_broken),   cmocka_unit_test(test_enospc),
					    cmocka_unit_test(test_limit),    cmocka_unit_test(test_slow) };

	return harness_main(argc, argv, scenarios, tests, sizeof tests / sizeof tests[0]);
}
