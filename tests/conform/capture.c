/* SPDX-License-Identifier: Apache-2.0
 *
 * capture.c: stream capture: beginning and ending it, what it records, what ends it.
 */
#include <stdio.h>

#include "conform.h"

static cu_stream s;
static cu_graph graph;

static void begin(int mode)
{
	NEED(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	NEED(cuStreamBeginCapture_v2, s, mode);
}

/* Ends it and tells how large the graph is. */
static void end(const char *what)
{
	size_t nodes = 0, edges = 0;

	graph = NULL;
	if (!T(what, cuStreamEndCapture, s, &graph)) {
		NEED(cuGraphGetNodes, graph, NULL, &nodes);
		NEED(cuGraphGetEdges, graph, NULL, NULL, &edges);
		see("nodes", (long long)nodes);
		see("edges", (long long)edges);
		NEED(cuGraphDestroy, graph);
	} else {
		see("null", graph == NULL);
	}
	NEED(cuStreamDestroy_v2, s);
}

static void end_elsewhere(void *what)
{
	cu_graph g = NULL;

	T(what, cuStreamEndCapture, s, &g);
}

static void ask(const char *what)
{
	int status = 9;
	uint64_t id = 0;
	cu_graph g = NULL;
	const cu_graph_node *deps = NULL;
	const struct cux_edge_data *edges = NULL;
	size_t n = 99;

	T(what, cuStreamIsCapturing, s, &status);
	see("status", status);
	status = 9;
	T(what, cuStreamGetCaptureInfo, s, &status, &id);
	see("status", status);
	see("id", id != 0);
	status = 9;
	T(what, cuStreamGetCaptureInfo_v2, s, &status, &id, &g, &deps, &n);
	see("status", status);
	see("graph", g != NULL);
	if (status == CU_CAPTURE_ACTIVE)
		see("dependencies", (long long)n);
	status = 9;
	T(what, cuStreamGetCaptureInfo_v3, s, &status, &id, &g, &deps, &edges, &n);
	see("status", status);
	if (status == CU_CAPTURE_ACTIVE)
		see("edges", edges != NULL);
}

static void in_mode(int mode, const char *name)
{
	char what[64];

	begin(mode);
	snprintf(what, sizeof(what), "%s: empty", name);
	ask(what);
	snprintf(what, sizeof(what), "capturing, %s", name);
	T(what, cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, s, ((void *[]) { &memory, &(uint32_t) { 7 } }), NULL);
	T(what, cuMemsetD8Async, memory, 1, 8, s);
	T(what, cuMemcpyDtoDAsync_v2, memory + 64, memory, 8, s);
	snprintf(what, sizeof(what), "%s: three nodes", name);
	ask(what);
	snprintf(what, sizeof(what), "elsewhere, %s", name);
	in_thread(end_elsewhere, what);
	snprintf(what, sizeof(what), "after elsewhere, %s", name);
	end(what);
}

/* What ends a capture that is made on its own stream. */
static void broken_by(cu_graph_exec exec)
{
	begin(CU_MODE_RELAXED);
	T("capturing", cuStreamSynchronize, s);
	ask("broken");
	T("broken", cuStreamQuery, s);
	T("broken", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, s, ((void *[]) { &memory, &(uint32_t) { 7 } }), NULL);
	T("broken", cuMemsetD8Async, memory, 1, 8, s);
	end("after cuStreamSynchronize");
	begin(CU_MODE_RELAXED);
	T("capturing", cuStreamQuery, s);
	end("after cuStreamQuery");
	begin(CU_MODE_RELAXED);
	T("capturing", cuGraphLaunch, exec, s);
	end("after cuGraphLaunch");
	begin(CU_MODE_RELAXED);
	T("capturing", cuGraphUpload, exec, s);
	end("after cuGraphUpload");
	begin(CU_MODE_RELAXED);
	T("capturing, bad launch", cuLaunchKernel, store, 0, 1, 1, 1, 1, 1, 0, s,
	  ((void *[]) { &memory, &(uint32_t) { 7 } }), NULL);
	end("after a bad launch");
	begin(CU_MODE_RELAXED);
	T("capturing, bad address", cuMemsetD8Async, 0, 1, 8, s);
	end("after a bad memset");
}

static void to_graph(void)
{
	const struct cux_edge_data plain = { 0 };
	cu_graph mine = NULL, got = NULL;
	cu_graph_node node = NULL;
	size_t n = 0;

	NEED(cuGraphCreate, &mine, 0);
	NEED(cuGraphAddEmptyNode, &node, mine, NULL, 0);
	NEED(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	T("no graph", cuStreamBeginCaptureToGraph, s, NULL, NULL, NULL, 0, CU_MODE_GLOBAL);
	T("", cuStreamBeginCaptureToGraph, s, mine, &node, NULL, 1, CU_MODE_GLOBAL);
	T("the graph of a capture", cuGraphDestroyNode, node);
	NEED(cuMemsetD8Async, memory, 1, 8, s);
	T("to a graph", cuStreamEndCapture, s, &got);
	see("the same graph", got == mine);
	NEED(cuGraphGetNodes, mine, NULL, &n);
	see("nodes", (long long)n);
	NEED(cuGraphGetEdges, mine, NULL, NULL, &n);
	see("edges", (long long)n);
	T("", cuStreamBeginCaptureToGraph_ptsz, s, mine, &node, &plain, 1, CU_MODE_RELAXED);
	NEED(cuMemsetD8Async, memory, 1, 8, s);
	T("to a graph, per thread form", cuStreamEndCapture_ptsz, s, &got);
	NEED(cuGraphGetEdges, mine, NULL, NULL, &n);
	see("edges", (long long)n);
	NEED(cuGraphDestroy, mine);
	NEED(cuStreamDestroy_v2, s);
}

void group_capture(void)
{
	cu_graph empty = NULL;
	cu_graph_exec exec = NULL;

	device_open();
	NEED(cuGraphCreate, &empty, 0);
	NEED(cuGraphInstantiateWithFlags, &exec, empty, 0);
	T("legacy", cuStreamBeginCapture_v2, NULL, CU_MODE_GLOBAL);
	T("handle 1", cuStreamBeginCapture_v2, CU_LEGACY, CU_MODE_GLOBAL);
	T("mode 3", cuStreamBeginCapture_v2, stream, 3);
	T("mode -1", cuStreamBeginCapture_v2, stream, -1);
	T("not capturing", cuStreamEndCapture, stream, &graph);
	T("not capturing", cuStreamGetCaptureInfo, stream, NULL, NULL);
	in_mode(CU_MODE_GLOBAL, "global");
	in_mode(CU_MODE_THREAD_LOCAL, "thread-local");
	begin(CU_MODE_RELAXED);
	T("twice", cuStreamBeginCapture_v2, s, CU_MODE_RELAXED);
	T("no place", cuStreamEndCapture, s, NULL);
	end("after no place");
	begin(CU_MODE_RELAXED);
	in_thread(end_elsewhere, "elsewhere, relaxed");
	NEED(cuStreamDestroy_v2, s);
	NEED(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	T("first form", cuStreamBeginCapture, s);
	end("of the first form");
	NEED(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	T("", cuStreamBeginCapture_ptsz, s);
	T("per thread, first form", cuStreamEndCapture_ptsz, s, &graph);
	T("", cuStreamBeginCapture_v2_ptsz, s, CU_MODE_GLOBAL);
	T("per thread form", cuStreamEndCapture_ptsz, s, &graph);
	NEED(cuStreamDestroy_v2, s);
	T("the per-thread stream", cuStreamBeginCapture_v2, CU_PER_THREAD, CU_MODE_THREAD_LOCAL);
	T("the per-thread stream", cuStreamEndCapture, CU_PER_THREAD, &graph);
	broken_by(exec);
	to_graph();
	begin(CU_MODE_GLOBAL);
	T("capturing", cuStreamDestroy_v2, s);
	T("after all", cuCtxSynchronize, );
}

void group_fork_join(void)
{
	cu_event forked = NULL, joined = NULL, outside = NULL;
	cu_stream side = NULL;

	device_open();
	NEED(cuEventCreate, &forked, 0);
	NEED(cuEventCreate, &joined, 0);
	NEED(cuEventCreate, &outside, 0);
	NEED(cuStreamCreate, &side, CU_STREAM_NON_BLOCKING);
	NEED(cuEventRecord, outside, stream);
	begin(CU_MODE_RELAXED);
	T("in a capture", cuEventRecord, forked, s);
	T("forked", cuStreamWaitEvent, side, forked, 0);
	T("on the side", cuMemsetD8Async, memory, 1, 8, side);
	T("of a capture", cuEventQuery, forked);
	ask("after a query of its event");
	T("of a capture", cuEventSynchronize, forked);
	end("unjoined");
	begin(CU_MODE_RELAXED);
	NEED(cuEventRecord, forked, s);
	NEED(cuStreamWaitEvent, side, forked, 0);
	NEED(cuMemsetD8Async, memory, 1, 8, side);
	end("unjoined, nothing else");
	begin(CU_MODE_RELAXED);
	NEED(cuEventRecord, forked, s);
	NEED(cuStreamWaitEvent, side, forked, 0);
	T("of the side", cuStreamEndCapture, side, &graph);
	end("after the side");
	begin(CU_MODE_RELAXED);
	NEED(cuMemsetD8Async, memory, 1, 8, s);
	NEED(cuEventRecord, forked, s);
	NEED(cuStreamWaitEvent, side, forked, 0);
	NEED(cuMemsetD8Async, memory, 1, 8, side);
	NEED(cuEventRecord, joined, side);
	NEED(cuMemsetD8Async, memory, 1, 8, s);
	T("joined", cuStreamWaitEvent, s, joined, 0);
	NEED(cuMemsetD8Async, memory, 1, 8, s);
	end("joined");
	begin(CU_MODE_RELAXED);
	T("recorded outside", cuStreamWaitEvent, s, outside, 0);
	end("after an event from outside");
	begin(CU_MODE_RELAXED);
	T("external", cuEventRecordWithFlags, outside, s, CUX_EVENT_EXTERNAL);
	T("external", cuStreamWaitEvent, s, outside, 1);
	end("with external events");
	T("after its capture", cuEventQuery, forked);
	T("after its capture", cuStreamWaitEvent, side, forked, 0);
	T("after all", cuCtxSynchronize, );
}

/* Allocations on a capturing stream are nodes. */
void group_capture_memory(void)
{
	cu_deviceptr ptr = 0;
	cu_graph g = NULL, clone = NULL;
	cu_graph_node nodes[8] = { NULL };
	cu_graph_exec exec = NULL, second = NULL;
	size_t n = 8;

	device_open();
	begin(CU_MODE_GLOBAL);
	T("capturing", cuMemAllocAsync, &ptr, 64, s);
	see("address", ptr != 0);
	NEED(cuMemsetD8Async, ptr, 1, 64, s);
	NEED(cuMemcpyDtoDAsync_v2, memory, ptr, 4, s);
	T("capturing", cuMemFreeAsync, ptr, s);
	NEED(cuStreamEndCapture, s, &g);
	NEED(cuGraphGetNodes, g, nodes, &n);
	for (size_t i = 0; i < n; i++) {
		int type = -1;
		char what[64];

		snprintf(what, sizeof(what), "with memory, node %zu", i);
		T(what, cuGraphNodeGetType, nodes[i], &type);
		see("type", type);
	}
	T("with memory", cuGraphClone, &clone, g);
	T("with memory", cuGraphInstantiateWithFlags, &exec, g, 0);
	T("with memory, second", cuGraphInstantiateWithFlags, &second, g, 0);
	T("with memory", cuGraphLaunch, exec, stream);
	see("copied", peek(memory));
	T("with memory, again", cuGraphLaunch, exec, stream);
	T("with memory", cuStreamSynchronize, stream);
	T("with memory", cuGraphExecDestroy, exec);
	T("with memory", cuGraphDestroy, g);
	NEED(cuStreamDestroy_v2, s);
	begin(CU_MODE_GLOBAL);
	T("capturing, never freed", cuMemAllocAsync, &ptr, 64, s);
	NEED(cuStreamEndCapture, s, &g);
	T("allocating only", cuGraphInstantiateWithFlags, &exec, g, 0);
	T("allocating only", cuGraphLaunch, exec, stream);
	T("allocating only, again", cuGraphLaunch, exec, stream);
	T("of a graph", cuMemFreeAsync, ptr, stream);
	T("allocating only, after the free", cuGraphLaunch, exec, stream);
	T("of a graph", cuMemFree_v2, ptr);
	T("after all", cuCtxSynchronize, );
}
