/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.c: a stream is a FIFO that a thread of its own executes; the thread starts with the first operation.
 *
 * Ordering between streams is a list of (stream, number of operation) that an operation waits for before it starts.
 * The legacy stream waits for all that was queued on blocking streams before, and they for it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpudriver.h"

struct operation {
	struct operation *next;
	uint64_t sequence;
	struct work *work;
	size_t n_waits;
	struct wait wait[];
};

static pthread_cond_t progress = PTHREAD_COND_INITIALIZER; /* some stream completed something */
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_end_key;

void stream_stop_waiting(void)
{
	pthread_cond_broadcast(&progress);
}

void stream_put(cu_stream stream)
{
	if (--stream->refs)
		return;
	pthread_cond_destroy(&stream->work);
	free(stream->edges);
	free(stream);
}

/* ---- the thread ---- */

void stream_wait(cu_stream stream, uint64_t sequence)
{
	stream->refs++;
	while (stream->completed < sequence && !atomic_load(&cpu_stopping))
		cpu_wait(&progress);
	stream_put(stream);
}

static void run_first(cu_stream stream)
{
	struct operation *op = stream->head;

	for (size_t i = 0; i < op->n_waits; i++)
		while (op->wait[i].stream->completed < op->wait[i].sequence)
			cpu_wait(&progress);
	if (!atomic_load(&cpu_stopping)) {
		cpu_unlock();
		work_execute(op->work, op->sequence);
		cpu_lock();
	}
	stream->head = op->next;
	if (!stream->head)
		stream->tail = &stream->head;
	stream->completed = op->sequence;
	pthread_cond_broadcast(&progress);
	for (size_t i = 0; i < op->n_waits; i++)
		stream_put(op->wait[i].stream);
	work_put(op->work);
	free(op);
}

static void *stream_main(void *argument)
{
	cu_stream stream = argument;

	cpu_lock();
	while (stream->head || !stream->gone) {
		if (stream->head)
			run_first(stream);
		else
			cpu_wait(&stream->work);
	}
	stream_put(stream);
	cpu_unlock();
	return NULL;
}

static void start_thread(cu_stream stream)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	/* signals belong to the application's threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	stream->refs++;
	stream->has_thread = true;
	error = pthread_create(&thread, &attr, stream_main, stream);
	if (error) {
		cpu_say("no thread for a stream: %s", strerror(error));
		abort();
	}
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- queueing ---- */

static void add_wait(struct operation *op, cu_stream stream, uint64_t sequence)
{
	if (stream->completed >= sequence)
		return;
	stream->refs++;
	op->wait[op->n_waits++] = (struct wait) { stream, sequence };
}

/* What the legacy rule adds. */
static void add_legacy_waits(struct operation *op, cu_stream stream)
{
	cu_context ctx = stream->ctx;

	if (stream->role == STREAM_LEGACY) {
		for (cu_stream other = ctx->streams; other; other = other->next)
			if (other->blocking && other != stream)
				add_wait(op, other, other->enqueued);
	} else if (stream->blocking) {
		add_wait(op, ctx->legacy, ctx->legacy->enqueued);
	}
}

uint64_t stream_enqueue(cu_stream stream, struct work *work, const struct wait *waits, size_t n)
{
	struct operation *op;
	size_t most = n + 1;

	for (cu_stream other = stream->ctx->streams; other; other = other->next)
		most++;
	op = cpu_alloc(sizeof(*op) + most * sizeof(op->wait[0]));
	op->work = work;
	for (size_t i = 0; i < n; i++)
		add_wait(op, waits[i].stream, waits[i].sequence);
	add_legacy_waits(op, stream);
	if (stream->role == STREAM_LEGACY)
		api_count_legacy_work();
	op->sequence = ++stream->enqueued;
	*stream->tail = op;
	stream->tail = &op->next;
	if (!stream->has_thread)
		start_thread(stream);
	pthread_cond_signal(&stream->work);
	return op->sequence;
}

cu_result submit(cu_stream stream, struct work *work, uint64_t *sequence)
{
	cu_result result = CU_SUCCESS;

	if (sequence)
		*sequence = 0;
	if (stream->capture)
		return capture_record(stream, work);
	if (stream->role == STREAM_LEGACY)
		result = capture_implicit(stream->ctx, true);
	if (!result)
		result = stream->ctx->sticky;
	if (!result)
		result = work_check(work);
	if (result) {
		work_put(work);
		return result;
	}
	if (sequence)
		*sequence = stream_enqueue(stream, work, NULL, 0);
	else
		stream_enqueue(stream, work, NULL, 0);
	return CU_SUCCESS;
}

static cu_stream busy_stream(cu_context only)
{
	for (cu_context ctx = context_first(); ctx; ctx = ctx->next)
		for (cu_stream stream = ctx->streams; stream; stream = stream->next)
			if ((!only || ctx == only) && stream->completed < stream->enqueued)
				return stream;
	return NULL;
}

/* What others queue meanwhile is waited for too: after a wait the lists may have changed, so it starts anew. */
void stream_drain(cu_context ctx)
{
	cu_stream stream;

	while ((stream = busy_stream(ctx)) && !atomic_load(&cpu_stopping))
		stream_wait(stream, stream->enqueued);
}

/* ---- making and ending ---- */

cu_stream stream_new(cu_context ctx, unsigned flags, enum stream_role role)
{
	cu_stream stream = cpu_alloc(sizeof(*stream));

	stream->ctx = ctx;
	stream->flags = flags;
	stream->role = role;
	stream->id = cpu_next_id();
	stream->blocking = role == STREAM_PER_THREAD || (role == STREAM_CREATED && !(flags & CU_STREAM_NON_BLOCKING));
	stream->owner = cpu_thread();
	stream->refs = 1;
	stream->tail = &stream->head;
	pthread_cond_init(&stream->work, NULL);
	stream->next = ctx->streams;
	ctx->streams = stream;
	if (role == STREAM_CREATED)
		handle_add(KIND_STREAM, stream);
	return stream;
}

/* Queued work still runs, as on the real driver; the handle is gone at once. */
void stream_end(cu_stream stream)
{
	cu_stream *link = &stream->ctx->streams;

	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	if (stream->capture)
		capture_abandon(stream);
	handle_remove(stream);
	stream->gone = true;
	pthread_cond_signal(&stream->work);
	stream_put(stream);
}

/* A thread ends: so do its per-thread streams, once they have done their work. */
static void thread_ended(void *token)
{
	uint64_t thread = (uint64_t)(uintptr_t)token;

	cpu_lock();
	for (cu_context ctx = context_first(); ctx; ctx = ctx->next) {
		cu_stream next;

		for (cu_stream stream = ctx->streams; stream; stream = next) {
			next = stream->next;
			if (stream->role == STREAM_PER_THREAD && stream->owner == thread)
				stream_end(stream);
		}
	}
	cpu_unlock();
}

static void make_thread_end_key(void)
{
	pthread_key_create(&thread_end_key, thread_ended);
}

static cu_stream per_thread_stream(cu_context ctx)
{
	for (cu_stream stream = ctx->streams; stream; stream = stream->next)
		if (stream->role == STREAM_PER_THREAD && stream->owner == cpu_thread())
			return stream;
	pthread_once(&thread_end_once, make_thread_end_key);
	pthread_setspecific(thread_end_key, (void *)(uintptr_t)cpu_thread());
	return stream_new(ctx, 0, STREAM_PER_THREAD);
}

cu_result stream_find(cu_stream handle, bool per_thread, cu_stream *stream)
{
	cu_context ctx = context_current();

	if ((uintptr_t)handle <= 2 && !context_ok(ctx))
		return ctx ? CUX_CONTEXT_IS_DESTROYED : CUX_INVALID_CONTEXT;
	if (handle == CU_PER_THREAD || (!handle && per_thread))
		*stream = per_thread_stream(ctx);
	else if (!handle || handle == CU_LEGACY)
		*stream = ctx->legacy;
	else if (handle_is(KIND_STREAM, handle))
		*stream = handle;
	else
		return CUX_INVALID_HANDLE;
	return CU_SUCCESS;
}
