/* SPDX-License-Identifier: Apache-2.0
 *
 * graphs.c: graphs as structure: nodes of every plain type, edges, clones, and the questions about them.
 */
#include <string.h>

#include "conform.h"

static cu_deviceptr at;
static uint32_t value = 3;
static void *params[2];
static struct cu_kernel_params kernel;
static struct cu_memcpy_params copy;
static struct cu_memset_params fill;
static int host_calls;
static cu_graph graph;
static cu_graph_node node[6]; /* kernel, memcpy, memset, host, empty, kernel */

static void host_function(void *data)
{
	__atomic_fetch_add((int *)data, 1, __ATOMIC_ACQ_REL);
}

static const struct cux_host_params host = { host_function, &host_calls };

static void describe(void)
{
	device_open();
	at = memory;
	kernel = store_params(&at, &value, params);
	copy = (struct cu_memcpy_params) { .src_type = CUX_MEMORY_DEVICE,
					   .src_device = memory,
					   .dst_type = CUX_MEMORY_DEVICE,
					   .dst_device = memory + 256,
					   .width = 16,
					   .height = 1,
					   .depth = 1 };
	fill = (struct cu_memset_params) {
		.dst = memory + 512, .value = 9, .element_bytes = 1, .width = 8, .height = 1
	};
}

/* kernel -> memcpy -> host -> kernel, kernel -> memset -> empty */
static void build(void)
{
	describe();
	NEED(cuGraphCreate, &graph, 0);
	NEED(cuGraphAddKernelNode_v2, &node[0], graph, NULL, 0, &kernel);
	NEED(cuGraphAddMemcpyNode, &node[1], graph, &node[0], 1, &copy, ctx);
	NEED(cuGraphAddMemsetNode, &node[2], graph, &node[0], 1, &fill, ctx);
	NEED(cuGraphAddHostNode, &node[3], graph, &node[1], 1, &host);
	NEED(cuGraphAddEmptyNode, &node[4], graph, &node[2], 1);
	at = memory + 1024;
	NEED(cuGraphAddKernelNode_v2, &node[5], graph, &node[3], 1, &kernel);
}

static long long index_of(cu_graph_node n)
{
	for (int i = 0; i < 6; i++)
		if (node[i] == n)
			return i;
	return n ? 99 : -1;
}

void group_graphs(void)
{
	cu_graph other = NULL;
	cu_graph_node n = NULL, list[8], two[2];
	struct cu_kernel_params_v1 first;
	size_t count = 99;
	int type = -1;

	describe();
	T("", cuGraphCreate, &graph, 0);
	T("flags 1", cuGraphCreate, &other, 1);
	T("no place", cuGraphCreate, NULL, 0);
	T("of an empty graph", cuGraphGetNodes, graph, NULL, &count);
	see("n", (long long)count);
	T("", cuGraphAddKernelNode_v2, &node[0], graph, NULL, 0, &kernel);
	T("", cuGraphAddMemcpyNode, &node[1], graph, &node[0], 1, &copy, ctx);
	T("", cuGraphAddMemsetNode, &node[2], graph, &node[0], 1, &fill, ctx);
	T("", cuGraphAddHostNode, &node[3], graph, &node[1], 1, &host);
	two[0] = node[2];
	two[1] = node[3];
	T("two dependencies", cuGraphAddEmptyNode, &node[4], graph, two, 2);
	memcpy(&first, &kernel, sizeof(first));
	T("", cuGraphAddKernelNode, &node[5], graph, NULL, 0, &first);
	two[1] = node[2];
	T("the same twice", cuGraphAddEmptyNode, &n, graph, two, 2);
	T("a count and no list", cuGraphAddEmptyNode, &n, graph, NULL, 1);
	T("no place", cuGraphAddEmptyNode, NULL, graph, NULL, 0);
	T("no graph", cuGraphAddEmptyNode, &n, NULL, NULL, 0);
	T("no params", cuGraphAddKernelNode_v2, &n, graph, NULL, 0, NULL);
	T("no context", cuGraphAddMemsetNode, &n, graph, NULL, 0, &fill, NULL);
	T("no context", cuGraphAddMemcpyNode, &n, graph, NULL, 0, &copy, NULL);
	for (int i = 0; i < 6; i++) {
		static const char *const names[] = { "kernel", "memcpy", "memset", "host", "empty", "first form" };

		T(names[i], cuGraphNodeGetType, node[i], &type);
		see("type", type);
	}
	T("no place", cuGraphNodeGetType, node[0], NULL);
	T("NULL", cuGraphNodeGetType, NULL, &type);
	T("count", cuGraphGetNodes, graph, NULL, &count);
	see("n", (long long)count);
	count = 8;
	T("room for 8", cuGraphGetNodes, graph, list, &count);
	see("n", (long long)count);
	for (size_t i = 0; i < 8; i++)
		see((const char[]) { (char)('0' + i), 0 }, i < count ? index_of(list[i]) : list[i] ? 99 : -1);
	count = 2;
	T("room for 2", cuGraphGetNodes, graph, list, &count);
	see("n", (long long)count);
	count = 0;
	T("room for 0", cuGraphGetNodes, graph, list, &count);
	see("n", (long long)count);
	T("no number", cuGraphGetNodes, graph, list, NULL);
	T("NULL", cuGraphGetNodes, NULL, list, &count);
	T("", cuGraphGetRootNodes, graph, NULL, &count);
	see("n", (long long)count);
	T("", cuGraphDestroyNode, node[4]);
	NEED(cuGraphGetNodes, graph, NULL, &count);
	see("n", (long long)count);
	T("NULL", cuGraphDestroyNode, NULL);
	T("", cuGraphDestroy, graph);
	T("NULL", cuGraphDestroy, NULL);
}

static void see_neighbours(const char *what, bool before, int i)
{
	cu_graph_node list[8] = { NULL };
	size_t n = 8;

	if (before)
		T(what, cuGraphNodeGetDependencies, node[i], list, &n);
	else
		T(what, cuGraphNodeGetDependentNodes, node[i], list, &n);
	see("n", (long long)n);
	for (size_t j = 0; j < n && j < 8; j++)
		see((const char[]) { (char)('0' + j), 0 }, index_of(list[j]));
}

void group_edges(void)
{
	cu_graph_node from[16], to[16];
	struct cux_edge_data data[16], programmatic = { .from_port = 1, .type = 1 };
	size_t n = 0;

	build();
	T("count", cuGraphGetEdges, graph, NULL, NULL, &n);
	see("n", (long long)n);
	n = 16;
	T("", cuGraphGetEdges, graph, from, to, &n);
	see("n", (long long)n);
	for (size_t i = 0; i < n; i++)
		see((const char[]) { (char)('0' + i), 0 }, index_of(from[i]) * 10 + index_of(to[i]));
	T("from alone", cuGraphGetEdges, graph, from, NULL, &n);
	memset(data, 7, sizeof(data));
	n = 16;
	T("", cuGraphGetEdges_v2, graph, from, to, data, &n);
	see("n", (long long)n);
	see("type", data[0].type);
	see("from port", data[0].from_port);
	see_neighbours("of the first", true, 0);
	see_neighbours("of the last", true, 5);
	see_neighbours("of the first", false, 0);
	see_neighbours("of the last", false, 5);
	n = 8;
	T("", cuGraphNodeGetDependencies_v2, node[1], from, data, &n);
	see("n", (long long)n);
	n = 8;
	T("", cuGraphNodeGetDependentNodes_v2, node[0], from, data, &n);
	see("n", (long long)n);
	T("no number", cuGraphNodeGetDependencies, node[1], from, NULL);
	T("NULL", cuGraphNodeGetDependencies, NULL, from, &n);
	T("", cuGraphAddDependencies, graph, &node[4], &node[5], 1);
	T("again", cuGraphAddDependencies, graph, &node[4], &node[5], 1);
	T("to itself", cuGraphAddDependencies, graph, &node[4], &node[4], 1);
	T("0", cuGraphAddDependencies, graph, NULL, NULL, 0);
	T("a count and no lists", cuGraphAddDependencies, graph, NULL, NULL, 1);
	T("", cuGraphRemoveDependencies, graph, &node[4], &node[5], 1);
	T("not there", cuGraphRemoveDependencies, graph, &node[4], &node[5], 1);
	T("programmatic, host to kernel", cuGraphAddDependencies_v2, graph, &node[4], &node[5], &programmatic, 1);
	T("programmatic, kernel to kernel", cuGraphAddDependencies_v2, graph, &node[0], &node[5], &programmatic, 1);
	n = 16;
	T("edge data lost", cuGraphGetEdges, graph, from, to, &n);
	n = 16;
	T("with a programmatic edge", cuGraphGetEdges_v2, graph, from, to, data, &n);
	see("n", (long long)n);
	n = 8;
	T("edge data lost", cuGraphNodeGetDependencies, node[5], from, &n);
	T("plain, of a programmatic edge", cuGraphRemoveDependencies, graph, &node[0], &node[5], 1);
	T("programmatic", cuGraphRemoveDependencies_v2, graph, &node[0], &node[5], &programmatic, 1);
	T("a cycle", cuGraphAddDependencies, graph, &node[5], &node[0], 1);
	T("a cycle", cuGraphInstantiateWithFlags, &(cu_graph_exec) { NULL }, graph, 0);
}

static void see_kernel(const struct cu_kernel_params *p)
{
	see("func", p->func == store);
	see("kern", p->kern != NULL);
	see("ctx", p->ctx == ctx ? 1 : p->ctx ? 2 : 0);
	see("grid", p->grid[0]);
	see("block", p->block[0]);
	see("shared", p->shared_bytes);
	see("extra", p->extra != NULL);
	if (p->params) {
		see("address", (long long)(*(cu_deviceptr *)p->params[0] - memory));
		see("value", *(uint32_t *)p->params[1]);
	}
}

void group_node_params(void)
{
	struct cu_kernel_params got;
	struct cu_kernel_params_v1 first;
	struct cu_memcpy_params copy_got;
	struct cu_memset_params fill_got;
	struct cux_host_params host_got;
	cu_graph_node n;
	unsigned char buffer[16] = { 0 };
	size_t size = 12;
	void *extra[] = { CU_EXTRA_BUFFER, buffer, CU_EXTRA_SIZE, &size, CU_EXTRA_END };
	cu_library library;
	cu_kernel kern;

	build();
	T("", cuGraphKernelNodeGetParams_v2, node[0], &got);
	see_kernel(&got);
	T("", cuGraphKernelNodeGetParams, node[5], &first);
	see("value", *(uint32_t *)first.params[1]);
	T("of a memset", cuGraphKernelNodeGetParams_v2, node[2], &got);
	T("no place", cuGraphKernelNodeGetParams_v2, node[0], NULL);
	T("NULL", cuGraphKernelNodeGetParams_v2, NULL, &got);
	kernel.grid[0] = 3;
	value = 8;
	T("", cuGraphKernelNodeSetParams_v2, node[0], &kernel);
	NEED(cuGraphKernelNodeGetParams_v2, node[0], &got);
	see_kernel(&got);
	kernel.grid[0] = 0;
	T("grid 0", cuGraphKernelNodeSetParams_v2, node[0], &kernel);
	T("grid 0", cuGraphAddKernelNode_v2, &n, graph, NULL, 0, &kernel);
	kernel.grid[0] = 1;
	kernel.func = NULL;
	T("no function", cuGraphAddKernelNode_v2, &n, graph, NULL, 0, &kernel);
	kernel.func = store;
	kernel.params = NULL;
	T("no parameters", cuGraphAddKernelNode_v2, &n, graph, NULL, 0, &kernel);
	kernel.extra = extra;
	*(cu_deviceptr *)buffer = memory;
	*(uint32_t *)(buffer + 8) = 66;
	T("extra", cuGraphAddKernelNode_v2, &n, graph, NULL, 0, &kernel);
	T("made with extra", cuGraphKernelNodeGetParams_v2, n, &got);
	see_kernel(&got);
	kernel.extra = NULL;
	kernel.params = params;
	NEED(cuLibraryLoadData, &library, conform_ptx, NULL, NULL, 0, NULL, NULL, 0);
	NEED(cuLibraryGetKernel, &kern, library, "conform_store");
	kernel.func = NULL;
	kernel.kern = kern;
	T("a kernel, not a function", cuGraphAddKernelNode_v2, &n, graph, NULL, 0, &kernel);
	T("made with a kernel", cuGraphKernelNodeGetParams_v2, n, &got);
	see("func", got.func != NULL);
	see("kern", got.kern == kern);
	see("ctx", got.ctx == ctx ? 1 : got.ctx ? 2 : 0);
	kernel.kern = NULL;
	kernel.func = (cu_function)kern;
	T("a kernel as function", cuGraphAddKernelNode_v2, &n, graph, NULL, 0, &kernel);
	T("made with a kernel as function", cuGraphKernelNodeGetParams_v2, n, &got);
	see("func", got.func == (cu_function)kern ? 1 : got.func ? 2 : 0);
	see("kern", got.kern == kern);
	kernel.func = store;

	T("", cuGraphMemcpyNodeGetParams, node[1], &copy_got);
	see("width", (long long)copy_got.width);
	see("height", (long long)copy_got.height);
	see("depth", (long long)copy_got.depth);
	see("source type", copy_got.src_type);
	see("destination type", copy_got.dst_type);
	see("source", (long long)(copy_got.src_device - memory));
	see("destination", (long long)(copy_got.dst_device - memory));
	T("of a kernel", cuGraphMemcpyNodeGetParams, node[0], &copy_got);
	T("no place", cuGraphMemcpyNodeGetParams, node[1], NULL);
	copy.width = 32;
	T("", cuGraphMemcpyNodeSetParams, node[1], &copy);
	copy.width = 0;
	T("width 0", cuGraphAddMemcpyNode, &n, graph, NULL, 0, &copy, ctx);
	copy.width = 16;
	copy.src_device = 0;
	T("no source", cuGraphAddMemcpyNode, &n, graph, NULL, 0, &copy, ctx);

	T("", cuGraphMemsetNodeGetParams, node[2], &fill_got);
	see("destination", (long long)(fill_got.dst - memory));
	see("value", fill_got.value);
	see("element", fill_got.element_bytes);
	see("width", (long long)fill_got.width);
	see("height", (long long)fill_got.height);
	T("of a kernel", cuGraphMemsetNodeGetParams, node[0], &fill_got);
	T("no place", cuGraphMemsetNodeGetParams, node[2], NULL);
	fill.element_bytes = 3;
	T("3 bytes", cuGraphAddMemsetNode, &n, graph, NULL, 0, &fill, ctx);
	fill.element_bytes = 1;
	fill.width = 0;
	T("width 0", cuGraphAddMemsetNode, &n, graph, NULL, 0, &fill, ctx);
	fill.width = 8;
	fill.dst = 0;
	T("no destination", cuGraphAddMemsetNode, &n, graph, NULL, 0, &fill, ctx);
	fill.dst = memory;
	T("", cuGraphMemsetNodeSetParams, node[2], &fill);
	T("", cuGraphHostNodeGetParams, node[3], &host_got);
	see("function", host_got.fn == host_function);
	see("data", host_got.data == &host_calls);
	T("", cuGraphHostNodeSetParams, node[3], &host);
	T("no function", cuGraphAddHostNode, &n, graph, NULL, 0, &(struct cux_host_params) { NULL, NULL });
}

void group_clones(void)
{
	cu_graph clone = NULL, second = NULL;
	cu_graph_node found = NULL;
	struct cu_kernel_params got;
	size_t n = 0;
	int type = -1;

	build();
	T("", cuGraphClone, &clone, graph);
	NEED(cuGraphGetNodes, clone, NULL, &n);
	see("nodes", (long long)n);
	NEED(cuGraphGetEdges, clone, NULL, NULL, &n);
	see("edges", (long long)n);
	T("no place", cuGraphClone, NULL, graph);
	T("NULL", cuGraphClone, &second, NULL);
	T("", cuGraphNodeFindInClone, &found, node[5], clone);
	see("another", found != NULL && found != node[5]);
	NEED(cuGraphNodeGetType, found, &type);
	see("type", type);
	NEED(cuGraphKernelNodeGetParams_v2, found, &got);
	see_kernel(&got);
	T("no place", cuGraphNodeFindInClone, NULL, node[5], clone);
	T("no node", cuGraphNodeFindInClone, &found, NULL, clone);
	T("no graph", cuGraphNodeFindInClone, &found, node[5], NULL);
	T("not its clone", cuGraphNodeFindInClone, &found, node[5], graph);
	NEED(cuGraphClone, &second, clone);
	T("the original in a clone of a clone", cuGraphNodeFindInClone, &found, node[5], second);
	NEED(cuGraphDestroyNode, node[4]);
	NEED(cuGraphNodeFindInClone, &found, node[5], clone);
	NEED(cuGraphDestroyNode, found);
	T("destroyed in the clone", cuGraphNodeFindInClone, &found, node[5], clone);
	NEED(cuGraphDestroy, graph);
	T("the original is gone", cuGraphGetNodes, clone, NULL, &n);
	see("nodes", (long long)n);
	T("of a clone", cuGraphDestroy, clone);
}

void group_execs(void)
{
	struct cu_instantiate_params with = { .flags = 0, .result = 99 };
	cu_graph_exec exec = NULL, other = NULL;
	cu_graph_node failed = NULL;
	char log[64] = "xx";
	uint64_t flags = 99;
	unsigned enabled = 9;

	build();
	T("", cuGraphInstantiateWithFlags, &exec, graph, 0);
	T("no place", cuGraphInstantiateWithFlags, NULL, graph, 0);
	T("NULL", cuGraphInstantiateWithFlags, &other, NULL, 0);
	T("flags 256", cuGraphInstantiateWithFlags, &other, graph, 256);
	T("auto free", cuGraphInstantiateWithFlags, &other, graph, 1);
	T("", cuGraphExecGetFlags, other, &flags);
	see("flags", (long long)flags);
	T("priority", cuGraphInstantiateWithFlags, &other, graph, 8);
	T("", cuGraphInstantiate, &other, graph, &failed, log, sizeof(log));
	see("log", log[0]);
	see("node", failed != NULL);
	T("", cuGraphInstantiate_v2, &other, graph, NULL, NULL, 0);
	T("", cuGraphInstantiateWithParams, &other, graph, &with);
	see("result", with.result);
	see("node", with.error_node != NULL);
	T("no params", cuGraphInstantiateWithParams, &other, graph, NULL);
	with.flags = 2;
	with.upload_stream = stream;
	T("upload", cuGraphInstantiateWithParams, &other, graph, &with);
	T("per thread", cuGraphInstantiateWithParams_ptsz, &other, graph, &with);
	T("", cuGraphLaunch, exec, stream);
	see("stored", peek(memory));
	see("copied", peek(memory + 256));
	see("set", peek(memory + 512));
	see("second", peek(memory + 1024));
	see("host calls", __atomic_load_n(&host_calls, __ATOMIC_ACQUIRE));
	T("legacy", cuGraphLaunch, exec, NULL);
	T("per thread", cuGraphLaunch_ptsz, exec, NULL);
	T("handle 2", cuGraphLaunch, exec, CU_PER_THREAD);
	NEED(cuCtxSynchronize, );
	see("host calls", __atomic_load_n(&host_calls, __ATOMIC_ACQUIRE));
	T("NULL", cuGraphLaunch, NULL, stream);
	T("", cuGraphUpload, exec, stream);
	T("", cuGraphNodeGetEnabled, exec, node[0], &enabled);
	see("enabled", enabled);
	T("off", cuGraphNodeSetEnabled, exec, node[0], 0);
	NEED(cuGraphNodeGetEnabled, exec, node[0], &enabled);
	see("enabled", enabled);
	wipe();
	T("one node off", cuGraphLaunch, exec, stream);
	see("stored", peek(memory));
	see("second", peek(memory + 1024));
	T("on", cuGraphNodeSetEnabled, exec, node[0], 1);
	T("a host node", cuGraphNodeSetEnabled, exec, node[3], 0);
	T("an empty node", cuGraphNodeSetEnabled, exec, node[4], 0);
	T("NULL", cuGraphNodeSetEnabled, exec, NULL, 0);
	NEED(cuGraphDestroy, graph);
	T("the graph is gone", cuGraphLaunch, exec, stream);
	see("stored", peek(memory));
	T("", cuGraphExecDestroy, exec);
	T("NULL", cuGraphExecDestroy, NULL);
}

void group_exec_params(void)
{
	cu_graph_exec exec = NULL;
	struct cu_kernel_params got;
	struct cu_kernel_params_v1 first;
	struct cux_node_params any = { .type = CU_NODE_KERNEL };

	build();
	NEED(cuGraphInstantiateWithFlags, &exec, graph, 0);
	at = memory;
	value = 44;
	T("", cuGraphExecKernelNodeSetParams_v2, exec, node[0], &kernel);
	NEED(cuGraphLaunch, exec, stream);
	see("stored", peek(memory));
	NEED(cuGraphKernelNodeGetParams_v2, node[0], &got);
	see("the graph has", *(uint32_t *)got.params[1]);
	value = 45;
	memcpy(&first, &kernel, sizeof(first));
	T("", cuGraphExecKernelNodeSetParams, exec, node[0], &first);
	NEED(cuGraphLaunch, exec, stream);
	see("stored", peek(memory));
	T("of a memset", cuGraphExecKernelNodeSetParams_v2, exec, node[2], &kernel);
	T("no params", cuGraphExecKernelNodeSetParams_v2, exec, node[0], NULL);
	T("no node", cuGraphExecKernelNodeSetParams_v2, exec, NULL, &kernel);
	T("no exec", cuGraphExecKernelNodeSetParams_v2, NULL, node[0], &kernel);
	kernel.func = add;
	T("another function", cuGraphExecKernelNodeSetParams_v2, exec, node[0], &kernel);
	kernel.func = store;
	kernel.grid[0] = 0;
	T("grid 0", cuGraphExecKernelNodeSetParams_v2, exec, node[0], &kernel);
	kernel.grid[0] = 1;
	copy.dst_device = memory + 300;
	T("", cuGraphExecMemcpyNodeSetParams, exec, node[1], &copy, ctx);
	T("no context", cuGraphExecMemcpyNodeSetParams, exec, node[1], &copy, NULL);
	T("no params", cuGraphExecMemcpyNodeSetParams, exec, node[1], NULL, ctx);
	fill.value = 5;
	T("", cuGraphExecMemsetNodeSetParams, exec, node[2], &fill, ctx);
	NEED(cuGraphLaunch, exec, stream);
	see("set", peek(memory + 512));
	fill.element_bytes = 4;
	fill.width = 2;
	T("other elements", cuGraphExecMemsetNodeSetParams, exec, node[2], &fill, ctx);
	fill.height = 2;
	fill.pitch = 64;
	T("two rows", cuGraphExecMemsetNodeSetParams, exec, node[2], &fill, ctx);
	T("no params", cuGraphExecMemsetNodeSetParams, exec, node[2], NULL, ctx);
	T("", cuGraphExecHostNodeSetParams, exec, node[3], &host);
	T("no params", cuGraphExecHostNodeSetParams, exec, node[3], NULL);
	value = 46;
	any.kernel = kernel;
	T("kernel", cuGraphExecNodeSetParams, exec, node[0], &any);
	NEED(cuGraphLaunch, exec, stream);
	see("stored", peek(memory));
	any = (struct cux_node_params) { .type = CU_NODE_MEMSET };
	any.memset.set = fill;
	any.memset.set.height = 1;
	any.memset.ctx = ctx;
	T("memset", cuGraphExecNodeSetParams, exec, node[2], &any);
	T("memset for a kernel", cuGraphExecNodeSetParams, exec, node[0], &any);
	any = (struct cux_node_params) { .type = CU_NODE_MEMCPY };
	any.memcpy.copy = copy;
	any.memcpy.ctx = ctx;
	T("memcpy", cuGraphExecNodeSetParams, exec, node[1], &any);
	any = (struct cux_node_params) { .type = CU_NODE_HOST };
	any.host = host;
	T("host", cuGraphExecNodeSetParams, exec, node[3], &any);
	any = (struct cux_node_params) { .type = 99 };
	T("type 99", cuGraphExecNodeSetParams, exec, node[0], &any);
	T("no params", cuGraphExecNodeSetParams, exec, node[0], NULL);
	any = (struct cux_node_params) { .type = CU_NODE_KERNEL };
	any.kernel = kernel;
	T("kernel", cuGraphNodeSetParams, node[0], &any);
	T("no params", cuGraphNodeSetParams, node[0], NULL);
}

static void update(const char *what, cu_graph_exec exec, cu_graph with)
{
	struct cu_update_result info = { 99, NULL, NULL };

	T(what, cuGraphExecUpdate_v2, exec, with, &info);
	see("info", info.result);
	see("node", info.error_node != NULL);
	see("from", info.error_from_node != NULL);
}

void group_updates(void)
{
	cu_graph_exec exec = NULL;
	cu_graph other = NULL, mine;
	cu_graph_node n = NULL, m = NULL, first = NULL;
	int code = 99;
	cu_function toy;
	cu_module module;

	build();
	mine = graph;
	NEED(cuGraphInstantiateWithFlags, &exec, graph, 0);
	update("itself", exec, graph);
	at = memory;
	value = 21;
	NEED(cuGraphKernelNodeSetParams_v2, node[0], &kernel);
	update("other parameters", exec, graph);
	NEED(cuGraphLaunch, exec, stream);
	see("stored", peek(memory));
	kernel.func = add;
	NEED(cuGraphKernelNodeSetParams_v2, node[0], &kernel);
	update("another function", exec, graph);
	kernel.func = store;
	NEED(cuModuleLoadData, &module, conform_ptx);
	NEED(cuModuleGetFunction, &toy, module, "conform_store");
	kernel.func = toy;
	NEED(cuGraphKernelNodeSetParams_v2, node[0], &kernel);
	update("a function of another module", exec, graph);
	kernel.func = store;
	NEED(cuGraphKernelNodeSetParams_v2, node[0], &kernel);
	fill.dst = memory + 640;
	NEED(cuGraphMemsetNodeSetParams, node[2], &fill);
	update("memset elsewhere", exec, graph);
	fill.element_bytes = 2;
	NEED(cuGraphMemsetNodeSetParams, node[2], &fill);
	update("memset of other elements", exec, graph);
	NEED(cuGraphClone, &other, mine);
	update("a clone", exec, other);
	NEED(cuGraphAddEmptyNode, &n, other, NULL, 0);
	update("one node more", exec, other);
	NEED(cuGraphDestroyNode, n);
	NEED(cuGraphNodeFindInClone, &n, node[4], other);
	NEED(cuGraphDestroyNode, n);
	update("one node less", exec, other);
	NEED(cuGraphNodeFindInClone, &m, node[2], other);
	NEED(cuGraphAddMemsetNode, &n, other, &m, 1, &fill, ctx);
	update("another type", exec, other);
	NEED(cuGraphDestroyNode, n);
	NEED(cuGraphNodeFindInClone, &m, node[1], other);
	NEED(cuGraphAddEmptyNode, &n, other, &m, 1);
	update("another edge", exec, other);
	T("one form back", cuGraphExecUpdate, exec, mine, &first, &code);
	see("code", code);
	see("node", first != NULL);
	T("one form back, another edge", cuGraphExecUpdate, exec, other, &first, &code);
	see("code", code);
	see("node", first != NULL);
	T("no place", cuGraphExecUpdate_v2, exec, mine, NULL);
	T("no graph", cuGraphExecUpdate_v2, exec, NULL, &(struct cu_update_result) { 0 });
	T("no exec", cuGraphExecUpdate_v2, NULL, mine, &(struct cu_update_result) { 0 });
	T("after an update", cuGraphLaunch, exec, stream);
	T("after all", cuCtxSynchronize, );
}

void group_children(void)
{
	cu_graph parent = NULL, got = NULL, child2 = NULL;
	cu_graph_node holder = NULL, inner[8] = { NULL };
	cu_graph_exec exec = NULL;
	size_t n = 8;
	int type = -1;

	build();
	NEED(cuGraphCreate, &parent, 0);
	T("", cuGraphAddChildGraphNode, &holder, parent, NULL, 0, graph);
	T("itself", cuGraphAddChildGraphNode, &holder, parent, NULL, 0, parent);
	T("NULL", cuGraphAddChildGraphNode, &holder, parent, NULL, 0, NULL);
	NEED(cuGraphGetNodes, parent, inner, &n);
	see("nodes", (long long)n);
	holder = inner[0];
	NEED(cuGraphNodeGetType, holder, &type);
	see("type", type);
	T("", cuGraphChildGraphNodeGetGraph, holder, &got);
	see("another graph", got != graph);
	n = 8;
	NEED(cuGraphGetNodes, got, inner, &n);
	see("nodes", (long long)n);
	T("of a kernel", cuGraphChildGraphNodeGetGraph, node[0], &got);
	T("no place", cuGraphChildGraphNodeGetGraph, holder, NULL);
	NEED(cuGraphChildGraphNodeGetGraph, holder, &got);
	T("embedded", cuGraphDestroy, got);
	T("with a child", cuGraphInstantiateWithFlags, &exec, parent, 0);
	T("with a child", cuGraphLaunch, exec, stream);
	see("stored", peek(memory));
	at = memory;
	value = 31;
	NEED(cuGraphKernelNodeSetParams_v2, node[0], &kernel);
	T("", cuGraphExecChildGraphNodeSetParams, exec, holder, graph);
	NEED(cuGraphLaunch, exec, stream);
	see("stored", peek(memory));
	NEED(cuGraphCreate, &child2, 0);
	T("another shape", cuGraphExecChildGraphNodeSetParams, exec, holder, child2);
	T("NULL", cuGraphExecChildGraphNodeSetParams, exec, holder, NULL);
	value = 32;
	NEED(cuGraphChildGraphNodeGetGraph, holder, &got);
	n = 8;
	NEED(cuGraphGetNodes, got, inner, &n);
	T("a node of the child", cuGraphExecKernelNodeSetParams_v2, exec, inner[0], &kernel);
	T("a node of the child", cuGraphNodeSetEnabled, exec, inner[0], 0);
	T("with a child", cuGraphClone, &child2, parent);
	T("with a child", cuGraphNodeFindInClone, &holder, holder, child2);
	update("with a child", exec, child2);
}
