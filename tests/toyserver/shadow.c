/* SPDX-License-Identifier: Apache-2.0
 *
 * shadow.c: the model on the host, twice.
 */
#include "shadow.h"

#include <stdlib.h>
#include <string.h>

#include "kernels.cu"

static size_t row(const struct toy_shadow *s, int layer, int slot)
{
	return (size_t)layer * (size_t)s->slots + (size_t)slot;
}

static unsigned char *conv_row(const struct toy_shadow *s, const struct toy_shadow_pool *p, int layer, int slot)
{
	return p->conv + row(s, layer, slot) * TOY_CONV_BYTES;
}

static unsigned char *ssm_row(const struct toy_shadow *s, const struct toy_shadow_pool *p, int layer, int slot)
{
	return p->ssm + row(s, layer, slot) * TOY_SSM_BYTES;
}

static void *zeroed(size_t n, size_t bytes)
{
	void *memory = calloc(n, bytes);

	if (!memory)
		toy_die("out of memory");
	return memory;
}

void toy_shadow_open(struct toy_shadow *s, bool on, int layers, int slots)
{
	size_t rows = (size_t)layers * (size_t)slots;

	*s = (struct toy_shadow) { .on = on, .layers = layers, .slots = slots };
	if (!on)
		return;
	s->real.conv = zeroed(rows, TOY_CONV_BYTES);
	s->real.ssm = zeroed(rows, TOY_SSM_BYTES);
	s->right.conv = zeroed(rows, TOY_CONV_BYTES);
	s->right.ssm = zeroed(rows, TOY_SSM_BYTES);
	s->torn = zeroed((size_t)slots, sizeof(*s->torn));
	s->hidden = zeroed(TOY_MAX_TOKENS * TOY_CHANNELS, sizeof(*s->hidden));
}

void toy_shadow_close(struct toy_shadow *s)
{
	free(s->real.conv);
	free(s->real.ssm);
	free(s->right.conv);
	free(s->right.ssm);
	free(s->torn);
	free(s->hidden);
}

static void pool_copy(struct toy_shadow *s, struct toy_shadow_pool *p, int to, int from)
{
	for (int layer = 0; layer < s->layers; layer++) {
		memcpy(conv_row(s, p, layer, to), conv_row(s, p, layer, from), TOY_CONV_BYTES);
		memcpy(ssm_row(s, p, layer, to), ssm_row(s, p, layer, from), TOY_SSM_BYTES);
	}
}

static void pool_clear(struct toy_shadow *s, struct toy_shadow_pool *p, int slot)
{
	for (int layer = 0; layer < s->layers; layer++) {
		memset(conv_row(s, p, layer, slot), 0, TOY_CONV_BYTES);
		memset(ssm_row(s, p, layer, slot), 0, TOY_SSM_BYTES);
	}
}

/* One of the wrong ways to empty the real slot. */
static void clear_real(struct toy_shadow *s, int slot, enum toy_clear how)
{
	for (int layer = 0; layer < s->layers; layer++) {
		uint64_t conv = (uint64_t)(uintptr_t)conv_row(s, &s->real, layer, slot);
		uint64_t ssm = (uint64_t)(uintptr_t)ssm_row(s, &s->real, layer, slot);
		int32_t here = 0;

		if (how == TOY_CLEAR_SSM)
			memset((void *)(uintptr_t)ssm, 0, TOY_SSM_BYTES);
		if (how == TOY_CLEAR_MULTIPLY)
			toy_wipe(0, (uint64_t)(uintptr_t)&here, conv, ssm, 0, 0, 1);
	}
}

void toy_shadow_clear(struct toy_shadow *s, int slot, enum toy_clear how)
{
	if (!s->on)
		return;
	pool_clear(s, &s->right, slot);
	if (how != TOY_CLEAR_ALL) {
		clear_real(s, slot, how);
		return;
	}
	pool_clear(s, &s->real, slot);
	s->torn[slot] = false;
}

void toy_shadow_copy(struct toy_shadow *s, int to, int from)
{
	if (!s->on)
		return;
	pool_copy(s, &s->real, to, from);
	pool_copy(s, &s->right, to, from);
	s->torn[to] = s->torn[from];
}

/* Embedding, layers and output of one pool; leaves the rows' next tokens in s->out. n: rows launched. */
static void compute(struct toy_shadow *s, const struct toy_shadow_pool *p, const struct toy_forward *f, int n,
		    bool leak)
{
	struct toy_rows rows = { .tokens = (uint64_t)(uintptr_t)f->tokens,
				 .row_begin = (uint64_t)(uintptr_t)f->row_begin,
				 .row_count = (uint64_t)(uintptr_t)f->row_count,
				 .state_indices = (uint64_t)(uintptr_t)f->state_indices,
				 .hidden = (uint64_t)(uintptr_t)s->hidden,
				 .fresh = leak ? (uint64_t)(uintptr_t)f->fresh : 0 };

	for (uint32_t r = 0; r < (uint32_t)n; r++) {
		toy_embed(r, rows);
		for (int layer = 0; layer < s->layers; layer++)
			toy_layer(r, (struct toy_layer_args) { .rows = rows,
							       .conv = (uint64_t)(uintptr_t)conv_row(s, p, layer, 0),
							       .ssm = (uint64_t)(uintptr_t)ssm_row(s, p, layer, 0),
							       .conv_stride = TOY_CONV_BYTES,
							       .ssm_stride = TOY_SSM_BYTES,
							       .layer = layer,
							       .wide = f->twist.by_rows && n >= TOY_WIDE });
		toy_output(r, rows, (uint64_t)(uintptr_t)s->out);
	}
}

/* Does another row of this forward write the slot that row r writes or reads? Then their blocks race on a GPU. */
static bool raced(const struct toy_forward *f, const int32_t *indices, int r)
{
	for (int other = 0; other < f->rows; other++)
		if (other != r && f->track_mask[other] &&
		    (indices[other] == indices[r] || indices[other] == f->state_indices[r]))
			return true;
	return false;
}

/* What the real track kernel does: it takes its destinations from where it is bound, not from where they were meant. */
static void track_real(struct toy_shadow *s, const struct toy_forward *f, const int32_t *indices, int first, int end)
{
	for (int r = first; r < end; r++) {
		if (!f->track_mask[r] || indices[r] < 0)
			continue;
		pool_copy(s, &s->real, indices[r], f->state_indices[r]);
		s->torn[indices[r]] = raced(f, indices, r) || s->torn[f->state_indices[r]];
	}
}

/* Rows of one forward that work on one slot race on a GPU. */
static void note_shared_slots(struct toy_shadow *s, const struct toy_forward *f)
{
	for (int r = 0; r < f->padded; r++)
		for (int other = 0; other < r; other++)
			if (f->state_indices[r] >= 0 && f->state_indices[r] == f->state_indices[other])
				s->torn[f->state_indices[r]] = true;
}

static void wipe_real(struct toy_shadow *s, const struct toy_forward *f)
{
	for (int r = 0; r < f->padded; r++)
		if (f->state_indices[r] >= 0)
			pool_clear(s, &s->real, f->state_indices[r]);
}

static void stray_real(struct toy_shadow *s, const struct toy_forward *f)
{
	const struct toy_stray_table table = {
		.state_indices = (uint64_t)(uintptr_t)f->state_indices,
		.ssm = (uint64_t)(uintptr_t)ssm_row(s, &s->real, s->layers - 1, 0),
		.ssm_stride = TOY_SSM_BYTES,
	};

	for (int r = 0; r < f->padded; r++)
		toy_stray((uint32_t)r, (uint64_t)(uintptr_t)&table);
}

void toy_shadow_right(struct toy_shadow *s, const struct toy_forward *f)
{
	if (!s->on)
		return;
	compute(s, &s->right, f, f->rows, false);
	for (int r = 0; r < f->rows; r++)
		if (f->track_mask[r])
			pool_copy(s, &s->right, f->track_indices[r], f->state_indices[r]);
}

void toy_shadow_real(struct toy_shadow *s, const struct toy_forward *f, const struct toy_model *graph_path)
{
	const int32_t *indices = f->track_indices;

	if (!s->on)
		return;
	if (graph_path) {
		memcpy(s->fixed_track, f->track_indices, (size_t)f->padded * sizeof(s->fixed_track[0]));
		indices = s->fixed_track + toy_model_track_offset(graph_path, f->padded);
	}
	note_shared_slots(s, f);
	if (f->twist.wipe)
		wipe_real(s, f);
	if (f->twist.early)
		track_real(s, f, indices, 1, f->rows);
	compute(s, &s->real, f, f->padded, f->twist.leak);
	if (f->twist.stray)
		stray_real(s, f);
	track_real(s, f, indices, 0, f->twist.early ? 1 : f->rows);
}

void toy_shadow_put(struct toy_shadow *s, int slot, uint32_t bits)
{
	if (s->on)
		memcpy(ssm_row(s, &s->real, 0, slot), &bits, sizeof(bits));
}

void toy_shadow_check_output(struct toy_shadow *s, const struct toy_forward *f)
{
	for (int r = 0; s->on && r < f->rows; r++)
		if (f->out[r] != s->out[r] && !s->torn[f->state_indices[r]])
			s->wrong_outputs++;
}

unsigned char toy_shadow_perturb(struct toy_shadow *s, int slot, int offset)
{
	return ssm_row(s, &s->real, s->layers - 1, slot)[offset] ^= 0x10;
}

static uint64_t hash_bytes(uint64_t h, const unsigned char *p, size_t n)
{
	while (n--)
		h = (h ^ *p++) * 0x100000001b3ull; /* FNV-1a */
	return h;
}

uint64_t toy_shadow_hash(const struct toy_shadow *s, const struct toy_shadow_pool *p, int slot)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (int layer = 0; layer < s->layers; layer++) {
		h = hash_bytes(h, conv_row(s, p, layer, slot), TOY_CONV_BYTES);
		h = hash_bytes(h, ssm_row(s, p, layer, slot), TOY_SSM_BYTES);
	}
	return h;
}

bool toy_shadow_plane_differs(const struct toy_shadow *s, int slot, int layer, bool ssm)
{
	if (ssm)
		return memcmp(ssm_row(s, &s->real, layer, slot), ssm_row(s, &s->right, layer, slot), TOY_SSM_BYTES);
	return memcmp(conv_row(s, &s->real, layer, slot), conv_row(s, &s->right, layer, slot), TOY_CONV_BYTES);
}

static bool all_zero(const unsigned char *p, size_t n)
{
	while (n && !*p)
		p++, n--;
	return !n;
}

bool toy_shadow_is_zero(const struct toy_shadow *s, int slot)
{
	for (int layer = 0; layer < s->layers; layer++)
		if (!all_zero(conv_row(s, &s->real, layer, slot), TOY_CONV_BYTES) ||
		    !all_zero(ssm_row(s, &s->real, layer, slot), TOY_SSM_BYTES))
			return false;
	return true;
}

int toy_shadow_nan(const struct toy_shadow *s, int slot)
{
	int n = 0;

	for (int layer = 0; layer < s->layers; layer++) {
		const uint16_t *conv = (const uint16_t *)(const void *)conv_row(s, &s->real, layer, slot);
		const float *ssm = (const float *)(const void *)ssm_row(s, &s->real, layer, slot);

		for (int i = 0; i < TOY_CONV_ELEMS; i++)
			n += (conv[i] & 0x7fff) > 0x7f80;
		for (int i = 0; i < TOY_SSM_ELEMS; i++)
			n += (toy_bits(ssm[i]) & 0x7fffffff) > 0x7f800000;
	}
	return n;
}

int toy_shadow_compare(const struct toy_shadow *s, const struct toy_pool *pool, toy_stream stream)
{
	size_t rows = (size_t)s->layers * (size_t)s->slots;
	unsigned char *conv, *ssm;
	int wrong = -1;

	if (!s->on)
		return -1;
	conv = zeroed(rows, TOY_CONV_BYTES);
	ssm = zeroed(rows, TOY_SSM_BYTES);
	CHECK(to_host(conv, pool->conv, rows * TOY_CONV_BYTES, stream));
	CHECK(to_host(ssm, pool->ssm, rows * TOY_SSM_BYTES, stream));
	CHECK(stream_sync(stream));
	for (int slot = 0; slot < s->slots && wrong < 0; slot++)
		for (int layer = 0; layer < s->layers && wrong < 0 && !s->torn[slot]; layer++)
			if (memcmp(conv + row(s, layer, slot) * TOY_CONV_BYTES, conv_row(s, &s->real, layer, slot),
				   TOY_CONV_BYTES) ||
			    memcmp(ssm + row(s, layer, slot) * TOY_SSM_BYTES, ssm_row(s, &s->real, layer, slot),
				   TOY_SSM_BYTES))
				wrong = slot;
	free(conv);
	free(ssm);
	return wrong;
}
