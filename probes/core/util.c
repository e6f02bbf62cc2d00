/* SPDX-License-Identifier: Apache-2.0
 *
 * util.c: memory, text, a bounded lock and a bounded wait, none of which can hurt the process we live in.
 */
#include "core.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

void *probe_map(size_t bytes, bool shared)
{
	int flags = MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE);
	void *p = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) : MAP_FAILED;

	return p == MAP_FAILED ? NULL : p;
}

void probe_unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

void probe_text(char *to, size_t room, const char *from)
{
	size_t n = from ? strnlen(from, room - 1) : 0;

	memset(to, 0, room);
	if (n)
		memcpy(to, from, n);
}

static void nap(void)
{
	struct timespec t = { 0, 20000 };

	nanosleep(&t, NULL);
}

bool probe_wait(bool (*done)(void *arg), void *arg, unsigned wait_ms)
{
	uint64_t end;

	if (done(arg))
		return true;
	end = record_now_ns() + wait_ms * 1000000ull;
	while (!done(arg)) {
		if (record_now_ns() >= end)
			return false;
		nap();
	}
	return true;
}

struct lock_try {
	uint32_t *lock, tid;
};

static bool lock_taken(void *arg)
{
	struct lock_try *t = arg;
	uint32_t none = 0;

	return __atomic_compare_exchange_n(t->lock, &none, t->tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

bool probe_lock(uint32_t *lock, unsigned wait_ms)
{
	struct lock_try t = { lock, record_tid() };

	if (__atomic_load_n(lock, __ATOMIC_RELAXED) == t.tid)
		return false;
	return probe_wait(lock_taken, &t, wait_ms);
}

void probe_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}
