/* SPDX-License-Identifier: Apache-2.0
 *
 * copy.c: the copy and memset calls.
 *
 * As on the real driver: the bytes of a pageable source are taken when the call is made; a copy to pageable memory has
 * arrived when the call returns; only pinned memory is read and written later.
 */
#include <stdlib.h>
#include <string.h>

#include "cpudriver.h"

enum side_kind { SIDE_HOST, SIDE_DEVICE, SIDE_ANY };

struct copy {
	uint64_t dst, src;
	size_t bytes;
	enum side_kind to, from;
	bool async;
};

static bool pageable(uint64_t address)
{
	return !memory_find(address);
}

static unsigned memory_type(enum side_kind kind, uint64_t address)
{
	if (kind == SIDE_ANY)
		return pageable(address) ? CUX_MEMORY_HOST : CUX_MEMORY_DEVICE;
	return kind == SIDE_HOST ? CUX_MEMORY_HOST : CUX_MEMORY_DEVICE;
}

static struct work *make_copy(cu_stream stream, const struct copy *copy)
{
	struct cu_memcpy_params p = { .width = copy->bytes, .height = 1, .depth = 1 };
	bool stage = !stream->capture && copy->from != SIDE_DEVICE && pageable(copy->src);
	struct work *work;

	p.src_type = memory_type(copy->from, copy->src);
	p.dst_type = memory_type(copy->to, copy->dst);
	if (p.src_type == CUX_MEMORY_HOST)
		p.src_host = (const void *)(uintptr_t)copy->src;
	else
		p.src_device = copy->src;
	if (p.dst_type == CUX_MEMORY_HOST)
		p.dst_host = (void *)(uintptr_t)copy->dst;
	else
		p.dst_device = copy->dst;
	work = work_new(WORK_MEMCPY, stream->ctx, stage ? copy->bytes : 0);
	work->memcpy.params = p;
	if (stage) {
		work->memcpy.staged = work->data;
		memcpy(work->data, (const void *)(uintptr_t)copy->src, copy->bytes);
	}
	return work;
}

/* A call that waits for itself cannot be captured. */
static cu_result not_while_capturing(cu_stream stream)
{
	cu_result result;

	if (!stream->capture)
		return CU_SUCCESS;
	result = stream->capture->broken ? CU_CAPTURE_INVALIDATED : CU_CAPTURE_UNSUPPORTED;
	capture_break(stream->capture);
	return result;
}

static cu_result finish(cu_stream stream, struct work *work, bool wait)
{
	cu_context ctx = stream->ctx;
	uint64_t sequence;
	cu_result result = submit(stream, work, &sequence);

	if (result || !wait || !sequence)
		return result;
	stream_wait(stream, sequence);
	return ctx->sticky;
}

static cu_result copy(cu_stream handle, bool per_thread, struct copy c)
{
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (!result && !c.async)
		result = not_while_capturing(stream);
	if (result)
		return result;
	if (!c.bytes)
		return CU_SUCCESS;
	if (!c.dst || !c.src || (c.to == SIDE_DEVICE && pageable(c.dst)) ||
	    (c.from == SIDE_DEVICE && pageable(c.src))) {
		cpu_say("copy of %zu bytes from %#llx to %#llx: no such device memory", c.bytes,
			(unsigned long long)c.src, (unsigned long long)c.dst);
		return CU_INVALID_VALUE;
	}
	return finish(stream, make_copy(stream, &c), !c.async || (c.to != SIDE_DEVICE && pageable(c.dst)));
}

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))

/* symbol, whether it is the per-thread form, types and kinds of both ends */
#define COPY_SYNC_ONE(symbol, per_thread, to_type, to_kind, from_type, from_kind)                                      \
	cu_result symbol(to_type dst, from_type src, size_t bytes)                                                     \
	{                                                                                                              \
		API(symbol, NEED_CONTEXT);                                                                             \
		return copy(NULL, per_thread,                                                                          \
			    (struct copy) { ADDRESS(dst), ADDRESS(src), bytes, to_kind, from_kind, false });           \
	}
#define COPY_ASYNC_ONE(symbol, per_thread, to_type, to_kind, from_type, from_kind)                                     \
	cu_result symbol(to_type dst, from_type src, size_t bytes, cu_stream stream)                                   \
	{                                                                                                              \
		API(symbol, NEED_CONTEXT);                                                                             \
		return copy(stream, per_thread,                                                                        \
			    (struct copy) { ADDRESS(dst), ADDRESS(src), bytes, to_kind, from_kind, true });            \
	}
#define COPY_SYNC(symbol, to_type, to_kind, from_type, from_kind)                                                      \
	COPY_SYNC_ONE(symbol, false, to_type, to_kind, from_type, from_kind)                                           \
	COPY_SYNC_ONE(symbol##_ptds, true, to_type, to_kind, from_type, from_kind)
#define COPY_ASYNC(symbol, to_type, to_kind, from_type, from_kind)                                                     \
	COPY_ASYNC_ONE(symbol, false, to_type, to_kind, from_type, from_kind)                                          \
	COPY_ASYNC_ONE(symbol##_ptsz, true, to_type, to_kind, from_type, from_kind)

COPY_SYNC(cuMemcpy, cu_deviceptr, SIDE_ANY, cu_deviceptr, SIDE_ANY)
COPY_SYNC(cuMemcpyHtoD_v2, cu_deviceptr, SIDE_DEVICE, const void *, SIDE_HOST)
COPY_SYNC(cuMemcpyDtoH_v2, void *, SIDE_HOST, cu_deviceptr, SIDE_DEVICE)
COPY_SYNC(cuMemcpyDtoD_v2, cu_deviceptr, SIDE_DEVICE, cu_deviceptr, SIDE_DEVICE)
COPY_ASYNC(cuMemcpyAsync, cu_deviceptr, SIDE_ANY, cu_deviceptr, SIDE_ANY)
COPY_ASYNC(cuMemcpyHtoDAsync_v2, cu_deviceptr, SIDE_DEVICE, const void *, SIDE_HOST)
COPY_ASYNC(cuMemcpyDtoHAsync_v2, void *, SIDE_HOST, cu_deviceptr, SIDE_DEVICE)
COPY_ASYNC(cuMemcpyDtoDAsync_v2, cu_deviceptr, SIDE_DEVICE, cu_deviceptr, SIDE_DEVICE)

static cu_result set(cu_stream handle, bool per_thread, struct cu_memset_params params, bool async)
{
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (!result && !async)
		result = not_while_capturing(stream);
	if (result)
		return result;
	if (params.dst % params.element_bytes)
		return CU_INVALID_VALUE;
	if (!params.width)
		return CU_SUCCESS;
	return finish(stream, work_memset(stream->ctx, &params), false);
}

#define SET_SYNC_ONE(symbol, per_thread, type)                                                                         \
	cu_result symbol(cu_deviceptr dst, type value, size_t n)                                                       \
	{                                                                                                              \
		API(symbol, NEED_CONTEXT);                                                                             \
		return set(NULL, per_thread,                                                                           \
			   (struct cu_memset_params) { dst, 0, (unsigned)value, sizeof(type), n, 1 }, false);          \
	}
#define SET_ASYNC_ONE(symbol, per_thread, type)                                                                        \
	cu_result symbol(cu_deviceptr dst, type value, size_t n, cu_stream stream)                                     \
	{                                                                                                              \
		API(symbol, NEED_CONTEXT);                                                                             \
		return set(stream, per_thread,                                                                         \
			   (struct cu_memset_params) { dst, 0, (unsigned)value, sizeof(type), n, 1 }, true);           \
	}
#define SET(bits, type)                                                                                                \
	SET_SYNC_ONE(cuMemsetD##bits##_v2, false, type)                                                                \
	SET_SYNC_ONE(cuMemsetD##bits##_v2_ptds, true, type)                                                            \
	SET_ASYNC_ONE(cuMemsetD##bits##Async, false, type)                                                             \
	SET_ASYNC_ONE(cuMemsetD##bits##Async_ptsz, true, type)

SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned)
