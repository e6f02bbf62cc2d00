/* SPDX-License-Identifier: Apache-2.0
 *
 * streams.c: launches, streams and events.
 */
#include "conform.h"

void group_launches(void)
{
	uint32_t value = 1;
	unsigned char bytes[24] = { 0 };
	uint8_t byte = 1;
	uint16_t two = 2;
	void *params[] = { &memory, &value }, *wide_params[] = { &byte, bytes, &two, &memory };
	unsigned char buffer[16] = { 0 };
	size_t size = 12;
	void *extra[] = { CU_EXTRA_BUFFER, buffer, CU_EXTRA_SIZE, &size, CU_EXTRA_END };

	device_open();
	T("", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
	see("stored", peek(memory));
	value = 2;
	T("legacy", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	see("stored", peek(memory));
	value = 3;
	T("per thread", cuLaunchKernel_ptsz, store, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	see("stored", peek(memory));
	value = 4;
	T("handle 1", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, CU_LEGACY, params, NULL);
	value = 5;
	T("handle 2", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, CU_PER_THREAD, params, NULL);
	see("stored", peek(memory));
	value = 1;
	T("6 threads", cuLaunchKernel, add, 2, 1, 1, 3, 1, 1, 0, stream, params, NULL);
	see("stored", peek(memory));
	*(cu_deviceptr *)buffer = memory;
	*(uint32_t *)(buffer + 8) = 77;
	T("extra", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra);
	see("stored", peek(memory));
	size = 16;
	T("extra too long", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra);
	size = 8;
	T("extra too short", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra);
	size = 12;
	T("params and extra", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 0, stream, params, extra);
	bytes[23] = 99;
	T("wide", cuLaunchKernel, wide, 1, 1, 1, 1, 1, 1, 0, stream, wide_params, NULL);
	see("stored", peek(memory));
	T("grid 0", cuLaunchKernel, store, 0, 1, 1, 1, 1, 1, 0, stream, params, NULL);
	T("block 0", cuLaunchKernel, store, 1, 1, 1, 0, 1, 1, 0, stream, params, NULL);
	T("grid.y too large", cuLaunchKernel, store, 1, 65536, 1, 1, 1, 1, 0, stream, params, NULL);
	T("block too large", cuLaunchKernel, store, 1, 1, 1, 1025, 1, 1, 0, stream, params, NULL);
	T("shared too large", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 1 << 20, stream, params, NULL);
	T("shared 64 KiB", cuLaunchKernel, store, 1, 1, 1, 1, 1, 1, 65536, stream, params, NULL);
	T("NULL", cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
	T("after all", cuCtxSynchronize, );
}

static struct cux_launch_attribute attribute(int id, int value)
{
	return (struct cux_launch_attribute) { .id = id, .value = { .number = value } };
}

/* The edge behind a launch with programmatic serialization tells of it. */
static void programmatic_in_capture(const struct cux_launch_config *config, void **params)
{
	cu_graph graph = NULL;
	cu_graph_node from[4], to[4];
	struct cux_edge_data data[4] = { { 0 } };
	size_t n = 4;

	NEED(cuStreamBeginCapture_v2, stream, CU_MODE_RELAXED);
	T("first in a capture", cuLaunchKernelEx, config, add, params, NULL);
	T("second in a capture", cuLaunchKernelEx, config, add, params, NULL);
	NEED(cuStreamEndCapture, stream, &graph);
	T("captured, programmatic", cuGraphGetEdges_v2, graph, from, to, data, &n);
	see("n", (long long)n);
	see("type", data[0].type);
	see("from port", data[0].from_port);
	see("to port", data[0].to_port);
	NEED(cuGraphDestroy, graph);
}

void group_attributes(void)
{
	uint32_t value = 1;
	void *params[] = { &memory, &value };
	struct cux_launch_attribute a[2];
	struct cux_launch_config config = { { 2, 1, 1 }, { 1, 1, 1 }, 0, NULL, NULL, 0 };

	device_open();
	config.stream = stream;
	T("", cuLaunchKernelEx, &config, add, params, NULL);
	see("stored", peek(memory));
	T("no config", cuLaunchKernelEx, NULL, add, params, NULL);
	config.n_attributes = 1;
	T("a count and no list", cuLaunchKernelEx, &config, add, params, NULL);
	config.attributes = a;
	a[0] = attribute(CUX_ATTR_IGNORE, 1);
	T("ignore", cuLaunchKernelEx, &config, add, params, NULL);
	a[0] = attribute(CUX_ATTR_COOPERATIVE, 1);
	T("cooperative", cuLaunchKernelEx, &config, add, params, NULL);
	a[0] = attribute(CUX_ATTR_PROGRAMMATIC, 1);
	T("programmatic", cuLaunchKernelEx, &config, add, params, NULL);
	a[0] = attribute(CUX_ATTR_PRIORITY, -2);
	T("priority", cuLaunchKernelEx, &config, add, params, NULL);
	a[0] = attribute(CUX_ATTR_DOMAIN, 0);
	T("memory domain", cuLaunchKernelEx, &config, add, params, NULL);
	a[0] = attribute(CUX_ATTR_CARVEOUT, 50);
	T("carve-out", cuLaunchKernelEx, &config, add, params, NULL);
	a[0] = (struct cux_launch_attribute) { .id = CUX_ATTR_CLUSTER, .value = { .cluster = { 2, 1, 1 } } };
	T("cluster", cuLaunchKernelEx, &config, add, params, NULL);
	a[0].value.cluster[0] = 3;
	T("cluster that does not divide the grid", cuLaunchKernelEx, &config, add, params, NULL);
	a[0].value.cluster[0] = 0;
	T("cluster 0", cuLaunchKernelEx, &config, add, params, NULL);
	a[0] = attribute(99, 1);
	T("no such attribute", cuLaunchKernelEx, &config, add, params, NULL);
	a[0] = attribute(CUX_ATTR_PRIORITY, 0);
	a[1] = attribute(CUX_ATTR_PROGRAMMATIC, 1);
	config.n_attributes = 2;
	T("two", cuLaunchKernelEx, &config, add, params, NULL);
	programmatic_in_capture(&config, params);
	config.stream = NULL;
	T("per thread", cuLaunchKernelEx_ptsz, &config, add, params, NULL);
	T("after all", cuCtxSynchronize, );
	see("stored", peek(memory));
}

static void ask_stream(const char *whose, cu_stream s)
{
	cu_context c = NULL;
	unsigned flags = 99;
	int status = 9, priority = 9;

	T(whose, cuStreamGetCtx, s, &c);
	see("the current one", c == ctx);
	T(whose, cuStreamIsCapturing, s, &status);
	see("status", status);
	T(whose, cuStreamGetFlags, s, &flags);
	see("flags", flags);
	T(whose, cuStreamGetPriority, s, &priority);
	see("priority", priority);
	T(whose, cuStreamQuery, s);
	T(whose, cuStreamSynchronize, s);
}

void group_streams(void)
{
	cu_stream s = NULL, blocking = NULL, high = NULL;
	cu_context c = NULL;
	unsigned flags = 9;
	int mode = CU_MODE_RELAXED, status = 9;

	device_open();
	T("not blocking", cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	T("blocking", cuStreamCreate, &blocking, 0);
	T("flags 2", cuStreamCreate, &high, 2);
	T("no place", cuStreamCreate, NULL, 0);
	T("", cuStreamCreateWithPriority, &high, 0, -3);
	ask_stream("created", s);
	ask_stream("blocking", blocking);
	ask_stream("priority", high);
	ask_stream("NULL", NULL);
	ask_stream("handle 1", CU_LEGACY);
	ask_stream("handle 2", CU_PER_THREAD);
	T("no place", cuStreamGetCtx, s, NULL);
	T("no place", cuStreamIsCapturing, s, NULL);
	T("per thread", cuStreamGetCtx_ptsz, NULL, &c);
	see("the current one", c == ctx);
	T("per thread", cuStreamIsCapturing_ptsz, NULL, &status);
	see("status", status);
	T("per thread", cuStreamGetFlags_ptsz, NULL, &flags);
	see("flags", flags);
	T("", cuThreadExchangeStreamCaptureMode, &mode);
	see("was", mode);
	T("back", cuThreadExchangeStreamCaptureMode, &mode);
	see("was", mode);
	mode = 3;
	T("3", cuThreadExchangeStreamCaptureMode, &mode);
	mode = -1;
	T("-1", cuThreadExchangeStreamCaptureMode, &mode);
	T("no place", cuThreadExchangeStreamCaptureMode, NULL);
	T("", cuStreamDestroy_v2, s);
	T("first form", cuStreamDestroy, blocking);
	T("NULL", cuStreamDestroy_v2, NULL);
	T("handle 1", cuStreamDestroy_v2, CU_LEGACY);
	T("handle 2", cuStreamDestroy_v2, CU_PER_THREAD);
}

void group_events(void)
{
	cu_event event = NULL, timed = NULL;
	cu_stream other = NULL;
	float ms = -1;

	device_open();
	NEED(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
	T("", cuEventCreate, &event, CUX_EVENT_DISABLE_TIMING);
	T("timed", cuEventCreate, &timed, 0);
	T("flags 255", cuEventCreate, &event, 255);
	T("no place", cuEventCreate, NULL, 0);
	T("never recorded", cuEventQuery, event);
	T("never recorded", cuEventSynchronize, event);
	T("never recorded", cuStreamWaitEvent, stream, event, 0);
	T("", cuEventRecord, event, stream);
	T("", cuEventSynchronize, event);
	T("", cuEventQuery, event);
	T("", cuStreamWaitEvent, other, event, 0);
	T("flags 9", cuStreamWaitEvent, other, event, 9);
	T("NULL", cuStreamWaitEvent, other, NULL, 0);
	T("NULL", cuEventRecord, NULL, stream);
	T("per thread", cuEventRecord_ptsz, event, NULL);
	T("external, no capture", cuEventRecordWithFlags, event, stream, CUX_EVENT_EXTERNAL);
	T("flags 2", cuEventRecordWithFlags, event, stream, 2);
	T("NULL", cuEventQuery, NULL);
	T("NULL", cuEventSynchronize, NULL);
	NEED(cuEventRecord, timed, stream);
	NEED(cuEventSynchronize, timed);
	T("", cuEventElapsedTime, &ms, timed, timed);
	see("none", ms == 0);
	T("not timed", cuEventElapsedTime, &ms, event, timed);
	T("no place", cuEventElapsedTime, NULL, timed, timed);
	T("", cuEventDestroy_v2, event);
	T("NULL", cuEventDestroy_v2, NULL);
}
