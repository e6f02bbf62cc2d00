/* SPDX-License-Identifier: Apache-2.0
 *
 * server.c: a small server that takes every road through slotprobe once, and looks after each call whether anything of its own was
 * touched: errno, the current context, the thread's capture mode, the signal mask, its memory. What it finds goes to stdout, which is the
 * same with and without a preload. The first word says how it goes on after the tour:
 *
 *	tour        to its end
 *	capturing   after donations on streams that capture
 *	destroy     destroys the context of a pool while results are out, and goes on in another
 *	reset       resets the device while results are out, and goes on on it
 *	exit        ends while results are out
 *	exit-now    the same by _exit
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda.h"
#include "probes/core/slotprobe.h"

#define SLOTS 8
#define BYTES 4096u
#define HOST  (128u << 10)
#define ALL   (SLOTS * BYTES)

struct world {
	cu_device device;
	cu_context primary, other;
	cu_stream stream, others;
	cu_deviceptr conv, ssm, ids;
	char *host;
	int pool, pool2, host_pool;
};

/* ---- what must not change ---- */

static uint64_t digest(const unsigned char *p, size_t n)
{
	uint64_t h = 14695981039346656037u;

	while (n--)
		h = (h ^ *p++) * 1099511628211u;
	return h;
}

static uint64_t memory(cu_deviceptr at, size_t bytes)
{
	static unsigned char copy[ALL];

	CU(cuMemcpyDtoH_v2(copy, at, bytes));
	return digest(copy, bytes);
}

static void look(const char *what, cu_context expected)
{
	int mode = CU_MODE_GLOBAL, error = errno;
	cu_context current;
	sigset_t mask;

	CU(cuCtxGetCurrent(&current));
	CU(cuThreadExchangeStreamCaptureMode(&mode));
	sigprocmask(SIG_SETMASK, NULL, &mask);
	printf("%s: errno %d, context %s, capture mode %d, signals%s%s%s\n", what, error,
	       current == expected ? "kept" : "CHANGED", mode, sigismember(&mask, SIGUSR1) ? " USR1" : "",
	       sigismember(&mask, SIGXFSZ) ? " XFSZ" : "", sigismember(&mask, SIGTERM) ? " TERM" : "");
}

#define TOLD(ctx, call)                                                                                                \
	do {                                                                                                           \
		errno = 77;                                                                                            \
		(void)(call);                                                                                          \
		look(#call, ctx);                                                                                      \
	} while (0)

/* ---- calls ---- */

static int add_pool(const struct world *w, const char *name, cu_deviceptr base, int device)
{
	const uint64_t bytes = device < 0 ? HOST : BYTES;
	struct slotprobe_plane planes[] = {
		{ .tensor = "conv", .layer = 0, .dtype = SLOTPROBE_F32, .base = base, .slot_stride = (int64_t)bytes },
		{ .tensor = "ssm", .layer = 0, .dtype = SLOTPROBE_F32, .base = w->ssm, .slot_stride = BYTES },
	};
	struct slotprobe_pool p = { .size = sizeof p, .name = name, .device = device, .planes = planes };

	p.n_slots = device < 0 ? 2 : SLOTS;
	p.n_planes = device < 0 ? 1 : 2;
	planes[0].elems = bytes / 4;
	planes[1].elems = BYTES / 4;
	return slotprobe_pool_add(&p);
}

static struct slotprobe_claim claim(int pool, int64_t slot, cu_stream stream)
{
	static uint64_t key;
	struct slotprobe_claim c = { .size = sizeof c, .pool = pool, .slot = slot, .claimed_len = 8, .key = ++key };

	c.stream = (uintptr_t)stream;
	c.key_len = 8;
	return c;
}

static int64_t donate(int pool, int64_t slot, cu_stream stream)
{
	struct slotprobe_claim c = claim(pool, slot, stream);

	return slotprobe_donate(&c);
}

static int64_t donate_device_id(const struct world *w, int64_t slot, const char *key)
{
	struct slotprobe_claim c = claim(w->pool, -1, w->stream);

	c.slot_ptr = w->ids + (uint64_t)slot * sizeof(int64_t);
	c.slot_ptr_bytes = sizeof(int64_t);
	c.key_text = key;
	return slotprobe_donate(&c);
}

static int restore(int pool, int64_t slot, cu_stream stream)
{
	struct slotprobe_claim c = claim(pool, slot, stream);

	return slotprobe_restore(&c);
}

static int slot_event(const struct world *w, uint32_t event, int64_t slot, int64_t src)
{
	struct slotprobe_claim c = claim(w->pool, slot, w->stream);

	return slotprobe_slot(event, &c, src);
}

static int step(uint64_t value)
{
	struct slotprobe_step s = { .size = sizeof s, .name = "decode", .value = value, .batch = 1, .padded = 1 };

	s.mode = SLOTPROBE_MODE_SEEN;
	return slotprobe_step(&s);
}

/* ---- the tour ---- */

static void set_up(struct world *w)
{
	static unsigned char fill[ALL];
	int64_t ids[SLOTS];
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	for (size_t i = 0; i < sizeof fill; i++)
		fill[i] = (unsigned char)(i * 7 / 5);
	for (int64_t i = 0; i < SLOTS; i++)
		ids[i] = i;
	errno = 77;
	CU(cuInit(0));
	CU(cuDeviceGet(&w->device, 0));
	CU(cuDevicePrimaryCtxRetain(&w->primary, w->device));
	CU(cuCtxSetCurrent(w->primary));
	look("started", w->primary);
	CU(cuMemAlloc_v2(&w->conv, ALL));
	CU(cuMemAlloc_v2(&w->ssm, ALL));
	CU(cuMemAlloc_v2(&w->ids, sizeof ids));
	CU(cuMemcpyHtoD_v2(w->conv, fill, ALL));
	CU(cuMemcpyHtoD_v2(w->ssm, fill + 1, ALL - 1));
	CU(cuMemcpyHtoD_v2(w->ids, ids, sizeof ids));
	CU(cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING));
	w->host = mmap(NULL, 2 * HOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->host == MAP_FAILED)
		exit(91);
	memset(w->host, 3, 2 * HOST);
}

static void tour_events(struct world *w)
{
	TOLD(w->primary, slotprobe_rank("tp", 0, 1));
	TOLD(w->primary, w->pool = add_pool(w, "state", w->conv, 0));
	TOLD(w->primary, slotprobe_region("ids", w->ids, SLOTS * sizeof(int64_t), SLOTPROBE_RAW));
	TOLD(w->primary, step(1));
	TOLD(w->primary, slot_event(w, SLOTPROBE_ALLOC, 1, -1));
	TOLD(w->primary, donate(w->pool, 1, w->stream));
	TOLD(w->primary, donate(w->pool, 2, NULL));
	TOLD(w->primary, donate(w->pool, 3, CU_PER_THREAD));
	TOLD(w->primary, donate_device_id(w, 4, NULL));
	TOLD(w->primary, donate_device_id(w, 5, "a prompt"));
	TOLD(w->primary, restore(w->pool, 1, w->stream));
	TOLD(w->primary, slot_event(w, SLOTPROBE_CLEAR, 6, -1));
	CU(cuMemcpyDtoDAsync_v2(w->conv + 6 * BYTES, w->conv + BYTES, BYTES, w->stream));
	CU(cuMemcpyDtoDAsync_v2(w->ssm + 6 * BYTES, w->ssm + BYTES, BYTES, w->stream));
	TOLD(w->primary, slot_event(w, SLOTPROBE_COPY, 6, 1));
	TOLD(w->primary, slot_event(w, SLOTPROBE_DISCARD, 6, 1));
	TOLD(w->primary, slot_event(w, SLOTPROBE_FREE, 6, -1));
	TOLD(w->primary, step(2));
}

/* The stream's context is not the thread's, or the thread has none. */
static void tour_contexts(struct world *w)
{
	CU(cuCtxCreate_v2(&w->other, 0, w->device));
	TOLD(w->other, donate(w->pool, 1, w->stream));
	CU(cuStreamCreate(&w->others, CU_STREAM_NON_BLOCKING));
	CU(cuCtxSetCurrent(NULL)); /* pops one context, and the one below it */
	CU(cuCtxSetCurrent(NULL));
	TOLD(NULL, donate(w->pool, 2, NULL));
	TOLD(NULL, w->pool2 = add_pool(w, "second", w->conv, 0));
	TOLD(NULL, donate(w->pool2, 3, w->stream));
	CU(cuCtxSetCurrent(w->primary));
	TOLD(w->primary, slotprobe_pool_remove(w->pool2));
	TOLD(w->primary, w->pool2 = add_pool(w, "second", w->conv, 0));
	TOLD(w->primary, donate(w->pool2, 4, w->stream));
}

static void tour_graphs(struct world *w)
{
	struct cu_memset_params fill = { w->conv + BYTES, 0, 9, 1, BYTES, 1 };
	struct cu_update_result result;
	cu_graph graph, child, parent;
	cu_graph_exec exec, nested;
	cu_graph_node node, inner;
	size_t n = 1;

	CU(cuStreamBeginCapture_v2(w->stream, CU_MODE_GLOBAL));
	CU(cuMemsetD8Async(w->conv + BYTES, 5, BYTES, w->stream));
	CU(cuMemcpyDtoDAsync_v2(w->ssm + 7 * BYTES, w->conv + BYTES, BYTES, w->stream));
	CU(cuStreamEndCapture(w->stream, &graph));
	TOLD(w->primary, cuGraphInstantiateWithFlags(&exec, graph, 0));
	TOLD(w->primary, cuGraphLaunch(exec, w->stream));
	CU(cuGraphGetNodes(graph, &node, &n));
	TOLD(w->primary, cuGraphExecMemsetNodeSetParams(exec, node, &fill, w->primary));
	TOLD(w->primary, cuGraphLaunch(exec, w->stream));
	TOLD(w->primary, cuGraphExecUpdate_v2(exec, graph, &result));
	TOLD(w->primary, cuGraphLaunch(exec, w->stream));
	CU(cuGraphCreate(&child, 0));
	CU(cuGraphAddMemsetNode(&inner, child, NULL, 0, &fill, w->primary));
	CU(cuGraphCreate(&parent, 0));
	CU(cuGraphAddChildGraphNode(&node, parent, NULL, 0, child));
	TOLD(w->primary, cuGraphInstantiateWithFlags(&nested, parent, 0));
	TOLD(w->primary, cuGraphLaunch(nested, w->stream));
	TOLD(w->primary, cuGraphExecChildGraphNodeSetParams(nested, node, child));
	TOLD(w->primary, cuGraphLaunch(nested, w->stream));
	TOLD(w->primary, donate(w->pool, 1, w->stream));
	TOLD(w->primary, donate(w->pool, 7, w->stream));
	CU(cuStreamSynchronize(w->stream));
	TOLD(w->primary, cuGraphExecDestroy(nested));
	TOLD(w->primary, cuGraphExecDestroy(exec));
	CU(cuGraphDestroy(parent));
	CU(cuGraphDestroy(child));
	CU(cuGraphDestroy(graph));
	printf("memory %016" PRIx64 " %016" PRIx64 "\n", memory(w->conv, ALL), memory(w->ssm, ALL));
}

static void tour_host(struct world *w)
{
	TOLD(w->primary, w->host_pool = add_pool(w, "host", (uintptr_t)w->host, -1));
	TOLD(w->primary, donate(w->host_pool, 0, NULL));
	TOLD(w->primary, restore(w->host_pool, 1, NULL));
	TOLD(w->primary, slotprobe_pool_remove(w->host_pool));
}

/* ---- how it goes on ---- */

static void while_capturing(struct world *w)
{
	cu_graph graph;

	CU(cuStreamBeginCapture_v2(w->stream, CU_MODE_GLOBAL));
	CU(cuMemsetD8Async(w->conv, 5, BYTES, w->stream));
	TOLD(w->primary, donate(w->pool, 1, w->stream));
	TOLD(w->primary, donate(w->pool, 1, NULL));
	TOLD(w->primary, restore(w->pool, 1, w->stream));
	CU(cuStreamEndCapture(w->stream, &graph));
	CU(cuGraphDestroy(graph));
}

/* More than can be over within the second that is waited for them, where each operation takes 20 ms. */
static void set_off(struct world *w, cu_stream stream)
{
	for (int i = 0; i < 100; i++)
		donate(w->pool2, i % SLOTS, stream);
	look("set off", w->primary);
}

static void destroy_context(struct world *w)
{
	CU(cuCtxSetCurrent(w->other));
	CU(cuMemAlloc_v2(&w->ssm, ALL));
	TOLD(w->other, w->pool2 = add_pool(w, "other", w->ssm, 0));
	CU(cuCtxSetCurrent(w->primary));
	set_off(w, w->others);
	TOLD(w->primary, cuCtxDestroy_v2(w->other));
	donate(w->pool2, 1, w->others);
	donate(w->pool, 1, w->stream);
}

static void reset_device(struct world *w)
{
	set_off(w, w->stream);
	TOLD(w->primary, cuDevicePrimaryCtxReset_v2(w->device));
	donate(w->pool2, 1, NULL);
	CU(cuDevicePrimaryCtxRetain(&w->primary, w->device));
	CU(cuCtxSetCurrent(w->primary));
	CU(cuMemAlloc_v2(&w->conv, ALL));
	CU(cuMemAlloc_v2(&w->ssm, ALL));
	CU(cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemsetD8Async(w->conv, 1, ALL, w->stream));
	CU(cuMemsetD8Async(w->ssm, 2, ALL, w->stream));
	TOLD(w->primary, w->pool = add_pool(w, "again", w->conv, 0));
	TOLD(w->primary, donate(w->pool, 1, w->stream));
	CU(cuStreamSynchronize(w->stream));
	printf("memory %016" PRIx64 "\n", memory(w->conv, ALL));
}

static void let_go(struct world *w)
{
	CU(cuStreamSynchronize(w->stream));
	printf("memory %016" PRIx64 " %016" PRIx64 "\n", memory(w->conv, ALL), memory(w->ssm, ALL));
	TOLD(w->primary, cuMemFree_v2(w->conv));
	TOLD(w->primary, cuMemFree_v2(w->ssm));
	CU(cuStreamDestroy_v2(w->stream));
	CU(cuCtxSetCurrent(w->other));
	CU(cuStreamDestroy_v2(w->others));
	CU(cuCtxDestroy_v2(w->other));
	CU(cuDevicePrimaryCtxRelease_v2(w->device));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "tour";
	struct world w = { 0 };

	set_up(&w);
	tour_events(&w);
	tour_contexts(&w);
	tour_graphs(&w);
	tour_host(&w);
	if (!strcmp(how, "destroy")) {
		destroy_context(&w);
	} else if (!strcmp(how, "reset")) {
		reset_device(&w);
	} else if (!strncmp(how, "exit", 4)) {
		set_off(&w, w.stream);
		fflush(stdout);
		if (!strcmp(how, "exit-now"))
			_exit(5);
	} else {
		if (!strcmp(how, "capturing"))
			while_capturing(&w);
		let_go(&w);
	}
	return 5;
}
