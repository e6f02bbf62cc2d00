/* SPDX-License-Identifier: Apache-2.0
 *
 * capture.c: which streams capture, and the gate between a capture that begins and a launch of ours on the legacy
 * stream.
 *
 * The count errs on the high side: it rises before the driver is asked to begin and falls after it has ended. Too high
 * costs a measurement, which is counted as skipped; too low could break the server's capture.
 *
 * A capture that is never ended leaves the count when its stream is destroyed, when the context or the device of the
 * stream goes, when a capture begins anew on the same handle, or, on a per-thread stream, when the thread is gone. An
 * open one is never looked up again in the driver: a handle that was destroyed by a route unknown to us may be freed
 * memory.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "hook.h"

#define SLOTS 256u

/* key 0: free. ctx and device are valid from the time that they are not 0 and -1. */
struct open_capture {
	uint64_t key;
	cu_context ctx;
	int device_plus_one;
};

static struct open_capture slot[SLOTS];
static unsigned captures;  /* begun or about to begin, and not ended */
static unsigned untracked; /* of these, without a slot: there was no room */
static unsigned legacy;    /* launches of ours on the legacy stream, just now */

#define KEY_OF_THREAD (1ull << 63)

/* The handle for the driver's own stream_* calls, which take 0 for the legacy stream. */
static cu_stream handle_of(cu_stream stream, bool ptsz)
{
	return ptsz && !stream ? CU_PER_THREAD : stream;
}

/* One handle stands for as many per-thread streams as there are threads. */
static uint64_t key_of(cu_stream handle)
{
	if (handle == CU_PER_THREAD)
		return KEY_OF_THREAD | (uint64_t)syscall(SYS_gettid);
	return handle ? (uintptr_t)handle : (uintptr_t)CU_LEGACY;
}

static struct open_capture *find(uint64_t key)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (__atomic_load_n(&slot[i].key, __ATOMIC_ACQUIRE) == key)
			return &slot[i];
	return NULL;
}

static struct open_capture *claim(uint64_t key)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		uint64_t none = 0;

		if (__atomic_compare_exchange_n(&slot[i].key, &none, key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return &slot[i];
	}
	return NULL;
}

/* True for one of those who try: the count falls once. ctx and device go first, for the next owner of the slot. */
static bool forget(struct open_capture *open, uint64_t key)
{
	__atomic_store_n(&open->ctx, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&open->device_plus_one, 0, __ATOMIC_RELAXED);
	return __atomic_compare_exchange_n(&open->key, &key, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void count_down(void)
{
	__atomic_fetch_sub(&captures, 1, __ATOMIC_SEQ_CST);
}

static bool thread_gone(uint64_t key)
{
	return (key & KEY_OF_THREAD) && syscall(SYS_tgkill, getpid(), (pid_t)(key & ~KEY_OF_THREAD), 0) &&
	       errno == ESRCH;
}

static void forget_gone_threads(void)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		uint64_t key = __atomic_load_n(&slot[i].key, __ATOMIC_ACQUIRE);

		if (key && thread_gone(key) && forget(&slot[i], key))
			count_down();
	}
}

/* Whose stream it is, to let go of it with its context. The device is known only if that context is current. */
static void note_owner(struct open_capture *open, cu_stream handle)
{
	const struct shim_driver *driver = shim_driver();
	cu_context ctx = NULL, current = NULL;
	cu_device device;
	struct shim_guard guard;

	if (!driver || !driver->complete)
		return;
	shim_guard_enter(&guard);
	if (driver->stream_get_ctx(handle, &ctx) == CU_SUCCESS)
		__atomic_store_n(&open->ctx, ctx, __ATOMIC_RELAXED);
	if (ctx && driver->ctx_get_current(&current) == CU_SUCCESS && current == ctx &&
	    driver->ctx_get_device(&device) == CU_SUCCESS)
		__atomic_store_n(&open->device_plus_one, device + 1, __ATOMIC_RELAXED);
	shim_guard_leave(&guard);
}

#define GATE_WAIT_NS 1000000000ull

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The wait is for an enqueue, some microseconds unless its thread is not running. Whoever holds the gate for longer has
 * died in it: the server waits for that once. */
static void wait_for_legacy(void)
{
	static bool given_up;
	uint64_t until = now_ns() + GATE_WAIT_NS;

	while (__atomic_load_n(&legacy, __ATOMIC_SEQ_CST)) {
		if (__atomic_load_n(&given_up, __ATOMIC_RELAXED))
			return;
		if (now_ns() >= until)
			__atomic_store_n(&given_up, true, __ATOMIC_RELAXED);
		sched_yield();
	}
	__atomic_store_n(&given_up, false, __ATOMIC_RELAXED);
}

/* Before the real begin. Paired with shim_legacy_begin: each side first shows itself and then looks for the other, so
 * that at least one of them sees the other. */
static void before_begin(void)
{
	int saved = errno;

	__atomic_fetch_add(&captures, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&legacy, __ATOMIC_SEQ_CST))
		wait_for_legacy();
	errno = saved;
}

static void after_begin(cu_stream stream, bool ptsz, cu_result result)
{
	int saved = errno;
	cu_stream handle = handle_of(stream, ptsz);
	struct open_capture *open;
	uint64_t key;

	if (result != CU_SUCCESS) {
		count_down();
		return;
	}
	forget_gone_threads();
	key = key_of(handle);
	if (find(key)) { /* an end that we did not see: counted already */
		count_down();
	} else {
		open = claim(key);
		if (open)
			note_owner(open, handle);
		else
			__atomic_fetch_add(&untracked, 1, __ATOMIC_RELAXED);
	}
	errno = saved;
}

/* An end that fails has ended the capture all the same if it was invalid, and with driver 580 also if the wrong thread
 * asked: that is the driver's to say. Where it cannot, the wrong thread has ended nothing, which is the high side. */
static bool still_capturing(cu_stream handle, cu_result result)
{
	const struct shim_driver *driver = shim_driver();
	int status = CU_CAPTURE_NONE;
	struct shim_guard guard;

	if (result == CU_SUCCESS)
		return false;
	if (!driver || !driver->stream_is_capturing)
		return result == CU_CAPTURE_WRONG_THREAD;
	shim_guard_enter(&guard);
	if (driver->stream_is_capturing(handle, &status) != CU_SUCCESS)
		status = result == CU_CAPTURE_WRONG_THREAD ? CU_CAPTURE_ACTIVE : CU_CAPTURE_NONE;
	shim_guard_leave(&guard);
	return status != CU_CAPTURE_NONE;
}

static void end_untracked(void)
{
	unsigned n = __atomic_load_n(&untracked, __ATOMIC_RELAXED);

	while (n && !__atomic_compare_exchange_n(&untracked, &n, n - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	if (n)
		count_down();
}

static void after_end(cu_stream stream, bool ptsz, cu_result result)
{
	int saved = errno;
	cu_stream handle = handle_of(stream, ptsz);
	uint64_t key = key_of(handle);
	struct open_capture *open = find(key);

	if (open && !still_capturing(handle, result)) {
		if (forget(open, key))
			count_down();
	} else if (!open && result == CU_SUCCESS) {
		end_untracked();
	}
	errno = saved;
}

cu_result shim_wrap_capture_begin(cu_result (*real)(cu_stream), cu_stream stream)
{
	cu_result result;

	before_begin();
	result = real(stream);
	after_begin(stream, false, result);
	return result;
}

cu_result shim_wrap_capture_begin_ptsz(cu_result (*real)(cu_stream), cu_stream stream)
{
	cu_result result;

	before_begin();
	result = real(stream);
	after_begin(stream, true, result);
	return result;
}

cu_result shim_wrap_capture_begin_v2(cu_result (*real)(cu_stream, int), cu_stream stream, int mode)
{
	cu_result result;

	before_begin();
	result = real(stream, mode);
	after_begin(stream, false, result);
	return result;
}

cu_result shim_wrap_capture_begin_v2_ptsz(cu_result (*real)(cu_stream, int), cu_stream stream, int mode)
{
	cu_result result;

	before_begin();
	result = real(stream, mode);
	after_begin(stream, true, result);
	return result;
}

cu_result shim_wrap_capture_to_graph(cu_result (*real)(cu_stream, cu_graph, const cu_graph_node *, const void *, size_t,
						       int),
				     cu_stream stream, cu_graph graph, const cu_graph_node *deps, const void *edges,
				     size_t n, int mode)
{
	cu_result result;

	before_begin();
	result = real(stream, graph, deps, edges, n, mode);
	after_begin(stream, false, result);
	return result;
}

cu_result shim_wrap_capture_to_graph_ptsz(cu_result (*real)(cu_stream, cu_graph, const cu_graph_node *, const void *,
							    size_t, int),
					  cu_stream stream, cu_graph graph, const cu_graph_node *deps,
					  const void *edges, size_t n, int mode)
{
	cu_result result;

	before_begin();
	result = real(stream, graph, deps, edges, n, mode);
	after_begin(stream, true, result);
	return result;
}

cu_result shim_wrap_capture_end(cu_result (*real)(cu_stream, cu_graph *), cu_stream stream, cu_graph *graph)
{
	cu_result result = real(stream, graph);

	after_end(stream, false, result);
	return result;
}

cu_result shim_wrap_capture_end_ptsz(cu_result (*real)(cu_stream, cu_graph *), cu_stream stream, cu_graph *graph)
{
	cu_result result = real(stream, graph);

	after_end(stream, true, result);
	return result;
}

/* The slot is given up before the handle can be reused, the count falls after the stream is gone. */
cu_result shim_wrap_stream_destroy(cu_result (*real)(cu_stream), cu_stream stream)
{
	uint64_t key = (uintptr_t)stream;
	struct open_capture *open = key > 2 && shim_captures_open() ? find(key) : NULL;
	bool given_up = open && forget(open, key);
	cu_result result = real(stream);

	if (!given_up)
		return result;
	if (result == CU_SUCCESS)
		count_down();
	else if (!claim(key))
		__atomic_fetch_add(&untracked, 1, __ATOMIC_RELAXED);
	return result;
}

void shim_capture_ctx_gone(cu_context ctx)
{
	for (unsigned i = 0; ctx && shim_captures_open() && i < SLOTS; i++) {
		uint64_t key = __atomic_load_n(&slot[i].key, __ATOMIC_ACQUIRE);

		if (key && __atomic_load_n(&slot[i].ctx, __ATOMIC_RELAXED) == ctx && forget(&slot[i], key))
			count_down();
	}
}

void shim_capture_device_gone(cu_device device)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		uint64_t key = __atomic_load_n(&slot[i].key, __ATOMIC_ACQUIRE);

		if (key && __atomic_load_n(&slot[i].device_plus_one, __ATOMIC_RELAXED) == device + 1 &&
		    forget(&slot[i], key))
			count_down();
	}
}

unsigned shim_captures_open(void)
{
	return __atomic_load_n(&captures, __ATOMIC_ACQUIRE);
}

bool shim_legacy_begin(void)
{
	if (shim_captures_open())
		return false;
	__atomic_fetch_add(&legacy, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&captures, __ATOMIC_SEQ_CST))
		return true;
	shim_legacy_end();
	return false;
}

void shim_legacy_end(void)
{
	__atomic_fetch_sub(&legacy, 1, __ATOMIC_RELEASE);
}
