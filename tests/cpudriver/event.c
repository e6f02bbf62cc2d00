/* SPDX-License-Identifier: Apache-2.0
 *
 * event.c: an event is a mark on a stream: (stream, number of operation), or on a capture: a set of nodes.
 */
#include <stdlib.h>
#include <time.h>

#include "cpudriver.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void event_put(cu_event event)
{
	if (--event->refs)
		return;
	if (event->stream)
		stream_put(event->stream);
	node_set_clear(&event->captured);
	free(event);
}

struct work *work_event(enum work_kind kind, cu_context ctx, cu_event event)
{
	struct work *work = work_new(kind, ctx, 0);

	work->event = event;
	event->refs++;
	return work;
}

void event_completed(cu_event event, uint64_t sequence)
{
	if (!event->capture && event->sequence == sequence)
		event->time_ns = now_ns();
}

cu_result cuEventCreate(cu_event *event, unsigned flags)
{
	API(cuEventCreate, NEED_CONTEXT);
	if (!event || flags > 7)
		return CU_INVALID_VALUE;
	*event = cpu_alloc(sizeof(**event));
	(*event)->ctx = context_current();
	(*event)->flags = flags;
	(*event)->refs = 1;
	handle_add(KIND_EVENT, *event);
	return CU_SUCCESS;
}

static cu_result destroy(cu_event event)
{
	if (!handle_is(KIND_EVENT, event))
		return CUX_INVALID_HANDLE;
	handle_remove(event);
	event_put(event);
	return CU_SUCCESS;
}

cu_result cuEventDestroy(cu_event event)
{
	API(cuEventDestroy, NEED_INIT);
	return destroy(event);
}

cu_result cuEventDestroy_v2(cu_event event)
{
	API(cuEventDestroy_v2, NEED_INIT);
	return destroy(event);
}

void event_mark(cu_event event, cu_stream stream, uint64_t sequence)
{
	stream->refs++;
	if (event->stream)
		stream_put(event->stream);
	node_set_clear(&event->captured);
	event->capture = 0;
	event->stream = stream;
	event->sequence = sequence;
}

static cu_result record(cu_event event, cu_stream handle, bool per_thread, unsigned flags)
{
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (result)
		return result;
	if (flags > CUX_EVENT_EXTERNAL)
		return CU_INVALID_VALUE;
	if (!handle_is(KIND_EVENT, event))
		return CUX_INVALID_HANDLE;
	if (event->ctx != stream->ctx)
		return CUX_INVALID_HANDLE;
	if (!stream->capture && flags & CUX_EVENT_EXTERNAL)
		return CUX_ILLEGAL_STATE;
	if (stream->capture && flags & CUX_EVENT_EXTERNAL)
		return submit(stream, work_event(WORK_RECORD, stream->ctx, event), NULL);
	if (stream->capture)
		return capture_event(event, stream);
	if (stream->role == STREAM_LEGACY)
		result = capture_implicit(stream->ctx, true);
	if (result)
		return result;
	event_mark(event, stream, stream_enqueue(stream, work_event(WORK_EVENT, stream->ctx, event), NULL, 0));
	return CU_SUCCESS;
}

cu_result cuEventRecord(cu_event event, cu_stream stream)
{
	API(cuEventRecord, NEED_CONTEXT);
	return record(event, stream, false, 0);
}

cu_result cuEventRecord_ptsz(cu_event event, cu_stream stream)
{
	API(cuEventRecord_ptsz, NEED_CONTEXT);
	return record(event, stream, true, 0);
}

cu_result cuEventRecordWithFlags(cu_event event, cu_stream stream, unsigned flags)
{
	API(cuEventRecordWithFlags, NEED_CONTEXT);
	return record(event, stream, false, flags);
}

cu_result cuEventRecordWithFlags_ptsz(cu_event event, cu_stream stream, unsigned flags)
{
	API(cuEventRecordWithFlags_ptsz, NEED_CONTEXT);
	return record(event, stream, true, flags);
}

static cu_result wait_event(cu_stream handle, bool per_thread, cu_event event, unsigned flags)
{
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);
	struct wait wait;

	if (result)
		return result;
	if (flags > CUX_EVENT_EXTERNAL)
		return CU_INVALID_VALUE;
	if (!handle_is(KIND_EVENT, event))
		return CUX_INVALID_HANDLE;
	if (!stream->capture && flags & CUX_EVENT_EXTERNAL)
		return CUX_ILLEGAL_STATE;
	if (stream->capture && flags & CUX_EVENT_EXTERNAL)
		return submit(stream, work_event(WORK_WAIT, stream->ctx, event), NULL);
	if (stream->capture || event->capture)
		return capture_wait(stream, event);
	if (stream->role == STREAM_LEGACY)
		result = capture_implicit(stream->ctx, true);
	if (result || !event->stream)
		return result;
	wait = (struct wait) { event->stream, event->sequence };
	stream_enqueue(stream, work_new(WORK_EMPTY, stream->ctx, 0), &wait, 1);
	return CU_SUCCESS;
}

cu_result cuStreamWaitEvent(cu_stream stream, cu_event event, unsigned flags)
{
	API(cuStreamWaitEvent, NEED_CONTEXT);
	return wait_event(stream, false, event, flags);
}

cu_result cuStreamWaitEvent_ptsz(cu_stream stream, cu_event event, unsigned flags)
{
	API(cuStreamWaitEvent_ptsz, NEED_CONTEXT);
	return wait_event(stream, true, event, flags);
}

static bool done(cu_event event)
{
	return !event->stream || event->stream->completed >= event->sequence;
}

/* Asking about, and waiting for, an event. One that was recorded in a capture costs that capture its life. */
static cu_result may_ask(cu_event event)
{
	struct capture *capture;

	if (!handle_is(KIND_EVENT, event))
		return CUX_INVALID_HANDLE;
	if (!event->capture)
		return capture_unsafe();
	capture = capture_find(event->capture);
	if (!capture || capture->broken)
		return CU_INVALID_VALUE;
	capture_break(capture);
	return CUX_CAPTURED_EVENT;
}

cu_result cuEventQuery(cu_event event)
{
	cu_result result;

	API(cuEventQuery, NEED_INIT);
	result = may_ask(event);
	if (result)
		return result;
	return done(event) ? CU_SUCCESS : CUX_NOT_READY;
}

cu_result cuEventSynchronize(cu_event event)
{
	cu_result result;

	API(cuEventSynchronize, NEED_INIT);
	result = may_ask(event);
	if (!result && event->stream)
		stream_wait(event->stream, event->sequence);
	return result;
}

static cu_result elapsed(float *ms, cu_event start, cu_event end)
{
	if (!ms || !handle_is(KIND_EVENT, start) || !handle_is(KIND_EVENT, end))
		return CUX_INVALID_HANDLE;
	if ((start->flags | end->flags) & CUX_EVENT_DISABLE_TIMING || !start->stream || !end->stream)
		return CUX_INVALID_HANDLE;
	if (start->capture || end->capture)
		return CUX_CAPTURED_EVENT;
	if (!done(start) || !done(end))
		return CUX_NOT_READY;
	*ms = (float)((double)((int64_t)(end->time_ns - start->time_ns)) / 1e6);
	return CU_SUCCESS;
}

cu_result cuEventElapsedTime(float *ms, cu_event start, cu_event end)
{
	API(cuEventElapsedTime, NEED_INIT);
	return elapsed(ms, start, end);
}

cu_result cuEventElapsedTime_v2(float *ms, cu_event start, cu_event end)
{
	API(cuEventElapsedTime_v2, NEED_INIT);
	return elapsed(ms, start, end);
}
