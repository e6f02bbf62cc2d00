/* SPDX-License-Identifier: Apache-2.0
 *
 * time.c: clocks and the thread id.
 */
#include "internal.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t record_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

__thread struct record_thread record_thread;

/* A forked child has one thread, and that one remembers its parent's id. */
void record_tid_forget(void)
{
	__atomic_fetch_add(&record_hot.forks, 1, __ATOMIC_RELAXED);
}

uint32_t record_tid_ask(void)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	if (record_active()) {
		record_thread.tid = tid;
		record_thread.forks = __atomic_load_n(&record_hot.forks, __ATOMIC_RELAXED);
	}
	return tid;
}
