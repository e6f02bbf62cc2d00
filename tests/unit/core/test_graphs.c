/* SPDX-License-Identifier: Apache-2.0
 *
 * test_graphs.c: what is read from graphs, which launches count for which pool, and that whatever cannot be read counts
 * for all.
 */
#include "fake.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXEC(n) ((cu_graph_exec)(uintptr_t)(0xe000 + 16 * (n)))

static struct fake_kernel plain = { "plain_kernel", 2, { 0, 8 }, { 8, 4 } };
static struct fake_kernel packed = { "struct_kernel", 2, { 0, 8 }, { 4, 40 } };
static struct cu_graph_st graph, child, grandchild;

struct by_value {
	int32_t n, m;
	double x;
	void *at;
	uint64_t rest[2];
};

static int fresh(void **state)
{
	(void)state;
	fake_reset();
	memset(&graph, 0, sizeof graph);
	memset(&child, 0, sizeof child);
	memset(&grandchild, 0, sizeof grandchild);
	return 0;
}

/* A node of the plain kernel with this pointer. The values live as long as the driver's would. */
static void **params_of(void *pointer)
{
	static void *pointers[64], *params[64][2];
	static int four = 4;
	static unsigned used;
	unsigned i = used++ % 64;

	pointers[i] = pointer;
	params[i][0] = &pointers[i];
	params[i][1] = &four;
	return params[i];
}

static struct fake_node *add_kernel(struct cu_graph_st *g, void *pointer)
{
	struct fake_node *node = &g->node[g->n++];

	node->type = CU_NODE_KERNEL;
	node->kernel.func = (cu_function)(void *)&plain;
	node->kernel.params = params_of(pointer);
	return node;
}

static struct fake_node *add_node(struct cu_graph_st *g, int type)
{
	g->node[g->n].type = type;
	return &g->node[g->n++];
}

static void launch(cu_graph_exec exec, cu_result result)
{
	fake_graph_launch(exec, result);
}

static uint64_t touching(void)
{
	return fake_committed(CTR_ROW_POOL_LAUNCHES);
}

static uint64_t unread(void)
{
	return fake_row(CTR_ROW_GRAPHS_UNREAD)->outcome[0];
}

/* Does a launch of the graph, instantiated now, count for the pool? */
static bool counts(unsigned n)
{
	uint64_t before = touching(), of_pool = probe_pool_launches(&probe_pools[0]);

	shim_observer.instantiated(EXEC(n), &graph, CU_SUCCESS);
	launch(EXEC(n), CU_SUCCESS);
	assert_int_equal(touching() - before, probe_pool_launches(&probe_pools[0]) - of_pool);
	return touching() != before;
}

/* ---- reading ---- */

static void kernels_that_point_into_the_pool(void **state)
{
	const struct fake_record *t;

	(void)state;
	toy_add(0);
	add_kernel(&graph, &state);
	add_node(&graph, CU_NODE_EMPTY);
	add_kernel(&graph, &toy.ssm[1][3][7]);
	assert_true(counts(0));
	assert_int_equal(fake_count(LOG_GRAPH), 1);
	assert_int_equal(fake_find(LOG_GRAPH, 0)->graph.nodes, 3);
	assert_int_equal(fake_find(LOG_GRAPH, 0)->graph.kernels, 2);
	assert_int_equal(fake_find(LOG_GRAPH, 0)->graph.touches, 1);
	assert_int_equal(fake_find(LOG_GRAPH, 0)->graph.flags, 0);
	assert_int_equal(fake_count(LOG_GRAPH_TOUCH), 1);
	t = fake_find(LOG_GRAPH_TOUCH, 0);
	assert_int_equal(t->touch.graph, fake_find(LOG_GRAPH, 0)->graph.graph);
	assert_int_equal(t->touch.node, 2);
	assert_int_equal(t->touch.target, 0);
	assert_int_equal(t->touch.id, 0);
	assert_int_equal(t->touch.plane, 0); /* ssm of layer 1 was registered first */
	assert_int_equal(t->touch.offset, (3 * TOY_ELEMS + 7) * 4);
	assert_int_equal(t->touch.param, 0);
	assert_string_equal(t->touch.kernel, "plain_kernel");
	assert_int_equal(unread(), 0);
	assert_int_equal(probe_pools[0].users, 0);
	assert_row(CTR_ROW_INSTANTIATE, 1, CTR_COMMITTED);
	assert_int_equal(fake_gpu.guards_open, 0);
}

static void a_graph_that_does_not_touch_does_not_count(void **state)
{
	(void)state;
	toy_add(0);
	add_kernel(&graph, &state);
	add_kernel(&graph, &toy.said);
	assert_false(counts(0));
	assert_row(CTR_ROW_GRAPH_LAUNCH, 1, CTR_COMMITTED);
	assert_int_equal(probe_launches(&probe_counts.launches), 1);
}

static void structures_by_value(void **state)
{
	struct by_value s = { .n = 1, .at = &toy.conv[0][2][0] };
	int n = 3;
	void *params[] = { &n, &s };
	struct fake_node *node;

	(void)state;
	toy_add(0);
	node = add_node(&graph, CU_NODE_KERNEL);
	node->kernel.kern = (cu_kernel)(void *)&packed; /* func is null */
	node->kernel.params = params;
	assert_true(counts(0));
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 0)->touch.param, 1);
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 0)->touch.param_offset, offsetof(struct by_value, at));
	assert_string_equal(fake_find(LOG_GRAPH_TOUCH, 0)->touch.kernel, "struct_kernel");
}

static void parameters_in_extra(void **state)
{
	struct {
		int32_t n, pad;
		struct by_value s;
	} buffer = { .s.at = &toy.ssm[0][0][1] };
	size_t bytes = sizeof buffer;
	void *extra[] = { CU_EXTRA_BUFFER, &buffer, CU_EXTRA_SIZE, &bytes, CU_EXTRA_END };
	struct fake_node *node;

	(void)state;
	toy_add(0);
	node = add_node(&graph, CU_NODE_KERNEL);
	node->kernel.func = (cu_function)(void *)&packed;
	node->kernel.extra = extra;
	assert_true(counts(0));
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 0)->touch.param, 1);
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 0)->touch.param_offset, offsetof(struct by_value, at));
	/* without a kernel that could be asked, the buffer still says enough */
	node->kernel.func = NULL;
	assert_true(counts(1));
	assert_int_equal(unread(), 0);
	/* a buffer that is shorter than its parameters is not believed */
	node->kernel.func = (cu_function)(void *)&packed;
	bytes = 16;
	assert_true(counts(2));
	assert_int_equal(unread(), 1);
}

static void copies_and_fills(void **state)
{
	struct fake_node *node;

	(void)state;
	toy_add(0);
	node = add_node(&graph, CU_NODE_MEMCPY);
	node->copy = (struct cu_memcpy_params) { .src_type = 1,
						 .dst_type = 2,
						 .dst_device = (uintptr_t)toy.conv - 16,
						 .width = 16,
						 .height = 1,
						 .depth = 1 };
	assert_false(counts(0)); /* ends just before */
	node->copy.width = 17;
	assert_true(counts(1));
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 0)->touch.param, 1);
	node->copy = (struct cu_memcpy_params) { .src_type = 2,
						 .dst_type = 1,
						 .src_device = (uintptr_t)toy.conv - 300,
						 .src_pitch = 100,
						 .src_y = 2,
						 .width = 10,
						 .height = 2,
						 .depth = 1 };
	assert_true(counts(2)); /* its second row starts at the pool */
	node->copy.height = 1;
	assert_false(counts(3));
	node = &graph.node[0];
	node->type = CU_NODE_MEMSET;
	node->set = (struct cu_memset_params) { (uintptr_t)toy.ssm[1] + 8, 0, 0, 4, 2, 1 };
	assert_true(counts(4));
	node->set.dst = (uintptr_t)&toy.said;
	assert_false(counts(5));
	assert_int_equal(unread(), 0);
}

static void child_graphs(void **state)
{
	(void)state;
	toy_add(0);
	add_kernel(&grandchild, &state);
	add_kernel(&grandchild, &toy.ssm[0][1][0]);
	add_node(&child, CU_NODE_GRAPH)->child = &grandchild;
	add_kernel(&graph, &state);
	add_node(&graph, CU_NODE_GRAPH)->child = &child;
	add_kernel(&graph, &toy.ssm[0][2][0]);
	assert_true(counts(0));
	assert_int_equal(fake_find(LOG_GRAPH, 0)->graph.nodes, 6);
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 0)->touch.node, 4); /* counted in place */
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 1)->touch.node, 5);
	/* a graph that contains itself cannot be, but must not end us */
	grandchild.node[0].type = CU_NODE_GRAPH;
	grandchild.node[0].child = &grandchild;
	assert_true(counts(1));
	assert_int_equal(unread(), 1);
}

static void what_cannot_be_read_counts(void **state)
{
	static const int types[] = { CU_NODE_CONDITIONAL, CU_NODE_BATCH_MEM_OP, 14, 99 };
	struct fake_node *node;
	unsigned n = 0;

	(void)state;
	toy_add(0);
	node = add_kernel(&graph, &state);
	for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++) {
		node->type = types[i];
		assert_true(counts(n));
		assert_int_equal(unread(), ++n);
		assert_int_equal(fake_find(LOG_GRAPH, n - 1)->graph.flags, LOG_GRAPH_UNREADABLE);
	}
	node->type = CU_NODE_KERNEL;
	node->rc = CU_NOT_SUPPORTED;
	assert_true(counts(n));
	assert_int_equal(unread(), ++n);
	node->rc = 0;
	node->kernel.func = NULL; /* neither: its parameters have no lengths */
	assert_true(counts(n));
	assert_int_equal(unread(), ++n);
	graph.rc = 1;
	assert_true(counts(n));
	assert_int_equal(unread(), ++n);
}

static void nodes_that_write_no_device_memory_are_fine(void **state)
{
	(void)state;
	toy_add(0);
	for (int type = CU_NODE_HOST; type <= CU_NODE_MEM_FREE; type++)
		if (type != CU_NODE_GRAPH)
			add_node(&graph, type);
	assert_false(counts(0));
	assert_int_equal(unread(), 0);
}

static void many_touches_are_counted_and_the_first_listed(void **state)
{
	static void *pointer[300];
	static struct fake_kernel wide = { "wide", 1, { 0 }, { sizeof pointer } };
	void *params[] = { pointer };
	struct fake_node *node;

	(void)state;
	toy_add(0);
	for (int i = 0; i < 300; i++)
		pointer[i] = &toy.ssm[0][0][i];
	node = add_node(&graph, CU_NODE_KERNEL);
	node->kernel.func = (cu_function)(void *)&wide;
	node->kernel.params = params;
	assert_true(counts(0));
	assert_int_equal(fake_find(LOG_GRAPH, 0)->graph.touches, 300);
	assert_int_equal(fake_count(LOG_GRAPH_TOUCH), LOG_GRAPH_TOUCH_MAX);
}

/* Each record that finds no room is waited for in the server's call: once is enough. */
static void touches_that_find_no_room(void **state)
{
	(void)state;
	toy_add(0);
	for (int i = 0; i < 5; i++)
		add_kernel(&graph, &toy.ssm[0][i]);
	fake.room = 3;
	assert_true(counts(0));
	assert_int_equal(fake_count(LOG_GRAPH_TOUCH), 2);
	assert_int_equal(fake.refused, 1);
}

static void launches_of_the_pool_beyond_the_first_word_of_a_set(void **state)
{
	(void)state;
	for (int i = 0; i < 64; i++)
		assert_int_equal(toy_add(-1), i);
	assert_int_equal(toy_add(0), 64);
	add_kernel(&graph, &toy.ssm);
	shim_observer.instantiated(EXEC(0), &graph, CU_SUCCESS);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(probe_pool_launches(&probe_pools[64]), 1);
}

static void the_reserved_slots_of_a_tensor_are_the_pools_too(void **state)
{
	(void)state;
	toy_add(0);
	slotprobe_pool_remove(0);
	toy.said.first_slot = 1; /* slots 1 ... 7: a kernel binds the tensor, which begins with slot 0 */
	toy.said.n_slots = TOY_SLOTS - 1;
	for (int i = 0; i < TOY_PLANES; i++)
		toy.plane[i].base += (uint64_t)toy.plane[i].slot_stride;
	assert_int_equal(slotprobe_pool_add(&toy.said), 1);
	add_kernel(&graph, toy.ssm[0][0]);
	shim_observer.instantiated(EXEC(0), &graph, CU_SUCCESS);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 1);
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 0)->touch.offset, (uint64_t) - (int64_t)sizeof toy.ssm[0][0]);
}

/* ---- later ---- */

static void pools_registered_later_are_found(void **state)
{
	(void)state;
	add_kernel(&graph, &toy.conv[1][1][1]);
	shim_observer.instantiated(EXEC(0), &graph, CU_SUCCESS);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 0);
	graph.n = 0; /* what was read is kept, not asked again */
	toy_add(0);
	assert_int_equal(fake_find(LOG_POOL, 0)->pool.launches, 1);
	assert_int_equal(fake_count(LOG_GRAPH), 2);
	assert_int_equal(fake_find(LOG_GRAPH, 1)->graph.flags, LOG_GRAPH_RESCANNED);
	assert_int_equal(fake_find(LOG_GRAPH, 1)->graph.graph, fake_find(LOG_GRAPH, 0)->graph.graph);
	assert_int_equal(fake_count(LOG_GRAPH_TOUCH), 1);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 1);
	assert_int_equal(probe_pool_launches(&probe_pools[0]), 1);
	/* a pool that goes is not counted for, and its place is not taken for it */
	slotprobe_pool_remove(0);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 1);
	/* one that comes in its stead is another */
	assert_int_equal(toy_add(0), 1);
	assert_int_equal(fake_count(LOG_GRAPH_TOUCH), 2);
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 1)->touch.id, 1);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 2);
	assert_int_equal(probe_pool_launches(&probe_pools[1]), 1);
}

static void regions_are_found_and_no_pool(void **state)
{
	static int32_t buffer[8];

	(void)state;
	toy_add(0);
	add_kernel(&graph, &buffer[2]);
	add_kernel(&graph, &buffer[8]); /* just behind it */
	assert_false(counts(0));
	slotprobe_region("buffer", (uintptr_t)buffer, sizeof buffer, SLOTPROBE_I32);
	assert_int_equal(fake_find(LOG_GRAPH, 1)->graph.flags, LOG_GRAPH_RESCANNED);
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 0)->touch.target, 1);
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 0)->touch.offset, 8);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 0);
	shim_observer.releasing((uintptr_t)buffer, sizeof buffer, SHIM_RELEASE_FREE);
	assert_false(counts(1));
	assert_int_equal(fake_count(LOG_GRAPH_TOUCH), 1); /* it is no region any more */
	slotprobe_region("inside", (uintptr_t)&buffer[4], 4, SLOTPROBE_I32);
	memset(&graph, 0, sizeof graph);
	add_node(&graph, CU_NODE_MEMSET)->set = (struct cu_memset_params) { (uintptr_t)buffer, 0, 0, 4, 8, 1 };
	assert_false(counts(2));
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, 1)->touch.id, 1); /* a fill that begins before it */
}

static void updates(void **state)
{
	static struct cu_graph_st other;

	(void)state;
	toy_add(0);
	add_kernel(&graph, &state);
	assert_false(counts(0));
	memset(&other, 0, sizeof other);
	add_kernel(&other, &toy.ssm[0][0][0]);
	shim_observer.updated(EXEC(0), &other, 910);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 0);
	shim_observer.updated(EXEC(0), &other, CU_SUCCESS);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 1);
	assert_int_equal(fake_find(LOG_GRAPH, 1)->graph.flags, LOG_GRAPH_UPDATED);
	assert_int_equal(fake_row(CTR_ROW_UPDATE)->outcome[CTR_COMMITTED], 1);
	assert_int_equal(fake_row(CTR_ROW_UPDATE)->outcome[CTR_ERROR_DRIVER], 1);
	shim_observer.updated(EXEC(0), &other, CU_SUCCESS);
	assert_int_equal(fake_count(LOG_GRAPH), 2); /* nothing new is not said */
	other.node[0].kernel.params = params_of(&toy.ssm[0][1][0]);
	shim_observer.updated(EXEC(0), &other, CU_SUCCESS);
	assert_int_equal(fake_count(LOG_GRAPH), 3); /* another place is news, and so is another size */
	add_kernel(&other, &state);
	shim_observer.updated(EXEC(0), &other, CU_SUCCESS);
	assert_int_equal(fake_count(LOG_GRAPH), 4);
	assert_int_equal(fake_find(LOG_GRAPH, 3)->graph.nodes, 2);
	shim_observer.updated(EXEC(0), &graph, CU_SUCCESS);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 1);
}

static void set_kernel(cu_graph_exec exec, struct fake_node *node, void *pointer, cu_result result)
{
	struct cu_kernel_params k = { .func = (cu_function)(void *)&plain, .params = params_of(pointer) };

	shim_observer.node_set(exec, (cu_graph_node)(void *)node, SHIM_NODE_KERNEL_V2, &k, result);
}

static void nodes_set_anew(void **state)
{
	struct cu_memset_params fill = { (uintptr_t)toy.conv, 0, 0, 1, 4, 1 };
	struct cu_memcpy_params copy = {
		.src_type = 4, .src_device = (uintptr_t)toy.conv, .dst_type = 1, .width = 4, .height = 1, .depth = 1
	};
	struct cu_kernel_params_v1 old = { .func = (cu_function)(void *)&plain };

	(void)state;
	toy_add(0);
	add_kernel(&graph, &state);
	add_node(&graph, CU_NODE_MEMSET)->set = (struct cu_memset_params) { (uintptr_t)&graph, 0, 0, 1, 4, 1 };
	add_node(&graph, CU_NODE_MEMCPY);
	assert_false(counts(0));
	set_kernel(EXEC(0), &graph.node[0], &toy.ssm, 1);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 0);
	set_kernel(EXEC(0), &graph.node[0], &toy.ssm, CU_SUCCESS);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 1);
	old.params = params_of(&old);
	shim_observer.node_set(EXEC(0), (cu_graph_node)(void *)&graph.node[0], SHIM_NODE_KERNEL_V1, &old, CU_SUCCESS);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 1); /* the old words of the node are gone */
	shim_observer.node_set(EXEC(0), (cu_graph_node)(void *)&graph.node[1], SHIM_NODE_MEMSET, &fill, CU_SUCCESS);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 2);
	fill.dst = (uintptr_t)&fill;
	shim_observer.node_set(EXEC(0), (cu_graph_node)(void *)&graph.node[1], SHIM_NODE_MEMSET, &fill, CU_SUCCESS);
	shim_observer.node_set(EXEC(0), (cu_graph_node)(void *)&graph.node[2], SHIM_NODE_MEMCPY, &copy, CU_SUCCESS);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 3);
	assert_int_equal(unread(), 0);
}

static void set_child(cu_graph_exec exec, struct fake_node *node, cu_graph to)
{
	shim_observer.node_set(exec, (cu_graph_node)(void *)node, SHIM_NODE_CHILD, to, CU_SUCCESS);
}

static void child_set_anew(void **state)
{
	(void)state;
	toy_add(0);
	add_kernel(&child, &toy.ssm);
	add_kernel(&child, &state);
	add_kernel(&grandchild, &state);
	add_kernel(&grandchild, &state);
	add_node(&graph, CU_NODE_GRAPH)->child = &child;
	add_kernel(&graph, &state);
	assert_true(counts(0));
	set_child(EXEC(0), &graph.node[0], &grandchild);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 1);
	set_child(EXEC(0), &graph.node[0], &child);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 2);
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, fake_count(LOG_GRAPH_TOUCH) - 1)->touch.node, 1);
	assert_int_equal(unread(), 0);
}

static void a_node_that_is_set_leaves_its_neighbours(void **state)
{
	(void)state;
	toy_add(0);
	for (int i = 0; i < 3; i++)
		add_kernel(&graph, i == 1 ? (void *)&state : (void *)&toy.ssm);
	assert_true(counts(0));
	set_kernel(EXEC(0), &graph.node[1], &toy.conv, CU_SUCCESS);
	assert_int_equal(fake_find(LOG_GRAPH, 1)->graph.touches, 3);
	set_kernel(EXEC(0), &graph.node[1], &state, CU_SUCCESS);
	assert_int_equal(fake_find(LOG_GRAPH, 2)->graph.touches, 2);
}

static void nodes_that_write_no_device_memory_may_be_set(void **state)
{
	(void)state;
	toy_add(0);
	for (int type = CU_NODE_HOST; type <= CU_NODE_SEMAS_WAIT; type++)
		if (type != CU_NODE_GRAPH)
			add_node(&graph, type);
	assert_false(counts(0));
	for (size_t i = 0; i < graph.n; i++)
		shim_observer.node_set(EXEC(0), (cu_graph_node)(void *)&graph.node[i], SHIM_NODE_OTHER, NULL,
				       CU_SUCCESS);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 0);
	assert_int_equal(unread(), 0);
}

static void a_node_set_to_what_cannot_be_read(void **state)
{
	struct cu_kernel_params k = { .params = params_of(&state) }; /* no kernel: its parameters have no lengths */

	(void)state;
	toy_add(0);
	add_kernel(&graph, &state);
	assert_false(counts(0));
	shim_observer.node_set(EXEC(0), (cu_graph_node)(void *)&graph.node[0], SHIM_NODE_KERNEL_V2, &k, CU_SUCCESS);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 1);
	assert_int_equal(unread(), 1);
}

/* What a graph holds is forgotten where all of them hold too much: then nobody knows what a later pool is to it. */
static void graphs_that_there_is_no_room_to_keep(void **state)
{
	enum { WORDS = 2000, GRAPHS = 2000 };
	static void *pointer[WORDS];
	static struct fake_kernel wide = { "wide", 1, { 0 }, { sizeof pointer } };
	void *params[] = { pointer };
	struct fake_node *node;

	(void)state;
	for (int i = 0; i < WORDS; i++)
		pointer[i] = &graph;
	node = add_node(&graph, CU_NODE_KERNEL);
	node->kernel.func = (cu_function)(void *)&wide;
	node->kernel.params = params;
	for (unsigned n = 0; n < GRAPHS; n++)
		shim_observer.instantiated(EXEC(n), &graph, CU_SUCCESS);
	assert_int_equal(unread(), 0);
	set_kernel(EXEC(GRAPHS - 1), &graph.node[0], &state, CU_SUCCESS); /* which of its words were the node's? */
	assert_int_equal(unread(), 1);
	toy_add(0);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 0);
	launch(EXEC(GRAPHS - 2), CU_SUCCESS);
	assert_int_equal(touching(), 1);
	assert_true(unread() > 1);
}

static void *instantiate_another(void *arg)
{
	shim_observer.instantiated(EXEC(1), arg, CU_SUCCESS);
	return NULL;
}

/* The reading of a graph that takes for ever, in another thread. */
static pthread_t stuck_reading(struct cu_graph_st *g)
{
	pthread_t t;

	fake_gpu.graph_stall = 1;
	pthread_create(&t, NULL, instantiate_another, g);
	while (__atomic_load_n(&fake_gpu.graph_stall, __ATOMIC_ACQUIRE) != 2)
		usleep(100);
	return t;
}

static void pools_that_could_not_be_matched_count_every_launch(void **state)
{
	static struct cu_graph_st other;
	pthread_t t;

	(void)state;
	add_kernel(&graph, &state);
	assert_false(counts(0));
	assert_false(counts(2));
	t = stuck_reading(&other);
	shim_observer.updated(EXEC(2), &graph, CU_SUCCESS); /* to something that nobody can look at */
	assert_int_equal(toy_add(0), 0);
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 1);
	assert_int_equal(probe_pool_launches(&probe_pools[0]), 1);
	__atomic_store_n(&fake_gpu.graph_stall, 0, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	slotprobe_region("later", (uintptr_t)&state, 8, SLOTPROBE_RAW); /* all graphs are looked at again */
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 1);
	launch(EXEC(2), CU_SUCCESS);
	assert_int_equal(touching(), 2);
}

/* The thread that reads a graph while another forks does not exist in the child. */
static void a_forks_child_reads_its_own_graphs(void **state)
{
	static struct cu_graph_st other;
	pthread_t t;
	pid_t child_pid;
	int status;

	(void)state;
	t = stuck_reading(&other);
	child_pid = fork();
	if (!child_pid) {
		fake_gpu.graph_stall = 0;
		record_source.forked();
		add_kernel(&graph, &state);
		_exit(toy_add(0) != 0 || counts(0) || unread());
	}
	assert_int_equal(waitpid(child_pid, &status, 0), child_pid);
	assert_int_equal(status, 0);
	__atomic_store_n(&fake_gpu.graph_stall, 0, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
}

static void sets_that_cannot_be_placed_are_on_the_safe_side(void **state)
{
	struct fake_node stranger;

	(void)state;
	toy_add(0);
	add_kernel(&graph, &toy.ssm);
	add_node(&graph, CU_NODE_EVENT_RECORD);
	assert_true(counts(0));
	/* after an update the numbers of the nodes are another graph's: what it touched stays */
	shim_observer.updated(EXEC(0), &graph, CU_SUCCESS);
	for (int i = 0; i < 50; i++)
		set_kernel(EXEC(0), &graph.node[0], &state, CU_SUCCESS);
	set_kernel(EXEC(0), &stranger, &state, CU_SUCCESS);
	assert_true(probe_graph_find(EXEC(0))->image.n_words <= 4); /* and nothing piles up */
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 2);
	assert_int_equal(unread(), 0);
	set_kernel(EXEC(0), &stranger, &toy.conv, CU_SUCCESS);
	assert_int_equal(fake_find(LOG_GRAPH_TOUCH, fake_count(LOG_GRAPH_TOUCH) - 1)->touch.node, UINT32_MAX);
	/* an event is no memory; anything else that is not told is unknown */
	shim_observer.node_set(EXEC(0), (cu_graph_node)(void *)&graph.node[1], SHIM_NODE_OTHER, NULL, CU_SUCCESS);
	assert_int_equal(unread(), 0);
	for (int i = 0; i < 2; i++) /* each graph counts once */
		shim_observer.node_set(EXEC(0), (cu_graph_node)(void *)&graph.node[0], SHIM_NODE_OTHER, NULL,
				       CU_SUCCESS);
	assert_int_equal(unread(), 1);
	assert_int_equal(fake_find(LOG_GRAPH, fake_count(LOG_GRAPH) - 1)->graph.flags,
			 LOG_GRAPH_UPDATED | LOG_GRAPH_UNREADABLE);
}

/* ---- launches ---- */

static void own_launch(cu_graph_exec exec, cu_result result)
{
	own_add(shim_observer.own_launch_begun, CTR_BEGIN_ONE);
	assert_int_equal(shim_observer.own_launch_end(exec, NULL, result), result);
}

static void shared_launch(cu_graph_exec exec, cu_result result)
{
	ctr_begin(ctr_core(CTR_ROW_GRAPH_LAUNCH));
	assert_int_equal(shim_observer.launch_end(exec, NULL, result), result);
}

/* What one thread counts without the lock prefix nobody else may write, on the usual road and on the slow one. */
static void each_launch_is_counted_in_its_threads_words(void **state)
{
	const struct ctr_row *row = fake_row(CTR_ROW_GRAPH_LAUNCH), *pools = fake_row(CTR_ROW_POOL_LAUNCHES);

	(void)state;
	assert_int_equal(toy_add(0), 0);
	add_kernel(&graph, &toy.ssm);
	shim_observer.instantiated(EXEC(0), &graph, CU_SUCCESS);
	for (unsigned i = 0; i < 5; i++)
		own_launch(EXEC(i % 2), CU_SUCCESS); /* the second was never read */
	for (unsigned i = 0; i < 3; i++)
		shared_launch(EXEC(i % 2), CU_SUCCESS);
	own_launch(EXEC(0), 1);
	own_launch(EXEC(0), 1);
	shared_launch(EXEC(0), 1);
	assert_int_equal(row->own_begun, 7ull << CTR_FLIGHT_BITS);
	assert_int_equal(row->begun, 4ull << CTR_FLIGHT_BITS);
	assert_int_equal(row->own_committed, 5);
	assert_int_equal(row->outcome[CTR_COMMITTED], 3);
	assert_int_equal(row->outcome[CTR_ERROR_DRIVER], 3);
	assert_int_equal(pools->own_committed, 5);
	assert_int_equal(pools->outcome[0], 3);
	assert_int_equal(probe_counts.launches.own, 5);
	assert_int_equal(probe_counts.launches.shared, 3);
	assert_int_equal(probe_pools[0].launches.own, 5);
	assert_int_equal(probe_pools[0].launches.shared, 3);
}

/* A place outlives its pools, and so do its launches: the next pool there begins at 0. */
static void a_pool_in_a_used_place_begins_at_none(void **state)
{
	int id = toy_add(0);

	(void)state;
	add_kernel(&graph, &toy.ssm);
	shim_observer.instantiated(EXEC(0), &graph, CU_SUCCESS);
	own_launch(EXEC(0), CU_SUCCESS);
	shared_launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(probe_pool_launches(&probe_pools[0]), 2);
	do {
		slotprobe_pool_remove(id);
		fake_turns(4);
		id = toy_add(0);
		assert_true(id >= 0);
	} while (id % PROBE_POOLS);
	assert_int_equal(probe_pool_launches(&probe_pools[0]), 0);
	own_launch(EXEC(0), CU_SUCCESS);
	shared_launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(probe_pool_launches(&probe_pools[0]), 2);
}

static void launches_that_count_for_every_pool(void **state)
{
	(void)state;
	launch(EXEC(9), CU_SUCCESS); /* no pool: nothing to touch */
	assert_int_equal(touching(), 0);
	toy_add(0);
	launch(EXEC(9), CU_SUCCESS); /* instantiated before we looked */
	assert_int_equal(touching(), 1);
	launch(EXEC(9), 1);
	assert_int_equal(touching(), 1);
	add_kernel(&graph, &state);
	assert_false(counts(0));
	toy_add(-1); /* cannot be named by a graph */
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(touching(), 2);
	assert_int_equal(probe_pool_launches(&probe_pools[0]), 1);
	assert_int_equal(probe_pool_launches(&probe_pools[1]), 1);
	assert_int_equal(fake_committed(CTR_ROW_GRAPH_LAUNCH), 4);
	assert_int_equal(fake_row(CTR_ROW_GRAPH_LAUNCH)->outcome[CTR_ERROR_DRIVER], 1);
}

static void events_say_how_many_launches_came_before(void **state)
{
	struct slotprobe_claim c;

	(void)state;
	launch(EXEC(9), CU_SUCCESS);
	toy_add(0);
	add_kernel(&graph, &toy.ssm);
	assert_true(counts(0));
	c = toy_claim(0, 1);
	slotprobe_donate(&c);
	assert_int_equal(fake_find(LOG_EVENT, 0)->event.launches, 2);
	assert_int_equal(fake_find(LOG_EVENT, 0)->event.pool_launches, 1);
	c.key_text = "not the usual claim";
	slotprobe_donate(&c);
	assert_int_equal(fake_find(LOG_EVENT, 1)->event.launches, 2);
	assert_int_equal(fake_find(LOG_EVENT, 1)->event.pool_launches, 1);
	fake_turns(2);
}

static void launches_are_recorded_when_asked_for(void **state)
{
	(void)state;
	toy_add(0);
	add_kernel(&graph, &toy.ssm);
	counts(0);
	assert_int_equal(fake_count(LOG_LAUNCH), 0);
	record_hot.level = LOG_LEVEL_LAUNCHES;
	launch(EXEC(0), CU_SUCCESS);
	launch(EXEC(9), 700);
	assert_int_equal(fake_find(LOG_LAUNCH, 0)->launch.number, 2);
	assert_int_equal(fake_find(LOG_LAUNCH, 0)->launch.graph, fake_find(LOG_GRAPH, 0)->graph.graph);
	assert_int_equal(fake_find(LOG_LAUNCH, 1)->launch.graph, 0);
	assert_int_equal(fake_find(LOG_LAUNCH, 1)->launch.result, 700);
	record_hot.recording = 0;
	launch(EXEC(0), CU_SUCCESS); /* paused: counted alone */
	record_hot.recording = 1;
	assert_int_equal(fake_count(LOG_LAUNCH), 2);
	fake.queue_full = true;
	launch(EXEC(0), CU_SUCCESS);
	assert_int_equal(fake_row(CTR_ROW_LAUNCH_LOST)->outcome[0], 1);
}

static void handles_come_back(void **state)
{
	(void)state;
	toy_add(0);
	add_kernel(&graph, &toy.ssm);
	assert_true(counts(0));
	shim_observer.destroying(EXEC(0));
	assert_int_equal(fake_find(LOG_GRAPH_DESTROY, 0)->graph.graph, fake_find(LOG_GRAPH, 0)->graph.graph);
	shim_observer.destroying(EXEC(0));
	assert_int_equal(fake_count(LOG_GRAPH_DESTROY), 1);
	graph.n = 0;
	add_kernel(&graph, &state);
	assert_false(counts(0));
	assert_false(counts(0)); /* destroyed by a route that we did not see */
	assert_int_equal(fake_count(LOG_GRAPH_DESTROY), 2);
	assert_int_equal(fake_find(LOG_GRAPH, 2)->graph.graph, 3);
}

static void many_graphs_come_and_go(void **state)
{
	(void)state;
	toy_add(0);
	add_kernel(&graph, &toy.ssm);
	for (unsigned n = 0; n < 3 * GRAPH_PLACES; n++) {
		shim_observer.instantiated(EXEC(n), &graph, CU_SUCCESS);
		assert_non_null(probe_graph_find(EXEC(n)));
		if (n >= 100)
			shim_observer.destroying(EXEC(n - 100));
		if (n % 1000 == 0)
			fake.n = 0;
	}
	for (unsigned n = 0; n < 3 * GRAPH_PLACES - 100; n++)
		assert_null(probe_graph_find(EXEC(n)));
	for (unsigned n = 3 * GRAPH_PLACES - 100; n < 3 * GRAPH_PLACES; n++)
		assert_non_null(probe_graph_find(EXEC(n)));
	assert_int_equal(unread(), 0);
}

static void failed_instantiations(void **state)
{
	(void)state;
	shim_observer.instantiated(NULL, &graph, 1);
	assert_row(CTR_ROW_INSTANTIATE, 1, CTR_ERROR_DRIVER);
	assert_int_equal(fake_count(LOG_GRAPH), 0);
}

static void runtime_launches(void **state)
{
	(void)state;
	shim_observer.runtime_launch(1, 0);
	shim_observer.runtime_launch(0, 0);
	shim_observer.runtime_launch(0, 1);
	assert_int_equal(fake_row(CTR_ROW_RUNTIME_LAUNCHES)->outcome[0], 3);
	assert_int_equal(fake_row(CTR_ROW_RUNTIME_UNROUTED)->outcome[0], 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, fresh)
	const struct CMUnitTest tests[] = {
		T(kernels_that_point_into_the_pool),
		T(a_graph_that_does_not_touch_does_not_count),
		T(structures_by_value),
		T(parameters_in_extra),
		T(copies_and_fills),
		T(child_graphs),
		T(what_cannot_be_read_counts),
		T(nodes_that_write_no_device_memory_are_fine),
		T(many_touches_are_counted_and_the_first_listed),
		T(touches_that_find_no_room),
		T(launches_of_the_pool_beyond_the_first_word_of_a_set),
		T(the_reserved_slots_of_a_tensor_are_the_pools_too),
		T(pools_registered_later_are_found),
		T(regions_are_found_and_no_pool),
		T(updates),
		T(nodes_set_anew),
		T(child_set_anew),
		T(a_node_that_is_set_leaves_its_neighbours),
		T(nodes_that_write_no_device_memory_may_be_set),
		T(a_node_set_to_what_cannot_be_read),
		T(graphs_that_there_is_no_room_to_keep),
		T(pools_that_could_not_be_matched_count_every_launch),
		T(a_forks_child_reads_its_own_graphs),
		T(sets_that_cannot_be_placed_are_on_the_safe_side),
		T(launches_that_count_for_every_pool),
		T(each_launch_is_counted_in_its_threads_words),
		T(a_pool_in_a_used_place_begins_at_none),
		T(events_say_how_many_launches_came_before),
		T(launches_are_recorded_when_asked_for),
		T(handles_come_back),
		T(many_graphs_come_and_go),
		T(failed_instantiations),
		T(runtime_launches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
