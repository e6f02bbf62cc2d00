/* SPDX-License-Identifier: Apache-2.0
 *
 * standin.c: a library with the names and the state blobs of llama.cpp's C interface, and nothing of its insides: enough
 * for the adapter to be tried where there is no llama.cpp. The state of a sequence is a function of its tokens.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

#define SEQUENCES 4
#define LAYERS    3 /* of the model; two of them are recurrent */
#define RECURRENT 2
#define R_FLOATS  12
#define S_FLOATS  20
#define ROOM      512
#define KV_BYTES  16 /* for each token, in the attention part */

struct sequence {
	int32_t n, token[ROOM];
	float r[RECURRENT][R_FLOATS], s[RECURRENT][S_FLOATS];
};

struct context {
	struct sequence seq[SEQUENCES];
	int kind;
};

struct batch {
	int32_t n, token[ROOM], seq[ROOM], pos[ROOM];
};

int standin_fail;     /* what the next batches answer */
int standin_lie = -1; /* sequence that blobs say they are of, if not their own */

void *standin_new(int kind)
{
	struct context *c = calloc(1, sizeof *c);

	c->kind = kind;
	return c;
}

void llama_free(void *ctx)
{
	free(ctx);
}

void *llama_get_memory(const void *ctx)
{
	return (void *)(uintptr_t)ctx;
}

uint32_t llama_n_seq_max(const void *ctx)
{
	(void)ctx;
	return SEQUENCES;
}

const void *llama_get_model(const void *ctx)
{
	return ctx;
}

bool llama_model_is_recurrent(const void *model)
{
	return ((const struct context *)model)->kind == STANDIN_RECURRENT;
}

bool llama_model_is_hybrid(const void *model)
{
	return ((const struct context *)model)->kind == STANDIN_HYBRID;
}

/* ---- state ---- */

static void advance(struct sequence *q, int32_t token)
{
	for (int l = 0; l < RECURRENT; l++) {
		for (int i = 0; i < R_FLOATS; i++)
			q->r[l][i] = q->r[l][(i + 1) % R_FLOATS] * 0.5f + (float)((token * 7 + i + l) % 13 - 6);
		for (int i = 0; i < S_FLOATS; i++)
			q->s[l][i] = q->s[l][i] * 0.9f + q->r[l][i % R_FLOATS];
	}
	q->token[q->n++] = token;
}

static void replay(struct sequence *q, int32_t n)
{
	struct sequence fresh = { 0 };

	for (int32_t i = 0; i < n; i++)
		advance(&fresh, q->token[i]);
	*q = fresh;
}

/* ---- blobs ---- */

struct writer {
	uint8_t *to;
	size_t at;
};

static void put(struct writer *w, const void *data, size_t bytes)
{
	if (w->to)
		memcpy(w->to + w->at, data, bytes);
	w->at += bytes;
}

static void put_u32(struct writer *w, uint32_t v)
{
	put(w, &v, 4);
}

static void put_row(struct writer *w, const void *data, uint64_t bytes)
{
	put_u32(w, 0); /* fp32 */
	put(w, &bytes, 8);
	put(w, data, bytes);
}

static void put_attention(struct writer *w, const struct sequence *q)
{
	const uint8_t kv[KV_BYTES] = { 1, 2, 3 };

	put_u32(w, 1);
	put_u32(w, (uint32_t)q->n);
	for (int32_t i = 0; i < q->n; i++)
		put(w, kv, sizeof kv);
}

static void put_recurrent(struct writer *w, const struct sequence *q)
{
	put_u32(w, q->n ? 1 : 0);
	if (q->n) {
		put_u32(w, (uint32_t)q->n - 1);
		put_u32(w, 0);
	}
	put_u32(w, 0);
	put_u32(w, LAYERS);
	for (int l = 0; l < RECURRENT; l++)
		put_row(w, q->r[l], q->n ? sizeof q->r[l] : 0);
	for (int l = 0; l < RECURRENT; l++)
		put_row(w, q->s[l], q->n ? sizeof q->s[l] : 0);
}

static size_t write_blob(const struct context *c, uint8_t *to, int32_t seq, uint32_t flags)
{
	struct writer w = { to, 0 };

	put_u32(&w, 0xaf143cd8u);
	put_u32(&w, (uint32_t)(standin_lie < 0 ? seq : standin_lie));
	if (flags & 2)
		return w.at;
	if (c->kind == STANDIN_ATTENTION || (c->kind == STANDIN_HYBRID && !(flags & 1)))
		put_attention(&w, &c->seq[seq]);
	if (c->kind != STANDIN_ATTENTION)
		put_recurrent(&w, &c->seq[seq]);
	return w.at;
}

size_t llama_state_seq_get_size_ext(void *ctx, int32_t seq, uint32_t flags)
{
	return write_blob(ctx, NULL, seq, flags);
}

size_t llama_state_seq_get_data_ext(void *ctx, uint8_t *dst, size_t size, int32_t seq, uint32_t flags)
{
	if (size < write_blob(ctx, NULL, seq, flags))
		return 0;
	return write_blob(ctx, dst, seq, flags);
}

/* The tokens of a whole blob are not in it: the driver says them. */
const int32_t *standin_tokens;
int32_t standin_n_tokens;

size_t llama_state_seq_set_data_ext(void *ctx, const uint8_t *src, size_t size, int32_t seq, uint32_t flags)
{
	struct context *c = ctx;
	struct sequence *q = &c->seq[seq];
	uint32_t magic = 0;

	if (size >= 4)
		memcpy(&magic, src, 4);
	if (magic != 0xaf143cd8u)
		return 0;
	if (!(flags & 1))
		memcpy(q->token, standin_tokens, (size_t)standin_n_tokens * sizeof *q->token);
	replay(q, standin_n_tokens);
	return size;
}

/* ---- sequences ---- */

bool llama_memory_seq_rm(void *mem, int32_t seq, int32_t p0, int32_t p1)
{
	struct context *c = mem;
	struct sequence *q = &c->seq[seq];

	if (p0 < 0)
		p0 = 0;
	if (p1 >= 0 && p1 < q->n)
		return false;
	if (p0 && p0 < q->n)
		return false; /* a recurrent state cannot go back */
	if (!p0)
		q->n = 0;
	return true;
}

void llama_memory_seq_cp(void *mem, int32_t src, int32_t dst, int32_t p0, int32_t p1)
{
	struct context *c = mem;

	(void)p0, (void)p1;
	c->seq[dst] = c->seq[src];
}

void llama_memory_seq_add(void *mem, int32_t seq, int32_t p0, int32_t p1, int32_t delta)
{
	(void)mem, (void)seq, (void)p0, (void)p1, (void)delta;
}

void llama_memory_clear(void *mem, bool data)
{
	struct context *c = mem;

	(void)data;
	memset(c->seq, 0, sizeof c->seq);
}

/* ---- batches ---- */

void *llama_batch_ext_init(void *ctx)
{
	(void)ctx;
	return calloc(1, sizeof(struct batch));
}

void llama_batch_ext_free(void *batch)
{
	free(batch);
}

void llama_batch_ext_clear(void *batch)
{
	((struct batch *)batch)->n = 0;
}

int32_t llama_batch_ext_add_token(void *batch, int32_t seq, int32_t token)
{
	struct batch *b = batch;

	b->seq[b->n] = seq;
	b->token[b->n] = token;
	return b->n++;
}

int32_t llama_batch_ext_add_embd(void *batch, int32_t seq, struct standin_embd embd)
{
	return embd.data ? llama_batch_ext_add_token(batch, seq, 0) : -2;
}

bool llama_batch_ext_set_pos(void *batch, int32_t index, const int32_t *pos)
{
	((struct batch *)batch)->pos[index] = *pos;
	return true;
}

int32_t llama_process(void *ctx, int type, void *batch)
{
	struct context *c = ctx;
	const struct batch *b = batch;

	(void)type;
	if (standin_fail)
		return standin_fail;
	for (int32_t i = 0; i < b->n; i++)
		advance(&c->seq[b->seq[i]], b->token[i]);
	return 0;
}

int32_t llama_decode(void *ctx, struct standin_batch batch)
{
	struct context *c = ctx;

	if (standin_fail)
		return standin_fail;
	for (int32_t i = 0; i < batch.n_tokens; i++)
		advance(&c->seq[batch.seq_id ? batch.seq_id[i][0] : 0], batch.token[i]);
	return 0;
}

void _ZN24common_prompt_checkpoint10update_posElii(void *self, int64_t n_tokens, int32_t pos_min, int32_t pos_max)
{
	(void)self, (void)n_tokens, (void)pos_min, (void)pos_max;
}
