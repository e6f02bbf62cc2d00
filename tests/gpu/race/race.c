/* SPDX-License-Identifier: Apache-2.0
 *
 * race.c: two graphs, replayed back to back on two streams, of which the second reads what the first writes and nobody
 * ordered them. Any wait of the host between the two hides the bug: whoever measures must not wait.
 *
 *	race [--trials N] [--delay NODES] [--order none|event|host] [--driver-lib PATH]
 *
 * A trial: graph W fills the working slot, after NODES nodes that only take time; graph R copies it to the track slot, which
 * is donated. Then the host waits for both and looks what the track slot got. Prints "TRIALS STALE LAUNCHES DONATIONS"; stale: of how many
 * trials it was not all of what W wrote.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/slotprobe.h"
#include "tests/toyserver/toy_cuda.h"

#define SLOT_BYTES  (256u << 10)
#define DELAY_BYTES (64u << 10)

enum { WORKING, TRACK, SLOTS };
enum order { NONE, EVENT, HOST };

struct race {
	long trials, delay;
	enum order order;
	const char *library;
	toy_ptr pool, scratch;
	toy_stream writer, reader;
	toy_exec write[2], read;
	toy_graph graph[3];
	int pool_id;
	uint64_t launches, donations, stale;
};

static toy_ptr slot(const struct race *r, int number)
{
	return r->pool + (uint64_t)number * SLOT_BYTES;
}

/* By hand rather than with cuStreamWaitEvent: R on W's own stream is ordered too. */
static toy_stream reader(const struct race *r)
{
	return r->order == EVENT ? r->writer : r->reader;
}

static void capture(struct race *r, int which)
{
	CHECK(capture_begin(r->writer, TOY_CAPTURE_GLOBAL));
	if (which < 2) {
		for (long i = 0; i < r->delay; i++)
			CHECK(set(r->scratch, (unsigned char)i, DELAY_BYTES, r->writer));
		CHECK(set(slot(r, WORKING), (unsigned char)(which + 1), SLOT_BYTES, r->writer));
	} else {
		CHECK(copy(slot(r, TRACK), slot(r, WORKING), SLOT_BYTES, r->writer));
	}
	CHECK(capture_end(r->writer, &r->graph[which]));
	CHECK(instantiate(which < 2 ? &r->write[which] : &r->read, r->graph[which], 0));
}

static void add_pool(struct race *r, int device)
{
	struct slotprobe_plane plane = { "state", 0, SLOTPROBE_RAW, r->pool, SLOT_BYTES, SLOT_BYTES };
	struct slotprobe_pool pool = {
		.size = sizeof pool, .name = "race", .device = device, .n_slots = SLOTS, .planes = &plane, .n_planes = 1
	};

	r->pool_id = slotprobe_pool_add(&pool);
}

static void open_race(struct race *r)
{
	toy_context context;
	int device;

	toy_cuda_load(r->library, false);
	CHECK(init(0));
	CHECK(device_get(&device, 0));
	CHECK(ctx_retain(&context, device));
	CHECK(ctx_set(context));
	CHECK(mem_alloc(&r->pool, (size_t)SLOTS * SLOT_BYTES));
	CHECK(mem_alloc(&r->scratch, DELAY_BYTES));
	CHECK(stream_create(&r->writer, TOY_NON_BLOCKING));
	CHECK(stream_create(&r->reader, TOY_NON_BLOCKING));
	CHECK(set(r->pool, 0, (size_t)SLOTS * SLOT_BYTES, r->writer));
	CHECK(stream_sync(r->writer));
	add_pool(r, device);
	for (int which = 0; which < 3; which++)
		capture(r, which);
}

static void donate(struct race *r, long trial)
{
	struct slotprobe_claim claim = { .size = sizeof claim,
					 .pool = r->pool_id,
					 .slot = TRACK,
					 .claimed_len = trial + 1,
					 .key = (uint64_t)trial + 1,
					 .stream = (uint64_t)(uintptr_t)reader(r) };

	slotprobe_donate(&claim);
	r->donations++;
}

static void run_trial(struct race *r, long trial, unsigned char *got)
{
	const unsigned char value = (unsigned char)(trial % 2 + 1);

	CHECK(graph_launch(r->write[trial % 2], r->writer));
	if (r->order == HOST)
		CHECK(stream_sync(r->writer));
	CHECK(graph_launch(r->read, reader(r)));
	r->launches += 2;
	donate(r, trial);
	CHECK(stream_sync(r->writer));
	CHECK(stream_sync(r->reader));
	CHECK(to_host(got, slot(r, TRACK), SLOT_BYTES, r->reader));
	CHECK(stream_sync(r->reader));
	for (size_t i = 0; i < SLOT_BYTES; i++)
		if (got[i] != value) {
			r->stale++;
			return;
		}
}

static void parse(struct race *r, int argc, char **argv)
{
	static const char *const orders[] = { "none", "event", "host" };

	for (int i = 1; i + 1 < argc; i += 2) {
		const char *value = argv[i + 1];
		if (!strcmp(argv[i], "--trials"))
			r->trials = strtol(value, NULL, 10);
		else if (!strcmp(argv[i], "--delay"))
			r->delay = strtol(value, NULL, 10);
		else if (!strcmp(argv[i], "--driver-lib"))
			r->library = value;
		else if (!strcmp(argv[i], "--order"))
			while (r->order < HOST && strcmp(orders[r->order], value))
				r->order++;
		else
			toy_die("unknown option %s", argv[i]);
	}
}

int main(int argc, char **argv)
{
	static unsigned char got[SLOT_BYTES];
	static struct race race = { .trials = 200, .library = "libcuda.so.1" };

	parse(&race, argc, argv);
	open_race(&race);
	for (long trial = 0; trial < race.trials; trial++)
		run_trial(&race, trial, got);
	printf("%ld %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", race.trials, race.stale, race.launches, race.donations);
	return 0;
}
