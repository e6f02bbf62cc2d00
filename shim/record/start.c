/* SPDX-License-Identifier: Apache-2.0
 *
 * start.c: begins the recording of this process, and ends it at exit and in the child of a fork.
 *
 * The order of the start is the order in which things may be needed: the directory and the files, the counters page (so
 * that whatever is counted from now on is in the file), the queue, the log with its first record, the writer. Anything
 * that fails takes all of it back, and the process goes on unrecorded.
 */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifndef SLOTPROBE_VERSION
#define SLOTPROBE_VERSION "unknown"
#endif

struct record_hot record_hot;
static int failure; /* why it is RECORD_FAILED */
static uint32_t wanted = 1;
static uint32_t hooked;
static __thread bool starting_here;
static struct record_rundir files;

void record_set_level(uint32_t to)
{
	__atomic_store_n(&record_hot.level, to, __ATOMIC_RELAXED);
}

void record_set_recording(bool on)
{
	__atomic_store_n(&wanted, on, __ATOMIC_SEQ_CST);
	record_refresh();
}

static bool may_record(void)
{
	return record_active() && __atomic_load_n(&wanted, __ATOMIC_SEQ_CST) && !record_disk_stopped();
}

void record_refresh(void)
{
	/* Two threads may be here, for two reasons: whoever comes last looks again. */
	do
		__atomic_store_n(&record_hot.recording, may_record(), __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&record_hot.recording, __ATOMIC_SEQ_CST) != may_record());
}

/* ---- the end ---- */

static void at_exit(void)
{
	uint32_t expected = RECORD_ACTIVE;

	if (!__atomic_compare_exchange_n(&record_hot.state, &expected, RECORD_ENDED, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return;
	record_refresh();
	record_writer_end();
}

/* The child has one thread and none of ours. It must not touch the parent's counters, file or queue, whatever that one
 * thread was in the middle of; it records anew, in its own files, when it next has a reason to. */
static void in_child(void)
{
	uint32_t was = __atomic_exchange_n(&record_hot.state, RECORD_IDLE, __ATOMIC_ACQ_REL);

	starting_here = false;
	record_tid_forget();
	if (was == RECORD_IDLE || was == RECORD_FAILED)
		return;
	__atomic_store_n(&record_hot.inherited, was != RECORD_ENDED, __ATOMIC_RELAXED);
	__atomic_store_n(&record_hot.recording, 0, __ATOMIC_SEQ_CST);
	ctr_detach(false);
	record_queue_forget();
	record_writer_forget();
	record_logfile_close();
	record_chunk_start();
	record_callsite_forget();
	record_disk_set_stopped(false);
	record_source.forked();
}

/* ---- the start ---- */

static void first_record(void)
{
	struct log_process record = { .pid = files.pid, .ppid = (uint64_t)getppid(), .starttime = files.starttime };
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	record_fill(&record, LOG_PROCESS);
	record.t_ns = record_now_ns();
	record.t_real_ns = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
	record_text_copy(record.tool_version, sizeof record.tool_version, SLOTPROBE_VERSION);
	record_text_copy(record.comm, sizeof record.comm, files.comm);
	record_text_copy(record.host, sizeof record.host, files.host);
	record_chunk_put(&record);
}

static int start_log(void)
{
	int rc = record_logfile_start(&files);

	if (rc)
		return rc;
	files.log_fd = -1; /* the log file's from now on */
	record_chunk_start();
	first_record();
	record_disk_start(&files);
	return record_chunk_write();
}

static int start_files(void)
{
	int rc = record_rundir_open(&files, record_options()->dir);

	if (rc)
		return rc;
	rc = ctr_attach(&files);
	if (rc)
		return rc;
	rc = record_queue_make();
	if (rc)
		return rc;
	rc = start_log();
	if (!rc)
		record_manifest_write(&files);
	return rc;
}

static int start_all(void)
{
	const struct record_options *o = record_options();
	struct record_signals held;
	int rc;

	record_signals_hold(&held);
	rc = start_files();
	record_signals_release(&held);
	if (rc)
		return rc;
	__atomic_store_n(&wanted, o->recording, __ATOMIC_SEQ_CST);
	record_set_level(o->level);
	__atomic_store_n(&record_page()->state, CTR_RUNNING, __ATOMIC_RELEASE);
	return record_writer_start();
}

static void take_back(void)
{
	ctr_detach(true);
	record_logfile_close();
	record_rundir_close(&files, true);
}

/* Registered before anything is begun, so that no fork finds a start that its child knows nothing of. */
static void hook_process(void)
{
	uint32_t expected = 0;

	if (!__atomic_compare_exchange_n(&hooked, &expected, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return;
	if (pthread_atfork(NULL, NULL, in_child))
		ctr_internal_error();
	if (atexit(at_exit))
		ctr_internal_error();
}

/* Another thread is at it: until it is done there is no recording, and this thread's first count may come next. */
static int wait_for_start(void)
{
	const struct timespec nap = { 0, 100000 };
	uint64_t deadline = record_now_ns() + 5 * NS_PER_S;
	uint32_t now;

	while ((now = __atomic_load_n(&record_hot.state, __ATOMIC_ACQUIRE)) == RECORD_STARTING) {
		if (starting_here || record_now_ns() > deadline)
			return -EBUSY;
		nanosleep(&nap, NULL);
	}
	return now == RECORD_ACTIVE ? 0 : now == RECORD_FAILED ? failure : -ESHUTDOWN;
}

/* SLOTPROBE_DEBUG: one line on stderr, in one write, of what became of the start. */
static void say(int rc)
{
	struct record_signals held;
	char line[640];
	struct record_text text = record_text_start(line, sizeof line - 1);
	ssize_t written;

	if (!record_options()->debug)
		return;
	record_text_add(&text, rc ? "slotprobe: nothing is recorded, no use of " : "slotprobe: recording into ");
	record_text_add(&text, record_options()->dir);
	if (rc) {
		record_text_add(&text, ": error ");
		record_text_add_u64(&text, (uint64_t)-rc, 1);
		record_text_add(&text, " (see errno(3))");
	}
	*text.at++ = '\n';
	record_signals_hold(&held);
	written = write(STDERR_FILENO, line, (size_t)(text.at - line));
	(void)written;
	record_signals_release(&held);
}

static int start_once(void)
{
	uint32_t expected = RECORD_IDLE;
	int rc;

	hook_process();
	if (!__atomic_compare_exchange_n(&record_hot.state, &expected, RECORD_STARTING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return wait_for_start();
	starting_here = true;
	rc = start_all();
	if (rc)
		take_back();
	else
		record_rundir_close(&files, false);
	failure = rc;
	record_hot.options = record_options();
	__atomic_store_n(&record_hot.inherited, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&record_hot.state, rc ? RECORD_FAILED : RECORD_ACTIVE, __ATOMIC_RELEASE);
	record_refresh();
	starting_here = false;
	say(rc);
	return rc;
}

int record_start(void)
{
	int saved, rc;

	if (record_active())
		return 0;
	if (!record_options()->dir)
		return -ENOSYS;
	saved = errno;
	rc = start_once();
	errno = saved;
	return rc;
}
