/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: the beginning and the end of things: the driver comes up, memory is released, contexts go. What goes is
 * told before it does, so that reads of ours in flight can be waited for.
 */
#include "driver.h"
#include "hook.h"

cu_result shim_wrap_init(cu_result (*real)(unsigned), unsigned flags)
{
	cu_result result = real(flags);

	if (result == CU_SUCCESS)
		SHIM_TELL(cuda_ready);
	return result;
}

cu_result shim_wrap_free_v1(cu_result (*real)(unsigned), unsigned ptr)
{
	SHIM_TELL(releasing, ptr, 0, SHIM_RELEASE_FREE);
	return real(ptr);
}

cu_result shim_wrap_free(cu_result (*real)(cu_deviceptr), cu_deviceptr ptr)
{
	SHIM_TELL(releasing, ptr, 0, SHIM_RELEASE_FREE);
	return real(ptr);
}

cu_result shim_wrap_free_async(cu_result (*real)(cu_deviceptr, cu_stream), cu_deviceptr ptr, cu_stream stream)
{
	SHIM_TELL(releasing, ptr, 0, SHIM_RELEASE_FREE_ASYNC);
	return real(ptr, stream);
}

cu_result shim_wrap_unmap(cu_result (*real)(cu_deviceptr, size_t), cu_deviceptr ptr, size_t bytes)
{
	SHIM_TELL(releasing, ptr, bytes, SHIM_RELEASE_UNMAP);
	return real(ptr, bytes);
}

/* Another process's memory: it is not freed, but no longer mapped here. */
cu_result shim_wrap_ipc_close(cu_result (*real)(cu_deviceptr), cu_deviceptr ptr)
{
	SHIM_TELL(releasing, ptr, 0, SHIM_RELEASE_UNMAP);
	return real(ptr);
}

cu_result shim_wrap_free_host(cu_result (*real)(void *), void *ptr)
{
	SHIM_TELL(releasing, (uintptr_t)ptr, 0, SHIM_RELEASE_FREE_HOST);
	return real(ptr);
}

cu_result shim_wrap_ctx_destroy(cu_result (*real)(cu_context), cu_context ctx)
{
	cu_result result;

	SHIM_TELL(context_going, ctx, -1);
	result = real(ctx);
	if (result == CU_SUCCESS)
		shim_capture_ctx_gone(ctx);
	return result;
}

static bool primary_gone(cu_device device)
{
	const struct shim_driver *driver = shim_driver();
	struct shim_guard guard;
	unsigned flags;
	int active = 1;

	if (!driver || !driver->primary_ctx_get_state)
		return false;
	shim_guard_enter(&guard);
	if (driver->primary_ctx_get_state(device, &flags, &active) != CU_SUCCESS)
		active = 1;
	shim_guard_leave(&guard);
	return !active;
}

static void forget_captures(cu_result result, cu_device device)
{
	if (result == CU_SUCCESS && shim_captures_open() && primary_gone(device))
		shim_capture_device_gone(device);
}

/* How often a primary context is held, as far as it was retained through us: most releases are not the last, and the
 * context stays. A device beyond the table counts as never held, and each of its releases as the last. */
static int held[64];

static int *held_of(cu_device device)
{
	return device >= 0 && device < (int)(sizeof(held) / sizeof(held[0])) ? &held[device] : NULL;
}

cu_result shim_wrap_primary_retain(cu_result (*real)(cu_context *, cu_device), cu_context *ctx, cu_device device)
{
	cu_result result = real(ctx, device);
	int *count = held_of(device);

	if (result == CU_SUCCESS && count)
		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	return result;
}

/* Lets go of one hold, and says whether there is another. */
static bool still_held(int *count)
{
	int before = count ? __atomic_load_n(count, __ATOMIC_RELAXED) : 0;

	while (before > 0 &&
	       !__atomic_compare_exchange_n(count, &before, before - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return before > 1;
}

cu_result shim_wrap_primary_release(cu_result (*real)(cu_device), cu_device device)
{
	cu_result result;

	if (!still_held(held_of(device)))
		SHIM_TELL(context_going, NULL, device);
	result = real(device);
	forget_captures(result, device);
	return result;
}

cu_result shim_wrap_primary_reset(cu_result (*real)(cu_device), cu_device device)
{
	cu_result result;

	SHIM_TELL(context_going, NULL, device);
	result = real(device);
	forget_captures(result, device);
	return result;
}

/* The context that streams of a green context belong to; the handle itself where the driver cannot say. */
static cu_context context_of_green(cu_green_ctx green)
{
	const struct shim_driver *driver = shim_driver();
	cu_context ctx = NULL;
	struct shim_guard guard;

	if (driver && driver->ctx_from_green) {
		shim_guard_enter(&guard);
		if (driver->ctx_from_green(&ctx, green) != CU_SUCCESS)
			ctx = NULL;
		shim_guard_leave(&guard);
	}
	return ctx ? ctx : (cu_context)green;
}

cu_result shim_wrap_green_ctx_destroy(cu_result (*real)(cu_green_ctx), cu_green_ctx green)
{
	cu_context ctx = context_of_green(green);
	cu_result result;

	SHIM_TELL(context_going, ctx, -1);
	result = real(green);
	if (result == CU_SUCCESS)
		shim_capture_ctx_gone(ctx);
	return result;
}
