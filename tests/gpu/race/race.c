/* SPDX-License-Identifier: Apache-2.0
 *
 * race.c: two graphs, replayed back to back on two streams, of which the second reads what the first writes and nobody
 * ordered them. Any wait of the host between the two hides the bug: whoever measures must not wait.
 *
 *	race [--sweeps N] [--seed S] [--kind KIND] [--driver-lib PATH]
 *
 * A trial: graph W fills the working slot, after a node that only takes time; graph R copies it to the track slot, after a shorter one. Then
 * the host waits for both and looks what the track slot got; stale: not all of what W wrote.
 *
 * A round has a few trials of each kind, one kind after the other in an order that is drawn each time; with --kind, of that one and the one that steers.
 * How much longer W takes is the same for a whole round. Every other round is at the edge: one step more or less than the last, as the trials of "again"
 * showed the race rarely or often, so that the rate is near one half. No fixed length does that: the rate depends on what a launch costs, which is one
 * thing for the life of a process and another in the next, and changes as the process warms up. The rounds between them sweep the lengths around the
 * edge, each as often as any other. Rounds are not counted until the edge has settled.
 *
 * Prints a JSON object: how long W was at the edge, in steps, at least and at most; of each kind how many trials were counted and stale, at the edge and in
 * the sweeps, and stale at each length of these; what a trial of "late" is late by; and how many launches and donations the preload could see.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probes/core/slotprobe.h"
#include "tests/toyserver/toy_cuda.h"

#define SLOT_BYTES (256u << 10)
#define NODE_BYTES (64u << 10)
#define DELAYS     128 /* lengths of W's node */
#define STEP_BYTES (128u << 10)
#define SETTLE     200 /* rounds */
#define BEFORE     16  /* steps of a sweep before the edge: below that the race never shows */
#define BEYOND     48  /* and beyond it */
#define SPREAD     2   /* steps from one length of it to the next */
#define SWEEP      ((BEFORE + BEYOND) / SPREAD + 1)
#define STRIDE     7 /* in a sweep, from one round to the next: it has no divisor in common with SWEEP */
#define BATCH      4 /* trials of a kind before the next; the first of them, which follows another kind, is not counted */

enum { WORKING, TRACK, SLOTS };

typedef int (*launch_entry)(toy_exec exec, toy_stream stream);

static const struct kind {
	const char *name;
	bool through; /* the preload, or else past it */
	bool donated;
	bool ordered;  /* R on W's own stream */
	bool waits;    /* for W before R is launched: what a probe must not do */
	uint64_t spin; /* ns before R is launched: what a probe must not take */
} kinds[] = {
	{ .name = "past" },
	{ .name = "again" }, /* it steers; and what two things that are the same differ by */
	{ .name = "recorded", .through = true, .donated = true },
	{ .name = "through", .through = true }, /* not judged: whether it is the launches or the donation */
	{ .name = "late", .spin = 100 },        /* not judged: what a loss is in time */
	{ .name = "ordered", .through = true, .donated = true, .ordered = true },
	{ .name = "wait", .through = true, .donated = true, .waits = true },
	{ .name = "spin", .through = true, .donated = true, .spin = 2000 },
};
#define STEERS 1
#define LATE   4
#define KINDS  (sizeof kinds / sizeof kinds[0])

struct race {
	long sweeps, kind; /* kind: -1 for all of them */
	const char *library;
	launch_entry past; /* the driver's own, which the preload does not see */
	toy_ptr pool, scratch, unused;
	toy_stream writer, reader;
	toy_exec write[DELAYS][2], read; /* W writes 1 or 2 */
	int pool_id;
	long edge, least, most, delay;
	uint64_t seed, trials, launches, donations, at_edge[KINDS], by_offset[KINDS][SWEEP];
};

static toy_ptr slot(const struct race *r, int number)
{
	return r->pool + (uint64_t)number * SLOT_BYTES;
}

static toy_exec end_capture(const struct race *r)
{
	toy_graph graph;
	toy_exec exec;

	CHECK(capture_end(r->writer, &graph));
	CHECK(instantiate(&exec, graph, 0));
	CHECK(graph_destroy(graph));
	return exec;
}

static toy_exec capture_write(const struct race *r, unsigned delay, unsigned char value)
{
	CHECK(capture_begin(r->writer, TOY_CAPTURE_GLOBAL));
	CHECK(set(r->scratch, value, NODE_BYTES + delay * STEP_BYTES, r->writer));
	CHECK(set(slot(r, WORKING), value, SLOT_BYTES, r->writer));
	return end_capture(r);
}

static toy_exec capture_read(const struct race *r)
{
	CHECK(capture_begin(r->writer, TOY_CAPTURE_GLOBAL));
	CHECK(set(r->unused, 0, NODE_BYTES, r->writer));
	CHECK(copy(slot(r, TRACK), slot(r, WORKING), SLOT_BYTES, r->writer));
	return end_capture(r);
}

static void add_pool(struct race *r, int device)
{
	struct slotprobe_plane plane = { "state", 0, SLOTPROBE_RAW, r->pool, SLOT_BYTES, SLOT_BYTES };
	struct slotprobe_pool pool = {
		.size = sizeof pool, .name = "race", .device = device, .n_slots = SLOTS, .planes = &plane, .n_planes = 1
	};

	r->pool_id = slotprobe_pool_add(&pool);
}

/* What only the first launch of a graph costs. */
static void launch_each(struct race *r)
{
	for (long delay = 0; delay < DELAYS; delay++)
		for (int value = 0; value < 2; value++)
			toy_check(r->past(r->write[delay][value], r->writer), "cuGraphLaunch of W");
	toy_check(r->past(r->read, r->writer), "cuGraphLaunch of R");
	CHECK(stream_sync(r->writer));
}

static void open_race(struct race *r)
{
	toy_context context;
	int device;

	toy_cuda_load(r->library, false);
	*(void **)&r->past = toy_cuda_past(r->library, "cuGraphLaunch");
	CHECK(init(0));
	CHECK(device_get(&device, 0));
	CHECK(ctx_retain(&context, device));
	CHECK(ctx_set(context));
	CHECK(mem_alloc(&r->pool, (size_t)SLOTS * SLOT_BYTES));
	CHECK(mem_alloc(&r->scratch, NODE_BYTES + DELAYS * (size_t)STEP_BYTES));
	CHECK(mem_alloc(&r->unused, NODE_BYTES));
	CHECK(stream_create(&r->writer, TOY_NON_BLOCKING));
	CHECK(stream_create(&r->reader, TOY_NON_BLOCKING));
	CHECK(set(r->pool, 0, (size_t)SLOTS * SLOT_BYTES, r->writer));
	CHECK(stream_sync(r->writer));
	add_pool(r, device);
	for (unsigned delay = 0; delay < DELAYS; delay++)
		for (unsigned char value = 0; value < 2; value++)
			r->write[delay][value] = capture_write(r, delay, value + 1);
	r->read = capture_read(r);
	launch_each(r);
}

static void donate(struct race *r, toy_stream stream)
{
	const uint64_t number = ++r->donations;
	struct slotprobe_claim claim = { .size = sizeof claim,
					 .pool = r->pool_id,
					 .slot = TRACK,
					 .claimed_len = (int64_t)number,
					 .key = number,
					 .stream = (uint64_t)(uintptr_t)stream };

	slotprobe_donate(&claim);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void spin(uint64_t ns)
{
	const uint64_t until = now_ns() + ns;

	while (now_ns() < until)
		;
}

/* What is asked and what the clock itself takes. */
static double spun_ns(uint64_t ns)
{
	const long n = 1000;
	const uint64_t begun = now_ns();

	for (long i = 0; i < n; i++)
		spin(ns);
	return (double)(now_ns() - begun) / (double)n;
}

static bool is_stale(const struct race *r, toy_stream stream, int which)
{
	static unsigned char want[2][SLOT_BYTES], got[SLOT_BYTES];

	if (!want[0][0]) {
		memset(want[0], 1, SLOT_BYTES);
		memset(want[1], 2, SLOT_BYTES);
	}
	CHECK(to_host(got, slot(r, TRACK), SLOT_BYTES, stream));
	CHECK(stream_sync(stream));
	return memcmp(got, want[which], SLOT_BYTES) != 0;
}

static bool run_trial(struct race *r, const struct kind *kind)
{
	const int which = (int)(r->trials++ % 2);
	const launch_entry launch = kind->through ? cu.graph_launch : r->past;
	const toy_stream reader = kind->ordered ? r->writer : r->reader;

	toy_check(launch(r->write[r->delay][which], r->writer), "cuGraphLaunch of W");
	if (kind->waits)
		CHECK(stream_sync(r->writer));
	if (kind->spin)
		spin(kind->spin);
	toy_check(launch(r->read, reader), "cuGraphLaunch of R");
	r->launches += kind->through ? 2 : 0;
	if (kind->donated)
		donate(r, reader);
	CHECK(stream_sync(r->writer));
	CHECK(stream_sync(r->reader));
	return is_stale(r, reader, which);
}

/* How many of the counted trials were stale. Even in number, so that a donation's value follows from its number. */
static unsigned run_batch(struct race *r, size_t kind)
{
	unsigned stale = 0;

	for (long i = 0; i < BATCH; i++)
		stale += run_trial(r, &kinds[kind]) && i > 0;
	return stale;
}

static uint64_t draw(struct race *r)
{
	r->seed ^= r->seed << 13;
	r->seed ^= r->seed >> 7;
	r->seed ^= r->seed << 17;
	return r->seed;
}

static void run_round(struct race *r, long kind, unsigned stale[KINDS])
{
	size_t order[KINDS];

	for (size_t i = 0; i < KINDS; i++) {
		const size_t k = draw(r) % (i + 1);
		order[i] = order[k];
		order[k] = i;
	}
	for (size_t i = 0; i < KINDS; i++)
		if (kind < 0 || order[i] == STEERS || (size_t)kind == order[i])
			stale[order[i]] = run_batch(r, order[i]);
}

/* Before it is counted, a process of one kind only steers: whatever it donates is of that kind. */
static void edge_round(struct race *r, bool counted)
{
	unsigned stale[KINDS] = { 0 };

	r->delay = r->edge;
	run_round(r, r->kind < 0 || counted ? r->kind : STEERS, stale);
	for (size_t i = 0; i < KINDS && counted; i++)
		r->at_edge[i] += stale[i];
	if (counted) {
		r->least = r->edge < r->least ? r->edge : r->least;
		r->most = r->edge > r->most ? r->edge : r->most;
	}
	if (stale[STEERS] * 2 > BATCH - 1)
		r->edge -= r->edge > BEFORE;
	else
		r->edge += r->edge < DELAYS - 1 - BEYOND;
}

static void sweep_round(struct race *r, long number)
{
	const long offset = number * STRIDE % SWEEP;
	unsigned stale[KINDS] = { 0 };

	r->delay = r->edge - BEFORE + offset * SPREAD;
	run_round(r, r->kind, stale);
	for (size_t i = 0; i < KINDS; i++)
		r->by_offset[i][offset] += stale[i];
}

static void report_kind(const struct race *r, size_t kind)
{
	const long trials = r->sweeps * SWEEP * (BATCH - 1);
	uint64_t all = 0;

	for (long i = 0; i < SWEEP; i++)
		all += r->by_offset[kind][i];
	printf("\"%s\": {\"edge\": {\"trials\": %ld, \"stale\": %" PRIu64 "}, ", kinds[kind].name, trials,
	       r->at_edge[kind]);
	printf("\"sweep\": {\"trials\": %ld, \"stale\": %" PRIu64 "}, \"by_offset\": \"", trials, all);
	for (long i = 0; i < SWEEP; i++)
		printf("%s%" PRIu64, i ? " " : "", r->by_offset[kind][i]);
	printf("\"}");
}

static void report(const struct race *r)
{
	const char *comma = "";

	printf("{\"edge\": {\"least\": %ld, \"most\": %ld}, \"kinds\": {", r->least, r->most);
	for (size_t i = 0; i < KINDS; i++) {
		if (r->kind >= 0 && i != STEERS && i != (size_t)r->kind)
			continue;
		fputs(comma, stdout);
		report_kind(r, i);
		comma = ", ";
	}
	printf("}, \"late_ns\": %.1f, \"launches\": %" PRIu64 ", \"donations\": %" PRIu64 "}\n",
	       spun_ns(kinds[LATE].spin), r->launches, r->donations);
}

static long kind_of(const char *name)
{
	for (size_t i = 0; i < KINDS; i++)
		if (!strcmp(kinds[i].name, name))
			return (long)i;
	toy_die("no kind %s", name);
}

static void parse(struct race *r, int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = argv[i + 1] ? argv[i + 1] : "";
		if (!strcmp(argv[i], "--sweeps"))
			r->sweeps = strtol(value, NULL, 10);
		else if (!strcmp(argv[i], "--seed"))
			r->seed = strtoull(value, NULL, 10) * 2 + 1; /* never 0, of which draw() makes 0 */
		else if (!strcmp(argv[i], "--kind"))
			r->kind = kind_of(value);
		else if (!strcmp(argv[i], "--driver-lib"))
			r->library = value;
		else
			toy_die("unknown option %s", argv[i]);
	}
}

int main(int argc, char **argv)
{
	static struct race race = {
		.sweeps = 2, .kind = -1, .library = "libcuda.so.1", .edge = DELAYS / 3, .least = DELAYS, .seed = 1
	};

	parse(&race, argc, argv);
	open_race(&race);
	for (long i = 0; i < SETTLE; i++)
		edge_round(&race, false);
	for (long i = 0; i < race.sweeps * SWEEP; i++) {
		edge_round(&race, true);
		sweep_round(&race, i);
	}
	report(&race);
	return 0;
}
