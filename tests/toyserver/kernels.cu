/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels.cu: the model. One source, three builds: PTX (kernels.ptx), C for the CPU driver (kernels_cpu.c), C for the
 * server's shadow (shadow.c).
 *
 * The three must agree bit for bit: only additions and multiplications of floats, rounded one by one (-fmad=false,
 * -ffp-contract=off), in an order that no thread count changes. Threads meet only at SYNC and share only what lies in
 * memory, so that one thread that runs every FOR from 0 is a correct block.
 */
#include "kernels.h"

#ifdef __CUDACC__
#define KERNEL(name, ...) extern "C" __global__ void name(__VA_ARGS__)
#define INLINE            static __device__ __forceinline__
#define SHARED            __shared__
#define BLOCK             blockIdx.x
#define FOR(i, n)         for (int i = (int)threadIdx.x; i < (n); i += (int)blockDim.x)
#define SYNC()            __syncthreads()
#else
#define KERNEL(name, ...) __attribute__((unused)) static void name(uint32_t toy_block, __VA_ARGS__)
#define INLINE            static inline
#define SHARED
#define BLOCK     toy_block
#define FOR(i, n) for (int i = 0; i < (n); i++)
#define SYNC()    ((void)0)
#endif

INLINE uint32_t toy_hash(uint32_t a, uint32_t b)
{
	uint32_t h = a * 0x9e3779b1u + b * 0x85ebca77u + 0x165667b1u;

	h ^= h >> 15;
	h *= 0x2c1b3c6du;
	h ^= h >> 12;
	h *= 0x297a2d39u;
	return h ^ h >> 15;
}

/* in [-1, 1), exact */
INLINE float toy_signed(uint32_t h)
{
	return (float)((int32_t)(h >> 16) - 32768) * (1.0f / 32768.0f);
}

INLINE uint32_t toy_bits(float f)
{
	union {
		float f;
		uint32_t u;
	} x;

	x.f = f;
	return x.u;
}

INLINE float toy_from_bf16(uint16_t b)
{
	union {
		float f;
		uint32_t u;
	} x;

	x.u = (uint32_t)b << 16;
	return x.f;
}

INLINE uint16_t toy_to_bf16(float f) /* to nearest even */
{
	uint32_t u = toy_bits(f);

	return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

KERNEL(toy_embed, struct toy_rows rows)
{
	const int32_t *tokens = (const int32_t *)rows.tokens;
	const int32_t begin = ((const int32_t *)rows.row_begin)[BLOCK];
	const int32_t count = ((const int32_t *)rows.row_count)[BLOCK];
	float *hidden = (float *)rows.hidden + (int64_t)begin * TOY_CHANNELS;

	for (int32_t t = 0; t < count; t++)
		FOR(c, TOY_CHANNELS)
	hidden[t * TOY_CHANNELS + c] = toy_signed(toy_hash((uint32_t)tokens[begin + t], (uint32_t)c));
}

/* The causal convolution: shifts the new input in, returns what goes on to the SSM. past: so many earlier inputs are the
 * sequence's own. */
INLINE float toy_conv(uint16_t *window, float input, int32_t past)
{
	float oldest = past < 2 ? 0.0f : toy_from_bf16(window[1]);
	float middle = past < 1 ? 0.0f : toy_from_bf16(window[2]);
	uint16_t newest = toy_to_bf16(input);

	window[0] = window[1];
	window[1] = window[2];
	window[2] = newest;
	return oldest * 0.25f + middle * 0.5f + toy_from_bf16(newest);
}

/* state = decay * state + gain(token) * (input + neighbour), for the TOY_STATE numbers of one channel; returns the
 * read-out. */
INLINE float toy_ssm(float *state, float input, float neighbour, int32_t wide, uint32_t token, uint32_t layer,
		     uint32_t channel)
{
	float out = 0.0f;

	for (uint32_t n = 0; n < TOY_STATE; n++) {
		float decay = 0.5f + (float)(toy_hash(layer * TOY_CHANNELS + channel, n) & 0xffff) * 7e-6f;
		float gain = toy_signed(toy_hash(token ^ 0x55000000u, layer * TOY_STATE + n));

		state[n] = state[n] * decay + (wide ? input * gain + neighbour * gain : (input + neighbour) * gain);
		out = out + state[n] * toy_signed(toy_hash(0x0ac1e000u + layer, n));
	}
	return out;
}

KERNEL(toy_layer, struct toy_layer_args a)
{
	const int32_t *tokens = (const int32_t *)a.rows.tokens;
	const int32_t begin = ((const int32_t *)a.rows.row_begin)[BLOCK];
	const int32_t count = ((const int32_t *)a.rows.row_count)[BLOCK];
	const int32_t slot = ((const int32_t *)a.rows.state_indices)[BLOCK];
	const int32_t fresh = a.rows.fresh ? ((const int32_t *)a.rows.fresh)[BLOCK] : 0;
	SHARED float mixed[TOY_CHANNELS];

	if (slot < 0)
		return;
	uint16_t *conv = (uint16_t *)(a.conv + (uint64_t)(slot * a.conv_stride));
	float *ssm = (float *)(a.ssm + (uint64_t)(slot * a.ssm_stride));

	for (int32_t t = begin; t < begin + count; t++) {
		float *hidden = (float *)a.rows.hidden + (int64_t)t * TOY_CHANNELS;

		FOR(c, TOY_CHANNELS)
		mixed[c] = toy_conv(conv + c * TOY_WINDOW, hidden[c], fresh ? t - begin : TOY_WINDOW);
		SYNC();
		FOR(c, TOY_CHANNELS)
		{
			/* a neighbour's input too: a wrong row in one channel spreads over the slot */
			float out = toy_ssm(ssm + c * TOY_STATE, mixed[c], mixed[(c + 5) % TOY_CHANNELS] * 0.5f, a.wide,
					    (uint32_t)tokens[t], (uint32_t)a.layer, (uint32_t)c);

			hidden[c] = hidden[c] * 0.5f + out * (1.0f / 1024.0f);
		}
		SYNC();
	}
}

/* The next token of each row: from every bit of its last hidden vector. */
KERNEL(toy_output, struct toy_rows rows, uint64_t out)
{
	const int32_t begin = ((const int32_t *)rows.row_begin)[BLOCK];
	const int32_t count = ((const int32_t *)rows.row_count)[BLOCK];
	const float *hidden = (const float *)rows.hidden + (int64_t)(begin + count - 1) * TOY_CHANNELS;

	FOR(only, 1)
	{
		uint32_t h = (uint32_t)only;

		for (int c = 0; c < TOY_CHANNELS; c++)
			h = toy_hash(h, toy_bits(hidden[c]));
		((int32_t *)out)[BLOCK] = (int32_t)(h % TOY_VOCAB);
	}
}

/* The checkpoint: where mask says so, one layer of a row's live slot goes to its destination slot. */
KERNEL(toy_track, uint64_t state_indices, uint64_t track_indices, uint64_t track_mask, uint64_t conv, uint64_t ssm,
       int64_t conv_stride, int64_t ssm_stride)
{
	const int32_t from = ((const int32_t *)state_indices)[BLOCK];
	const int32_t to = ((const int32_t *)track_indices)[BLOCK];

	if (!((const int32_t *)track_mask)[BLOCK] || from < 0 || to < 0)
		return;
	FOR(i, TOY_CONV_ELEMS)
	((uint16_t *)(conv + (uint64_t)(to * conv_stride)))[i] =
		((const uint16_t *)(conv + (uint64_t)(from * conv_stride)))[i];
	FOR(i, TOY_SSM_ELEMS)
	((float *)(ssm + (uint64_t)(to * ssm_stride)))[i] = ((const float *)(ssm + (uint64_t)(from * ssm_stride)))[i];
}

/* Empties one layer of the rows' slots: by a product with 0, which keeps a NaN, or by writing zeros. */
KERNEL(toy_wipe, uint64_t state_indices, uint64_t conv, uint64_t ssm, int64_t conv_stride, int64_t ssm_stride,
       int32_t multiply)
{
	const int32_t slot = ((const int32_t *)state_indices)[BLOCK];

	if (slot < 0)
		return;
	uint16_t *window = (uint16_t *)(conv + (uint64_t)(slot * conv_stride));
	float *state = (float *)(ssm + (uint64_t)(slot * ssm_stride));

	FOR(i, TOY_CONV_ELEMS)
	window[i] = multiply ? toy_to_bf16(toy_from_bf16(window[i]) * 0.0f) : (uint16_t)0;
	FOR(i, TOY_SSM_ELEMS)
	state[i] = multiply ? state[i] * 0.0f : 0.0f;
}

/* Adds to the rows' states by what lies in a table: no parameter points into the pool. */
KERNEL(toy_stray, uint64_t table)
{
	const struct toy_stray_table *t = (const struct toy_stray_table *)table;
	const int32_t slot = ((const int32_t *)t->state_indices)[BLOCK];

	if (slot < 0)
		return;
	FOR(i, TOY_STATE)
	((float *)(t->ssm + (uint64_t)(slot * t->ssm_stride)))[i] += 0.5f;
}
