/* SPDX-License-Identifier: Apache-2.0
 *
 * test_crash.c: every way in which a process can stop: killed at any moment, exit from anywhere, fork, and threads that
 * never come back.
 */
#include "harness.h"
#include "reader.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- killed ---- */

#define KILL_THREADS 4

static void *put_for_ever(void *thread)
{
	for (uint64_t i = 1;; i++) {
		put_donation((uint64_t)(uintptr_t)thread << 32 | i);
		if (i % 64 == 0)
			usleep(100);
	}
	return NULL;
}

static void scenario_flood(void)
{
	const char *fault = getenv("TEST_FAULT"), *at = getenv("TEST_AT");
	pthread_t thread;

	CHECK(record_start() == 0);
	if (fault)
		fault_writes(atoi(at), 1, atoi(fault));
	for (uintptr_t i = 0; i < KILL_THREADS; i++)
		CHECK(!pthread_create(&thread, NULL, put_for_ever, (void *)i));
	for (;;)
		pause();
}

/* The program's own count, the counters and the log: started >= attempted >= done, and the log holds what is committed
 * and at most what is in flight besides. Each thread's events are there without a hole up to what was refused. */
static void check_killed(void)
{
	uint64_t started = 0, done = 0, taken = 0, refused = 0, last[KILL_THREADS] = { 0 }, attempted;
	struct log *log = log_read(run_file(".log", 0));
	struct ctr_page *page = page_read(run_file(".ctr", 0));
	struct ctr_row *row = &page->row[CTR_ROW_DONATE];

	assert_reconciled(log, page, false);
	assert_int_equal(log->gaps, 0);
	assert_int_equal(log_count(log, LOG_END), 0);
	assert_int_not_equal(page->state, CTR_ENDED);
	for (int i = 0; i < KILL_THREADS; i++) {
		started += journal[i].started;
		done += journal[i].taken + journal[i].refused;
		taken += journal[i].taken;
		refused += journal[i].refused;
	}
	attempted = CTR_ATTEMPTED(row->begun);
	assert_in_range(attempted, done, started);
	assert_in_range(row->outcome[CTR_DROPPED_QUEUE], refused, refused + KILL_THREADS);
	assert_true(row->outcome[CTR_COMMITTED] + row_in_flight(row) >= taken);
	for (uint64_t i = 0; i < log->n_records; i++) {
		const struct log_event *e = (const void *)log->record[i];
		if (e->h.type != LOG_EVENT)
			continue;
		assert_true((e->id & 0xffffffff) > last[e->id >> 32]);
		if (!refused)
			assert_int_equal(e->id & 0xffffffff, last[e->id >> 32] + 1);
		last[e->id >> 32] = e->id & 0xffffffff;
	}
	log_free(log);
	free(page);
}

static void test_killed_at_random(void **state)
{
	const char *rounds = getenv("KILL_ROUNDS");

	(void)state;
	srand(1);
	for (int i = 0; i < (rounds ? atoi(rounds) : 25); i++) {
		int pid;
		fresh_run();
		pid = spawn("flood", NULL);
		while (!__atomic_load_n(&journal[0].taken, __ATOMIC_RELAXED))
			usleep(500);
		usleep((unsigned)(rand() % 60000));
		kill(pid, SIGKILL);
		assert_int_equal(wait_for(pid), 128 + SIGKILL);
		check_killed();
	}
}

/* Half of a chunk is in the file: it is no chunk, and all of it is in flight. */
static void test_killed_in_write(void **state)
{
	char at[32];

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct log *log;
		fresh_run();
		snprintf(at, sizeof at, "TEST_AT=%d", i);
		assert_int_equal(wait_for(spawn("flood", "TEST_FAULT=-1", at, NULL)), 128 + SIGKILL);
		log = log_read(run_file(".log", 0));
		assert_true(log->torn_bytes > 0);
		log_free(log);
		check_killed();
	}
}

/* The chunk is in the file and its attempts are not yet committed: there is more in the log than the counters say, and
 * in flight explains it. */
static void test_killed_after_write(void **state)
{
	struct ctr_page *page;
	struct log *log;

	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("flood", "TEST_FAULT=-2", "TEST_AT=2", NULL)), 128 + SIGKILL);
	log = log_read(run_file(".log", 0));
	page = page_read(run_file(".ctr", 0));
	assert_int_equal(log->torn_bytes, 0);
	assert_true(log_count(log, LOG_EVENT) > page->row[CTR_ROW_DONATE].outcome[CTR_COMMITTED]);
	check_killed();
	log_free(log);
	free(page);
}

/* ---- exit from anywhere ---- */

static void *exit_here(void *unused)
{
	for (uint64_t i = 1; i <= 1000; i++)
		CHECK(put_donation(i));
	exit(7);
	return unused;
}

static void scenario_exit_thread(void)
{
	pthread_t thread;

	CHECK(record_start() == 0);
	CHECK(!pthread_create(&thread, NULL, exit_here, NULL));
	for (;;)
		pause();
}

static void on_alarm(int signo)
{
	(void)signo;
	exit(8);
}

static uint32_t in_fault, put_behind;

static void *put_later(void *unused)
{
	while (!__atomic_load_n(&in_fault, __ATOMIC_ACQUIRE))
		usleep(100);
	for (uint64_t i = 2; i <= 10; i++)
		CHECK(put_donation(i));
	__atomic_store_n(&put_behind, 1, __ATOMIC_RELEASE);
	return unused;
}

static void on_fault(int signo)
{
	(void)signo;
	__atomic_store_n(&in_fault, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&put_behind, __ATOMIC_ACQUIRE))
		usleep(100);
	exit(8);
}

static void scenario_exit_signal(void)
{
	signal(SIGALRM, on_alarm);
	CHECK(record_start() == 0);
	ualarm(30000, 0);
	put_for_ever(NULL);
}

/* The same, in the very middle: the record's second half cannot be read, so the thread gets its signal between claiming
 * a place in the queue and publishing it. What others put behind that place must not be lost with it. */
static void scenario_exit_middle(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct log_event *e = (void *)(map + page - sizeof e->h);
	pthread_t thread;

	CHECK(map != MAP_FAILED && !mprotect(map + page, (size_t)page, PROT_NONE));
	e->h = (struct log_record) { LOG_EVENT, 0, sizeof *e };
	signal(SIGSEGV, on_fault);
	CHECK(record_start() == 0);
	CHECK(put_donation(1));
	ctr_begin(ctr_core(CTR_ROW_DONATE));
	CHECK(!pthread_create(&thread, NULL, put_later, NULL));
	pthread_detach(thread);
	record_put(e, ctr_core(CTR_ROW_DONATE));
	CHECK(false);
}

static unsigned poll_one(void)
{
	return 1;
}

static void scenario_exit_awaited(void)
{
	CHECK(record_start() == 0);
	__atomic_store_n(&source_poll, poll_one, __ATOMIC_RELEASE);
	CHECK(put_donation(1));
}

static unsigned poll_stuck(void)
{
	for (;;)
		pause();
	return 0;
}

static void scenario_exit_stuck(void)
{
	CHECK(record_start() == 0);
	__atomic_store_n(&source_poll, poll_stuck, __ATOMIC_RELEASE);
	usleep(100000);
	CHECK(put_donation(1));
}

static uint64_t seconds_of(int pid, int expected)
{
	uint64_t start = record_now_ns();

	assert_int_equal(wait_for(pid), expected);
	return (record_now_ns() - start) / 100000000;
}

static void assert_clean_end(uint64_t events)
{
	struct log *log = log_read(run_file(".log", 0));
	struct ctr_page *page = page_read(run_file(".ctr", 0));

	assert_reconciled(log, page, true);
	assert_int_equal(log_count(log, LOG_EVENT), events);
	assert_int_equal(log_count(log, LOG_END), 1);
	log_free(log);
	free(page);
}

static void test_exit_thread(void **state)
{
	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("exit_thread", NULL)), 7);
	assert_clean_end(1000);
}

/* The handler may have interrupted record_put between claim and publication; that one attempt stays in flight. */
static void test_exit_signal(void **state)
{
	struct ctr_page *page;
	struct log *log;

	(void)state;
	for (int i = 0; i < 10; i++) {
		fresh_run();
		assert_int_equal(wait_for(spawn("exit_signal", NULL)), 8);
		log = log_read(run_file(".log", 0));
		page = page_read(run_file(".ctr", 0));
		assert_reconciled(log, page, false);
		assert_true(row_in_flight(&page->row[CTR_ROW_DONATE]) <= 1);
		assert_int_equal(log_count(log, LOG_END), 1);
		assert_int_equal(page->state, CTR_ENDED);
		log_free(log);
		free(page);
	}
}

static void test_exit_middle(void **state)
{
	struct ctr_page *page;
	struct log *log;

	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("exit_middle", NULL)), 8);
	log = log_read(run_file(".log", 0));
	page = page_read(run_file(".ctr", 0));
	assert_reconciled(log, page, false);
	assert_int_equal(row_in_flight(&page->row[CTR_ROW_DONATE]), 1);
	assert_int_equal(log_count(log, LOG_EVENT), 10);
	assert_int_equal(log_count(log, LOG_END), 1);
	log_free(log);
	free(page);
}

static void test_exit_awaited(void **state)
{
	struct ctr_page *page;

	(void)state;
	fresh_run();
	assert_in_range(seconds_of(spawn("exit_awaited", "TEST_ABANDONED=1", NULL), 0), 9, SANITIZED ? 40 : 20);
	page = page_read(run_file(".ctr", 0));
	assert_int_equal(page_row(page, "test.abandoned")->outcome[0], 1);
	free(page);
	assert_clean_end(1);
}

/* A writer that hangs costs two seconds, no more, and the log ends like that of a killed process. */
static void test_exit_stuck(void **state)
{
	struct ctr_page *page;

	(void)state;
	fresh_run();
	assert_in_range(seconds_of(spawn("exit_stuck", NULL), 0), 19, SANITIZED ? 50 : 30);
	page = page_read(run_file(".ctr", 0));
	assert_int_equal(page->state, CTR_RUNNING);
	assert_int_equal(row_in_flight(&page->row[CTR_ROW_DONATE]), 1);
	free(page);
}

/* ---- no writer ---- */

/* The queue fits under the limit, the thread's stack does not: everything is taken back. */
static void scenario_no_thread(void)
{
	char statm[128];
	FILE *f = fopen("/proc/self/statm", "r");
	struct rlimit limit;

	CHECK(f && fgets(statm, sizeof statm, f));
	fclose(f);
	limit.rlim_cur = limit.rlim_max = strtoull(statm, NULL, 10) * 4096 + (4u << 20) + (300u << 10);
	CHECK(!setrlimit(RLIMIT_AS, &limit));
	ctr_add(ctr_core(CTR_ROW_UNROUTED), 3);
	CHECK(record_start() < 0);
	CHECK(record_start() < 0);
	CHECK(!record_active() && !record_recording());
	CHECK(!put_donation(1));
	CHECK(ctr_core(CTR_ROW_UNROUTED)->outcome[0] == 3);
}

static void test_no_thread(void **state)
{
	(void)state;
	if (SANITIZED || EMULATED)
		skip();
	fresh_run();
	assert_int_equal(wait_for(spawn("no_thread", NULL)), 0);
	assert_int_equal(run_files(".log") + run_files(".ctr"), 0);
}

/* ---- fork ---- */

/* The address sanitizer's runtime of gcc 12 leaves its allocator's locks to a forked child as they are: no thread may be
 * starting, nor the writer be loading libunwind, when the fork comes. */
static void wait_for_bytes(off_t bytes)
{
	const char *path;
	struct stat st;

	while (!(path = run_file(".log", 0)) || stat(path, &st) || st.st_size < bytes)
		usleep(1000);
}

/* Each is written before the next: so many turns of the writer are over. */
static void put_turn_by_turn(uint64_t n)
{
	struct stat st;

	for (uint64_t i = 1; i <= n; i++) {
		CHECK(!stat(run_file(".log", 0), &st));
		CHECK(put_donation(i));
		record_wake(true);
		wait_for_bytes(st.st_size + 1);
	}
}

static void in_child_of_fork(struct ctr_row *held)
{
	uint32_t tid = record_tid();

	CHECK(!record_active() && !record_recording());
	CHECK(source_forked == 1);
	CHECK(tid == (uint32_t)getpid());
	ctr_begin(held); /* a row that somebody still holds: the parent's counters must not move */
	CHECK(!put_donation(1));
	CHECK(!record_callsite());
	CHECK(ctr_core(CTR_ROW_DONATE)->outcome[CTR_COMMITTED] == 0);
	ctr_finish(held, CTR_DROPPED_QUEUE);
	CHECK(record_start() == 0);
	CHECK(record_active());
	CHECK(ctr_named("adapter.point", CTR_PROBE) == held);
	for (uint64_t i = 1; i <= 5; i++)
		CHECK(put_donation(i));
	CHECK(record_tid() == tid);
	exit(0);
}

static void scenario_fork(void)
{
	struct ctr_row *held = ctr_named("adapter.point", CTR_PROBE);
	int status, pid;

	CHECK(record_start() == 0);
	CHECK(record_tid() == (uint32_t)getpid());
	put_turn_by_turn(10);
	pid = fork();
	if (!pid)
		in_child_of_fork(held);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(status == 0);
	CHECK(CTR_ATTEMPTED(held->begun) == 0);
	for (uint64_t i = 11; i <= 20; i++)
		CHECK(put_donation(i));
}

static void test_fork(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* a forked child may not start threads there */
#endif
	fresh_run();
	assert_int_equal(wait_for(spawn("fork", NULL)), 0);
	assert_int_equal(run_files(".log"), 2);
	assert_int_equal(run_files(".ctr"), 2);
	for (unsigned i = 0; i < 2; i++) {
		struct log *log = log_read(run_file(".log", i));
		struct ctr_page *page = page_read(run_file(".ctr", i));
		uint64_t events = log_count(log, LOG_EVENT);
		bool child = ((const struct log_process *)log->record[0])->ppid != (uint64_t)getpid();
		assert_reconciled(log, page, true);
		assert_int_equal(events, child ? 5 : 20);
		/* what the child counted before its start went along */
		assert_int_equal(page->row[CTR_ROW_DONATE].outcome[CTR_DROPPED_QUEUE], child ? 1 : 0);
		assert_int_equal(CTR_ATTEMPTED(page_row(page, "adapter.point")->begun), child ? 1 : 0);
		log_free(log);
		free(page);
	}
}

/* Threads are in the middle of record_put and ctr_named whenever the fork comes; no child may hang on them. */
static void scenario_fork_storm(void)
{
	pthread_t thread;
	int status;

	CHECK(record_start() == 0);
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread, NULL, put_for_ever, (void *)i));
	wait_for_bytes(1 << 20);
	for (int i = 0; i < 40; i++) {
		int pid = fork();
		if (!pid) {
			if (i % 2) {
				CHECK(record_start() == 0);
				CHECK(put_donation(1));
			}
			exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(status == 0);
	}
}

static void test_fork_storm(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	skip();
#endif
	fresh_run();
	assert_int_equal(wait_for(spawn("fork_storm", "ASAN_OPTIONS=detect_leaks=0", NULL)), 0);
	assert_int_equal(run_files(".log"), 21);
	for (unsigned i = 0; i < 21; i++) {
		struct log *log = log_read(run_file(".log", i));
		struct ctr_page *page = page_read(run_file(".ctr", i));
		assert_int_equal(log_count(log, LOG_END), 1);
		assert_reconciled(log, page, log_count(log, LOG_EVENT) == 1);
		log_free(log);
		free(page);
	}
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = { { "flood", scenario_flood },
						     { "exit_thread", scenario_exit_thread },
						     { "exit_signal", scenario_exit_signal },
						     { "exit_middle", scenario_exit_middle },
						     { "exit_awaited", scenario_exit_awaited },
						     { "exit_stuck", scenario_exit_stuck },
						     { "no_thread", scenario_no_thread },
						     { "fork", scenario_fork },
						     { "fork_storm", scenario_fork_storm },
						     { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_at_random),   cmocka_unit_test(test_killed_in_write),
		cmocka_unit_test(test_killed_after_write), cmocka_unit_test(test_exit_thread),
		cmocka_unit_test(test_exit_signal),        cmocka_unit_test(test_exit_middle),
		cmocka_unit_test(test_exit_awaited),       cmocka_unit_test(test_exit_stuck),
		cmocka_unit_test(test_no_thread),          cmocka_unit_test(test_fork),
		cmocka_unit_test(test_fork_storm),
	};

	return harness_main(argc, argv, scenarios, tests, sizeof tests / sizeof tests[0]);
}
