/* SPDX-License-Identifier: Apache-2.0
 *
 * linked.c: a program that links libcuda, as most do: every entry point called by its symbol and by dlsym.
 */
#include <pthread.h>

#include "shim/hook/entry.h"
#include "check.h"

extern unsigned fake_count(const char *symbol), fake_total(void);
extern uintptr_t fake_arg[8];
extern int fake_result;
extern __thread int fake_errno_at_entry;

#define PROTOTYPE(symbol, wrapper, args, ...) extern cu_result symbol(__VA_ARGS__);
SHIM_ENTRIES(PROTOTYPE)

struct row {
	const char *name;
	any_fn *direct;
};
static const struct row rows[] = {
#define ROW(symbol, ...) { #symbol, (any_fn *)(void *)symbol },
	SHIM_ENTRIES(ROW)
};

static bool starts(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* One call through `fn`: made once, with its arguments, with its result, with both errnos. */
static void call_once(const char *name, any_fn *fn, int result)
{
	static void *exec, *out;
	static int status;
	static struct cu_node_params params = { .type = CU_NODE_EMPTY };
	uintptr_t a[6] = { 0x1001, 0x1002, 0x1003, 0x1004, 0x1005, 0x1006 };
	bool get = starts(name, "cuGetProcAddress");
	unsigned count = fake_count(name), total = fake_total();

	if (starts(name, "cuGraphInstantiate"))
		a[0] = (uintptr_t)&exec;
	if (!strcmp(name, "cuGraphExecNodeSetParams"))
		a[2] = (uintptr_t)&params;
	if (get) {
		a[0] = (uintptr_t) "cuFakeOther";
		a[1] = (uintptr_t)&out;
		a[2] = 14000;
		a[3] = 0;
		a[4] = (uintptr_t)&status;
	}
	fake_result = result;
	memset(fake_arg, 0, sizeof(fake_arg));
	errno = 5;
	CHECK_INT(fn(a[0], a[1], a[2], a[3], a[4], a[5]), result);
	CHECK_INT(errno, ERRNO_OF_DRIVER);
	errno = 0;
	fake_result = 0;
	if (fake_count(name) != count + 1) {
		fprintf(stderr, "%s: the driver was called %u times\n", name, fake_count(name) - count);
		exit(1);
	}
	if (get)
		return; /* the fake's two call each other */
	CHECK_INT(fake_errno_at_entry, 5);
	CHECK_INT(fake_total(), total + 1);
	for (unsigned i = starts(name, "cuGraphInstantiate"); i < 6 && fake_arg[i]; i++)
		CHECK_INT(fake_arg[i], a[i]);
}

static void every_entry(void)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);

	CHECK(libcuda);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		any_fn *looked_up = (any_fn *)dlsym(libcuda, rows[i].name);

		CHECK(looked_up);
		CHECK(!dlerror());
		for (int result = 0; result < 8; result += 7) {
			call_once(rows[i].name, rows[i].direct, result);
			call_once(rows[i].name, looked_up, result);
		}
	}
}

/* What the observer is told of one call. */
static void told(void)
{
	struct seen *s = seen();
	static struct cu_node_params params;
	static struct cu_kernel_params_v1 kernel_v1;
	static struct cu_kernel_params kernel;
	static struct cu_memcpy_params copy;
	static struct cu_memset_params set;
	cu_graph_exec exec = NULL, x = (cu_graph_exec)0x31;
	cu_graph graph = (cu_graph)0x32;
	cu_graph_node node = (cu_graph_node)0x33;
	unsigned n;

	cuInit(0);
	CHECK_INT(s->ready, 1);
	fake_result = 3;
	cuInit(0);
	CHECK_INT(s->ready, 1);
	fake_result = 0;

	cuGraphLaunch(x, NULL);
	CHECK(BEGINS(s) == 1 && s->ends == 1 && s->exec == 0x31 && s->stream == 0 && s->result == 0);
	cuGraphLaunch_ptsz(x, NULL);
	CHECK(BEGINS(s) == 2 && s->ends == 2 && s->stream == 2); /* the per-thread stream, by its own name */
	CHECK_INT(fake_arg[1], 0);
	cuGraphLaunch_ptsz(x, (cu_stream)0x77);
	CHECK_INT(s->stream, 0x77);
	fake_result = 700;
	cuGraphLaunch(x, NULL);
	CHECK_INT(s->result, 700);
	fake_result = 0;

	n = 0;
#define INSTANTIATED(call, handle)                                                                                     \
	call;                                                                                                          \
	CHECK(s->instantiated == ++n && s->exec == (handle) && s->graph == 0x32 && s->result == 0);                    \
	CHECK_INT((uintptr_t)exec, handle)
	INSTANTIATED(cuGraphInstantiate(&exec, graph, NULL, NULL, 0), 0x11);
	INSTANTIATED(cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0), 0x12);
	INSTANTIATED(cuGraphInstantiateWithFlags(&exec, graph, 0), 0x13);
	INSTANTIATED(cuGraphInstantiateWithParams(&exec, graph, NULL), 0x14);
	INSTANTIATED(cuGraphInstantiateWithParams_ptsz(&exec, graph, NULL), 0x15);
	fake_result = 1;
	exec = (cu_graph_exec)0xdead; /* not written on failure, so not to be told */
	cuGraphInstantiateWithFlags(&exec, graph, 0);
	CHECK(s->exec == 0 && s->result == 1);
	cuGraphInstantiateWithFlags(NULL, graph, 0);
	fake_result = 0;

	cuGraphExecUpdate(x, graph, NULL, NULL);
	cuGraphExecUpdate_v2(x, graph, NULL);
	CHECK(s->updated == 2 && s->exec == 0x31 && s->graph == 0x32);

	n = 0;
#define NODE_SET(call, as, with)                                                                                       \
	call;                                                                                                          \
	CHECK(s->node_set == ++n && s->exec == 0x31 && s->node == 0x33 && s->kind == (as) && s->result == 0);          \
	CHECK(s->params == (uintptr_t)(with))
	NODE_SET(cuGraphExecKernelNodeSetParams(x, node, &kernel_v1), 0, &kernel_v1);
	NODE_SET(cuGraphExecKernelNodeSetParams_v2(x, node, &kernel), 1, &kernel);
	NODE_SET(cuGraphExecMemcpyNodeSetParams(x, node, &copy, NULL), 2, &copy);
	NODE_SET(cuGraphExecMemsetNodeSetParams(x, node, &set, NULL), 3, &set);
	NODE_SET(cuGraphExecChildGraphNodeSetParams(x, node, graph), 4, graph);
	NODE_SET(cuGraphExecHostNodeSetParams(x, node, &set), 5, NULL);
	NODE_SET(cuGraphExecEventWaitNodeSetEvent(x, node, NULL), 5, NULL);
	params.type = CU_NODE_KERNEL;
	NODE_SET(cuGraphExecNodeSetParams(x, node, &params), 1, (char *)&params + 16);
	params.type = CU_NODE_MEMCPY;
	NODE_SET(cuGraphExecNodeSetParams(x, node, &params), 2, (char *)&params + 32);
	params.type = CU_NODE_MEMSET;
	NODE_SET(cuGraphExecNodeSetParams(x, node, &params), 3, (char *)&params + 16);
	params.type = CU_NODE_GRAPH;
	params.graph = graph;
	NODE_SET(cuGraphExecNodeSetParams(x, node, &params), 4, graph);
	params.type = CU_NODE_HOST;
	NODE_SET(cuGraphExecNodeSetParams(x, node, &params), 5, NULL);
	fake_result = 1; /* what was refused is not read */
	CHECK_INT(cuGraphExecNodeSetParams(x, node, (struct cu_node_params *)8), 1);
	fake_result = 0;

#define BEFORE(call)                                                                                                   \
	n = fake_total();                                                                                              \
	call;                                                                                                          \
	CHECK_INT(s->driver_calls_before, n);                                                                          \
	CHECK_INT(fake_total(), n + 1)
	BEFORE(cuGraphExecDestroy(x));
	CHECK_INT(s->destroying, 1);
#define RELEASED(call, a, b, h)                                                                                        \
	BEFORE(call);                                                                                                  \
	CHECK(s->address == (a) && s->bytes == (b) && s->how == (h))
	RELEASED(cuMemFree(0x1000), 0x1000, 0, 0);
	RELEASED(cuMemFree_v2(0x100000000000), 0x100000000000, 0, 0);
	RELEASED(cuMemFreeAsync(0x2000, NULL), 0x2000, 0, 1);
	RELEASED(cuMemFreeAsync_ptsz(0x3000, NULL), 0x3000, 0, 1);
	RELEASED(cuMemUnmap(0x4000, 0x200), 0x4000, 0x200, 2);
	RELEASED(cuIpcCloseMemHandle(0x5000), 0x5000, 0, 2);
	RELEASED(cuMemFreeHost((void *)0x6000), 0x6000, 0, 3);
	RELEASED(cuMemHostUnregister((void *)0x7000), 0x7000, 0, 3);
	CHECK_INT(s->releasing, 8);
#define GOING(call, c, d)                                                                                              \
	BEFORE(call);                                                                                                  \
	CHECK(s->ctx == (c) && s->device == (d))
	GOING(cuCtxDestroy((cu_context)0x61), 0x61, -1);
	GOING(cuCtxDestroy_v2((cu_context)0x62), 0x62, -1);
	GOING(cuDevicePrimaryCtxRelease(1), 0, 1);
	GOING(cuDevicePrimaryCtxRelease_v2(2), 0, 2);
	GOING(cuDevicePrimaryCtxReset(3), 0, 3);
	GOING(cuDevicePrimaryCtxReset_v2(0), 0, 0);
	GOING(cuGreenCtxDestroy((cu_green_ctx)0x70), 0x71, -1); /* the context behind the green one */
	CHECK_INT(s->context_going, 7);
	/* of several holds only the last release lets the context go */
	cuDevicePrimaryCtxRetain(NULL, 4);
	cuDevicePrimaryCtxRetain(NULL, 4);
	cuDevicePrimaryCtxRetain(NULL, 5);
	fake_result = 1; /* one that fails holds nothing */
	cuDevicePrimaryCtxRetain(NULL, 5);
	fake_result = 0;
	cuDevicePrimaryCtxRelease_v2(4);
	CHECK_INT(s->context_going, 7);
	GOING(cuDevicePrimaryCtxRelease_v2(4), 0, 4);
	GOING(cuDevicePrimaryCtxRelease(5), 0, 5);
	GOING(cuDevicePrimaryCtxRelease(5), 0, 5);
	GOING(cuDevicePrimaryCtxRelease(99), 0, 99);
	CHECK_INT(s->context_going, 11);
	CHECK_INT(s->unrouted, 0);
}

#define THREADS  8
#define LAUNCHES 20000

static void *launches(void *arg)
{
	launch_fn *looked_up = (launch_fn *)dlsym(RTLD_DEFAULT, "cuGraphLaunch");

	for (unsigned i = 0; i < LAUNCHES; i++)
		if (i & 1)
			cuGraphLaunch(arg, NULL);
		else
			looked_up(arg, NULL);
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, launches, NULL));
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK_INT(fake_count("cuGraphLaunch"), THREADS * LAUNCHES);
	CHECK_INT(BEGINS(seen()), THREADS * LAUNCHES);
	CHECK_INT(seen()->ends, THREADS * LAUNCHES);
	CHECK_INT(CTR_IN_FLIGHT(seen()->own_begun) + CTR_IN_FLIGHT(seen()->begun),
		  THREADS * LAUNCHES); /* nobody takes them off here */
	CHECK_INT(seen()->own_ends, CTR_ATTEMPTED(seen()->own_begun));
	CHECK_INT(seen()->own_ends, LAUNCHES); /* of one thread, the first */
}

/* Only that a launch arrives, for the runs with other preloads. */
static void chain(void)
{
	launch_fn *looked_up = (launch_fn *)dlsym(RTLD_DEFAULT, "cuGraphLaunch");
	launch_fn *by_handle = (launch_fn *)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGraphLaunch");
	unsigned *other = (unsigned *)dlsym(RTLD_DEFAULT, "other_calls");
	struct seen *s = seen();

	cuGraphLaunch(NULL, NULL);
	printf("linked ours=%u other=%u driver=%u\n", BEGINS(s), *other, fake_count("cuGraphLaunch"));
	looked_up(NULL, NULL);
	printf("scope ours=%u other=%u driver=%u\n", BEGINS(s), *other, fake_count("cuGraphLaunch"));
	by_handle(NULL, NULL);
	printf("handle ours=%u other=%u driver=%u unrouted=%u\n", BEGINS(s), *other, fake_count("cuGraphLaunch"),
	       s->unrouted);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "every"))
		every_entry();
	else if (!strcmp(what, "told"))
		told();
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "chain"))
		chain();
	else
		return 2;
	return 0;
}
