/* SPDX-License-Identifier: Apache-2.0
 *
 * costs.c: what the server's threads pay, measured from inside a program that does nothing else.
 *
 *	costs launch [--cpu C]	graphs of as many kernels that touch a pool as the line says, 4 or 200; the thread stays on that CPU
 *	costs past [--cpu C]	the same in one process, batch by batch in turn: through the preload, and past it
 *	costs donate --threads T	donations beside bare kernel launches of the same threads
 *	costs flood --threads T --rate R --seconds S	donations at a steady rate
 *
 * It answers each line that it reads with a line: one round. launch: ns for each launch, the mean of the round. past: "THROUGH PAST", ns alike;
 * after "NODES past", past the preload both times: what two things that are the same differ by. donate: "KERNEL_MEDIAN
 * KERNEL_P99 DONATION_MEDIAN DONATION_P99 CALLS REFUSED", ns. flood: "DONATED REFUSED RATE". So that two processes, bare and recorded,
 * can take turns. The queue of the GPU is drained between batches, untimed: a full queue would measure the GPU.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probes/core/slotprobe.h"
#include "tests/toyserver/toy_cuda.h"

#define THREADS_MAX 64
#define CALLS_MAX   (1u << 17) /* of one thread in one round */
#define SLOTS       64
#define PLANES      4
#define PLANE_BYTES 4096u
#define SMALL       4 /* nodes of a graph */
#define LARGE       200
#define BATCH       48 /* calls between two waits for the stream */

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".visible .entry bench_empty(.param .u64 bench_empty_param_0)\n{\n\tret;\n}\n";

typedef int (*launch_entry)(toy_exec exec, toy_stream stream);

struct bench {
	const char *library;
	void (*round)(const char *line); /* what the mode is, once for each line */
	launch_entry past;               /* the driver's own, which the preload does not see */
	long threads, calls, rate, seconds, cpu;
	toy_context context;
	toy_ptr pool;
	toy_function empty;
	toy_exec small, large;
	toy_stream stream[THREADS_MAX];
	int pool_id;
};
static struct bench b = {
	.library = "libcuda.so.1", .threads = 1, .calls = 20000, .rate = 100000, .seconds = 5, .cpu = -1
};

struct share {
	pthread_t thread;
	long number, calls;
	uint32_t *kernel, *donation; /* ns of each call */
	uint64_t refused;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void launch_empty(toy_stream stream)
{
	void *params[] = { &b.pool };

	CHECK(launch(b.empty, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

static int64_t donate(toy_stream stream, uint64_t number)
{
	struct slotprobe_claim claim = { .size = sizeof claim,
					 .pool = b.pool_id,
					 .slot = (int64_t)(number % SLOTS),
					 .claimed_len = 64,
					 .key = number + 1,
					 .stream = (uint64_t)(uintptr_t)stream };

	return slotprobe_donate(&claim);
}

/* ---- launch ---- */

static toy_exec capture_graph(long nodes)
{
	toy_graph graph;
	toy_exec exec;

	CHECK(capture_begin(b.stream[0], TOY_CAPTURE_GLOBAL));
	for (long i = 0; i < nodes; i++)
		launch_empty(b.stream[0]);
	CHECK(capture_end(b.stream[0], &graph));
	CHECK(instantiate(&exec, graph, 0));
	return exec;
}

static long batch_of(long nodes)
{
	return nodes > 50 ? 8 : 40;
}

/* ns of a batch; the stream is empty before and after. */
static uint64_t launch_batch(launch_entry entry, long nodes)
{
	const toy_exec exec = nodes > 50 ? b.large : b.small;
	const uint64_t begun = now_ns();
	uint64_t spent;

	for (long i = 0; i < batch_of(nodes); i++)
		toy_check(entry(exec, b.stream[0]), "cuGraphLaunch");
	spent = now_ns() - begun;
	CHECK(stream_sync(b.stream[0]));
	return spent;
}

static void launch_round(const char *line)
{
	const long nodes = strtol(line, NULL, 10);
	uint64_t spent = 0;
	long n = 0;

	for (; n < b.calls; n += batch_of(nodes))
		spent += launch_batch(cu.graph_launch, nodes);
	printf("%.2f\n", (double)spent / (double)n);
}

/* ---- past ---- */

static void past_round(const char *line)
{
	const long nodes = strtol(line, NULL, 10);
	launch_entry entry[2] = { strstr(line, "past") ? b.past : cu.graph_launch, b.past };
	uint64_t spent[2] = { 0, 0 };
	long n = 0;

	for (long turn = 0; n < b.calls; n += batch_of(nodes), turn++)
		for (int k = 0; k < 2; k++)
			spent[(turn + k) % 2] += launch_batch(entry[(turn + k) % 2], nodes);
	printf("%.2f %.2f\n", (double)spent[0] / (double)n, (double)spent[1] / (double)n);
}

/* ---- donate ---- */

static void *donate_share(void *arg)
{
	struct share *s = arg;
	const toy_stream stream = b.stream[s->number];

	CHECK(ctx_set(b.context));
	for (long n = 0; n < s->calls; n += BATCH) {
		const long end = n + BATCH < s->calls ? n + BATCH : s->calls;
		for (long i = n; i < end; i++) {
			const uint64_t begun = now_ns();
			launch_empty(stream);
			s->kernel[i] = (uint32_t)(now_ns() - begun);
		}
		CHECK(stream_sync(stream));
		for (long i = n; i < end; i++) {
			const uint64_t begun = now_ns();
			s->refused += donate(stream, (uint64_t)i) <= 0;
			s->donation[i] = (uint32_t)(now_ns() - begun);
		}
		CHECK(stream_sync(stream));
	}
	return NULL;
}

static int ascending(const void *x, const void *y)
{
	const uint32_t p = *(const uint32_t *)x, q = *(const uint32_t *)y;

	return p < q ? -1 : p > q;
}

static void print_quantiles(uint32_t *ns, size_t n)
{
	qsort(ns, n, sizeof *ns, ascending);
	printf("%u %u ", ns[n / 2], ns[n - 1 - n / 100]);
}

static void donate_round(const char *line)
{
	(void)line;
	static struct share share[THREADS_MAX];
	const long each = b.calls / b.threads < CALLS_MAX ? b.calls / b.threads : CALLS_MAX;
	const size_t n = (size_t)each * (size_t)b.threads;
	uint32_t *kernel = calloc(n, sizeof *kernel), *donation = calloc(n, sizeof *donation);
	uint64_t refused = 0;

	if (!kernel || !donation)
		toy_die("out of memory");
	for (long t = 0; t < b.threads; t++) {
		share[t] = (struct share) {
			.number = t, .calls = each, .kernel = kernel + t * each, .donation = donation + t * each
		};
		pthread_create(&share[t].thread, NULL, donate_share, &share[t]);
	}
	for (long t = 0; t < b.threads; t++) {
		pthread_join(share[t].thread, NULL);
		refused += share[t].refused;
	}
	print_quantiles(kernel, n);
	print_quantiles(donation, n);
	printf("%zu %" PRIu64 "\n", n, refused);
	free(kernel);
	free(donation);
}

/* ---- flood ---- */

static void *flood_share(void *arg)
{
	struct share *s = arg;
	const uint64_t step = 1000000000u * (uint64_t)b.threads / (uint64_t)b.rate, begun = now_ns();

	CHECK(ctx_set(b.context));
	for (long i = 0; i < s->calls; i++) {
		while (now_ns() < begun + (uint64_t)i * step)
			;
		s->refused += donate(b.stream[s->number], (uint64_t)i) <= 0;
	}
	CHECK(stream_sync(b.stream[s->number]));
	return NULL;
}

static void flood_round(const char *line)
{
	(void)line;
	static struct share share[THREADS_MAX];
	const long each = b.rate * b.seconds / b.threads;
	const uint64_t begun = now_ns();
	uint64_t refused = 0;

	for (long t = 0; t < b.threads; t++) {
		share[t] = (struct share) { .number = t, .calls = each };
		pthread_create(&share[t].thread, NULL, flood_share, &share[t]);
	}
	for (long t = 0; t < b.threads; t++) {
		pthread_join(share[t].thread, NULL);
		refused += share[t].refused;
	}
	printf("%ld %" PRIu64 " %.0f\n", each * b.threads, refused,
	       (double)(each * b.threads) / ((double)(now_ns() - begun) * 1e-9));
}

/* ---- start ---- */

static void add_pool(int device)
{
	struct slotprobe_plane plane[PLANES];
	struct slotprobe_pool pool = { .size = sizeof pool,
				       .name = "bench",
				       .device = device,
				       .n_slots = SLOTS,
				       .planes = plane,
				       .n_planes = PLANES };

	for (int32_t i = 0; i < PLANES; i++)
		plane[i] = (struct slotprobe_plane) { "state",       i,
						      SLOTPROBE_F32, b.pool + (uint64_t)i * SLOTS * PLANE_BYTES,
						      PLANE_BYTES,   PLANE_BYTES / 4 };
	b.pool_id = slotprobe_pool_add(&pool);
}

static void start(void)
{
	const size_t bytes = (size_t)PLANES * SLOTS * PLANE_BYTES;
	toy_module module;
	int device;

	toy_cuda_load(b.library, false);
	CHECK(init(0));
	CHECK(device_get(&device, 0));
	CHECK(ctx_retain(&b.context, device));
	CHECK(ctx_set(b.context));
	CHECK(module_load(&module, image));
	CHECK(module_function(&b.empty, module, "bench_empty"));
	for (long t = 0; t < b.threads; t++)
		CHECK(stream_create(&b.stream[t], TOY_NON_BLOCKING));
	CHECK(mem_alloc(&b.pool, bytes));
	CHECK(set(b.pool, 1, bytes, b.stream[0]));
	CHECK(stream_sync(b.stream[0]));
	add_pool(device);
	b.small = capture_graph(SMALL);
	b.large = capture_graph(LARGE);
}

/* After the driver and the preload have made their threads, which may run anywhere. */
static void stay(void)
{
	cpu_set_t set;

	if (b.cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)b.cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		toy_die("no CPU %ld", b.cpu);
}

static const struct {
	const char *name;
	void (*round)(const char *line);
} modes[] = {
	{ "launch", launch_round }, { "past", past_round }, { "donate", donate_round }, { "flood", flood_round }
};

static void parse(int argc, char **argv)
{
	const struct {
		const char *name;
		long *value;
	} number[] = { { "--threads", &b.threads },
		       { "--calls", &b.calls },
		       { "--rate", &b.rate },
		       { "--seconds", &b.seconds },
		       { "--cpu", &b.cpu } };

	for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
		if (!strcmp(modes[i].name, argv[1]))
			b.round = modes[i].round;
	if (!b.round)
		toy_die("launch, past, donate or flood?");
	for (int i = 2; i + 1 < argc; i += 2) {
		size_t k = 0;
		if (!strcmp(argv[i], "--driver-lib")) {
			b.library = argv[i + 1];
			continue;
		}
		while (k < sizeof number / sizeof number[0] && strcmp(number[k].name, argv[i]))
			k++;
		if (k == sizeof number / sizeof number[0])
			toy_die("unknown option %s", argv[i]);
		*number[k].value = strtol(argv[i + 1], NULL, 10);
	}
	if (b.threads < 1 || b.threads > THREADS_MAX || b.calls < b.threads || b.rate < 1)
		toy_die("a number is out of range");
}

int main(int argc, char **argv)
{
	char line[64];

	parse(argc, argv);
	start();
	if (b.round == past_round)
		*(void **)&b.past = toy_cuda_past(b.library, "cuGraphLaunch");
	stay();
	while (fgets(line, sizeof line, stdin)) {
		b.round(line);
		fflush(stdout);
	}
	return 0;
}
