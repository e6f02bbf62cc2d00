/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.h: what is known of the executable graphs of this process. read.c reads nodes, graph.c keeps the table,
 * touch.c finds what they touch, launch.c counts their launches.
 *
 * Everything here but probe_graph_find and the launches happens under one lock, inside the server's instantiate, update
 * or set-params call. A graph that could not be read, or for which there was no room, counts as touching every pool: an
 * error of ours must never make a run look as if it had launched nothing.
 */
#ifndef PROBE_GRAPH_H
#define PROBE_GRAPH_H

#include "core.h"
#include "shim/hook/observer.h"

#define GRAPH_MAX        8192u
#define GRAPH_DEPTH_MAX  8u
#define GRAPH_NODES_MAX  (1u << 20)
#define GRAPH_PARAMS_MAX 128u
#define GRAPH_KEPT_MAX   (64u << 20) /* bytes of all images together */
#define GRAPH_WAIT_MS    2000u
#define GRAPH_LAYOUTS    32u
#define GRAPH_WORD_LEAST 0x10000ull /* less is no address */
#define GRAPH_WORD_MOST  (1ull << 57)

/* One value bound to a node that may be an address. Kept, so that a pool registered later is found too. */
struct graph_word {
	uint64_t address, span; /* span 1 for a kernel: how far it goes from there is unknown */
	uint32_t node;
	uint16_t type, param;
	uint32_t offset, name; /* name: of the kernel, see probe_name */
};

/* A node that set-params calls may name. Its index is GRAPH_NODE_UNPLACED once the graph was updated from another,
 * whose numbers are not those of these handles; set anew then, its words get an index from GRAPH_NODE_OWN on. */
#define GRAPH_NODE_OWN      0x80000000u
#define GRAPH_NODE_UNPLACED UINT32_MAX
struct graph_node {
	cu_graph_node handle;
	uint32_t type, index;
};

struct graph_image {
	struct graph_word *word;
	struct graph_node *node;
	uint32_t n_words, room_words, n_nodes, room_nodes;
	uint32_t nodes, kernels, memcpys, memsets; /* counted, child graphs included */
	bool unreadable;
};

struct graph_info {
	cu_graph_exec exec;
	uint64_t number;
	struct graph_image image;
	uint64_t set[PROBE_SET_WORDS]; /* pools that it touches, by their place in the table */
	uint32_t unreadable;           /* read by launches */
	bool counted_unreadable;
	bool forgotten; /* no room to keep its words */
	uint64_t said;  /* digest of what the log says of it */
	uint32_t next;  /* in the list of free ones */
};

/* ---- read.c ---- */

/* What one kernel's parameters look like; valid only while one graph is read, since a handle may come back as another
 * kernel after its module was unloaded. */
struct graph_layout {
	const void *kernel;
	uint32_t n, name;
	bool known;
	uint32_t offset[GRAPH_PARAMS_MAX], bytes[GRAPH_PARAMS_MAX];
};

struct graph_reader {
	const struct shim_driver *drv;
	struct graph_image *image;
	uint32_t next; /* number of the next node */
	bool keep_nodes;
	struct graph_layout layout[GRAPH_LAYOUTS];
};

void graph_reader_begin(struct graph_reader *r, const struct shim_driver *drv, struct graph_image *image);
void graph_read(struct graph_reader *r, cu_graph graph, unsigned depth);
void graph_read_kernel(struct graph_reader *r, uint32_t node, const struct cu_kernel_params *params);
void graph_read_memcpy(struct graph_reader *r, uint32_t node, const struct cu_memcpy_params *params);
void graph_read_memset(struct graph_reader *r, uint32_t node, const struct cu_memset_params *params);
void graph_image_free(struct graph_image *image);
size_t graph_image_bytes(const struct graph_image *image);
bool graph_image_add(struct graph_image *image, const struct graph_word *word);
bool graph_image_add_node(struct graph_image *image, cu_graph_node handle, uint32_t type, uint32_t index);

/* ---- names.c: kernel names, each kept once ---- */
uint32_t probe_name(const char *name); /* 0: none, or no room */
const char *probe_name_text(uint32_t id);
void probe_names_forget(void);

/* ---- touch.c ---- */

/* Finds what the graph touches, tells the launches, and the log if anything about it is new. */
void graph_touch(struct graph_info *g, uint32_t flags);

/* ---- graph.c ---- */

#define GRAPH_PLACE_BITS 14
#define GRAPH_PLACES     (1u << GRAPH_PLACE_BITS)

struct graph_place {
	cu_graph_exec exec; /* written last when one comes, first when one goes */
	struct graph_info *g;
};
extern struct graph_place probe_graph_places[GRAPH_PLACES] RECORD_HIDDEN;

/* Handles are addresses: the high bits of the product depend on all bits that differ. */
static inline uint32_t probe_graph_place(cu_graph_exec exec)
{
	return (uint32_t)((uintptr_t)exec * 0x9e3779b97f4a7c15ull >> (64 - GRAPH_PLACE_BITS));
}

struct graph_info *probe_graph_search(cu_graph_exec exec);

/* Hot, lock-free; most graphs lie in the first place. */
static inline struct graph_info *probe_graph_find(cu_graph_exec exec)
{
	const struct graph_place *at = &probe_graph_places[probe_graph_place(exec)];

	if (__builtin_expect(__atomic_load_n(&at->exec, __ATOMIC_ACQUIRE) == exec, 1))
		return __atomic_load_n(&at->g, __ATOMIC_RELAXED);
	return probe_graph_search(exec);
}

void probe_graphs_rescan(bool pool); /* a pool, or else a region, has come */
void probe_graphs_forget(void);
void probe_graph_instantiated(cu_graph_exec exec, cu_graph graph, cu_result result);
void probe_graph_updated(cu_graph_exec exec, cu_graph graph, cu_result result);
void probe_graph_node_set(cu_graph_exec exec, cu_graph_node node, enum shim_node_kind kind, const void *params,
			  cu_result result);
void probe_graph_destroying(cu_graph_exec exec);

/* ---- launch.c ---- */
cu_result probe_launch_end(cu_graph_exec exec, cu_stream stream, cu_result result);
cu_result probe_own_launch_end(cu_graph_exec exec, cu_stream stream, cu_result result);
void probe_runtime_launch(unsigned driver_launches, int result);

#endif
