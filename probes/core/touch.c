/* SPDX-License-Identifier: Apache-2.0
 *
 * touch.c: which pools and regions a graph touches: for the launches a set of bits, for the log the words themselves,
 * said again only when something about them is new. Under the lock of graph.c.
 */
#include "graph.h"

#include <string.h>

enum { TARGET_POOL, TARGET_REGION };

struct touch {
	const struct graph_word *word;
	uint32_t target;
	int32_t id;
	uint32_t plane;
	uint64_t offset;
};

struct visit {
	struct graph_info *g;
	struct probe_pool *pool[PROBE_POOLS]; /* each with a use of ours: nobody reaps it while we look */
	uint32_t n_pools;
	uint64_t set[PROBE_SET_WORDS];
	uint64_t digest;
	uint32_t touches;
	bool say, lost;
};

static void fold(struct visit *v, uint64_t value)
{
	v->digest = log_rollup_add(v->digest, value);
}

static void say_touch(struct visit *v, const struct touch *t)
{
	struct log_graph_touch r;

	if (v->lost || v->touches > LOG_GRAPH_TOUCH_MAX)
		return;
	memset(&r, 0, sizeof r);
	record_fill(&r, LOG_GRAPH_TOUCH);
	r.graph = v->g->number;
	r.node = t->word->node < GRAPH_NODE_OWN ? t->word->node : UINT32_MAX; /* which one, nobody can say */
	r.node_type = t->word->type;
	r.target = t->target;
	r.id = t->id;
	r.param = t->word->param;
	r.param_offset = t->word->offset;
	r.address = t->word->address;
	r.offset = t->offset;
	r.plane = t->plane;
	probe_text(r.kernel, sizeof r.kernel, probe_name_text(t->word->name));
	/* Each lost record waits for room: one such wait in the server's call is enough. */
	v->lost = !record_put_meta(&r);
}

static void found(struct visit *v, const struct touch *t)
{
	v->touches++;
	fold(v, (uint64_t)t->target << 32 | (uint32_t)t->id);
	fold(v, (uint64_t)t->word->node << 32 | t->word->param);
	fold(v, t->word->address);
	if (v->say)
		say_touch(v, t);
}

static void match_pools(struct visit *v, const struct graph_word *word)
{
	for (uint32_t i = 0; i < v->n_pools; i++) {
		const struct probe_pool *p = v->pool[i];
		uint32_t place = probe_pool_index(p);
		struct touch t = { word, TARGET_POOL, probe_pool_id(p), 0, 0 };
		int plane = p->device < 0 ? -1 : probe_layout_find(p, word->address, word->span);
		if (plane < 0)
			continue;
		v->set[place / 64] |= 1ull << place % 64;
		t.plane = (uint32_t)plane;
		t.offset = word->address - p->plane[plane].base;
		found(v, &t);
	}
}

static void match_regions(struct visit *v, const struct graph_word *word)
{
	uint32_t count = probe_region_count();

	for (uint32_t i = 0; i < count; i++) {
		const struct probe_region *r = &probe_regions[i];
		struct touch t = { word, TARGET_REGION, (int32_t)i, 0, word->address - r->base };
		if (probe_region_live(r) && word->address < r->base + r->bytes && word->address + word->span > r->base)
			found(v, &t);
	}
}

static void look(struct visit *v)
{
	v->touches = 0;
	v->digest = LOG_ROLLUP_START;
	fold(v, v->g->image.nodes);
	fold(v, v->g->unreadable);
	for (uint32_t i = 0; i < v->g->image.n_words; i++) {
		match_pools(v, &v->g->image.word[i]);
		match_regions(v, &v->g->image.word[i]);
	}
}

static bool say_graph(const struct visit *v, uint32_t flags)
{
	const struct graph_info *g = v->g;
	struct log_graph r;

	memset(&r, 0, sizeof r);
	record_fill(&r, LOG_GRAPH);
	r.t_ns = record_now_ns();
	r.graph = g->number;
	r.handle = (uintptr_t)g->exec;
	r.nodes = g->image.nodes;
	r.kernels = g->image.kernels;
	r.memcpys = g->image.memcpys;
	r.memsets = g->image.memsets;
	r.flags = flags | (g->unreadable ? LOG_GRAPH_UNREADABLE : 0);
	r.touches = v->touches;
	return record_put_meta(&r);
}

/* Says what is new; an update that changed nothing is not. */
static void say_news(struct visit *v, uint32_t flags)
{
	if (v->digest == v->g->said && flags)
		return;
	v->g->said = v->digest;
	if (!say_graph(v, flags))
		return;
	v->say = true;
	look(v);
}

void graph_touch(struct graph_info *g, uint32_t flags)
{
	struct visit v = { .g = g };

	v.n_pools = probe_pools_use(v.pool);
	look(&v);
	for (uint32_t w = 0; w < PROBE_SET_WORDS; w++)
		__atomic_store_n(&g->set[w], v.set[w], __ATOMIC_RELAXED);
	say_news(&v, flags);
	for (uint32_t i = 0; i < v.n_pools; i++)
		probe_pool_put(v.pool[i]);
}
