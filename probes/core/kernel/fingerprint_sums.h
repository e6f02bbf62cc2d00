/* SPDX-License-Identifier: Apache-2.0
 *
 * fingerprint_sums.h: how the chunks of a plane make its print, for the host twin and for the reader of records. Step 5 of
 * fingerprint_ops.h.
 */
#ifndef FINGERPRINT_SUMS_H
#define FINGERPRINT_SUMS_H

#include "probes/core/kernel/fingerprint_ops.h"

struct fp_sums {
	double lane[FP_LANES]; /* set by as many chunks */
	uint32_t chunks;
	uint64_t hash, max, nan, inf;
};

/* Lanes 32 apart in ascending order, then halves. Those that are not used count as +0, which changes no sum. */
static inline double fp_tree(const double *lanes, uint32_t used)
{
	double y[32] = { 0 };
	if (used == 1) /* most planes of most pools */
		return lanes[0] + 0.0;
	for (unsigned i = 0; i < used && i < 32; i++)
		y[i] = lanes[i];
	for (unsigned i = 32; i < used; i++)
		y[i % 32] += lanes[i];
	for (int apart = 16; apart; apart /= 2)
		for (int i = 0; i < apart; i++)
			y[i] += y[i + apart];
	return y[0];
}

static inline double fp_square_root(double x) /* the builtin may call libm for errno's sake */
{
#if defined(__x86_64__)
	__asm__("sqrtsd %1, %0" : "=x"(x) : "x"(x));
	return x;
#elif defined(__aarch64__)
	__asm__("fsqrt %d0, %d1" : "=w"(x) : "w"(x));
	return x;
#else
	return __builtin_sqrt(x);
#endif
}

static inline void fp_sums_begin(struct fp_sums *s)
{
	s->chunks = 0;
	s->hash = s->max = s->nan = s->inf = 0;
}

/* The next chunk. */
static inline void fp_sums_add(struct fp_sums *s, double sum, uint64_t hash, uint64_t max, uint64_t nan, uint64_t inf)
{
	double *lane = &s->lane[s->chunks % FP_LANES];

	*lane = s->chunks++ < FP_LANES ? sum : *lane + sum;
	s->hash += hash;
	s->max = max > s->max ? max : s->max;
	s->nan += nan;
	s->inf += inf;
}

static inline void fp_sums_finish(const struct fp_sums *s, uint64_t bytes, struct fp_print *out)
{
	out->absmax = fp_f64(s->max);
	out->l2 = fp_square_root(fp_tree(s->lane, s->chunks < FP_LANES ? s->chunks : FP_LANES));
	out->nan = s->nan;
	out->inf = s->inf;
	out->hash = fp_hash_finish(s->hash, bytes);
}

static inline uint64_t fp_record_check(const uint64_t word[FP_RECORD_WORDS], uint32_t sequence)
{
	uint64_t check = 0;
	for (uint32_t i = 0; i < FP_RECORD_WORDS; i++)
		check += fp_record_mix(word[i], i, sequence);
	return check;
}

#endif
