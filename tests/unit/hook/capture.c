/* SPDX-License-Identifier: Apache-2.0
 *
 * capture.c: what the shim holds to be capturing, and the gate between a capture and a launch on the legacy stream.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/hook/entry.h"
#include "check.h"

#define PROTOTYPE(symbol, wrapper, args, ...) extern cu_result symbol(__VA_ARGS__);
SHIM_ENTRIES(PROTOTYPE)
extern int fake_device, fake_result, fake_capturing, fake_mode, fake_mode_seen;
extern uintptr_t fake_stream_asked;
extern unsigned fake_count(const char *symbol);

static __typeof__(&slotprobe_test_captures) open_now;
static __typeof__(&slotprobe_test_legacy_begin) legacy_begin;
static __typeof__(&slotprobe_test_legacy_end) legacy_end;

#define S(n) ((cu_stream)(uintptr_t)(n))

static void begin_and_end(void)
{
	cu_graph graph;

	cuStreamBeginCapture(S(0x10));
	CHECK_INT(open_now(), 1);
	cuStreamBeginCapture_v2(S(0x20), 0);
	cuStreamBeginCaptureToGraph(S(0x30), NULL, NULL, NULL, 0, 0);
	cuStreamBeginCapture_v2_ptsz(NULL, 0);
	CHECK_INT(open_now(), 4);
	CHECK(!legacy_begin());
	cuStreamEndCapture_ptsz(NULL, &graph);
	CHECK_INT(open_now(), 3);
	cuStreamEndCapture(S(0x30), &graph);
	cuStreamEndCapture(S(0x20), &graph);
	cuStreamEndCapture(S(0x10), &graph);
	CHECK_INT(open_now(), 0);
	CHECK(legacy_begin());
	legacy_end();

	fake_result = 900; /* one that does not begin */
	cuStreamBeginCapture_v2(S(0x10), 0);
	CHECK_INT(open_now(), 0);
	fake_result = 0;
	cuStreamEndCapture(S(0x10), &graph); /* one that we did not see begin */
	CHECK_INT(open_now(), 0);
}

/* An end that fails: over if the driver says so, whatever the reason. */
static void failing_end(void)
{
	cu_graph graph;

	cuStreamBeginCapture_v2(S(0x10), 0);
	fake_result = CU_CAPTURE_WRONG_THREAD;
	fake_capturing = CU_CAPTURE_ACTIVE;
	CHECK_INT(cuStreamEndCapture(S(0x10), &graph), CU_CAPTURE_WRONG_THREAD);
	CHECK_INT(open_now(), 1);
	CHECK_INT(fake_stream_asked, 0x10);
	CHECK_INT(fake_mode_seen, CU_MODE_RELAXED); /* asked under the guard, */
	CHECK_INT(fake_mode, CU_MODE_GLOBAL);       /* and the thread's own mode is back */
	fake_capturing = CU_CAPTURE_NONE;           /* what an H200 does */
	CHECK_INT(cuStreamEndCapture(S(0x10), &graph), CU_CAPTURE_WRONG_THREAD);
	CHECK_INT(open_now(), 0);
	fake_result = 0;
	cuStreamBeginCapture_v2(S(0x10), 0);
	fake_result = CU_CAPTURE_INVALIDATED;
	CHECK_INT(cuStreamEndCapture(S(0x10), &graph), CU_CAPTURE_INVALIDATED);
	CHECK_INT(open_now(), 0);
	fake_result = 0;
	cuStreamBeginCapture_v2_ptsz(NULL, 0);
	fake_result = CU_CAPTURE_INVALIDATED;
	cuStreamEndCapture_ptsz(NULL, &graph);
	CHECK_INT(fake_stream_asked, 2);
	CHECK_INT(open_now(), 0);
	fake_result = 0;
}

static void *per_thread_capture(void *arg)
{
	(void)arg;
	cuStreamBeginCapture_v2(CU_PER_THREAD, 0);
	return NULL;
}

static pthread_barrier_t both;

static void *per_thread_capture_of_another(void *arg)
{
	cu_graph graph;

	(void)arg;
	cuStreamBeginCapture_v2(CU_PER_THREAD, 0);
	pthread_barrier_wait(&both);
	cuStreamEndCapture(CU_PER_THREAD, &graph);
	pthread_barrier_wait(&both);
	return NULL;
}

/* One handle, a stream for each thread: an end is that of its own thread's. */
static void per_thread(void)
{
	pthread_t thread;
	cu_graph graph;

	pthread_barrier_init(&both, NULL, 2);
	cuStreamBeginCapture_v2_ptsz(NULL, 0);
	pthread_create(&thread, NULL, per_thread_capture_of_another, NULL);
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	pthread_join(thread, NULL);
	CHECK_INT(open_now(), 1);
	CHECK(!legacy_begin());
	cuStreamEndCapture(CU_PER_THREAD, &graph);
	CHECK_INT(open_now(), 0);
}

/* Captures that nobody ends. */
static void abandoned(void)
{
	pthread_t thread;
	cu_graph graph;

	cuStreamBeginCapture_v2(S(0x10), 0);
	fake_result = 1;
	cuStreamDestroy_v2(S(0x10)); /* refused: still there */
	CHECK_INT(open_now(), 1);
	fake_result = 0;
	cuStreamDestroy_v2(S(0x10));
	CHECK_INT(open_now(), 0);

	fake_device = 1;
	cuStreamBeginCapture_v2(S(0x10), 0);
	cuDevicePrimaryCtxRelease_v2(1); /* others hold it */
	CHECK_INT(open_now(), 1);
	cuStreamDestroy_v2(S(0x10));
	CHECK_INT(open_now(), 0);
	fake_device = 0;
	cuStreamBeginCapture_v2(S(0x10), 0);
	cuStreamBeginCapture_v2(S(0x99), 0); /* of another context */
	fake_result = 1;
	cuCtxDestroy_v2((cu_context)0xc2); /* refused: still there */
	CHECK_INT(open_now(), 2);
	fake_result = 0;
	cuCtxDestroy_v2((cu_context)0xc2);
	CHECK_INT(open_now(), 1);
	cuDevicePrimaryCtxReset_v2(2); /* another device */
	CHECK_INT(open_now(), 1);
	cuDevicePrimaryCtxReset_v2(0);
	CHECK_INT(open_now(), 0);

	cuStreamBeginCapture_v2(S(0x10), 0);
	cuStreamBeginCapture_v2(S(0x10), 0); /* the end went by another way */
	CHECK_INT(open_now(), 1);
	cuStreamEndCapture(S(0x10), &graph);
	CHECK_INT(open_now(), 0);

	pthread_create(&thread, NULL, per_thread_capture, NULL);
	pthread_join(thread, NULL);
	CHECK_INT(open_now(), 1);
	cuStreamBeginCapture_v2(CU_PER_THREAD, 0);
	CHECK_INT(open_now(), 1);
	cuStreamEndCapture(CU_PER_THREAD, &graph);
	CHECK_INT(open_now(), 0);
}

/* More than there is room to remember. */
static void many(void)
{
	cu_graph graph;

	for (unsigned i = 1; i <= 400; i++)
		cuStreamBeginCapture_v2(S(0x1000 + i), 0);
	CHECK_INT(open_now(), 400);
	for (unsigned i = 1; i <= 400; i++)
		cuStreamEndCapture(S(0x1000 + i), &graph);
	CHECK_INT(open_now(), 0);
}

static unsigned in_gate, entered, broken, passes, stop;

static void nap(long ns)
{
	struct timespec time = { .tv_nsec = ns };

	nanosleep(&time, NULL);
}

static void *holds_the_gate(void *arg)
{
	CHECK(legacy_begin());
	__atomic_store_n(&in_gate, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&entered, 1, __ATOMIC_SEQ_CST);
	nap(*(long *)arg);
	__atomic_store_n(&in_gate, 0, __ATOMIC_SEQ_CST);
	legacy_end();
	return NULL;
}

/* A capture waits for a launch on the legacy stream that has begun. */
static void waits(void)
{
	long hold = 2000000;
	pthread_t thread;
	cu_graph graph;

	for (unsigned i = 0; i < 20; i++) {
		entered = 0;
		CHECK(!pthread_create(&thread, NULL, holds_the_gate, &hold));
		while (!__atomic_load_n(&entered, __ATOMIC_SEQ_CST))
			sched_yield();
		cuStreamBeginCapture_v2(S(0x10), 0);
		broken += __atomic_load_n(&in_gate, __ATOMIC_SEQ_CST);
		cuStreamEndCapture(S(0x10), &graph);
		pthread_join(thread, NULL);
	}
	CHECK(broken <= 2); /* the wait is bounded, and this machine may have been away for that long */
}

static void *legacy_launches(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		if (!legacy_begin())
			continue;
		__atomic_fetch_add(&in_gate, 1, __ATOMIC_SEQ_CST);
		for (volatile int i = 0; i < 3000; i++) /* longer than it takes to begin a capture */
			;
		__atomic_fetch_sub(&in_gate, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&passes, 1, __ATOMIC_SEQ_CST);
		legacy_end();
	}
	return NULL;
}

/* While a capture is open nobody is in the gate, nor comes in. */
static void gate(void)
{
	pthread_t thread[2];
	cu_graph graph;

	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, legacy_launches, NULL));
	for (unsigned i = 0; i < 50000 || !__atomic_load_n(&passes, __ATOMIC_SEQ_CST); i++) {
		cuStreamBeginCapture_v2(S(0x10), 0);
		for (unsigned j = 0; j < 100; j++)
			broken += __atomic_load_n(&in_gate, __ATOMIC_SEQ_CST);
		cuStreamEndCapture(S(0x10), &graph);
		for (volatile unsigned j = 0; j < i % 300; j++)
			;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CHECK_INT(broken, 0);
	CHECK(passes > 0);
	CHECK_INT(open_now(), 0);
}

static void capture_begins(void)
{
	cuStreamBeginCapture_v2(S(0x10), 0);
}

/* A capture that begins after the first look must be seen at the second. */
static void between(void)
{
	cu_graph graph;

	FROM_PRELOAD(between_looks)(capture_begins);
	CHECK(!legacy_begin());
	CHECK_INT(fake_count("cuStreamBeginCapture_v2"), 1);
	CHECK_INT(open_now(), 1);
	cuStreamEndCapture(S(0x10), &graph);
	CHECK(legacy_begin());
	legacy_end();
}

/* A gate that stays shut, as a fork can leave it, holds nobody up for long. */
static void stuck(void)
{
	struct timespec from, to;
	int status;
	pid_t child;

	CHECK(legacy_begin());
	child = fork();
	if (!child) {
		clock_gettime(CLOCK_MONOTONIC, &from);
		CHECK_INT(cuStreamBeginCapture_v2(S(0x10), 0), 0);
		clock_gettime(CLOCK_MONOTONIC, &to);
		CHECK(to.tv_sec - from.tv_sec < 5);
		for (unsigned i = 1; i < 100; i++) /* and only the first of many waits */
			cuStreamBeginCapture_v2(S(0x10 + i), 0);
		clock_gettime(CLOCK_MONOTONIC, &to);
		CHECK(to.tv_sec - from.tv_sec < 10);
		CHECK_INT(open_now(), 100);
		cuGraphLaunch(NULL, NULL);
		CHECK_INT(BEGINS(seen()), 1);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK_INT(status, 0);
	legacy_end();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	open_now = FROM_PRELOAD(captures);
	legacy_begin = FROM_PRELOAD(legacy_begin);
	legacy_end = FROM_PRELOAD(legacy_end);
	CHECK(FROM_PRELOAD(driver_complete)());
	if (!strcmp(what, "begin"))
		begin_and_end();
	else if (!strcmp(what, "failing"))
		failing_end();
	else if (!strcmp(what, "abandoned"))
		abandoned();
	else if (!strcmp(what, "per-thread"))
		per_thread();
	else if (!strcmp(what, "many"))
		many();
	else if (!strcmp(what, "wait"))
		waits();
	else if (!strcmp(what, "between"))
		between();
	else if (!strcmp(what, "gate"))
		gate();
	else if (!strcmp(what, "stuck"))
		stuck();
	else
		return 2;
	return 0;
}
