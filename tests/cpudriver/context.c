/* SPDX-License-Identifier: Apache-2.0
 *
 * context.c: contexts, the stack of current ones that each thread has, primary and green contexts.
 */
#include <stdlib.h>

#include "cpudriver.h"

#define MAX_STACK 64

static __thread struct {
	cu_context ctx[MAX_STACK];
	int depth;
} stack;

static cu_context contexts; /* every one that ever was: memory of a dead one stays, its handle does not */
static cu_context primary[CPU_MAX_DEVICES];

cu_context context_first(void)
{
	return contexts;
}

cu_context context_current(void)
{
	return stack.depth ? stack.ctx[stack.depth - 1] : NULL;
}

bool context_ok(cu_context ctx)
{
	return handle_is(KIND_CONTEXT, ctx) && ctx->alive;
}

static void revive(cu_context ctx)
{
	ctx->alive = true;
	ctx->sticky = CU_SUCCESS;
	ctx->id = cpu_next_id();
	ctx->legacy = stream_new(ctx, 0, STREAM_LEGACY);
}

cu_context context_new(cu_device device, unsigned flags)
{
	cu_context ctx = cpu_alloc(sizeof(*ctx));

	ctx->device = device;
	ctx->flags = flags;
	ctx->next = contexts;
	contexts = ctx;
	handle_add(KIND_CONTEXT, ctx);
	revive(ctx);
	return ctx;
}

/* Everything that lives in it goes; what is queued is finished first. A primary context can come back. */
void context_end(cu_context ctx)
{
	if (!ctx->alive)
		return;
	for (cu_stream stream = ctx->streams; stream; stream = stream->next)
		if (stream->capture)
			capture_break(stream->capture);
	stream_drain(ctx);
	ctx->alive = false;
	while (ctx->streams)
		stream_end(ctx->streams);
	ctx->legacy = NULL;
	modules_end_context(ctx);
	memory_end_context(ctx);
	if (!ctx->primary)
		handle_remove(ctx);
}

static cu_result push(cu_context ctx)
{
	if (stack.depth == MAX_STACK)
		return CU_OUT_OF_MEMORY;
	stack.ctx[stack.depth++] = ctx;
	return CU_SUCCESS;
}

static cu_result create(cu_context *ctx, unsigned flags, cu_device device)
{
	if (!ctx)
		return CU_INVALID_VALUE;
	if (!cpu_device_ok(device))
		return CUX_INVALID_DEVICE;
	*ctx = context_new(device, flags);
	return push(*ctx);
}

cu_result cuCtxCreate(cu_context *ctx, unsigned flags, cu_device device)
{
	API(cuCtxCreate, NEED_INIT);
	return create(ctx, flags, device);
}

cu_result cuCtxCreate_v2(cu_context *ctx, unsigned flags, cu_device device)
{
	API(cuCtxCreate_v2, NEED_INIT);
	return create(ctx, flags, device);
}

cu_result cuCtxCreate_v3(cu_context *ctx, void *affinity, int n, unsigned flags, cu_device device)
{
	API(cuCtxCreate_v3, NEED_INIT);
	if (affinity || n)
		return cpu_lacks("contexts on a part of the multiprocessors");
	return create(ctx, flags, device);
}

cu_result cuCtxCreate_v4(cu_context *ctx, struct cux_ctx_create_params *params, unsigned flags, cu_device device)
{
	API(cuCtxCreate_v4, NEED_INIT);
	if (params && (params->n_affinity || params->cig))
		return cpu_lacks("contexts on a part of the multiprocessors");
	return create(ctx, flags, device);
}

static cu_result destroy(cu_context ctx)
{
	if (!ctx)
		return CU_INVALID_VALUE;
	if (!context_ok(ctx) || ctx->primary || ctx->green)
		return CUX_INVALID_CONTEXT;
	if (context_current() == ctx)
		stack.depth--;
	context_end(ctx);
	return CU_SUCCESS;
}

cu_result cuCtxDestroy(cu_context ctx)
{
	API(cuCtxDestroy, NEED_INIT);
	return destroy(ctx);
}

cu_result cuCtxDestroy_v2(cu_context ctx)
{
	API(cuCtxDestroy_v2, NEED_INIT);
	return destroy(ctx);
}

static cu_result push_again(cu_context ctx)
{
	if (!ctx)
		return CU_INVALID_VALUE;
	return context_ok(ctx) ? push(ctx) : CUX_INVALID_CONTEXT;
}

/* The first form only takes a context that is on no stack. */
cu_result cuCtxPushCurrent(cu_context ctx)
{
	API(cuCtxPushCurrent, NEED_INIT);
	for (int i = 0; i < stack.depth; i++)
		if (stack.ctx[i] == ctx)
			return CUX_INVALID_CONTEXT;
	return push_again(ctx);
}

cu_result cuCtxPushCurrent_v2(cu_context ctx)
{
	API(cuCtxPushCurrent_v2, NEED_INIT);
	return push_again(ctx);
}

static cu_result pop(cu_context *ctx)
{
	if (!stack.depth)
		return CUX_INVALID_CONTEXT;
	stack.depth--;
	if (ctx)
		*ctx = stack.ctx[stack.depth];
	return CU_SUCCESS;
}

cu_result cuCtxPopCurrent(cu_context *ctx)
{
	API(cuCtxPopCurrent, NEED_INIT);
	return pop(ctx);
}

cu_result cuCtxPopCurrent_v2(cu_context *ctx)
{
	API(cuCtxPopCurrent_v2, NEED_INIT);
	return pop(ctx);
}

cu_result cuCtxSetCurrent(cu_context ctx)
{
	API(cuCtxSetCurrent, NEED_INIT);
	if (ctx && !context_ok(ctx))
		return CUX_INVALID_CONTEXT;
	if (stack.depth)
		stack.depth--;
	return ctx ? push(ctx) : CU_SUCCESS;
}

cu_result cuCtxGetCurrent(cu_context *ctx)
{
	API(cuCtxGetCurrent, NEED_INIT);
	if (!ctx)
		return CU_INVALID_VALUE;
	*ctx = context_current();
	return CU_SUCCESS;
}

cu_result cuCtxGetDevice(cu_device *device)
{
	API(cuCtxGetDevice, NEED_CONTEXT);
	if (!device)
		return CU_INVALID_VALUE;
	*device = context_current()->device;
	return CU_SUCCESS;
}

cu_result cuCtxGetDevice_v2(cu_device *device, cu_context ctx)
{
	API(cuCtxGetDevice_v2, NEED_INIT);
	ctx = ctx ? ctx : context_current();
	if (!context_ok(ctx))
		return CUX_INVALID_CONTEXT;
	if (!device)
		return CU_INVALID_VALUE;
	*device = ctx->device;
	return CU_SUCCESS;
}

cu_result cuCtxGetFlags(unsigned *flags)
{
	API(cuCtxGetFlags, NEED_CONTEXT);
	if (!flags)
		return CU_INVALID_VALUE;
	*flags = context_current()->flags;
	return CU_SUCCESS;
}

cu_result cuCtxGetApiVersion(cu_context ctx, unsigned *version)
{
	API(cuCtxGetApiVersion, NEED_INIT);
	ctx = ctx ? ctx : context_current();
	if (!context_ok(ctx))
		return CUX_INVALID_CONTEXT;
	if (!version)
		return CU_INVALID_VALUE;
	*version = 3020;
	return CU_SUCCESS;
}

cu_result cuCtxGetId(cu_context ctx, unsigned long long *id)
{
	API(cuCtxGetId, NEED_INIT);
	ctx = ctx ? ctx : context_current();
	if (!context_ok(ctx))
		return CUX_CONTEXT_IS_DESTROYED;
	if (!id)
		return CU_INVALID_VALUE;
	*id = ctx->id;
	return CU_SUCCESS;
}

cu_result cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	API(cuCtxGetStreamPriorityRange, NEED_CONTEXT);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CU_SUCCESS;
}

static cu_result synchronize(cu_context ctx)
{
	cu_result result = capture_forbids_all(ctx);

	if (result)
		return result;
	stream_drain(ctx);
	return ctx->sticky;
}

cu_result cuCtxSynchronize(void)
{
	API(cuCtxSynchronize, NEED_CONTEXT);
	return synchronize(context_current());
}

cu_result cuCtxSynchronize_v2(cu_context ctx)
{
	API(cuCtxSynchronize_v2, NEED_INIT);
	ctx = ctx ? ctx : context_current();
	if (!context_ok(ctx))
		return CUX_INVALID_CONTEXT;
	return ctx->sticky ? ctx->sticky : synchronize(ctx);
}

/* ---- primary contexts ---- */

static cu_context get_primary(cu_device device)
{
	if (!primary[device]) {
		primary[device] = context_new(device, 0);
		primary[device]->primary = true;
	} else if (!primary[device]->alive) {
		revive(primary[device]);
	}
	return primary[device];
}

cu_result cuDevicePrimaryCtxRetain(cu_context *ctx, cu_device device)
{
	API(cuDevicePrimaryCtxRetain, NEED_INIT);
	if (!ctx)
		return CU_INVALID_VALUE;
	if (!cpu_device_ok(device))
		return CUX_INVALID_DEVICE;
	*ctx = get_primary(device);
	(*ctx)->retained++;
	return CU_SUCCESS;
}

static cu_result release(cu_device device)
{
	if (!cpu_device_ok(device))
		return CUX_INVALID_DEVICE;
	if (!primary[device] || !primary[device]->retained)
		return CUX_INVALID_CONTEXT;
	if (!--primary[device]->retained)
		context_end(primary[device]);
	return CU_SUCCESS;
}

cu_result cuDevicePrimaryCtxRelease(cu_device device)
{
	API(cuDevicePrimaryCtxRelease, NEED_INIT);
	return release(device);
}

cu_result cuDevicePrimaryCtxRelease_v2(cu_device device)
{
	API(cuDevicePrimaryCtxRelease_v2, NEED_INIT);
	return release(device);
}

/* Who retained the context keeps his claim on it, but it is gone until it is retained once more. */
static cu_result reset(cu_device device)
{
	if (!cpu_device_ok(device))
		return CUX_INVALID_DEVICE;
	if (primary[device])
		context_end(primary[device]);
	return CU_SUCCESS;
}

cu_result cuDevicePrimaryCtxReset(cu_device device)
{
	API(cuDevicePrimaryCtxReset, NEED_INIT);
	return reset(device);
}

cu_result cuDevicePrimaryCtxReset_v2(cu_device device)
{
	API(cuDevicePrimaryCtxReset_v2, NEED_INIT);
	return reset(device);
}

static cu_result set_flags(cu_device device, unsigned flags)
{
	bool active;

	if (!cpu_device_ok(device))
		return CUX_INVALID_DEVICE;
	active = primary[device] && primary[device]->alive;
	get_primary(device)->flags = flags;
	if (!active)
		context_end(primary[device]);
	return CU_SUCCESS;
}

cu_result cuDevicePrimaryCtxSetFlags(cu_device device, unsigned flags)
{
	API(cuDevicePrimaryCtxSetFlags, NEED_INIT);
	return set_flags(device, flags);
}

cu_result cuDevicePrimaryCtxSetFlags_v2(cu_device device, unsigned flags)
{
	API(cuDevicePrimaryCtxSetFlags_v2, NEED_INIT);
	return set_flags(device, flags);
}

cu_result cuDevicePrimaryCtxGetState(cu_device device, unsigned *flags, int *active)
{
	API(cuDevicePrimaryCtxGetState, NEED_INIT);
	if (!cpu_device_ok(device))
		return CUX_INVALID_DEVICE;
	if (!flags || !active)
		return CU_INVALID_VALUE;
	*flags = primary[device] ? primary[device]->flags : 0;
	*active = primary[device] && primary[device]->alive;
	return CU_SUCCESS;
}

/* ---- green contexts: a context of their own on the device; the partition of multiprocessors is not modelled ---- */

struct cu_resource_desc_st {
	cu_device device;
};

cu_result cuDeviceGetDevResource(cu_device device, struct cux_dev_resource *resource, int type)
{
	API(cuDeviceGetDevResource, NEED_INIT);
	if (!cpu_device_ok(device))
		return CUX_INVALID_DEVICE;
	if (!resource || type != 1)
		return CU_INVALID_VALUE;
	*resource = (struct cux_dev_resource) { .type = 1, .sm = { 16, 2, 2 } };
	resource->internal[0] = (unsigned char)device;
	return CU_SUCCESS;
}

cu_result cuDevResourceGenerateDesc(cux_resource_desc *desc, struct cux_dev_resource *resources, unsigned n)
{
	API(cuDevResourceGenerateDesc, NEED_INIT);
	if (!desc || !resources || !n)
		return CU_INVALID_VALUE;
	*desc = cpu_alloc(sizeof(**desc));
	(*desc)->device = resources->internal[0];
	handle_add(KIND_RESOURCES, *desc);
	return CU_SUCCESS;
}

cu_result cuGreenCtxCreate(cu_green_ctx *green, cux_resource_desc desc, cu_device device, unsigned flags)
{
	API(cuGreenCtxCreate, NEED_INIT);
	if (!green || !handle_is(KIND_RESOURCES, desc) || flags != 1)
		return CU_INVALID_VALUE;
	if (!cpu_device_ok(device) || desc->device != device)
		return CUX_INVALID_DEVICE;
	*green = cpu_alloc(sizeof(**green));
	(*green)->ctx = context_new(device, 0);
	(*green)->ctx->green = *green;
	handle_add(KIND_GREEN, *green);
	return CU_SUCCESS;
}

cu_result cuGreenCtxDestroy(cu_green_ctx green)
{
	API(cuGreenCtxDestroy, NEED_INIT);
	if (!handle_is(KIND_GREEN, green))
		return green ? CUX_INVALID_HANDLE : CUX_INVALID_CONTEXT;
	handle_remove(green);
	context_end(green->ctx);
	free(green);
	return CU_SUCCESS;
}

cu_result cuGreenCtxStreamCreate(cu_stream *stream, cu_green_ctx green, unsigned flags, int priority)
{
	API(cuGreenCtxStreamCreate, NEED_INIT);
	if (!stream || flags != CU_STREAM_NON_BLOCKING)
		return CU_INVALID_VALUE;
	if (!handle_is(KIND_GREEN, green))
		return CUX_INVALID_HANDLE;
	*stream = stream_new(green->ctx, flags, STREAM_CREATED);
	(*stream)->priority = priority;
	return CU_SUCCESS;
}

cu_result cuCtxFromGreenCtx(cu_context *ctx, cu_green_ctx green)
{
	API(cuCtxFromGreenCtx, NEED_INIT);
	if (!ctx)
		return CU_INVALID_VALUE;
	if (!handle_is(KIND_GREEN, green))
		return green ? CUX_INVALID_HANDLE : CUX_INVALID_CONTEXT;
	*ctx = green->ctx;
	return CU_SUCCESS;
}
