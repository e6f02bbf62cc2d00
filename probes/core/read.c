/* SPDX-License-Identifier: Apache-2.0
 *
 * read.c: what the nodes of a graph are bound to. Everything that might be an address is noted; whatever cannot be read
 * makes the graph unreadable, never an error of the server.
 */
#include "graph.h"

#include <string.h>
#include <sys/mman.h>

/* ---- the image ---- */

static bool grow(void **list, uint32_t *room, size_t each)
{
	size_t old = *room * each, wanted = old ? old * 2 : 4096;
	void *p = old ? mremap(*list, old, wanted, MREMAP_MAYMOVE) : probe_map(wanted, false);

	if (!p || p == MAP_FAILED || wanted / each > UINT32_MAX / 2)
		return false;
	*list = p;
	*room = (uint32_t)(wanted / each);
	return true;
}

bool graph_image_add(struct graph_image *image, const struct graph_word *word)
{
	void *list = image->word;

	if (image->n_words == image->room_words) {
		if (!grow(&list, &image->room_words, sizeof *word))
			return false;
		image->word = list;
	}
	image->word[image->n_words++] = *word;
	return true;
}

bool graph_image_add_node(struct graph_image *image, cu_graph_node handle, uint32_t type, uint32_t index)
{
	void *list = image->node;

	if (image->n_nodes == image->room_nodes) {
		if (!grow(&list, &image->room_nodes, sizeof *image->node))
			return false;
		image->node = list;
	}
	image->node[image->n_nodes++] = (struct graph_node) { handle, type, index };
	return true;
}

size_t graph_image_bytes(const struct graph_image *image)
{
	return image->room_words * sizeof *image->word + image->room_nodes * sizeof *image->node;
}

void graph_image_free(struct graph_image *image)
{
	probe_unmap(image->word, image->room_words * sizeof *image->word);
	probe_unmap(image->node, image->room_nodes * sizeof *image->node);
	memset(image, 0, sizeof *image);
}

static void note(struct graph_reader *r, const struct graph_word *word)
{
	if (word->address < GRAPH_WORD_LEAST || word->address >= GRAPH_WORD_MOST)
		return;
	if (!graph_image_add(r->image, word))
		r->image->unreadable = true;
}

/* ---- kernels ---- */

static bool param_info(struct graph_reader *r, const struct cu_kernel_params *k, struct graph_layout *l)
{
	const struct shim_driver *drv = r->drv;

	for (l->n = 0;; l->n++) {
		size_t offset, bytes;
		cu_result rc = CU_NOT_SUPPORTED;
		if (k->func && drv->func_get_param_info)
			rc = drv->func_get_param_info(k->func, l->n, &offset, &bytes);
		else if (!k->func && k->kern && drv->kernel_get_param_info)
			rc = drv->kernel_get_param_info(k->kern, l->n, &offset, &bytes);
		if (rc == CU_INVALID_VALUE)
			return true; /* past the last one */
		if (rc != CU_SUCCESS || l->n == GRAPH_PARAMS_MAX || offset > UINT32_MAX || bytes > UINT32_MAX)
			return false;
		l->offset[l->n] = (uint32_t)offset;
		l->bytes[l->n] = (uint32_t)bytes;
	}
}

static uint32_t kernel_name(const struct graph_reader *r, const struct cu_kernel_params *k)
{
	const char *name = NULL;
	cu_result rc = CU_NOT_SUPPORTED;

	if (k->func && r->drv->func_get_name)
		rc = r->drv->func_get_name(&name, k->func);
	else if (!k->func && k->kern && r->drv->kernel_get_name)
		rc = r->drv->kernel_get_name(&name, k->kern);
	return rc == CU_SUCCESS ? probe_name(name) : 0;
}

static const struct graph_layout *layout_of(struct graph_reader *r, const struct cu_kernel_params *k)
{
	const void *kernel = k->func ? (const void *)k->func : (const void *)k->kern;
	struct graph_layout *l = &r->layout[log_mix64((uintptr_t)kernel) % GRAPH_LAYOUTS];

	if (l->kernel == kernel && kernel)
		return l;
	l->kernel = kernel;
	l->name = kernel ? kernel_name(r, k) : 0;
	l->known = kernel && param_info(r, k, l);
	return l;
}

/* Pointers are aligned in a parameter, and in a structure that is passed by value. */
static void scan(struct graph_reader *r, struct graph_word *word, const unsigned char *at, size_t bytes)
{
	for (size_t i = 0; i + 8 <= bytes; i += 8) {
		memcpy(&word->address, at + i, 8);
		word->offset = (uint32_t)i;
		note(r, word);
	}
}

/* {1, buffer, 2, &size, 0} */
static bool extra_of(void **extra, const unsigned char **buffer, size_t *bytes)
{
	*buffer = NULL;
	*bytes = 0;
	for (unsigned i = 0; i < 8 && extra[i] != CU_EXTRA_END; i += 2) {
		if (extra[i] == CU_EXTRA_BUFFER)
			*buffer = extra[i + 1];
		else if (extra[i] == CU_EXTRA_SIZE && extra[i + 1])
			*bytes = *(const size_t *)extra[i + 1];
		else
			return false;
	}
	return *buffer || !*bytes;
}

static bool scan_extra(struct graph_reader *r, const struct graph_layout *l, struct graph_word *word, void **extra)
{
	const unsigned char *buffer;
	size_t bytes;

	if (!extra_of(extra, &buffer, &bytes))
		return false;
	if (!l->known) { /* the buffer alone says enough, only not which parameter */
		scan(r, word, buffer, bytes);
		return true;
	}
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->offset[i] > bytes || l->bytes[i] > bytes - l->offset[i])
			return false;
		word->param = (uint16_t)i;
		scan(r, word, buffer + l->offset[i], l->bytes[i]);
	}
	return true;
}

static bool scan_params(struct graph_reader *r, const struct graph_layout *l, struct graph_word *word, void **params)
{
	if (!l->known || (l->n && !params))
		return false;
	for (uint32_t i = 0; i < l->n; i++) {
		if (!params[i])
			return false;
		word->param = (uint16_t)i;
		scan(r, word, params[i], l->bytes[i]);
	}
	return true;
}

void graph_read_kernel(struct graph_reader *r, uint32_t node, const struct cu_kernel_params *k)
{
	const struct graph_layout *l = layout_of(r, k);
	struct graph_word word = { .span = 1, .node = node, .type = CU_NODE_KERNEL, .name = l->name };

	if (!(k->extra ? scan_extra(r, l, &word, k->extra) : scan_params(r, l, &word, k->params)))
		r->image->unreadable = true;
}

/* ---- copies and fills ---- */

static uint64_t extent(uint64_t pitch, uint64_t rows, uint64_t height, uint64_t depth, uint64_t width)
{
	uint64_t n, slices;

	if (!width || !height || !depth)
		return 0;
	if (__builtin_mul_overflow(depth - 1, rows, &slices) || __builtin_add_overflow(slices, height - 1, &n) ||
	    __builtin_mul_overflow(n, pitch, &n) || __builtin_add_overflow(n, width, &n))
		return UINT64_MAX / 2;
	return n;
}

void graph_read_memcpy(struct graph_reader *r, uint32_t node, const struct cu_memcpy_params *c)
{
	struct graph_word word = { .node = node, .type = CU_NODE_MEMCPY };

	/* Only types 2 (device) and 4 (unified) name device memory; an array is nobody's pool. */
	word.address = c->src_device + c->src_x + (c->src_z * c->src_height + c->src_y) * c->src_pitch;
	word.span = extent(c->src_pitch, c->src_height, c->height, c->depth, c->width);
	if (word.span && (c->src_type == 2 || c->src_type == 4))
		note(r, &word);
	word.address = c->dst_device + c->dst_x + (c->dst_z * c->dst_height + c->dst_y) * c->dst_pitch;
	word.span = extent(c->dst_pitch, c->dst_height, c->height, c->depth, c->width);
	word.param = 1;
	if (word.span && (c->dst_type == 2 || c->dst_type == 4))
		note(r, &word);
}

void graph_read_memset(struct graph_reader *r, uint32_t node, const struct cu_memset_params *m)
{
	struct graph_word word = { .address = m->dst, .node = node, .type = CU_NODE_MEMSET };

	word.span = extent(m->pitch, 1, m->height, 1, m->width * m->element_bytes);
	if (word.span)
		note(r, &word);
}

/* ---- nodes ---- */

static bool get_kernel(struct graph_reader *r, cu_graph_node handle, uint32_t node)
{
	struct cu_kernel_params k;

	r->image->kernels++;
	memset(&k, 0, sizeof k);
	if (!r->drv->graph_kernel_get_params || r->drv->graph_kernel_get_params(handle, &k) != CU_SUCCESS)
		return false;
	graph_read_kernel(r, node, &k);
	return true;
}

static bool get_memcpy(struct graph_reader *r, cu_graph_node handle, uint32_t node)
{
	struct cu_memcpy_params c;

	r->image->memcpys++;
	if (r->drv->graph_memcpy_get_params(handle, &c) != CU_SUCCESS)
		return false;
	graph_read_memcpy(r, node, &c);
	return true;
}

static bool get_memset(struct graph_reader *r, cu_graph_node handle, uint32_t node)
{
	struct cu_memset_params m;

	r->image->memsets++;
	if (r->drv->graph_memset_get_params(handle, &m) != CU_SUCCESS)
		return false;
	graph_read_memset(r, node, &m);
	return true;
}

static bool get_child(struct graph_reader *r, cu_graph_node handle, unsigned depth)
{
	cu_graph child;

	if (r->drv->graph_child_get_graph(handle, &child) != CU_SUCCESS)
		return false;
	graph_read(r, child, depth + 1);
	return true;
}

static bool read_node(struct graph_reader *r, cu_graph_node handle, unsigned depth)
{
	uint32_t node = r->next++;
	int type = -1;

	r->image->nodes++;
	if (r->drv->graph_node_get_type(handle, &type) != CU_SUCCESS)
		return false;
	if (r->keep_nodes && !graph_image_add_node(r->image, handle, (uint32_t)type, node))
		return false;
	switch (type) {
	case CU_NODE_KERNEL:
		return get_kernel(r, handle, node);
	case CU_NODE_MEMCPY:
		return get_memcpy(r, handle, node);
	case CU_NODE_MEMSET:
		return get_memset(r, handle, node);
	case CU_NODE_GRAPH:
		return get_child(r, handle, depth);
	case CU_NODE_HOST: /* these write no device memory */
	case CU_NODE_EMPTY:
	case CU_NODE_WAIT_EVENT:
	case CU_NODE_EVENT_RECORD:
	case CU_NODE_SEMAS_SIGNAL:
	case CU_NODE_SEMAS_WAIT:
	case CU_NODE_MEM_ALLOC:
	case CU_NODE_MEM_FREE:
		return true;
	default: /* bodies of conditional nodes, batches of memory operations, what is yet to come */
		return false;
	}
}

void graph_read(struct graph_reader *r, cu_graph graph, unsigned depth)
{
	cu_graph_node *nodes;
	size_t n = 0, room;

	if (depth >= GRAPH_DEPTH_MAX || r->drv->graph_get_nodes(graph, NULL, &n) != CU_SUCCESS ||
	    n > GRAPH_NODES_MAX - r->image->nodes) {
		r->image->unreadable = true;
		return;
	}
	room = n;
	nodes = n ? probe_map(n * sizeof *nodes, false) : NULL;
	if (n && (!nodes || r->drv->graph_get_nodes(graph, nodes, &n) != CU_SUCCESS || n > room)) {
		r->image->unreadable = true;
		n = 0;
	}
	for (size_t i = 0; i < n; i++)
		if (!read_node(r, nodes[i], depth))
			r->image->unreadable = true;
	probe_unmap(nodes, room * sizeof *nodes);
}

void graph_reader_begin(struct graph_reader *r, const struct shim_driver *drv, struct graph_image *image)
{
	memset(r, 0, sizeof *r);
	memset(image, 0, sizeof *image);
	r->drv = drv;
	r->image = image;
}
