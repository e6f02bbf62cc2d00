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

static __thread uint32_t cached_tid, cached_for;
static uint32_t generation = 1;

/* A forked child has one thread, and that one remembers its parent's id: the generation makes it ask again. */
void record_tid_forget(void)
{
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
}

uint32_t record_tid(void)
{
	uint32_t now = __atomic_load_n(&generation, __ATOMIC_RELAXED);

	/* Before the recording starts no fork handler watches over the cache. */
	if (!record_active())
		return (uint32_t)syscall(SYS_gettid);
	if (cached_for != now) {
		cached_tid = (uint32_t)syscall(SYS_gettid);
		cached_for = now;
	}
	return cached_tid;
}
