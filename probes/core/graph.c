/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: the table of executable graphs: looked up by every launch without a lock, changed under one inside the
 * server's instantiate, update, set-params and destroy calls.
 */
#include "graph.h"

#include <string.h>

#define TRIES     64u
#define TOMBSTONE ((cu_graph_exec)(uintptr_t)1)

struct graph_place probe_graph_places[GRAPH_PLACES];
static struct graph_info infos[GRAPH_MAX]; /* never unmapped: a launch may race with its graph's destruction */
static uint32_t infos_used, infos_free;    /* infos_free: index + 1 */
static uint64_t numbers;
static size_t kept; /* bytes of all images */
static uint32_t graph_lock;

/* ---- the table ---- */

static struct graph_place *place_of(cu_graph_exec exec, uint32_t try)
{
	return &probe_graph_places[(probe_graph_place(exec) + try) % GRAPH_PLACES];
}

static struct graph_place *find_place(cu_graph_exec exec)
{
	for (uint32_t i = 0; i < TRIES; i++) {
		struct graph_place *at = place_of(exec, i);
		cu_graph_exec there = __atomic_load_n(&at->exec, __ATOMIC_ACQUIRE);
		if (there == exec)
			return at;
		if (!there)
			return NULL;
	}
	return NULL;
}

struct graph_info *probe_graph_search(cu_graph_exec exec)
{
	struct graph_place *at = find_place(exec);

	return at ? __atomic_load_n(&at->g, __ATOMIC_RELAXED) : NULL;
}

static struct graph_info *take_info(void)
{
	struct graph_info *g;

	if (infos_free) {
		g = &infos[infos_free - 1];
		infos_free = g->next;
	} else if (infos_used < GRAPH_MAX) {
		g = &infos[infos_used++];
	} else {
		return NULL;
	}
	memset(g, 0, sizeof *g);
	return g;
}

static struct graph_info *insert(cu_graph_exec exec)
{
	for (uint32_t i = 0; i < TRIES; i++) {
		struct graph_place *at = place_of(exec, i);
		struct graph_info *g;
		if (at->exec && at->exec != TOMBSTONE)
			continue;
		g = take_info();
		if (!g)
			return NULL;
		g->exec = exec;
		g->number = ++numbers;
		g->unreadable = 1; /* until it is read: a launch may find it from now on */
		__atomic_store_n(&at->g, g, __ATOMIC_RELAXED);
		__atomic_store_n(&at->exec, exec, __ATOMIC_RELEASE);
		return g;
	}
	return NULL;
}

static void say_destroyed(const struct graph_info *g)
{
	struct log_graph_destroy r;

	memset(&r, 0, sizeof r);
	record_fill(&r, LOG_GRAPH_DESTROY);
	r.t_ns = record_now_ns();
	r.graph = g->number;
	record_put_meta(&r);
}

static void drop_image(struct graph_info *g)
{
	kept -= graph_image_bytes(&g->image);
	graph_image_free(&g->image);
}

static void remove_graph(cu_graph_exec exec)
{
	struct graph_place *at = find_place(exec);
	struct graph_info *g;

	if (!at)
		return;
	g = at->g;
	__atomic_store_n(&at->exec, TOMBSTONE, __ATOMIC_RELEASE);
	say_destroyed(g);
	drop_image(g);
	g->exec = NULL;
	g->next = infos_free;
	infos_free = (uint32_t)(g - infos) + 1;
}

/* ---- what one graph holds ---- */

static void set_unreadable(struct graph_info *g, bool yes)
{
	__atomic_store_n(&g->unreadable, yes, __ATOMIC_RELAXED);
	if (yes && !g->counted_unreadable)
		ctr_add(ctr_core(CTR_ROW_GRAPHS_UNREAD), 1);
	g->counted_unreadable |= yes;
}

/* Where there is no room to keep the words, what is registered later counts as touched. */
static void keep_image(struct graph_info *g, struct graph_image *image)
{
	size_t bytes = graph_image_bytes(image);

	g->image = *image;
	kept += bytes;
	g->forgotten = kept > GRAPH_KEPT_MAX;
}

static void forget_if_full(struct graph_info *g)
{
	struct graph_image counts = g->image;

	if (!g->forgotten)
		return;
	drop_image(g);
	g->image.nodes = counts.nodes;
	g->image.kernels = counts.kernels;
	g->image.memcpys = counts.memcpys;
	g->image.memsets = counts.memsets;
}

/* Static, since it is large; used under the lock. */
static struct graph_reader reader;

static void read_whole(struct graph_info *g, const struct shim_driver *drv, cu_graph graph, bool first)
{
	struct graph_image image;

	graph_reader_begin(&reader, drv, &image);
	reader.keep_nodes = first;
	graph_read(&reader, graph, 0);
	if (!first) { /* set-params calls go on naming the nodes of the first graph */
		for (uint32_t i = 0; i < g->image.n_nodes; i++)
			g->image.node[i].index = GRAPH_NODE_UNPLACED;
		image.node = g->image.node;
		image.n_nodes = g->image.n_nodes;
		image.room_nodes = g->image.room_nodes;
		g->image.node = NULL;
		kept -= g->image.room_nodes * sizeof *image.node;
		g->image.room_nodes = g->image.n_nodes = 0;
	}
	drop_image(g);
	keep_image(g, &image);
	set_unreadable(g, image.unreadable);
}

/* ---- one node is set anew ---- */

static struct graph_node *find_node(const struct graph_info *g, cu_graph_node handle)
{
	for (uint32_t i = 0; i < g->image.n_nodes; i++)
		if (g->image.node[i].handle == handle)
			return &g->image.node[i];
	return NULL;
}

/* Where its words go. A node that we cannot place leaves its old words where they are, which is the safe side, and gets
 * an index of its own for the new ones. */
static struct graph_node *node_of(struct graph_info *g, cu_graph_node handle)
{
	struct graph_node *node = find_node(g, handle);
	size_t before = graph_image_bytes(&g->image);

	if (!node) {
		if (!graph_image_add_node(&g->image, handle, UINT32_MAX, GRAPH_NODE_UNPLACED))
			return NULL;
		kept += graph_image_bytes(&g->image) - before;
		node = &g->image.node[g->image.n_nodes - 1];
	}
	if (node->index == GRAPH_NODE_UNPLACED)
		node->index = GRAPH_NODE_OWN + (uint32_t)(node - g->image.node);
	return node;
}

static bool writes_nothing(const struct graph_node *node)
{
	return node && (node->type == CU_NODE_HOST || node->type == CU_NODE_EMPTY || node->type == CU_NODE_WAIT_EVENT ||
			node->type == CU_NODE_EVENT_RECORD || node->type == CU_NODE_SEMAS_SIGNAL ||
			node->type == CU_NODE_SEMAS_WAIT);
}

static bool read_set(uint32_t index, enum shim_node_kind kind, const void *params)
{
	struct cu_kernel_params k;

	switch (kind) {
	case SHIM_NODE_KERNEL_V1:
		memset(&k, 0, sizeof k);
		memcpy(&k, params, sizeof(struct cu_kernel_params_v1));
		graph_read_kernel(&reader, index, &k);
		return true;
	case SHIM_NODE_KERNEL_V2:
		graph_read_kernel(&reader, index, params);
		return true;
	case SHIM_NODE_MEMCPY:
		graph_read_memcpy(&reader, index, params);
		return true;
	case SHIM_NODE_MEMSET:
		graph_read_memset(&reader, index, params);
		return true;
	case SHIM_NODE_CHILD: /* the graph itself */
		reader.next = index + 1;
		graph_read(&reader, (cu_graph)(uintptr_t)params, 1);
		return true;
	default:
		return false;
	}
}

static void replace_words(struct graph_info *g, uint32_t first, uint32_t end, const struct graph_image *fresh)
{
	struct graph_image *image = &g->image;
	size_t before = graph_image_bytes(image);
	uint32_t n = 0;

	for (uint32_t i = 0; i < image->n_words; i++)
		if (image->word[i].node < first || image->word[i].node >= end)
			image->word[n++] = image->word[i];
	image->n_words = n;
	for (uint32_t i = 0; i < fresh->n_words; i++)
		if (!graph_image_add(image, &fresh->word[i]))
			set_unreadable(g, true);
	kept += graph_image_bytes(image) - before;
}

static void set_node(struct graph_info *g, const struct shim_driver *drv, cu_graph_node handle,
		     enum shim_node_kind kind, const void *params)
{
	struct graph_image fresh;
	struct graph_node *node;

	if (kind == SHIM_NODE_OTHER && writes_nothing(find_node(g, handle)))
		return;
	node = node_of(g, handle);
	if (g->forgotten || !params || !node || (kind == SHIM_NODE_CHILD && node->index >= GRAPH_NODE_OWN)) {
		set_unreadable(g, true);
		return;
	}
	graph_reader_begin(&reader, drv, &fresh);
	if (!read_set(node->index, kind, params) || fresh.unreadable)
		set_unreadable(g, true);
	replace_words(g, node->index, node->index + 1 + fresh.nodes, &fresh);
	graph_image_free(&fresh);
}

/* ---- what the shim tells ---- */

/* The lock and a guard around `reader`; false: the graph must count as unknown. */
static const struct shim_driver *enter(struct shim_guard *guard)
{
	const struct shim_driver *drv = shim_driver();

	if (!drv || !drv->complete || !record_active() || !probe_lock(&graph_lock, GRAPH_WAIT_MS))
		return NULL;
	shim_guard_enter(guard);
	return drv;
}

static void leave(struct shim_guard *guard)
{
	shim_guard_leave(guard);
	probe_unlock(&graph_lock);
}

/* What we know of it is no longer true, and cannot be set right now. */
static void distrust(cu_graph_exec exec)
{
	struct graph_info *g = probe_graph_find(exec);

	if (g)
		__atomic_store_n(&g->unreadable, 1, __ATOMIC_RELAXED);
}

void probe_graph_instantiated(cu_graph_exec exec, cu_graph graph, cu_result result)
{
	struct ctr_row *row = ctr_core(CTR_ROW_INSTANTIATE);
	const struct shim_driver *drv;
	struct shim_guard guard;
	struct graph_info *g;

	ctr_begin(row);
	ctr_finish(row, result ? CTR_ERROR_DRIVER : CTR_COMMITTED);
	if (result)
		return;
	drv = enter(&guard);
	if (!drv) {
		distrust(exec);
		return;
	}
	remove_graph(exec); /* a context took it along, and the handle has come back */
	g = insert(exec);
	if (g) {
		read_whole(g, drv, graph, true);
		graph_touch(g, 0);
		forget_if_full(g);
	} else {
		ctr_add(ctr_core(CTR_ROW_GRAPHS_UNREAD), 1);
	}
	leave(&guard);
}

static void change(cu_graph_exec exec, cu_graph graph, cu_graph_node node, enum shim_node_kind kind, const void *params)
{
	const struct shim_driver *drv;
	struct shim_guard guard;
	struct graph_info *g;

	drv = enter(&guard);
	if (!drv) {
		distrust(exec);
		return;
	}
	g = probe_graph_find(exec);
	if (g) {
		if (graph) {
			read_whole(g, drv, graph, false);
		} else {
			set_node(g, drv, node, kind, params);
		}
		graph_touch(g, LOG_GRAPH_UPDATED);
		forget_if_full(g);
	}
	leave(&guard);
}

void probe_graph_updated(cu_graph_exec exec, cu_graph graph, cu_result result)
{
	struct ctr_row *row = ctr_core(CTR_ROW_UPDATE);

	ctr_begin(row);
	ctr_finish(row, result ? CTR_ERROR_DRIVER : CTR_COMMITTED);
	if (!result)
		change(exec, graph, NULL, SHIM_NODE_OTHER, NULL);
}

void probe_graph_node_set(cu_graph_exec exec, cu_graph_node node, enum shim_node_kind kind, const void *params,
			  cu_result result)
{
	struct ctr_row *row = ctr_core(CTR_ROW_UPDATE);

	ctr_begin(row);
	ctr_finish(row, result ? CTR_ERROR_DRIVER : CTR_COMMITTED);
	if (!result)
		change(exec, NULL, node, kind, params);
}

void probe_graph_destroying(cu_graph_exec exec)
{
	if (!probe_graph_find(exec) || !probe_lock(&graph_lock, GRAPH_WAIT_MS))
		return;
	remove_graph(exec);
	probe_unlock(&graph_lock);
}

/* ---- a pool or a region came or went ---- */

/* Blind: a pool that could not be matched counts every launch, until a later rescan comes through. */
void probe_graphs_rescan(bool pool)
{
	if (!probe_lock(&graph_lock, GRAPH_WAIT_MS)) {
		if (pool)
			__atomic_fetch_or(&probe_sets.unusual, PROBE_BLIND, __ATOMIC_RELEASE);
		return;
	}
	for (uint32_t i = 0; i < infos_used; i++) {
		struct graph_info *g = &infos[i];
		if (!g->exec)
			continue;
		if (g->forgotten && pool)
			set_unreadable(g, true);
		graph_touch(g, LOG_GRAPH_RESCANNED);
	}
	__atomic_fetch_and(&probe_sets.unusual, ~(uint32_t)PROBE_BLIND, __ATOMIC_RELEASE);
	probe_unlock(&graph_lock);
}

void probe_graphs_forget(void)
{
	if (infos_used) /* each page written in the child of a fork is a page copied */
		memset(probe_graph_places, 0, sizeof probe_graph_places);
	infos_used = infos_free = 0;
	numbers = 0;
	kept = 0;
	graph_lock = 0;
	probe_names_forget();
}
