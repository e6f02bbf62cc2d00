/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.c: the writer thread, from its start to the end of the process.
 */
#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/compat.h"

#define NAP_MIN_NS  200000ull
#define NAP_BUSY_NS 1000000ull /* while results are awaited */
#define NAP_MAX_NS  10000000ull
#define END_WAIT_NS (NS_PER_S * 2)  /* what an exiting process waits for us at most, ... */
#define END_POLL_NS NS_PER_S        /* ... of this for results ... */
#define END_PUT_NS  (NS_PER_S / 10) /* ... and of this for threads that are half-way through record_put */
#define ALONE_NS    NS_PER_S        /* how often the writer looks whether it is the last thread */
#define STACK_BYTES (512u << 10)    /* a server's static thread-local storage lives on it, too */

enum { WRITER_NONE, WRITER_RUNS, WRITER_ENDING, WRITER_DONE };

static uint32_t writer_state;
static uint32_t wakes; /* raised by each wake: the futex */
static uint32_t napping, flush_asked;
static uint32_t writer_tid;
static pid_t writer_pid;
static sigset_t server_mask; /* of the thread that started the recording */

static void futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec t = { (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void record_wake(bool flush)
{
	int saved = errno;

	if (flush)
		__atomic_store_n(&flush_asked, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&wakes, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&napping, __ATOMIC_SEQ_CST))
		futex_wake(&wakes);
	errno = saved;
}

bool record_writer_is_this_thread(void)
{
	uint32_t tid = __atomic_load_n(&writer_tid, __ATOMIC_RELAXED);

	return tid && tid == (uint32_t)syscall(SYS_gettid);
}

/* Everything once. Returns the results that are still awaited. The flush word is read before the queue: what a thread
 * put before it asked is in the chunk that goes out. */
static unsigned turn(void)
{
	uint64_t now = record_now_ns(), token;
	bool flush = __atomic_exchange_n(&flush_asked, 0, __ATOMIC_ACQUIRE);
	bool ctl_flush = record_control_flush_wanted(&token);
	unsigned awaited;

	__atomic_store_n(&record_page()->heartbeat_ns, now, __ATOMIC_RELEASE);
	record_control_obey();
	record_queue_drain();
	awaited = record_source.poll();
	record_callsite_emit();
	if (flush || ctl_flush)
		record_chunk_write();
	record_chunk_tick(record_now_ns());
	if (ctl_flush)
		record_control_flush_done(token);
	return awaited;
}

static void nap(uint32_t seen, uint64_t ns)
{
	__atomic_store_n(&napping, 1, __ATOMIC_SEQ_CST);
	futex_wait(&wakes, seen, ns);
	__atomic_store_n(&napping, 0, __ATOMIC_SEQ_CST);
}

/* A process whose main thread ends by pthread_exit lives for as long as any thread does, and would live for ever on
 * account of ours. Rarely asked, since it costs system calls. */
static bool alone(uint64_t now_ns)
{
	static uint64_t asked_ns;

	if (now_ns - asked_ns < ALONE_NS)
		return false;
	asked_ns = now_ns;
	return record_threads_all_gone();
}

/* True: nobody is left to end the process, or to be ended with it. */
static bool run(void)
{
	uint64_t length = NAP_MIN_NS, limit;

	while (__atomic_load_n(&writer_state, __ATOMIC_ACQUIRE) == WRITER_RUNS) {
		uint32_t seen = __atomic_load_n(&wakes, __ATOMIC_SEQ_CST);
		uint64_t before = record_chunk_next_record();
		unsigned awaited = turn();
		limit = awaited ? NAP_BUSY_NS : NAP_MAX_NS;
		length = record_chunk_next_record() != before ? NAP_MIN_NS : length * 2 < limit ? length * 2 : limit;
		nap(seen, length);
		if (alone(record_now_ns()))
			return true;
	}
	return false;
}

static void write_end(void)
{
	struct log_end record = { .t_ns = record_now_ns() };
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	record_fill(&record, LOG_END);
	record.t_real_ns = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
	record_chunk_write(); /* END is a chunk of its own: were it lost, what came before it would not be */
	record.records = record_chunk_next_record();
	record_chunk_put(&record);
	record_chunk_write();
}

static void finish(void)
{
	const struct timespec pause = { 0, NAP_MIN_NS };
	uint64_t deadline = record_now_ns() + END_POLL_NS;

	while (turn() && record_now_ns() < deadline)
		nanosleep(&pause, NULL);
	record_queue_close(record_now_ns() + END_PUT_NS);
	record_source.poll();
	record_source.abandon(CTR_DROPPED_EXIT);
	record_callsite_emit();
	write_end();
	__atomic_store_n(&record_page()->state, CTR_ENDED, __ATOMIC_RELEASE);
}

/* The C library ends the process when its last thread returns, with the status that it would have had: that thread is
 * this one now. A signal that came meanwhile had nobody to be delivered to; one that our own writes drew upon this thread
 * (SIGXFSZ) is nobody's. */
static void be_the_last_thread(void)
{
	record_signal_swallow(SIGXFSZ);
	pthread_sigmask(SIG_SETMASK, &server_mask, NULL);
}

static void *writer_main(void *unused)
{
	bool last;

	(void)unused;
	prctl(PR_SET_NAME, "slotprobe", 0, 0, 0);
	__atomic_store_n(&writer_tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	turn();
	record_callsite_load(); /* may wait for the loader's lock: not before the first turn */
	last = run();
	finish();
	__atomic_store_n(&writer_state, WRITER_DONE, __ATOMIC_RELEASE);
	futex_wake(&writer_state);
	if (last)
		be_the_last_thread();
	return NULL;
}

/* Signals are the application's: none may be delivered to a thread that it does not know. */
int record_writer_start(void)
{
	sigset_t all;
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	rc = pthread_attr_init(&attr);
	if (rc)
		return -rc;
	writer_pid = getpid();
	__atomic_store_n(&writer_state, WRITER_RUNS, __ATOMIC_RELEASE);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	rc = pthread_sigmask(SIG_SETMASK, &all, &server_mask);
	if (!rc) {
		rc = pthread_create(&thread, &attr, writer_main, NULL);
		record_signals_restore(&server_mask);
	}
	pthread_attr_destroy(&attr);
	if (rc)
		__atomic_store_n(&writer_state, WRITER_NONE, __ATOMIC_RELEASE);
	return -rc;
}

/* From exit(): any thread, a signal handler, a child that some exotic call forked without telling. Bounded: when the
 * writer cannot come to its end in time, the log ends like that of a killed process. */
void record_writer_end(void)
{
	uint64_t deadline = record_now_ns() + END_WAIT_NS, now;
	uint32_t expected = WRITER_RUNS, state;

	if (writer_pid != getpid() || record_writer_is_this_thread())
		return;
	if (!__atomic_compare_exchange_n(&writer_state, &expected, WRITER_ENDING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE) &&
	    expected != WRITER_ENDING)
		return;
	record_wake(false);
	while ((state = __atomic_load_n(&writer_state, __ATOMIC_ACQUIRE)) == WRITER_ENDING &&
	       (now = record_now_ns()) < deadline)
		futex_wait(&writer_state, state, deadline - now);
}

void record_writer_forget(void)
{
	writer_state = WRITER_NONE;
	writer_pid = 0;
	writer_tid = napping = flush_asked = 0;
}
