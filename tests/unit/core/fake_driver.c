/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_driver.c: a driver in which device memory is host memory and every call does what the test asked for.
 */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake_device fake_gpu;

#define G fake_gpu

static char print_function, ready_function, stream_own;

static cu_result driver_get_version(int *version)
{
	*version = 13000;
	return CU_SUCCESS;
}

static cu_result device_get(cu_device *device, int ordinal)
{
	*device = ordinal;
	return ordinal < 2 ? CU_SUCCESS : CU_INVALID_VALUE;
}

static cu_result device_get_name(char *name, int bytes, cu_device device)
{
	(void)device;
	strncpy(name, "Fake", (size_t)bytes);
	return CU_SUCCESS;
}

static cu_result device_get_attribute(int *value, int attribute, cu_device device)
{
	(void)device;
	*value = attribute == CU_ATTRIBUTE_CAPABILITY_MAJOR ? 9 : 0;
	return CU_SUCCESS;
}

static cu_result ctx_get_current(cu_context *ctx)
{
	*ctx = G.current;
	return CU_SUCCESS;
}

static cu_context stack[8];

static cu_result ctx_push(cu_context ctx)
{
	stack[G.pushes++ - G.pops] = G.current;
	G.current = ctx;
	return CU_SUCCESS;
}

static cu_result ctx_pop(cu_context *ctx)
{
	*ctx = G.current;
	G.pops++;
	G.current = stack[G.pushes - G.pops];
	return CU_SUCCESS;
}

static cu_result ctx_get_device(cu_device *device)
{
	*device = G.current_device;
	return G.current ? CU_SUCCESS : 201;
}

static cu_result primary_ctx_get_state(cu_device device, unsigned *flags, int *active)
{
	(void)device;
	*flags = 0;
	*active = G.primary != NULL;
	return CU_SUCCESS;
}

static cu_result primary_ctx_retain(cu_context *ctx, cu_device device)
{
	(void)device;
	G.retains++;
	*ctx = G.primary;
	return CU_SUCCESS;
}

static cu_result primary_ctx_release(cu_device device)
{
	(void)device;
	G.releases++;
	return CU_SUCCESS;
}

static cu_result stream_create(cu_stream *stream, unsigned flags)
{
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	*stream = (cu_stream)(void *)&stream_own;
	return CU_SUCCESS;
}

static cu_result stream_destroy(cu_stream stream)
{
	(void)stream;
	return CU_SUCCESS;
}

static cu_result stream_get_ctx(cu_stream stream, cu_context *ctx)
{
	assert_true((uintptr_t)stream > 2);
	*ctx = G.stream_ctx;
	return CU_SUCCESS;
}

static cu_result stream_is_capturing(cu_stream stream, int *status)
{
	if ((uintptr_t)stream <= 1)
		assert_int_equal(G.legacy_open, 1);
	*status = G.capturing;
	return G.capture_rc;
}

static cu_result exchange_capture_mode(int *mode)
{
	__atomic_fetch_add(&G.guards_open, *mode == CU_MODE_RELAXED ? 1u : -1u, __ATOMIC_RELAXED);
	*mode = *mode == CU_MODE_RELAXED ? CU_MODE_GLOBAL : CU_MODE_RELAXED;
	return CU_SUCCESS;
}

static void wait_for(uint32_t *stall)
{
	if (!__atomic_load_n(stall, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(stall, 2, __ATOMIC_RELEASE);
	while (__atomic_load_n(stall, __ATOMIC_ACQUIRE))
		usleep(100);
}

static void run(const struct fp_launch *launch)
{
	fp_host_launch(launch);
}

void fake_run(void)
{
	for (unsigned i = 0; i < G.n_held; i++)
		run(&G.held[i]);
	G.n_held = 0;
}

static cu_result launch_kernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			       unsigned bz, unsigned shared_bytes, cu_stream stream, void **params, void **extra)
{
	assert_true(__atomic_load_n(&G.guards_open, __ATOMIC_RELAXED) > 0);
	assert_int_equal(gy * gz * by * bz, 1);
	assert_true(!shared_bytes && !extra);
	if ((uintptr_t)stream <= 1)
		assert_int_equal(G.legacy_open, 1);
	if (f == (cu_function)(void *)&ready_function) {
		assert_int_equal(gx * bx, 1);
		assert_ptr_equal(stream, &stream_own);
		if (!G.ready_dead)
			__atomic_store_n(*(uint32_t **)params[0], *(uint32_t *)params[1], __ATOMIC_RELEASE);
		return CU_SUCCESS;
	}
	assert_ptr_equal(f, &print_function);
	if (G.launch_rc)
		return G.launch_rc;
	const struct fp_launch *launch = params[0];
	assert_int_equal(bx, FP_THREADS);
	assert_int_equal(gx, launch->n_chunks);
	assert_ptr_equal(G.current, G.stream_ctx); /* the context is current when its kernel is launched */
	wait_for(&G.stall);
	__atomic_fetch_add(&G.launches, 1, __ATOMIC_RELAXED);
	if (G.hold)
		G.held[G.n_held++] = *launch;
	else
		run(launch);
	return CU_SUCCESS;
}

static cu_result memcpy_htod_async(cu_deviceptr dst, const void *src, size_t bytes, cu_stream stream)
{
	assert_ptr_equal(stream, &stream_own);
	if (!G.copy_rc)
		memcpy((void *)(uintptr_t)dst, src, bytes);
	return G.copy_rc;
}

static cu_result mem_alloc(cu_deviceptr *ptr, size_t bytes)
{
	static void *arena;

	assert_true(bytes <= 8u << 20);
	if (G.alloc_rc)
		return G.alloc_rc;
	arena = arena ? arena : malloc(8u << 20);
	memset(arena, 0x5a, bytes);
	*ptr = (uintptr_t)arena;
	return CU_SUCCESS;
}

static cu_result mem_free(cu_deviceptr ptr)
{
	(void)ptr;
	fail_msg("device memory is never freed: that would wait for the device");
	return CU_SUCCESS;
}

static cu_result mem_host_register(void *ptr, size_t bytes, unsigned flags)
{
	(void)ptr;
	assert_int_equal(flags, CU_HOSTREGISTER_PORTABLE | CU_HOSTREGISTER_DEVICEMAP);
	if (G.register_most && bytes > G.register_most)
		return 2; /* no memory */
	G.registers += !G.register_rc;
	return G.register_rc;
}

static cu_result mem_host_unregister(void *ptr)
{
	(void)ptr;
	G.unregisters++;
	return CU_SUCCESS;
}

static cu_result mem_host_get_device_pointer(cu_deviceptr *dev, void *host, unsigned flags)
{
	(void)flags;
	*dev = (uintptr_t)host;
	return G.map_rc;
}

static cu_result pointer_get_attribute(void *value, int attribute, cu_deviceptr ptr)
{
	if (ptr >= G.unknown_low && ptr < G.unknown_high)
		return CU_INVALID_VALUE;
	switch (attribute) {
	case 2:
		*(unsigned *)value = 2;
		return CU_SUCCESS;
	case 9:
		*(int *)value = ptr >= G.other_low && ptr < G.other_high;
		return CU_SUCCESS;
	case 11: /* the toy pool is one allocation, everything else its own */
		if (ptr >= (uintptr_t)&toy && ptr < (uintptr_t)(&toy + 1))
			*(cu_deviceptr *)value = (uintptr_t)&toy;
		else
			*(cu_deviceptr *)value = ptr & ~(cu_deviceptr)0xfff;
		return CU_SUCCESS;
	default:
		return CU_INVALID_VALUE;
	}
}

static cu_result library_load_data(cu_library *library, const void *image, void **a, void **b, unsigned c, void **d,
				   void **e, unsigned f)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	assert_ptr_equal(image, fp_image);
	assert_ptr_equal(G.current, G.stream_ctx);
	*library = (cu_library)(uintptr_t)0x11b;
	return G.library_rc;
}

static cu_result library_get_kernel(cu_kernel *kernel, cu_library library, const char *name)
{
	assert_int_equal((uintptr_t)library, 0x11b);
	*kernel = (cu_kernel)(void *)(strcmp(name, FP_READY_NAME) ? &print_function : &ready_function);
	return CU_SUCCESS;
}

static cu_result kernel_get_function(cu_function *f, cu_kernel kernel)
{
	*f = (cu_function)(void *)kernel;
	return CU_SUCCESS;
}

static cu_result func_load(cu_function f)
{
	(void)f;
	return CU_SUCCESS;
}

static cu_result module_load_data(cu_module *module, const void *image)
{
	assert_ptr_equal(image, fp_image);
	*module = (cu_module)(uintptr_t)0x30d;
	return CU_SUCCESS;
}

static cu_result module_unload(cu_module module)
{
	(void)module;
	return CU_SUCCESS;
}

static cu_result module_get_function(cu_function *f, cu_module module, const char *name)
{
	(void)module;
	*f = (cu_function)(void *)(strcmp(name, FP_READY_NAME) ? &print_function : &ready_function);
	return CU_SUCCESS;
}

/* ---- graphs ---- */

static cu_result param_info(const void *kernel, size_t index, size_t *offset, size_t *bytes)
{
	const struct fake_kernel *k = kernel;

	if (index >= k->n)
		return CU_INVALID_VALUE;
	*offset = k->offset[index];
	*bytes = k->bytes[index];
	return CU_SUCCESS;
}

static cu_result kernel_get_param_info(cu_kernel kernel, size_t index, size_t *offset, size_t *bytes)
{
	return param_info(kernel, index, offset, bytes);
}

static cu_result func_get_param_info(cu_function f, size_t index, size_t *offset, size_t *bytes)
{
	return param_info(f, index, offset, bytes);
}

static cu_result kernel_get_name(const char **name, cu_kernel kernel)
{
	*name = ((const struct fake_kernel *)(const void *)kernel)->name;
	return CU_SUCCESS;
}

static cu_result func_get_name(const char **name, cu_function f)
{
	*name = ((const struct fake_kernel *)(const void *)f)->name;
	return CU_SUCCESS;
}

static cu_result graph_get_nodes(cu_graph graph, cu_graph_node *nodes, size_t *n)
{
	assert_true(__atomic_load_n(&G.guards_open, __ATOMIC_RELAXED) > 0);
	wait_for(&G.graph_stall);
	if (graph->rc)
		return graph->rc;
	for (size_t i = 0; nodes && i < *n && i < graph->n; i++)
		nodes[i] = (cu_graph_node)(void *)&graph->node[i];
	*n = graph->n;
	return CU_SUCCESS;
}

static const struct fake_node *node_of(cu_graph_node node)
{
	return (const struct fake_node *)(const void *)node;
}

static cu_result graph_node_get_type(cu_graph_node node, int *type)
{
	*type = node_of(node)->type;
	return CU_SUCCESS;
}

static cu_result graph_kernel_get_params(cu_graph_node node, struct cu_kernel_params *params)
{
	*params = node_of(node)->kernel;
	return node_of(node)->rc;
}

static cu_result graph_memcpy_get_params(cu_graph_node node, struct cu_memcpy_params *params)
{
	*params = node_of(node)->copy;
	return node_of(node)->rc;
}

static cu_result graph_memset_get_params(cu_graph_node node, struct cu_memset_params *params)
{
	*params = node_of(node)->set;
	return node_of(node)->rc;
}

static cu_result graph_child_get_graph(cu_graph_node node, cu_graph *graph)
{
	*graph = node_of(node)->child;
	return node_of(node)->rc;
}

/* ---- the shim's side ---- */

static const struct shim_driver driver = {
	.driver_get_version = driver_get_version,
	.device_get = device_get,
	.device_get_name = device_get_name,
	.device_get_attribute = device_get_attribute,
	.ctx_get_current = ctx_get_current,
	.ctx_push = ctx_push,
	.ctx_pop = ctx_pop,
	.ctx_get_device = ctx_get_device,
	.primary_ctx_get_state = primary_ctx_get_state,
	.primary_ctx_retain = primary_ctx_retain,
	.primary_ctx_release = primary_ctx_release,
	.stream_create = stream_create,
	.stream_destroy = stream_destroy,
	.stream_get_ctx = stream_get_ctx,
	.stream_is_capturing = stream_is_capturing,
	.exchange_capture_mode = exchange_capture_mode,
	.launch_kernel = launch_kernel,
	.memcpy_htod_async = memcpy_htod_async,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
	.mem_host_register = mem_host_register,
	.mem_host_unregister = mem_host_unregister,
	.mem_host_get_device_pointer = mem_host_get_device_pointer,
	.pointer_get_attribute = pointer_get_attribute,
	.library_load_data = library_load_data,
	.library_get_kernel = library_get_kernel,
	.kernel_get_function = kernel_get_function,
	.kernel_get_name = kernel_get_name,
	.kernel_get_param_info = kernel_get_param_info,
	.func_load = func_load,
	.func_get_name = func_get_name,
	.func_get_param_info = func_get_param_info,
	.module_load_data = module_load_data,
	.module_unload = module_unload,
	.module_get_function = module_get_function,
	.graph_get_nodes = graph_get_nodes,
	.graph_node_get_type = graph_node_get_type,
	.graph_kernel_get_params = graph_kernel_get_params,
	.graph_memcpy_get_params = graph_memcpy_get_params,
	.graph_memset_get_params = graph_memset_get_params,
	.graph_child_get_graph = graph_child_get_graph,
	.complete = true,
};

bool fake_usual = true;
const struct shim_driver *shim_driver_found;

void fake_find_driver(void)
{
	shim_driver_found = fake_usual ? &driver : NULL; /* NULL: each call asks, and no claim is the usual one */
}

void shim_mode_retry(const struct shim_driver *drv, int mode)
{
	(void)drv, (void)mode;
	fail();
}

const struct shim_driver *shim_driver_find(void)
{
	return G.absent ? NULL : &driver;
}

void shim_guard_enter(struct shim_guard *guard)
{
	memset(guard, 0, sizeof *guard);
	__atomic_fetch_add(&G.guards_open, 1, __ATOMIC_RELAXED);
}

void shim_guard_leave(struct shim_guard *guard)
{
	(void)guard;
	__atomic_fetch_sub(&G.guards_open, 1, __ATOMIC_RELAXED);
}

unsigned shim_captures_open(void)
{
	return 0;
}

void shim_bypass_look(void)
{
	G.bypass_looks++;
}

bool shim_legacy_begin(void)
{
	if (!G.legacy_refused)
		G.legacy_open++;
	return !G.legacy_refused;
}

void shim_legacy_end(void)
{
	G.legacy_open--;
}
