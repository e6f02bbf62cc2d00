/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c: the driver's graph launch. The hot path: no lock, no look-up, one flag of this thread.
 */
#include "hook.h"
#include "shim/record/log_format.h"
#include "shim/record/own.h"

__thread struct shim_thread shim_thread;

typedef cu_result launch_fn(cu_graph_exec exec, cu_stream stream);

/* as: SHIM_LAUNCH_OWN on the one thread that counts without the lock prefix, else SHIM_LAUNCH_SHARED; a constant. */
static inline __attribute__((always_inline)) cu_result launch_as(enum shim_launch as, struct shim_thread *thread,
								 launch_fn *real, cu_graph_exec exec, cu_stream stream,
								 cu_stream seen)
{
	const bool own = as == SHIM_LAUNCH_OWN;
	cu_result result;

	thread->launch = SHIM_LAUNCH_INSIDE;
	own_or_shared_add(own, shim_observer.own_launch_begun, shim_observer.launch_begun, CTR_BEGIN_ONE);
	result = real(exec, stream);
	thread->driver_launches++;
	thread->launch = (uint8_t)as;
	return own ? shim_observer.own_launch_end(exec, seen, result) : shim_observer.launch_end(exec, seen, result);
}

/* On any thread. The first that launches is the one that counts in words of its own, for the life of the process: where many
 * launch, it is mostly one. The child of a fork goes on so, if that thread made it. */
static __attribute__((noinline)) cu_result launch_any(launch_fn *real, cu_graph_exec exec, cu_stream stream,
						      cu_stream seen)
{
	static bool taken;
	struct shim_thread *thread = &shim_thread;

	if (thread->launch == SHIM_LAUNCH_INSIDE)
		return real(exec, stream);
	if (thread->launch == SHIM_LAUNCH_NEVER && !__atomic_exchange_n(&taken, true, __ATOMIC_RELAXED))
		return launch_as(SHIM_LAUNCH_OWN, thread, real, exec, stream, seen);
	return launch_as(SHIM_LAUNCH_SHARED, thread, real, exec, stream, seen);
}

/* A launch may come through here twice, where another preload stands between our exported symbol and libcuda and asks
 * dlsym for the latter: it is one launch. `seen`: the stream that the application means. */
static inline cu_result launch(launch_fn *real, cu_graph_exec exec, cu_stream stream, cu_stream seen)
{
	struct shim_thread *thread = &shim_thread;

	if (shim_unlikely(thread->launch != SHIM_LAUNCH_OWN))
		return launch_any(real, exec, stream, seen);
	return launch_as(SHIM_LAUNCH_OWN, thread, real, exec, stream, seen);
}

cu_result shim_wrap_graph_launch(launch_fn *real, cu_graph_exec exec, cu_stream stream)
{
	return launch(real, exec, stream, stream);
}

cu_result shim_wrap_graph_launch_ptsz(launch_fn *real, cu_graph_exec exec, cu_stream stream)
{
	return launch(real, exec, stream, stream ? stream : CU_PER_THREAD);
}
