/* SPDX-License-Identifier: Apache-2.0
 *
 * fingerprint_ops.h: the arithmetic of the fingerprint, once, for the device (nvcc) and for the host (C11 and C++). What
 * stands here decides every bit of a result; fingerprint.cu and fingerprint_host.c only decide who does it when.
 *
 * The hash: the plane's bytes are little-endian 64-bit words w[0], w[1], ..., the last one padded with zeros;
 *	h = sum of fp_mix(w[p] + (p + 1) * FP_STEP) mod 2^64, hash = fp_mix(h ^ bytes * FP_SPREAD).
 * fp_mix is a bijection, so a change of one word is always seen; it is not linear in any bit, so that the differences of
 * two changed words (swaps of words, of top bits too) do not cancel by construction.
 *
 * The sum of squares has one order, so that it is the same bit for bit wherever it is computed:
 *	1. A chunk (fp_chunk_bytes) is vectors of 16 bytes; lane t of 256 takes vectors t, t + 256, t + 512, ...
 *	2. A lane has one accumulator for each 4-byte column of its vectors, and adds the elements of that column in
 *	   ascending order: acc = fma(x, x, acc) in fp32 for fp32, fp16, bf16, fp8 and int32 (rounded to fp32 first);
 *	   acc + x * x in fp64, each operation rounded, for fp64 (there a column is 8 bytes); exactly, in integers, for
 *	   int8.
 *	3. Lane sum: (a0 + a1) + (a2 + a3) in the accumulators' type, then converted to fp64. fp64: a0 + a1.
 *	4. A lane that is fp_special (it saw a NaN or an Inf, or its squares overflow fp32) is computed again from its
 *	   elements, in order, in fp64, leaving out those that are not finite. Only this path counts NaN and Inf.
 *	5. The tree over the 256 lane sums: lanes 32 apart in ascending order give 32 sums; those 16 apart are added, then 8, 4,
 *	   2, 1. A plane's chunk sums go to 256 lanes (chunk c to lane c % 256, ascending) and through the tree again. l2 is
 *	   the square root of that.
 * fp32 squares under 2^-149 vanish and those under 2^-126 lose bits: l2 of a lane whose elements are all smaller than
 * 1e-19 is coarse. Nothing flushes denormals, neither here nor there.
 */
#ifndef FINGERPRINT_OPS_H
#define FINGERPRINT_OPS_H

#include "probes/core/kernel/fingerprint.h"

#ifdef __CUDACC__
#define FP_OPS static __device__ __forceinline__
#else
#include <string.h>
#define FP_OPS static inline __attribute__((always_inline))
#endif

/* enum slotprobe_dtype, whose header is not for devices; the unit tests hold the two against each other. */
enum fp_dtype { FP_F64, FP_F32, FP_F16, FP_BF16, FP_F8E4M3, FP_F8E5M2, FP_I8, FP_I32, FP_RAW };

#define FP_LANES       256u /* == FP_THREADS: a block is the lanes of its chunk */
#define FP_VECTOR      16u  /* bytes */
#define FP_STEP        0x9e3779b97f4a7c15ull
#define FP_SPREAD      0xd1342543de82ef95ull
#define FP_F32_INF     0x7f800000u
#define FP_F64_INF     0x7ff0000000000000ull
#define FP_F64_NOT_NEG 0x7fffffffffffffffull

/* ---- bits ---- */

FP_OPS float fp_f32(uint32_t bits)
{
#ifdef __CUDACC__
	return __uint_as_float(bits);
#else
	float x;
	memcpy(&x, &bits, sizeof(x));
	return x;
#endif
}

FP_OPS uint32_t fp_f32_bits(float x)
{
#ifdef __CUDACC__
	return __float_as_uint(x);
#else
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	return bits;
#endif
}

FP_OPS double fp_f64(uint64_t bits)
{
#ifdef __CUDACC__
	return __longlong_as_double((long long)bits);
#else
	double x;
	memcpy(&x, &bits, sizeof(x));
	return x;
#endif
}

FP_OPS uint64_t fp_f64_bits(double x)
{
#ifdef __CUDACC__
	return (uint64_t)__double_as_longlong(x);
#else
	uint64_t bits;
	memcpy(&bits, &x, sizeof(bits));
	return bits;
#endif
}

/* log2 of the bytes of an element: two bits each, from FP_F64 up. */
FP_OPS uint32_t fp_elem_shift(uint32_t dtype)
{
	return dtype < FP_RAW ? 0x805bu >> 2 * dtype & 3 : 0;
}

FP_OPS uint32_t fp_elem_bytes(uint32_t dtype)
{
	return 1u << fp_elem_shift(dtype);
}

/* ---- hash ---- */

/* Four rounds of a Feistel network on the halves of a word: one half takes in both halves of an odd multiple of the other.
 * A round is a wide multiplication and a three-way XOR on a GPU: fewer instructions than xor-shift-multiply (log_mix64),
 * and without its blind spot, where the top bits of both halves (the signs of a pair of fp32) together meet only one of
 * the multiplications. Three rounds are not enough. test_hash.c shows both.
 *
 * A macro, for words and for vectors of words: low_times(x, odd) is the product of the low half. */
#define FP_DEFINE_MIX(kind, name, word, low_times)                                                                     \
	kind word name##_up(word x, uint32_t odd)                                                                      \
	{                                                                                                              \
		word p = low_times(x, odd);                                                                            \
		return x ^ (p << 32) ^ (p & 0xffffffff00000000ull);                                                    \
	}                                                                                                              \
	kind word name##_down(word x, uint32_t odd)                                                                    \
	{                                                                                                              \
		word p = low_times(x >> 32, odd);                                                                      \
		return x ^ (p >> 32) ^ (p & 0xffffffffull);                                                            \
	}                                                                                                              \
	kind word name(word x)                                                                                         \
	{                                                                                                              \
		x = name##_down(x, 0xa0761d65u);                                                                       \
		x = name##_up(x, 0xe7037ed1u);                                                                         \
		x = name##_down(x, 0x8ebc6af1u);                                                                       \
		return name##_up(x, 0x589965cdu);                                                                      \
	}

FP_OPS uint64_t fp_low_times(uint64_t x, uint32_t odd)
{
#ifdef __CUDACC__
	uint64_t p; /* by name: seen as a 64-bit product it becomes three instructions */
	asm("mul.wide.u32 %0, %1, %2;" : "=l"(p) : "r"((uint32_t)x), "r"(odd));
	return p;
#else
	return (uint64_t)(uint32_t)x * odd;
#endif
}

FP_DEFINE_MIX(FP_OPS, fp_mix, uint64_t, fp_low_times)

FP_OPS uint64_t fp_key(uint64_t position)
{
	return (position + 1) * FP_STEP;
}

FP_OPS uint64_t fp_hash_finish(uint64_t sum, uint64_t bytes)
{
	return fp_mix(sum ^ bytes * FP_SPREAD);
}

/* What word i of a record, or value i of a region, adds to the check. */
FP_OPS uint64_t fp_record_mix(uint64_t word, uint32_t i, uint32_t sequence)
{
	return fp_mix(word + fp_key((uint64_t)sequence * FP_REGION_VALUES + i));
}

/* ---- one fused or rounded operation ---- */

/* Nearest-even fma(x, x, acc) for acc >= 0 without hardware for it: the square is exact in fp64; the sum is rounded to
 * odd there, so that rounding it once more to fp32 is the one rounding of the exact sum. */
FP_OPS float fp_soft_square_add(float x, float acc)
{
	double square = (double)x * (double)x;
	double sum = square + (double)acc;
	double part = sum - square;
	double error = (square - (sum - part)) + ((double)acc - part);
	uint64_t bits = fp_f64_bits(sum);
	if (bits < FP_F64_INF && error != 0 && !(bits & 1))
		bits = error > 0 ? bits + 1 : bits - 1;
	return (float)fp_f64(bits);
}

/* has_fma is a constant: 0 where the target's __builtin_fmaf would be a call. */
FP_OPS float fp_square_add(float x, float acc, int has_fma)
{
#ifdef __CUDACC__
	(void)has_fma;
	return __fmaf_rn(x, x, acc);
#else
	return has_fma ? __builtin_fmaf(x, x, acc) : fp_soft_square_add(x, acc);
#endif
}

/* Two roundings, never fused. Host objects are built with contraction off. */
FP_OPS double fp_square_add_f64(double x, double acc)
{
#ifdef __CUDACC__
	return __dadd_rn(acc, __dmul_rn(x, x));
#else
	double square = x * x;
	return acc + square;
#endif
}

/* ---- elements of a 4-byte word ---- */

/* Value, up to its sign, of the i-th 16-bit float. Host: Inf and NaN come out as finite values from 65536 up. */
FP_OPS float fp_half(uint32_t word, int i)
{
#ifdef __CUDACC__
	float x;
	if (i)
		asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h; }" : "=f"(x) : "r"(word));
	else
		asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l; }" : "=f"(x) : "r"(word));
	return x;
#else
	uint32_t magnitude = (i ? word >> 3 : word << 13) & 0x0fffe000u;
	return fp_f32(magnitude) * 0x1p112f;
#endif
}

/* The i-th byte's exponent and mantissa where those of an fp32 stand, `up` bits over its lowest place. */
FP_OPS uint32_t fp_byte_at(uint32_t word, int i, int up)
{
	int shift = up - 8 * i;
	return (shift >= 0 ? word << (shift & 31) : word >> (-shift & 31)) & 0x7fu << up;
}

/* Value, up to its sign, of the i-th element of the word, for the dtypes that sum in fp32. Exact. fp8: NaN and Inf come
 * out as the finite values that their codes would have. */
FP_OPS float fp_value(uint32_t dtype, uint32_t word, int i)
{
	switch (dtype) {
	case FP_F16:
		return fp_half(word, i);
	case FP_BF16:
		return fp_f32(i ? word & 0xffff0000u : word << 16);
	case FP_F8E4M3:
		return fp_f32(fp_byte_at(word, i, 20)) * 0x1p120f;
	case FP_F8E5M2:
		return fp_f32(fp_byte_at(word, i, 21)) * 0x1p112f;
	case FP_I32:
		return (float)(int32_t)word;
	default:
		return fp_f32(word);
	}
}

FP_OPS int32_t fp_byte(uint32_t word, int i)
{
	return (int8_t)(word >> 8 * i);
}

FP_OPS uint32_t fp_abs_i32(int32_t x)
{
	return x < 0 ? 0u - (uint32_t)x : (uint32_t)x;
}

FP_OPS uint32_t fp_max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Abs-max as an integer that orders like the magnitude: bits of an fp32 >= 0, or the magnitude of an integer. A NaN
 * may or may not be taken: the lane is special then, and this result is dropped. */
FP_OPS uint32_t fp_max_f32(uint32_t max, float x)
{
#ifdef __CUDACC__
	return __float_as_uint(fmaxf(__uint_as_float(max), fabsf(x)));
#else
	return fp_max_u32(max, fp_f32_bits(x) & 0x7fffffffu);
#endif
}

FP_OPS uint32_t fp_max_word(uint32_t dtype, uint32_t word, uint32_t max)
{
	if (dtype == FP_RAW)
		return max;
	if (dtype == FP_I32)
		return fp_max_u32(max, fp_abs_i32((int32_t)word));
	for (int i = 0; i < 4 / (int)fp_elem_bytes(dtype); i++)
		max = dtype == FP_I8 ? fp_max_u32(max, fp_abs_i32(fp_byte(word, i)))
				     : fp_max_f32(max, fp_value(dtype, word, i));
	return max;
}

/* acc plus the squares of the word's elements, for the dtypes that sum in fp32. */
FP_OPS float fp_sum_word(uint32_t dtype, uint32_t word, float acc, int has_fma)
{
	for (int i = 0; i < 4 / (int)fp_elem_bytes(dtype); i++)
		acc = fp_square_add(fp_value(dtype, word, i), acc, has_fma);
	return acc;
}

FP_OPS uint32_t fp_sum_word_i8(uint32_t word, uint32_t acc)
{
#ifdef __CUDACC__
	return (uint32_t)__dp4a((int)word, (int)word, (int)acc);
#else
	for (int i = 0; i < 4; i++)
		acc += (uint32_t)(fp_byte(word, i) * fp_byte(word, i));
	return acc;
#endif
}

/* ---- one lane of one chunk ---- */

/* Eight words, whatever the dtype: on the device they are registers, live while 24 more hold data. */
struct fp_lane {
	uint64_t hash;
	uint32_t acc[4]; /* bits of the columns' fp32; FP_I8: integers; FP_F64: two fp64 */
	uint32_t max[2]; /* of even and odd columns, as fp_max_word has it; FP_F64: one */
};

FP_OPS uint64_t fp_pair(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

FP_OPS void fp_lane_f64(struct fp_lane *lane, int column, uint64_t bits)
{
	uint32_t *acc = lane->acc + 2 * column;
	uint64_t max = fp_pair(lane->max[0], lane->max[1]);
	bits &= FP_F64_NOT_NEG;
	max = bits > max ? bits : max;
	lane->max[0] = (uint32_t)max;
	lane->max[1] = (uint32_t)(max >> 32);
	bits = fp_f64_bits(fp_square_add_f64(fp_f64(bits), fp_f64(fp_pair(acc[0], acc[1]))));
	acc[0] = (uint32_t)bits;
	acc[1] = (uint32_t)(bits >> 32);
}

/* The values of one vector; bytes past the chunk's last whole element must be zero: zeros change nothing. dtype is a
 * constant. */
FP_OPS void fp_lane_values(uint32_t dtype, struct fp_lane *lane, const uint32_t w[4], int has_fma)
{
	if (dtype == FP_F64) {
		fp_lane_f64(lane, 0, fp_pair(w[0], w[1]));
		fp_lane_f64(lane, 1, fp_pair(w[2], w[3]));
		return;
	}
	for (int i = 0; i < 4; i++) {
		lane->max[i % 2] = fp_max_word(dtype, w[i], lane->max[i % 2]);
		if (dtype == FP_I8)
			lane->acc[i] = fp_sum_word_i8(w[i], lane->acc[i]);
		else if (dtype != FP_RAW)
			lane->acc[i] = fp_f32_bits(fp_sum_word(dtype, w[i], fp_f32(lane->acc[i]), has_fma));
	}
}

/* Of a vector with n bytes: clears what is left of an element that is not whole. It has no value, only a hash. */
FP_OPS void fp_keep_whole(uint32_t dtype, uint32_t w[4], uint32_t n)
{
	uint32_t keep = n & ~(fp_elem_bytes(dtype) - 1);
	for (uint32_t i = 0; i < 4; i++) {
		if (keep <= 4 * i)
			w[i] = 0;
		else if (keep < 4 * i + 4)
			w[i] &= (1u << 8 * (keep - 4 * i)) - 1;
	}
}

/* The hash of one vector; key belongs to its first word. n_words: 2, or 1 when the plane ends in the first. */
FP_OPS void fp_lane_hash(struct fp_lane *lane, const uint32_t w[4], uint64_t key, int n_words)
{
	lane->hash += fp_mix(fp_pair(w[0], w[1]) + key);
	if (n_words > 1)
		lane->hash += fp_mix(fp_pair(w[2], w[3]) + (key + FP_STEP));
}

FP_OPS float fp_lane_sum_f32(const float f[4])
{
	return (f[0] + f[1]) + (f[2] + f[3]);
}

FP_OPS double fp_lane_sum(uint32_t dtype, const struct fp_lane *lane)
{
	const uint32_t *acc = lane->acc;
	if (dtype == FP_RAW)
		return 0;
	if (dtype == FP_F64)
		return fp_f64(fp_pair(acc[0], acc[1])) + fp_f64(fp_pair(acc[2], acc[3]));
	if (dtype == FP_I8)
		return (double)(acc[0] + acc[1] + acc[2] + acc[3]);
	const float f[4] = { fp_f32(acc[0]), fp_f32(acc[1]), fp_f32(acc[2]), fp_f32(acc[3]) };
	return (double)fp_lane_sum_f32(f);
}

/* Bits of the abs-max as an fp64: they order like it. */
FP_OPS uint64_t fp_max_bits(uint32_t dtype, uint32_t max)
{
	if (dtype == FP_RAW || !max)
		return 0;
	return fp_f64_bits(dtype == FP_I8 || dtype == FP_I32 ? (double)max : (double)fp_f32(max));
}

FP_OPS uint64_t fp_lane_max(uint32_t dtype, const struct fp_lane *lane)
{
	return dtype == FP_F64 ? fp_pair(lane->max[0], lane->max[1])
			       : fp_max_bits(dtype, fp_max_u32(lane->max[0], lane->max[1]));
}

FP_OPS int fp_finite(double x)
{
	return (fp_f64_bits(x) & FP_F64_NOT_NEG) < FP_F64_INF;
}

/* True when a lane's (or several lanes') fast result does not stand. fp16 on the device reaches Inf by itself; fp8, and
 * fp16 on the host, show it by an abs-max over their largest finite value. */
FP_OPS int fp_special(uint32_t dtype, double sum, uint64_t max_bits)
{
	if (!fp_finite(sum))
		return 1;
	if (dtype == FP_F8E4M3)
		return max_bits >= 0x407e000000000000ull; /* 480, the code of NaN */
	if (dtype == FP_F16 || dtype == FP_F8E5M2)
		return max_bits >= 0x40f0000000000000ull; /* 65536, the code of Inf */
	return 0;
}

/* ---- the rare path: one element at a time, of any dtype ---- */

struct fp_rare {
	double sum;
	uint64_t max, nan, inf;
};

/* Magnitude of a float with five bits of exponent, as IEEE 754 would have it. */
FP_OPS double fp_small_float(uint32_t code, int mantissa_bits, float scale)
{
	uint32_t inf = 31u << mantissa_bits;
	uint32_t magnitude = code & (inf | ((1u << mantissa_bits) - 1));
	if (magnitude >= inf)
		return fp_f64(magnitude == inf ? FP_F64_INF : FP_F64_INF | 1);
	return (double)(fp_f32(magnitude << (23 - mantissa_bits)) * scale);
}

/* Magnitude of an element from its zero-extended bits; NaN and Inf as such. Exact. */
FP_OPS double fp_element(uint32_t dtype, uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	switch (dtype) {
	case FP_F64:
		return fp_f64(bits & FP_F64_NOT_NEG);
	case FP_F32:
		return (double)fp_f32(low & 0x7fffffffu);
	case FP_BF16:
		return (double)fp_f32((low & 0x7fffu) << 16);
	case FP_F16:
		return fp_small_float(low, 10, 0x1p112f);
	case FP_F8E5M2:
		return fp_small_float(low, 2, 0x1p112f);
	case FP_F8E4M3:
		return (low & 0x7f) == 0x7f ? fp_f64(FP_F64_INF | 1) : (double)(fp_f32((low & 0x7f) << 20) * 0x1p120f);
	case FP_I8:
		return (double)fp_abs_i32((int8_t)low);
	case FP_I32:
		return (double)fp_abs_i32((int32_t)low);
	default:
		return 0;
	}
}

FP_OPS void fp_rare_add(struct fp_rare *rare, uint32_t dtype, uint64_t bits)
{
	double x = fp_element(dtype, bits);
	uint64_t magnitude = fp_f64_bits(x);
	if (magnitude > FP_F64_INF) {
		rare->nan++;
		return;
	}
	if (magnitude == FP_F64_INF)
		rare->inf++;
	else
		rare->sum = fp_square_add_f64(x, rare->sum);
	rare->max = magnitude > rare->max ? magnitude : rare->max;
}

/* ---- samples ---- */

/* Whole elements within the plane's bytes: what `elems` says, never more than is there. */
FP_OPS uint64_t fp_elems(uint32_t dtype, uint64_t bytes, uint64_t elems)
{
	uint64_t fit = bytes >> fp_elem_shift(dtype);
	return elems < fit ? elems : fit;
}

FP_OPS uint64_t fp_sample_offset(uint32_t dtype, uint64_t elems, uint32_t i)
{
	return i * (elems - 1) / (FP_SAMPLES - 1) << fp_elem_shift(dtype);
}

/* ---- slot ids ---- */

FP_OPS uint32_t fp_check_slot(int64_t slot, int64_t first_slot, int64_t n_slots)
{
	if (slot < 0)
		return FP_PADDING;
	uint64_t index = (uint64_t)slot - (uint64_t)first_slot; /* huge below the first */
	return n_slots <= 0 || index >= (uint64_t)n_slots ? FP_OUT_OF_RANGE : FP_OK;
}

#endif
