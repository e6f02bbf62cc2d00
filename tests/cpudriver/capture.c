/* SPDX-License-Identifier: Apache-2.0
 *
 * capture.c: stream capture: which calls it forbids, whom that hurts, and how recorded work becomes nodes.
 *
 * Where the real driver was measured (docs: the capture matrix in tests/unit/cpudriver/test_matrix.c), this follows the
 * measurement: a forbidden call is answered 900 and invalidates the captures that forbid it; the thread's interaction
 * mode excuses it from captures of other threads (THREAD_LOCAL) or from all (RELAXED); nothing excuses touching the
 * legacy stream while a blocking stream captures, nor cuCtxSynchronize.
 */
#include <stdlib.h>
#include <string.h>

#include "cpudriver.h"

static struct capture *captures;
static __thread int thread_mode = CU_MODE_GLOBAL;

/* ---- sets of nodes ---- */

void node_set_clear(struct node_set *set)
{
	free(set->node);
	*set = (struct node_set) { 0 };
}

void node_set_copy(struct node_set *to, const struct node_set *from)
{
	struct node_set copy = { .n = from->n };

	if (from->n) {
		copy.node = cpu_alloc(from->n * sizeof(*copy.node));
		memcpy(copy.node, from->node, from->n * sizeof(*copy.node));
	}
	node_set_clear(to);
	*to = copy;
}

static void node_set_add(struct node_set *set, cu_graph_node node)
{
	struct node_set more = { .n = set->n + 1 };

	for (size_t i = 0; i < set->n; i++)
		if (set->node[i] == node)
			return;
	more.node = cpu_alloc(more.n * sizeof(*more.node));
	if (set->n)
		memcpy(more.node, set->node, set->n * sizeof(*more.node));
	more.node[set->n] = node;
	node_set_clear(set);
	*set = more;
}

static bool edges_given(const struct cux_edge_data *edges, size_t n)
{
	static const struct cux_edge_data plain;

	for (size_t i = 0; edges && i < n; i++)
		if (memcmp(&edges[i], &plain, sizeof(plain)))
			return true;
	return false;
}

/* ---- who forbids what ---- */

void capture_break(struct capture *capture)
{
	capture->broken = true;
}

struct capture *capture_find(uint64_t id)
{
	for (struct capture *capture = captures; capture; capture = capture->next)
		if (capture->id == id)
			return capture;
	return NULL;
}

bool capture_owns(cu_graph graph)
{
	for (struct capture *capture = captures; capture; capture = capture->next)
		if (capture->graph == graph)
			return true;
	return false;
}

cu_result capture_unsafe(void)
{
	cu_result result = CU_SUCCESS;

	if (thread_mode == CU_MODE_RELAXED)
		return CU_SUCCESS;
	for (struct capture *capture = captures; capture; capture = capture->next) {
		bool own = capture->thread == cpu_thread();

		if (capture->mode == CU_MODE_RELAXED)
			continue;
		if (own || (capture->mode == CU_MODE_GLOBAL && thread_mode != CU_MODE_THREAD_LOCAL)) {
			capture_break(capture);
			result = CU_CAPTURE_UNSUPPORTED;
		}
	}
	return result;
}

static bool captures_blocking(const struct capture *capture, cu_context ctx)
{
	for (cu_stream stream = ctx->streams; stream; stream = stream->next)
		if (stream->capture == capture && stream->blocking)
			return true;
	return false;
}

cu_result capture_implicit(cu_context ctx, bool invalidate)
{
	cu_result result = CU_SUCCESS;

	for (struct capture *capture = captures; capture; capture = capture->next) {
		if (!captures_blocking(capture, ctx))
			continue;
		if (invalidate)
			capture_break(capture);
		result = CU_CAPTURE_IMPLICIT;
	}
	return result;
}

cu_result capture_forbids_all(cu_context ctx)
{
	cu_result result = CU_SUCCESS;

	for (cu_stream stream = ctx->streams; stream; stream = stream->next) {
		if (stream->capture) {
			capture_break(stream->capture);
			result = CU_CAPTURE_UNSUPPORTED;
		}
	}
	return result;
}

cu_result capture_forbids_waiting(cu_stream stream)
{
	cu_result result = CU_SUCCESS;

	if (stream->capture) {
		result = CU_CAPTURE_UNSUPPORTED;
		capture_break(stream->capture);
	} else if (stream->role == STREAM_LEGACY) {
		result = capture_implicit(stream->ctx, true);
	}
	return result ? result : capture_unsafe();
}

/* Takes any number; what is no mode forbids as GLOBAL does. */
cu_result cuThreadExchangeStreamCaptureMode(int *mode)
{
	int old = thread_mode;

	API(cuThreadExchangeStreamCaptureMode, NEED_INIT);
	if (!mode)
		return CU_INVALID_VALUE;
	thread_mode = *mode;
	*mode = old;
	return CU_SUCCESS;
}

/* ---- recording ---- */

/* A launch with programmatic serialization, behind kernels alone, is bound to them by programmatic edges. */
static struct cux_edge_data *programmatic_edges(cu_stream stream, const struct work *work)
{
	struct cux_edge_data *edges;

	if (work->kind != WORK_KERNEL || !work->kernel.programmatic || !stream->captured.n)
		return NULL;
	for (size_t i = 0; i < stream->captured.n; i++)
		if (stream->captured.node[i]->type != CU_NODE_KERNEL)
			return NULL;
	edges = cpu_alloc(stream->captured.n * sizeof(*edges));
	for (size_t i = 0; i < stream->captured.n; i++)
		edges[i] = (struct cux_edge_data) { .from_port = 1, .type = 1 };
	return edges;
}

cu_result capture_record(cu_stream stream, struct work *work)
{
	struct cux_edge_data *edges;
	cu_graph_node node;
	cu_result result;

	if (stream->capture->broken) {
		work_put(work);
		return CU_CAPTURE_INVALIDATED;
	}
	if (work->kind == WORK_PLAN) {
		/* the real driver refuses a graph launch here, and the capture is lost */
		work_put(work);
		capture_break(stream->capture);
		return CU_CAPTURE_UNSUPPORTED;
	}
	edges = programmatic_edges(stream, work);
	result = graph_add(stream->capture->graph, stream->captured.node, edges, stream->captured.n,
			   work_node_type(work), work, &node);
	free(edges);
	if (result)
		return result;
	node_set_clear(&stream->captured);
	node_set_add(&stream->captured, node);
	return CU_SUCCESS;
}

cu_result capture_event(cu_event event, cu_stream stream)
{
	if (stream->capture->broken)
		return CU_CAPTURE_INVALIDATED;
	event->capture = stream->capture->id;
	node_set_copy(&event->captured, &stream->captured);
	return CU_SUCCESS;
}

/* A capturing stream waits, or a stream waits for what is being captured and so joins the capture. */
cu_result capture_wait(cu_stream stream, cu_event event)
{
	struct capture *mine = stream->capture, *its = event->capture ? capture_find(event->capture) : NULL;

	if ((mine && mine->broken) || (its && its->broken))
		return CU_CAPTURE_INVALIDATED;
	if (!its && event->capture)
		return CU_INVALID_VALUE; /* that capture is over */
	if (!its && !event->stream)
		return CU_SUCCESS;
	if (!its) {
		capture_break(mine);
		return CUX_CAPTURE_ISOLATION;
	}
	if (mine && mine != its) {
		capture_break(mine);
		capture_break(its);
		return CUX_CAPTURE_MERGE;
	}
	if (!mine && stream->role == STREAM_LEGACY) {
		capture_break(its);
		return CU_CAPTURE_IMPLICIT;
	}
	stream->capture = its;
	for (size_t i = 0; i < event->captured.n; i++)
		node_set_add(&stream->captured, event->captured.node[i]);
	return CU_SUCCESS;
}

/* ---- beginning and ending ---- */

static cu_result begin(cu_stream handle, bool per_thread, int mode, cu_graph graph, const struct node_set *deps)
{
	struct capture *capture;
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (result)
		return result;
	if (mode < CU_MODE_GLOBAL || mode > CU_MODE_RELAXED)
		return CU_INVALID_VALUE;
	if (stream->role == STREAM_LEGACY)
		return CU_CAPTURE_UNSUPPORTED;
	if (stream->capture)
		return CUX_ILLEGAL_STATE;
	capture = cpu_alloc(sizeof(*capture));
	capture->id = cpu_next_id();
	capture->thread = cpu_thread();
	capture->mode = mode;
	capture->ctx = stream->ctx;
	capture->origin = stream;
	capture->to_graph = graph != NULL;
	capture->graph = graph ? graph : graph_new();
	capture->next = captures;
	captures = capture;
	stream->capture = capture;
	if (deps)
		node_set_copy(&stream->captured, deps);
	return CU_SUCCESS;
}

cu_result cuStreamBeginCapture(cu_stream stream)
{
	API(cuStreamBeginCapture, NEED_CONTEXT);
	return begin(stream, false, CU_MODE_GLOBAL, NULL, NULL);
}

cu_result cuStreamBeginCapture_ptsz(cu_stream stream)
{
	API(cuStreamBeginCapture_ptsz, NEED_CONTEXT);
	return begin(stream, true, CU_MODE_GLOBAL, NULL, NULL);
}

cu_result cuStreamBeginCapture_v2(cu_stream stream, int mode)
{
	API(cuStreamBeginCapture_v2, NEED_CONTEXT);
	return begin(stream, false, mode, NULL, NULL);
}

cu_result cuStreamBeginCapture_v2_ptsz(cu_stream stream, int mode)
{
	API(cuStreamBeginCapture_v2_ptsz, NEED_CONTEXT);
	return begin(stream, true, mode, NULL, NULL);
}

static cu_result begin_to_graph(cu_stream stream, bool per_thread, cu_graph graph, const cu_graph_node *deps, size_t n,
				int mode)
{
	struct node_set set = { .node = (cu_graph_node *)deps, .n = n };

	if (!handle_is(KIND_GRAPH, graph) || (n && !deps))
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if (!handle_is(KIND_NODE, deps[i]) || deps[i]->graph != graph)
			return CU_INVALID_VALUE;
	return begin(stream, per_thread, mode, graph, &set);
}

cu_result cuStreamBeginCaptureToGraph(cu_stream stream, cu_graph graph, const cu_graph_node *deps,
				      const struct cux_edge_data *edges, size_t n, int mode)
{
	API(cuStreamBeginCaptureToGraph, NEED_CONTEXT);
	return edges_given(edges, n) ? cpu_lacks("edge data for the dependencies of a capture")
				     : begin_to_graph(stream, false, graph, deps, n, mode);
}

cu_result cuStreamBeginCaptureToGraph_ptsz(cu_stream stream, cu_graph graph, const cu_graph_node *deps,
					   const struct cux_edge_data *edges, size_t n, int mode)
{
	API(cuStreamBeginCaptureToGraph_ptsz, NEED_CONTEXT);
	return edges_given(edges, n) ? cpu_lacks("edge data for the dependencies of a capture")
				     : begin_to_graph(stream, true, graph, deps, n, mode);
}

static void leave(struct capture *capture)
{
	struct capture **link = &captures;

	for (cu_context ctx = context_first(); ctx; ctx = ctx->next) {
		for (cu_stream stream = ctx->streams; stream; stream = stream->next) {
			if (stream->capture != capture)
				continue;
			stream->capture = NULL;
			node_set_clear(&stream->captured);
		}
	}
	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	free(capture);
}

/* Every stream that joined must have been joined back: what it recorded last lies before the origin's end. */
static bool all_joined(const struct capture *capture)
{
	for (cu_context ctx = context_first(); ctx; ctx = ctx->next)
		for (cu_stream stream = ctx->streams; stream; stream = stream->next) {
			if (stream->capture != capture || stream == capture->origin)
				continue;
			for (size_t i = 0; i < stream->captured.n; i++)
				if (!graph_reaches(stream->captured.node[i], &capture->origin->captured))
					return false;
		}
	return true;
}

static cu_result outcome(const struct capture *capture)
{
	if (capture->mode != CU_MODE_RELAXED && capture->thread != cpu_thread())
		return CUX_CAPTURE_WRONG_THREAD;
	if (capture->broken)
		return CU_CAPTURE_INVALIDATED;
	return all_joined(capture) ? CU_SUCCESS : CUX_CAPTURE_UNJOINED;
}

/* On its own stream the capture ends whatever the answer, even where the wrong thread asks or nobody wants the graph. */
static cu_result end(cu_stream handle, bool per_thread, cu_graph *graph)
{
	struct capture *capture;
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (result)
		return result;
	capture = stream->capture;
	if (!capture)
		return CUX_ILLEGAL_STATE;
	if (capture->origin != stream) {
		capture_break(capture);
		return CUX_CAPTURE_UNMATCHED;
	}
	result = outcome(capture);
	if (graph)
		*graph = result ? NULL : capture->graph;
	if ((result || !graph) && !capture->to_graph)
		graph_free(capture->graph);
	leave(capture);
	return result;
}

cu_result cuStreamEndCapture(cu_stream stream, cu_graph *graph)
{
	API(cuStreamEndCapture, NEED_CONTEXT);
	return end(stream, false, graph);
}

cu_result cuStreamEndCapture_ptsz(cu_stream stream, cu_graph *graph)
{
	API(cuStreamEndCapture_ptsz, NEED_CONTEXT);
	return end(stream, true, graph);
}

void capture_abandon(cu_stream stream)
{
	struct capture *capture = stream->capture;

	capture_break(capture);
	stream->capture = NULL;
	node_set_clear(&stream->captured);
	if (capture->origin != stream)
		return;
	if (!capture->to_graph)
		graph_free(capture->graph);
	leave(capture);
}

static cu_result update_dependencies(cu_stream handle, bool per_thread, cu_graph_node *deps, size_t n, unsigned flags)
{
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (result)
		return result;
	if (!stream->capture)
		return CUX_ILLEGAL_STATE;
	if (stream->capture->broken)
		return CU_CAPTURE_INVALIDATED;
	if (flags > CUX_CAPTURE_DEPENDENCIES_SET || (n && !deps))
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if (!handle_is(KIND_NODE, deps[i]) || deps[i]->graph != stream->capture->graph)
			return CU_INVALID_VALUE;
	if (flags == CUX_CAPTURE_DEPENDENCIES_SET)
		node_set_clear(&stream->captured);
	for (size_t i = 0; i < n; i++)
		node_set_add(&stream->captured, deps[i]);
	return CU_SUCCESS;
}

cu_result cuStreamUpdateCaptureDependencies(cu_stream stream, cu_graph_node *deps, size_t n, unsigned flags)
{
	API(cuStreamUpdateCaptureDependencies, NEED_CONTEXT);
	return update_dependencies(stream, false, deps, n, flags);
}

cu_result cuStreamUpdateCaptureDependencies_ptsz(cu_stream stream, cu_graph_node *deps, size_t n, unsigned flags)
{
	API(cuStreamUpdateCaptureDependencies_ptsz, NEED_CONTEXT);
	return update_dependencies(stream, true, deps, n, flags);
}

cu_result cuStreamUpdateCaptureDependencies_v2(cu_stream stream, cu_graph_node *deps, const struct cux_edge_data *edges,
					       size_t n, unsigned flags)
{
	API(cuStreamUpdateCaptureDependencies_v2, NEED_CONTEXT);
	return edges_given(edges, n) ? cpu_lacks("edge data for the dependencies of a capture")
				     : update_dependencies(stream, false, deps, n, flags);
}

cu_result cuStreamUpdateCaptureDependencies_v2_ptsz(cu_stream stream, cu_graph_node *deps,
						    const struct cux_edge_data *edges, size_t n, unsigned flags)
{
	API(cuStreamUpdateCaptureDependencies_v2_ptsz, NEED_CONTEXT);
	return edges_given(edges, n) ? cpu_lacks("edge data for the dependencies of a capture")
				     : update_dependencies(stream, true, deps, n, flags);
}
