/* SPDX-License-Identifier: Apache-2.0
 *
 * work.c: graphs of memset nodes, which need no device code, launched in loops.
 */
#include "work.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"

#define BYTES   4096u
#define THREADS 8

enum { PINNED = 1, ON_DEVICE = 1, CONDITIONAL_NODE = 13, ASSIGN_DEFAULT = 1, NON_BLOCKING = 1 };

unsigned launched;

static cu_handle ctx;
static const char *obtained; /* how */
static cu_ptr memory;

void say_launches(void)
{
	printf("launches %u pid %d\n", launched, (int)getpid());
	fflush(stdout);
}

static cu_handle stream_new(void)
{
	cu_handle stream = NULL;

	if (strcmp(obtained, "per-thread")) /* there the default stream is what is meant */
		TRY(stream_create(&stream, NON_BLOCKING));
	return stream;
}

static struct cu_set_params set_params(cu_ptr dst, unsigned value)
{
	return (struct cu_set_params) { .dst = dst, .value = value, .element_bytes = 1, .width = BYTES, .height = 1 };
}

static cu_handle graph_of_set(unsigned value, cu_handle *node)
{
	struct cu_set_params params = set_params(memory, value);
	cu_handle graph;

	TRY(graph_create(&graph, 0));
	TRY(add_set(node, graph, NULL, 0, &params, ctx));
	return graph;
}

static void launch(cu_handle exec, cu_handle stream)
{
	TRY(launch(exec, stream));
	__atomic_fetch_add(&launched, 1, __ATOMIC_RELAXED);
}

static void launch_all(cu_handle graph, unsigned n)
{
	cu_handle stream = stream_new(), exec;

	TRY(instantiate(&exec, graph, 0));
	while (n--)
		launch(exec, stream);
	TRY(stream_sync(stream));
}

static void plain(unsigned n)
{
	cu_handle node;

	launch_all(graph_of_set(1, &node), n);
}

static void *one_thread(void *n)
{
	TRY(ctx_set(ctx));
	plain(*(unsigned *)n);
	return NULL;
}

static void threads(unsigned n)
{
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, one_thread, &n))
			die("no thread");
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* Each launch after an update of the whole graph. */
static void update(unsigned n)
{
	cu_handle node, first = graph_of_set(0, &node), stream = stream_new(), exec;

	TRY(instantiate(&exec, first, 0));
	for (unsigned i = 0; i < n; i++) {
		cu_handle graph = graph_of_set(i & 255, &node);
		struct cu_update_info info;

		TRY(update(exec, graph, &info));
		launch(exec, stream);
		TRY(graph_destroy(graph));
	}
	TRY(stream_sync(stream));
}

/* Each launch after a change of its one node. */
static void set(unsigned n)
{
	cu_handle node, graph = graph_of_set(0, &node), stream = stream_new(), exec;

	TRY(instantiate(&exec, graph, 0));
	for (unsigned i = 0; i < n; i++) {
		struct cu_set_params params = set_params(memory, i & 255);

		TRY(set_set(exec, node, &params, ctx));
		launch(exec, stream);
	}
	TRY(stream_sync(stream));
}

/* Memory that the graph allocates, sets and frees. */
static void memory_nodes(unsigned n)
{
	add_alloc_fn *add_alloc = (add_alloc_fn *)cuda_find("cuGraphAddMemAllocNode");
	add_free_fn *add_free = (add_free_fn *)cuda_find("cuGraphAddMemFreeNode");
	struct cu_alloc_params alloc = { .type = PINNED, .location_type = ON_DEVICE, .bytes = BYTES };
	struct cu_set_params params;
	cu_handle graph, node[3];
	int result;

	TRY(graph_create(&graph, 0));
	result = add_alloc(&node[0], graph, NULL, 0, &alloc);
	if (result)
		die("driver error %d in cuGraphAddMemAllocNode", result);
	params = set_params(alloc.ptr, 3);
	TRY(add_set(&node[1], graph, &node[0], 1, &params, ctx));
	result = add_free(&node[2], graph, &node[1], 1, alloc.ptr);
	if (result)
		die("driver error %d in cuGraphAddMemFreeNode", result);
	launch_all(graph, n);
}

/* A body that runs if the handle holds its default, which it does. */
static void conditional_node(unsigned n)
{
	conditional_fn *handle_create = (conditional_fn *)cuda_find("cuGraphConditionalHandleCreate");
	add_node_fn *add_node = (add_node_fn *)cuda_find("cuGraphAddNode");
	struct cu_conditional_params node = { .type = CONDITIONAL_NODE, .size = 1, .ctx = ctx };
	struct cu_set_params params = set_params(memory, 4);
	cu_handle graph, added, in_body;
	int result;

	TRY(graph_create(&graph, 0));
	result = handle_create(&node.handle, graph, ctx, 1, ASSIGN_DEFAULT);
	if (result)
		die("driver error %d in cuGraphConditionalHandleCreate", result);
	result = add_node(&added, graph, NULL, 0, &node);
	if (result)
		die("driver error %d in cuGraphAddNode", result);
	TRY(add_set(&in_body, node.bodies[0], NULL, 0, &params, ctx));
	launch_all(graph, n);
}

static void start(const char *how)
{
	int device;

	obtained = how; /* anew, if this is not the first work */
	cuda_load(how);
	TRY(init(0));
	TRY(device_get(&device, 0));
	TRY(ctx_retain(&ctx, device));
	TRY(ctx_set(ctx));
	TRY(mem_alloc(&memory, BYTES));
}

void work(const char *how, const char *what, unsigned n)
{
	static const struct {
		const char *name;
		void (*run)(unsigned n);
	} all[] = { { "plain", plain }, { "threads", threads },     { "update", update },
		    { "set", set },     { "memory", memory_nodes }, { "conditional", conditional_node } };

	start(how);
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(all[i].name, what))
			continue;
		all[i].run(n);
		return;
	}
	die("there is no work called %s", what);
}

#ifdef PLUGIN
/* What a host calls in a library that it has opened. */
__attribute__((visibility("default"))) unsigned plugin_work(const char *how, const char *what, unsigned n);
unsigned plugin_work(const char *how, const char *what, unsigned n)
{
	work(how, what, n);
	return launched;
}
#endif
