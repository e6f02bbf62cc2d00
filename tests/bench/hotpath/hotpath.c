/* SPDX-License-Identifier: Apache-2.0
 *
 * hotpath.c: one call of a server's hot path, over and over, for a counter of instructions: `hotpath WHAT TIMES`. The function
 * hotpath_loop holds nothing but the calls, so that callgrind collects inside of it. Results are waited for outside of it: no result
 * buffer may run out.
 *
 * Linked with libcuda; run with the preload or without.
 */
#include <string.h>
#include <unistd.h>

#include "probes/core/slotprobe.h"
#include "tests/faults/cuda.h"

#define SLOTS  8
#define BYTES  1024u
#define PLANES 8u
#define BATCH  64 /* calls between two waits */

static cu_stream stream;
static cu_graph_exec exec;
static int pool;

/* ---- what is called ---- */

static void launch(void)
{
	CU(cuGraphLaunch(exec, stream));
}

static struct slotprobe_claim claim = { .size = sizeof claim, .slot = 3, .claimed_len = 64, .key = 77, .key_len = 64 };
static int64_t refused;

static void donate(void)
{
	refused += slotprobe_donate(&claim) < 0;
}

static void restore(void)
{
	refused += slotprobe_restore(&claim) < 0;
}

static void alloc(void)
{
	refused += slotprobe_slot(SLOTPROBE_ALLOC, &claim, -1) < 0;
}

static void release(void)
{
	refused += slotprobe_slot(SLOTPROBE_FREE, &claim, -1) < 0;
}

static void step(void)
{
	static const struct slotprobe_step s = {
		.size = sizeof s, .name = "decode", .batch = 4, .padded = 4, .mode = 2
	};

	refused += slotprobe_step(&s) < 0;
}

static void nothing(void)
{
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = { { "launch", launch }, { "donate", donate }, { "restore", restore }, { "alloc", alloc },
	      { "free", release },  { "step", step },     { "nothing", nothing } };

__attribute__((noinline)) void hotpath_loop(void (*call)(void), int times);
__attribute__((noinline)) void hotpath_loop(void (*call)(void), int times)
{
	for (int i = 0; i < times; i++)
		call();
}

/* ---- around it ---- */

static void add_pool(cu_deviceptr base)
{
	struct slotprobe_plane planes[PLANES];
	struct slotprobe_pool p = { .size = sizeof p, .name = "state", .n_slots = SLOTS, .planes = planes };

	for (unsigned i = 0; i < PLANES; i++)
		planes[i] = (struct slotprobe_plane) { .tensor = i % 2 ? "ssm" : "conv",
						       .layer = (int32_t)(i / 2),
						       .dtype = SLOTPROBE_F32,
						       .base = base + (uint64_t)i * SLOTS * BYTES,
						       .slot_stride = BYTES,
						       .elems = BYTES / 4 };
	p.n_planes = PLANES;
	pool = slotprobe_pool_add(&p);
	claim.pool = pool;
	claim.stream = (uintptr_t)stream;
}

static void capture(cu_deviceptr base)
{
	cu_graph graph;

	CU(cuStreamBeginCapture_v2(stream, CU_MODE_GLOBAL));
	CU(cuMemsetD8Async(base + BYTES, 5, BYTES, stream));
	CU(cuStreamEndCapture(stream, &graph));
	CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CU(cuGraphDestroy(graph));
}

/* The stream is done, and the writer has had several turns. */
static void wait_for_results(void)
{
	CU(cuStreamSynchronize(stream));
	usleep(30000);
}

int main(int argc, char **argv)
{
	int times = argc > 2 ? atoi(argv[2]) : 0;
	void (*call)(void) = NULL;
	cu_deviceptr base;
	cu_device device;
	cu_context ctx;

	for (size_t i = 0; argc > 1 && i < sizeof calls / sizeof calls[0]; i++)
		if (!strcmp(argv[1], calls[i].name))
			call = calls[i].call;
	if (!call || times < 1)
		return 2;
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&ctx, device));
	CU(cuCtxSetCurrent(ctx));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemAlloc_v2(&base, PLANES * SLOTS * BYTES));
	CU(cuMemsetD8Async(base, 7, PLANES * SLOTS * BYTES, stream));
	add_pool(base);
	capture(base);
	wait_for_results();
	call(); /* the first one resolves symbols, touches pages, warms libunwind's cache */
	call();
	wait_for_results();
	for (int left = times; left > 0; left -= BATCH) {
		hotpath_loop(call, left < BATCH ? left : BATCH);
		wait_for_results();
	}
	printf("%s: pool %s, refused %lld of %d\n", argv[1], pool < 0 ? "none" : "there", (long long)refused,
	       times + 2);
	CU(cuDevicePrimaryCtxRelease_v2(device));
	return 0;
}
