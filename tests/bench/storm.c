/* SPDX-License-Identifier: Apache-2.0
 *
 * storm.c: threads that capture in every mode while others donate, restore, load modules, free pools, fork and destroy
 * contexts. Well-behaved: what a capture forbids is done under a relaxed capture mode, so that a bare storm has no error at all, and one under
 * slotprobe must have none either.
 *
 *	storm [--seconds S] [--driver-lib PATH] [--until harm]
 *
 * Prints its counts, a JSON object a line: each 0.2 s, at each thread's first error and first lost capture, and at the end, where "final" is
 * true. A driver may end the process for a capture that was lost: what was seen until then has been printed. Exit status 0 whatever
 * the counts are. --until harm: it ends with the first capture that is lost.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probes/core/slotprobe.h"
#include "tests/toyserver/toy_cuda.h"

#define SLOTS       16
#define PLANE_BYTES 4096u
#define RELAXED     2
#define REPORT_US   200000
#define REPORT_MAX  16384 /* more than a report has: it leaves by one write */

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".visible .entry bench_empty(.param .u64 bench_empty_param_0)\n{\n\tret;\n}\n";

/* What each thread counts, read by others while it does. errors: driver calls that failed; invalidated: captures that began and did not end
 * well. */
struct counts {
	_Atomic uint64_t rounds, errors, invalidated, launches;
	_Atomic uint64_t donations, donated, busy, other;
	_Atomic uint64_t restores;
	_Atomic int first_error;
	const char *_Atomic where;
};

struct worker {
	pthread_t thread;
	sem_t done;
	const char *name;
	void (*round)(struct worker *w);
	int mode;       /* of a capture */
	unsigned flags; /* of the stream */
	unsigned pause_us;
	toy_stream stream;
	struct counts n;
};

static struct {
	toy_context context;
	toy_function empty;
	toy_ptr pool;
	int pool_id, device;
	_Atomic uint64_t end_ns;
	double seconds;
	bool until_harm;
	int (*exchange)(int *mode);
	int (*ctx_create)(toy_context *, unsigned flags, int device);
	int (*ctx_destroy)(toy_context);
	pthread_rwlock_t no_capture; /* destroying a context waits for the device: not while anybody captures */
} storm = { .seconds = 60, .no_capture = PTHREAD_RWLOCK_INITIALIZER };

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void report(bool final);

static bool try(struct worker *w, int result, const char *what)
{
	if (!result)
		return true;
	w->n.errors++;
	if (!w->n.first_error) {
		w->n.where = what;
		w->n.first_error = result;
		report(false);
	}
	return false;
}
#define TRY(w, call) try(w, cu.call, #call)

/* Between the two what this thread does is no business of anybody's capture. */
static int relax(void)
{
	int mode = RELAXED;

	storm.exchange(&mode);
	return mode;
}

static void unrelax(int mode)
{
	storm.exchange(&mode);
}

static void wait_for(struct worker *w)
{
	int mode = relax();

	TRY(w, stream_sync(w->stream));
	unrelax(mode);
}

static int empty(toy_stream stream)
{
	void *params[] = { &storm.pool };

	return cu.launch(storm.empty, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

/* ---- what the threads do ---- */

/* The graph of a capture that ended well, or NULL. One that never began is not lost; one that is lost takes no more launches. */
static toy_graph captured(struct worker *w)
{
	toy_graph graph = NULL;

	if (!TRY(w, capture_begin(w->stream, w->mode)))
		return NULL;
	for (int i = 0; i < 8; i++)
		if (!try(w, empty(w->stream), "launch in a capture"))
			break;
	if (!cu.capture_end(w->stream, &graph) && graph)
		return graph;
	if (storm.until_harm)
		storm.end_ns = 0;
	if (!w->n.invalidated++)
		report(false);
	return NULL; /* whatever the driver left there: an error's graph is nobody's */
}

static void capture_round(struct worker *w)
{
	toy_graph graph;
	toy_exec exec = NULL;
	int mode;

	pthread_rwlock_rdlock(&storm.no_capture);
	graph = captured(w);
	pthread_rwlock_unlock(&storm.no_capture);
	if (!graph)
		return;
	mode = relax();
	if (TRY(w, instantiate(&exec, graph, 0))) {
		for (int i = 0; i < 3; i++)
			w->n.launches += TRY(w, graph_launch(exec, w->stream));
		TRY(w, stream_sync(w->stream));
		TRY(w, exec_destroy(exec));
	}
	TRY(w, graph_destroy(graph));
	unrelax(mode);
}

static struct slotprobe_claim claim_of(struct worker *w, int pool)
{
	return (struct slotprobe_claim) { .size = sizeof(struct slotprobe_claim),
					  .pool = pool,
					  .slot = (int64_t)(w->n.donations % SLOTS),
					  .claimed_len = 64,
					  .key = w->n.donations + 1,
					  .stream = (uint64_t)(uintptr_t)w->stream };
}

static void donate(struct worker *w, int pool)
{
	struct slotprobe_claim claim = claim_of(w, pool);
	int64_t said = slotprobe_donate(&claim);

	w->n.donations++;
	if (said > 0)
		w->n.donated++;
	else if (said == -EBUSY)
		w->n.busy++;
	else
		w->n.other++;
}

static void donate_round(struct worker *w)
{
	struct slotprobe_claim claim;

	for (int i = 0; i < 8; i++)
		donate(w, storm.pool_id);
	claim = claim_of(w, storm.pool_id);
	slotprobe_restore(&claim);
	w->n.restores++;
	if (w->stream)
		wait_for(w);
}

static void module_round(struct worker *w)
{
	toy_module module;
	int mode = relax();

	if (TRY(w, module_load(&module, image)))
		TRY(w, module_unload(module));
	unrelax(mode);
}

static int add_pool(toy_ptr memory, const char *name, int device)
{
	struct slotprobe_plane plane = { "state", 0, SLOTPROBE_F32, memory, PLANE_BYTES, PLANE_BYTES / 4 };
	struct slotprobe_pool pool = {
		.size = sizeof pool, .name = name, .device = device, .n_slots = SLOTS, .planes = &plane, .n_planes = 1
	};

	return slotprobe_pool_add(&pool);
}

/* Freed without a word to slotprobe, with donations in flight. */
static void pool_round(struct worker *w)
{
	toy_ptr memory;
	int mode = relax(), pool;

	if (TRY(w, mem_alloc(&memory, (size_t)SLOTS * PLANE_BYTES))) {
		pool = add_pool(memory, "passing", storm.device);
		for (int i = 0; i < 4; i++)
			donate(w, pool);
		TRY(w, mem_free(memory));
		donate(w, pool);
	}
	unrelax(mode);
}

static void fork_round(struct worker *w)
{
	pid_t child = fork();
	int status = 0;

	if (!child)
		_exit(0);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		w->n.errors++;
}

static void context_round(struct worker *w)
{
	toy_context context;
	toy_stream own, outer = w->stream;
	toy_ptr memory;
	int mode, pool;

	pthread_rwlock_wrlock(&storm.no_capture);
	mode = relax();
	if (try(w, storm.ctx_create(&context, 0, storm.device), "ctx_create")) {
		if (TRY(w, stream_create(&own, TOY_NON_BLOCKING)) &&
		    TRY(w, mem_alloc(&memory, (size_t)SLOTS * PLANE_BYTES))) {
			w->stream = own;
			pool = add_pool(memory, "doomed", storm.device);
			for (int i = 0; i < 4; i++)
				donate(w, pool);
		}
		try(w, storm.ctx_destroy(context), "ctx_destroy");
		w->stream = outer;
		TRY(w, ctx_set(storm.context));
	}
	unrelax(mode);
	pthread_rwlock_unlock(&storm.no_capture);
}

static struct worker workers[] = {
	{ .name = "capture global", .round = capture_round, .mode = 0, .flags = TOY_NON_BLOCKING },
	{ .name = "capture thread-local", .round = capture_round, .mode = 1, .flags = TOY_NON_BLOCKING },
	{ .name = "capture relaxed", .round = capture_round, .mode = 2, .flags = TOY_NON_BLOCKING },
	{ .name = "capture global, blocking stream", .round = capture_round, .mode = 0 },
	{ .name = "donate", .round = donate_round, .flags = TOY_NON_BLOCKING, .pause_us = 100 },
	{ .name = "donate too", .round = donate_round, .flags = TOY_NON_BLOCKING, .pause_us = 100 },
	{ .name = "donate, blocking stream", .round = donate_round, .pause_us = 100 },
	{ .name = "donate, legacy stream", .round = donate_round, .flags = UINT32_MAX, .pause_us = 500 },
	{ .name = "modules", .round = module_round, .flags = TOY_NON_BLOCKING, .pause_us = 2000 },
	{ .name = "pools", .round = pool_round, .flags = TOY_NON_BLOCKING, .pause_us = 1000 },
	{ .name = "forks", .round = fork_round, .flags = TOY_NON_BLOCKING, .pause_us = 20000 },
	{ .name = "contexts", .round = context_round, .flags = TOY_NON_BLOCKING, .pause_us = 20000 },
};
#define N_WORKERS (sizeof workers / sizeof workers[0])

/* The thread sanitizer's runtime and libunwind, which keeps a cache for each thread that a stack was taken in, both put off what they
 * do at a thread's end to the last round of destructors, and the runtime comes first: then libunwind's lock asks a thread that
 * the runtime has forgotten. There no worker ends before the process does. */
static void end_of(struct worker *w)
{
	sem_post(&w->done);
#ifdef __SANITIZE_THREAD__
	for (;;)
		pause();
#endif
}

static void wait_for_end(struct worker *w)
{
	while (sem_wait(&w->done))
		;
#ifndef __SANITIZE_THREAD__
	pthread_join(w->thread, NULL);
#endif
}

static void *work(void *arg)
{
	struct worker *w = arg;

	CHECK(ctx_set(storm.context));
	for (; now_ns() < storm.end_ns; w->n.rounds++) {
		w->round(w);
		if (w->pause_us)
			usleep(w->pause_us);
	}
	end_of(w);
	return NULL;
}

/* ---- start, reports and end ---- */

static void start(const char *library)
{
	void *opened;
	toy_module module;

	toy_cuda_load(library, false);
	opened = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
	storm.exchange = (int (*)(int *))dlsym(opened, "cuThreadExchangeStreamCaptureMode");
	storm.ctx_create = (int (*)(toy_context *, unsigned, int))dlsym(opened, "cuCtxCreate_v2");
	storm.ctx_destroy = (int (*)(toy_context))dlsym(opened, "cuCtxDestroy_v2");
	CHECK(init(0));
	CHECK(device_get(&storm.device, 0));
	CHECK(ctx_retain(&storm.context, storm.device));
	CHECK(ctx_set(storm.context));
	CHECK(module_load(&module, image));
	CHECK(module_function(&storm.empty, module, "bench_empty"));
	CHECK(mem_alloc(&storm.pool, (size_t)SLOTS * PLANE_BYTES));
	storm.pool_id = add_pool(storm.pool, "storm", storm.device);
	for (size_t i = 0; i < N_WORKERS; i++)
		if (workers[i].flags != UINT32_MAX)
			CHECK(stream_create(&workers[i].stream, workers[i].flags));
}

static void say(const struct worker *w, bool last)
{
	printf("{\"name\": \"%s\", \"rounds\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"invalidated\": %" PRIu64
	       ", \"launches\": %" PRIu64 ", \"donations\": %" PRIu64 ", \"donated\": %" PRIu64 ", \"busy\": %" PRIu64
	       ", \"other\": %" PRIu64 ", \"restores\": %" PRIu64 ", \"first_error\": %d, \"where\": \"%s\"}%s",
	       w->name, w->n.rounds, w->n.errors, w->n.invalidated, w->n.launches, w->n.donations, w->n.donated,
	       w->n.busy, w->n.other, w->n.restores, w->n.first_error, w->n.where ? w->n.where : "", last ? "" : ", ");
}

/* A line, whole or not at all: the stream's lock keeps it from another thread's, its buffer lets it leave by one write, and nothing is left for
 * the exit, where a driver's own end comes before stdio's. */
static void report(bool final)
{
	flockfile(stdout);
	printf("{\"final\": %s, \"seconds\": %.1f, \"workers\": [", final ? "true" : "false", storm.seconds);
	for (size_t i = 0; i < N_WORKERS; i++)
		say(&workers[i], i + 1 == N_WORKERS);
	printf("]}\n");
	if (fflush(stdout))
		toy_die("cannot print the counts");
	funlockfile(stdout);
}

int main(int argc, char **argv)
{
	static char buffer[REPORT_MAX];
	const char *library = "libcuda.so.1";

	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seconds"))
			storm.seconds = strtod(argv[i + 1], NULL);
		else if (!strcmp(argv[i], "--driver-lib"))
			library = argv[i + 1];
		else if (!strcmp(argv[i], "--until") && !strcmp(argv[i + 1], "harm"))
			storm.until_harm = true;
		else
			toy_die("unknown option %s", argv[i]);
	}
	start(library);
	storm.end_ns = now_ns() + (uint64_t)(storm.seconds * 1e9);
	for (size_t i = 0; i < N_WORKERS; i++)
		sem_init(&workers[i].done, 0, 0);
	for (size_t i = 0; i < N_WORKERS; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	while (now_ns() < storm.end_ns) {
		usleep(REPORT_US);
		report(false);
	}
	for (size_t i = 0; i < N_WORKERS; i++)
		wait_for_end(&workers[i]);
	report(true);
	return 0;
}
