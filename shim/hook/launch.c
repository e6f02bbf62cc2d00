/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c: the driver's graph launch. The hot path: no lock, no look-up, one flag of this thread.
 */
#include "hook.h"
#include "shim/record/log_format.h"

__thread struct shim_thread shim_thread;

typedef cu_result launch_fn(cu_graph_exec exec, cu_stream stream);

/* A launch may come through here twice, where another preload stands between our exported symbol and libcuda and asks
 * dlsym for the latter: it is one launch. `seen`: the stream that the application means. */
static inline cu_result launch(launch_fn *real, cu_graph_exec exec, cu_stream stream, cu_stream seen)
{
	struct shim_thread *thread = &shim_thread;
	cu_result result;

	if (shim_unlikely(thread->in_launch))
		return real(exec, stream);
	thread->in_launch = true;
	__atomic_fetch_add(shim_observer.launch_begun, CTR_BEGIN_ONE, __ATOMIC_RELAXED);
	result = real(exec, stream);
	thread->driver_launches++;
	thread->in_launch = false;
	return shim_observer.launch_end(exec, seen, result);
}

cu_result shim_wrap_graph_launch(launch_fn *real, cu_graph_exec exec, cu_stream stream)
{
	return launch(real, exec, stream, stream);
}

cu_result shim_wrap_graph_launch_ptsz(launch_fn *real, cu_graph_exec exec, cu_stream stream)
{
	return launch(real, exec, stream, stream ? stream : CU_PER_THREAD);
}
