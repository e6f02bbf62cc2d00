/* SPDX-License-Identifier: Apache-2.0
 *
 * claims.c: a state blob that the server takes is a donation of the sequence's slot, one that it gives back a restore.
 *
 * Each context that has recurrent state is a pool of host memory without fixed places: its planes are offsets from the
 * start of the recurrent part, wherever the server keeps the blob. The layout is learned from the first blob; one that
 * does not agree with it counts as an error. The fingerprint is made here and now, on the server's thread: the bytes are
 * the server's, and complete when its call returns.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "probes/core/slotprobe.h"
#include "probes/servers/llamacpp/blob.h"
#include "probes/servers/llamacpp/claims.h"
#include "probes/servers/llamacpp/entries.h"
#include "probes/servers/llamacpp/history.h"
#include "probes/servers/llamacpp/points.h"

#define CONTEXTS 16u
#define NO_POOL  (-1)

struct context {
	const void *ctx; /* NULL: free */
	int pool;
	unsigned number;
	uint64_t part_size;
	uint64_t shape; /* of the rows: sizes and types */
};

static struct context contexts[CONTEXTS]; /* under lc_lock */
static __thread int64_t claimed_len = -1;

void lc_claims_length(int64_t n_tokens)
{
	claimed_len = n_tokens;
}

/* ---- the layout of a context ---- */

static uint64_t shape_of(const struct lc_part *part)
{
	uint64_t h = part->n_rows;

	for (uint32_t i = 0; i < part->n_rows; i++)
		h = (h ^ part->row[i].bytes << 8 ^ (uint64_t)part->row[i].type) * 0x9e3779b97f4a7c15ull + (h >> 29);
	return h;
}

static uint32_t dtype_of(int32_t type, uint32_t *bytes)
{
	static const struct {
		int32_t type;
		uint32_t dtype, bytes;
	} known[] = { { LC_TYPE_F32, SLOTPROBE_F32, 4 },   { LC_TYPE_F16, SLOTPROBE_F16, 2 },
		      { LC_TYPE_BF16, SLOTPROBE_BF16, 2 }, { LC_TYPE_F64, SLOTPROBE_F64, 8 },
		      { LC_TYPE_I8, SLOTPROBE_I8, 1 },     { LC_TYPE_I32, SLOTPROBE_I32, 4 } };

	for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (known[i].type == type) {
			*bytes = known[i].bytes;
			return known[i].dtype;
		}
	}
	*bytes = 1;
	return SLOTPROBE_RAW;
}

static void fill_plane(struct slotprobe_plane *p, const struct lc_part *part, uint32_t row)
{
	const uint32_t half = part->n_rows / 2;
	uint32_t bytes;

	p->tensor = row < half ? "r" : "s";
	p->layer = (int32_t)(row < half ? row : row - half);
	p->dtype = dtype_of(part->row[row].type, &bytes);
	p->base = part->row[row].offset;
	p->slot_stride = 0;
	p->elems = part->row[row].bytes / bytes;
}

/* Names pair the pools of two runs: contexts are numbered as they first hand over a state. */
static unsigned unused_number(void)
{
	unsigned number = 0;

	for (unsigned i = 0; i < CONTEXTS; i++) {
		if (!contexts[i].ctx || contexts[i].pool == NO_POOL || contexts[i].number != number)
			continue;
		number++;
		i = UINT_MAX; /* look again from the first */
	}
	return number;
}

static int add_pool(struct context *c, const struct lc_part *part)
{
	struct slotprobe_plane plane[LC_ROWS_MAX];
	struct slotprobe_pool pool = { .size = sizeof pool,
				       .device = -1,
				       .n_slots = lc_real_llama_n_seq_max(c->ctx),
				       .planes = plane,
				       .flags = SLOTPROBE_POOL_FLOATING };
	char name[32];

	c->number = unused_number();
	snprintf(name, sizeof name, c->number ? "llama.cpp.%u" : "llama.cpp", c->number);
	pool.name = name;
	if (pool.n_slots <= 0)
		pool.n_slots = 256;
	for (uint32_t i = 0; i < part->n_rows; i++)
		if (part->row[i].bytes)
			fill_plane(&plane[pool.n_planes++], part, i);
	return slotprobe_pool_add(&pool);
}

static struct context *context_of(const void *ctx)
{
	struct context *unused = NULL;

	for (unsigned i = 0; i < CONTEXTS; i++) {
		if (contexts[i].ctx == ctx)
			return &contexts[i];
		if (!contexts[i].ctx && !unused)
			unused = &contexts[i];
	}
	if (unused)
		*unused = (struct context) { .ctx = ctx, .pool = NO_POOL };
	return unused;
}

/* Pool of a part's layout, made if it is the first; negative: this blob is not laid out like those before. */
static int pool_of(const void *ctx, const struct lc_part *part)
{
	const uint64_t shape = shape_of(part);
	struct context *c;
	int pool = -EINVAL;

	lc_lock();
	c = context_of(ctx);
	if (c && c->pool == NO_POOL) {
		c->pool = add_pool(c, part);
		c->shape = shape;
		c->part_size = part->size;
		if (c->pool < 0)
			c->pool = NO_POOL;
	}
	if (c && c->pool != NO_POOL && c->shape == shape && c->part_size == part->size)
		pool = c->pool;
	lc_unlock();
	return pool;
}

void lc_claims_context_gone(const void *ctx)
{
	int pool = NO_POOL;

	lc_lock();
	for (unsigned i = 0; ctx && i < CONTEXTS; i++) {
		if (contexts[i].ctx != ctx)
			continue;
		pool = contexts[i].pool;
		contexts[i].ctx = NULL;
	}
	lc_unlock();
	if (pool != NO_POOL)
		slotprobe_pool_remove(pool);
}

/* ---- finding the recurrent part ---- */

/* Attention state is of any length, but comes first: the recurrent part is what a partial blob has after its header. */
static uint64_t part_size(void *ctx, int32_t seq)
{
	uint64_t size = 0;

	lc_lock();
	for (unsigned i = 0; i < CONTEXTS; i++)
		if (contexts[i].ctx == ctx && contexts[i].pool != NO_POOL)
			size = contexts[i].part_size;
	lc_unlock();
	if (!size)
		size = lc_real_llama_state_seq_get_size_ext(ctx, seq, LC_FLAG_PARTIAL);
	else
		size += LC_BLOB_HEADER;
	return size > LC_BLOB_HEADER ? size - LC_BLOB_HEADER : 0;
}

static bool has_recurrent_state(const void *ctx)
{
	const void *model = lc_real_llama_get_model(ctx);

	return !model || lc_real_llama_model_is_recurrent(model) || lc_real_llama_model_is_hybrid(model);
}

struct view {
	const uint8_t *start; /* of the recurrent part */
	int32_t seq;          /* that the blob was taken from */
	int pool;
	struct lc_part part;
};

/* SLOTPROBE_HIT_COMMITTED: all of the view is set. */
static uint32_t look(void *ctx, const uint8_t *blob, size_t size, int32_t seq, uint32_t flags, struct view *v)
{
	uint64_t rest = size > LC_BLOB_HEADER ? size - LC_BLOB_HEADER : 0;
	enum lc_blob_status status;

	if (flags & LC_FLAG_ON_DEVICE || !has_recurrent_state(ctx))
		return SLOTPROBE_HIT_FILTERED;
	if (lc_blob_sequence(blob, size, &v->seq) != LC_BLOB_SOUND)
		return SLOTPROBE_HIT_ERROR;
	if (!(flags & LC_FLAG_PARTIAL)) {
		uint64_t last = part_size(ctx, seq);
		if (!last || last > rest)
			return SLOTPROBE_HIT_ERROR;
		rest = last;
	}
	v->start = blob + (size - rest);
	status = lc_blob_part(v->start, rest, &v->part);
	if (status == LC_BLOB_EMPTY)
		return SLOTPROBE_HIT_FILTERED;
	if (status != LC_BLOB_SOUND)
		return SLOTPROBE_HIT_ERROR;
	v->pool = pool_of(ctx, &v->part);
	return v->pool < 0 ? SLOTPROBE_HIT_ERROR : SLOTPROBE_HIT_COMMITTED;
}

/* The key stands for the tokens up to the position that the state itself names; the length is what the server claims. */
static struct slotprobe_claim claim_of(const struct view *v, uint64_t key)
{
	return (struct slotprobe_claim) { .size = sizeof(struct slotprobe_claim),
					  .pool = v->pool,
					  .slot = v->seq,
					  .claimed_len = v->part.pos + 1,
					  .key = key,
					  .key_len = key ? v->part.pos + 1 : -1,
					  .state = (uintptr_t)v->start };
}

/* ---- donations ---- */

void lc_claims_donate(void *ctx, const uint8_t *blob, size_t size, size_t written, int32_t seq, uint32_t flags)
{
	const void *mem = lc_real_llama_get_memory(ctx);
	struct slotprobe_claim claim;
	struct view v;
	uint32_t outcome;
	uint64_t key;

	if (!written || written > size) { /* the server was told that it has nothing */
		lc_hit(LC_DONATE, SLOTPROBE_HIT_FILTERED);
		return;
	}
	outcome = look(ctx, blob, written, seq, flags, &v);
	if (outcome == SLOTPROBE_HIT_COMMITTED && v.seq != seq)
		outcome = SLOTPROBE_HIT_ERROR;
	if (outcome == SLOTPROBE_HIT_COMMITTED) {
		lc_lock();
		key = lc_history_key(mem, seq, v.part.pos + 1);
		if (!(flags & LC_FLAG_PARTIAL))
			lc_history_save(mem, seq, blob, size, v.part.pos + 1);
		lc_unlock();
		claim = claim_of(&v, key);
		if (flags & LC_FLAG_PARTIAL && claimed_len >= 0)
			claim.claimed_len = claimed_len;
		if (slotprobe_donate(&claim) < 0)
			outcome = SLOTPROBE_HIT_ERROR;
	}
	lc_hit(LC_DONATE, outcome);
}

/* ---- restores ---- */

/* The tokens that a blob stands for, seen from the sequence that it goes to: a whole one brings its own, a partial one
 * is a prefix of what the sequence holds. */
static void take_history(const void *mem, const uint8_t *blob, size_t size, int32_t seq, uint32_t flags, int32_t n)
{
	if (flags & LC_FLAG_PARTIAL)
		lc_history_remove(mem, seq, n, -1);
	else
		lc_history_load(mem, seq, blob, size, n);
}

static uint64_t key_of_blob(const void *mem, const uint8_t *blob, size_t size, int32_t seq, uint32_t flags, int32_t n)
{
	uint64_t key;

	lc_lock();
	take_history(mem, blob, size, seq, flags, n);
	key = lc_history_key(mem, seq, n);
	lc_unlock();
	return key;
}

void lc_claims_restore(void *ctx, const uint8_t *blob, size_t size, int32_t seq, uint32_t flags)
{
	const void *mem = lc_real_llama_get_memory(ctx);
	struct slotprobe_claim claim;
	struct view v;
	uint32_t outcome = look(ctx, blob, size, seq, flags, &v);

	if (outcome == SLOTPROBE_HIT_COMMITTED) {
		claim = claim_of(&v, key_of_blob(mem, blob, size, seq, flags, v.part.pos + 1));
		if (slotprobe_restore(&claim) < 0)
			outcome = SLOTPROBE_HIT_ERROR;
	} else if (outcome == SLOTPROBE_HIT_ERROR || !(flags & LC_FLAG_ON_DEVICE)) {
		lc_lock();
		lc_history_lose(mem, seq);
		lc_unlock();
	}
	lc_hit(LC_RESTORE, outcome);
}

void lc_claims_restore_failed(void *ctx, int32_t seq)
{
	const void *mem = lc_real_llama_get_memory(ctx);

	lc_lock();
	lc_history_remove(mem, seq, -1, -1);
	lc_history_lose(mem, seq);
	lc_unlock();
}
