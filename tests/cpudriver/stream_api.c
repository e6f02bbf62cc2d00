/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_api.c: the calls that make, end, wait for and ask about streams.
 */
#include <stdlib.h>

#include "cpudriver.h"

static cu_result create(cu_stream *stream, unsigned flags, int priority)
{
	if (!stream || flags > CU_STREAM_NON_BLOCKING)
		return CU_INVALID_VALUE;
	*stream = stream_new(context_current(), flags, STREAM_CREATED);
	(*stream)->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	return CU_SUCCESS;
}

cu_result cuStreamCreate(cu_stream *stream, unsigned flags)
{
	API(cuStreamCreate, NEED_CONTEXT);
	return create(stream, flags, 0);
}

cu_result cuStreamCreateWithPriority(cu_stream *stream, unsigned flags, int priority)
{
	API(cuStreamCreateWithPriority, NEED_CONTEXT);
	return create(stream, flags, priority);
}

static cu_result destroy(cu_stream stream)
{
	if (!handle_is(KIND_STREAM, stream))
		return CUX_INVALID_HANDLE;
	stream_end(stream);
	return CU_SUCCESS;
}

cu_result cuStreamDestroy(cu_stream stream)
{
	API(cuStreamDestroy, NEED_INIT);
	return destroy(stream);
}

cu_result cuStreamDestroy_v2(cu_stream stream)
{
	API(cuStreamDestroy_v2, NEED_INIT);
	return destroy(stream);
}

/* The legacy stream is not done before the blocking streams are: a marker on it waits for them. */
static uint64_t last_operation(cu_stream stream)
{
	if (stream->role == STREAM_LEGACY)
		return stream_enqueue(stream, work_new(WORK_EMPTY, stream->ctx, 0), NULL, 0);
	return stream->enqueued;
}

static cu_result synchronize(cu_stream handle, bool per_thread)
{
	cu_stream stream;
	cu_context ctx;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (!result)
		result = capture_forbids_waiting(stream);
	if (result)
		return result;
	ctx = stream->ctx;
	stream_wait(stream, last_operation(stream));
	return ctx->sticky;
}

cu_result cuStreamSynchronize(cu_stream stream)
{
	API(cuStreamSynchronize, NEED_CONTEXT);
	return synchronize(stream, false);
}

cu_result cuStreamSynchronize_ptsz(cu_stream stream)
{
	API(cuStreamSynchronize_ptsz, NEED_CONTEXT);
	return synchronize(stream, true);
}

static bool idle(cu_stream stream)
{
	if (stream->role == STREAM_LEGACY)
		for (cu_stream other = stream->ctx->streams; other; other = other->next)
			if (other->blocking && other->completed < other->enqueued)
				return false;
	return stream->completed == stream->enqueued;
}

static cu_result query(cu_stream handle, bool per_thread)
{
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (!result)
		result = capture_forbids_waiting(stream);
	if (!result)
		result = stream->ctx->sticky;
	if (result)
		return result;
	return idle(stream) ? CU_SUCCESS : CUX_NOT_READY;
}

cu_result cuStreamQuery(cu_stream stream)
{
	API(cuStreamQuery, NEED_CONTEXT);
	return query(stream, false);
}

cu_result cuStreamQuery_ptsz(cu_stream stream)
{
	API(cuStreamQuery_ptsz, NEED_CONTEXT);
	return query(stream, true);
}

/* Questions that the legacy stream cannot answer while a blocking stream captures; some do not even leave it alone. */
static cu_result ask_about(cu_stream handle, bool per_thread, cu_stream *stream, bool invalidates)
{
	cu_result result = stream_find(handle, per_thread, stream);

	if (!result && (*stream)->role == STREAM_LEGACY)
		result = capture_implicit((*stream)->ctx, invalidates);
	return result;
}

static cu_result ask(cu_stream handle, bool per_thread, cu_stream *stream)
{
	return ask_about(handle, per_thread, stream, false);
}

static cu_result get_ctx(cu_stream handle, bool per_thread, cu_context *ctx, cu_green_ctx *green)
{
	cu_stream stream;
	cu_result result = ask_about(handle, per_thread, &stream, true);

	if (result)
		return result;
	if (!ctx)
		return CU_INVALID_VALUE;
	*ctx = stream->ctx;
	/* the newer form answers with either the one or the other */
	if (green) {
		*green = stream->ctx->green;
		if (*green)
			*ctx = NULL;
	}
	return CU_SUCCESS;
}

cu_result cuStreamGetCtx(cu_stream stream, cu_context *ctx)
{
	API(cuStreamGetCtx, NEED_INIT);
	return get_ctx(stream, false, ctx, NULL);
}

cu_result cuStreamGetCtx_ptsz(cu_stream stream, cu_context *ctx)
{
	API(cuStreamGetCtx_ptsz, NEED_INIT);
	return get_ctx(stream, true, ctx, NULL);
}

cu_result cuStreamGetCtx_v2(cu_stream stream, cu_context *ctx, cu_green_ctx *green)
{
	API(cuStreamGetCtx_v2, NEED_INIT);
	return green ? get_ctx(stream, false, ctx, green) : CU_INVALID_VALUE;
}

cu_result cuStreamGetCtx_v2_ptsz(cu_stream stream, cu_context *ctx, cu_green_ctx *green)
{
	API(cuStreamGetCtx_v2_ptsz, NEED_INIT);
	return green ? get_ctx(stream, true, ctx, green) : CU_INVALID_VALUE;
}

cu_result cuStreamGetGreenCtx(cu_stream stream, cu_green_ctx *green)
{
	cu_context ctx;

	API(cuStreamGetGreenCtx, NEED_INIT);
	return green ? get_ctx(stream, false, &ctx, green) : CU_INVALID_VALUE;
}

/* One question each, in its legacy and its per-thread form. */
#define QUESTION(name, find, type, expression)                                                                         \
	static cu_result name##_any(cu_stream handle, bool per_thread, type *value)                                    \
	{                                                                                                              \
		cu_stream stream;                                                                                      \
		cu_result result = find(handle, per_thread, &stream);                                                  \
                                                                                                                       \
		if (result)                                                                                            \
			return result;                                                                                 \
		if (!value)                                                                                            \
			return CU_INVALID_VALUE;                                                                       \
		*value = expression;                                                                                   \
		return CU_SUCCESS;                                                                                     \
	}                                                                                                              \
	cu_result name(cu_stream stream, type *value)                                                                  \
	{                                                                                                              \
		API(name, NEED_INIT);                                                                                  \
		return name##_any(stream, false, value);                                                               \
	}                                                                                                              \
	cu_result name##_ptsz(cu_stream stream, type *value)                                                           \
	{                                                                                                              \
		API(name##_ptsz, NEED_INIT);                                                                           \
		return name##_any(stream, true, value);                                                                \
	}

QUESTION(cuStreamGetFlags, stream_find, unsigned, stream->flags)
QUESTION(cuStreamGetPriority, stream_find, int, stream->priority)
QUESTION(cuStreamGetId, stream_find, unsigned long long, stream->id)

static int capture_status(cu_stream stream)
{
	if (!stream->capture)
		return CU_CAPTURE_NONE;
	return stream->capture->broken ? CU_CAPTURE_BROKEN : CU_CAPTURE_ACTIVE;
}

QUESTION(cuStreamIsCapturing, ask, int, capture_status(stream))

/* What the dependencies are bound by; good until the stream records something. NULL where there are none. */
static const struct cux_edge_data *plain_edges(cu_stream stream)
{
	free(stream->edges);
	stream->edges = stream->captured.n ? cpu_alloc(stream->captured.n * sizeof(*stream->edges)) : NULL;
	return stream->edges;
}

struct capture_info {
	int *status;
	uint64_t *id;
	cu_graph *graph;
	const cu_graph_node **deps;
	const struct cux_edge_data **edges;
	size_t *n;
};

static cu_result capture_info(cu_stream handle, bool per_thread, struct capture_info out)
{
	cu_stream stream;
	cu_result result = ask(handle, per_thread, &stream);

	if (result)
		return result;
	if (!out.status)
		return CU_INVALID_VALUE;
	*out.status = capture_status(stream);
	if (*out.status != CU_CAPTURE_ACTIVE)
		return CU_SUCCESS;
	if (out.id)
		*out.id = stream->capture->id;
	if (out.graph)
		*out.graph = stream->capture->graph;
	if (out.deps)
		*out.deps = stream->captured.node;
	if (out.edges)
		*out.edges = plain_edges(stream);
	if (out.n)
		*out.n = stream->captured.n;
	return CU_SUCCESS;
}

cu_result cuStreamGetCaptureInfo(cu_stream stream, int *status, uint64_t *id)
{
	API(cuStreamGetCaptureInfo, NEED_INIT);
	return capture_info(stream, false, (struct capture_info) { .status = status, .id = id });
}

cu_result cuStreamGetCaptureInfo_ptsz(cu_stream stream, int *status, uint64_t *id)
{
	API(cuStreamGetCaptureInfo_ptsz, NEED_INIT);
	return capture_info(stream, true, (struct capture_info) { .status = status, .id = id });
}

cu_result cuStreamGetCaptureInfo_v2(cu_stream stream, int *status, uint64_t *id, cu_graph *graph,
				    const cu_graph_node **deps, size_t *n)
{
	API(cuStreamGetCaptureInfo_v2, NEED_INIT);
	return capture_info(stream, false, (struct capture_info) { status, id, graph, deps, NULL, n });
}

cu_result cuStreamGetCaptureInfo_v2_ptsz(cu_stream stream, int *status, uint64_t *id, cu_graph *graph,
					 const cu_graph_node **deps, size_t *n)
{
	API(cuStreamGetCaptureInfo_v2_ptsz, NEED_INIT);
	return capture_info(stream, true, (struct capture_info) { status, id, graph, deps, NULL, n });
}

cu_result cuStreamGetCaptureInfo_v3(cu_stream stream, int *status, uint64_t *id, cu_graph *graph,
				    const cu_graph_node **deps, const struct cux_edge_data **edges, size_t *n)
{
	API(cuStreamGetCaptureInfo_v3, NEED_INIT);
	return capture_info(stream, false, (struct capture_info) { status, id, graph, deps, edges, n });
}

cu_result cuStreamGetCaptureInfo_v3_ptsz(cu_stream stream, int *status, uint64_t *id, cu_graph *graph,
					 const cu_graph_node **deps, const struct cux_edge_data **edges, size_t *n)
{
	API(cuStreamGetCaptureInfo_v3_ptsz, NEED_INIT);
	return capture_info(stream, true, (struct capture_info) { status, id, graph, deps, edges, n });
}
