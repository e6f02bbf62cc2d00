/* SPDX-License-Identifier: Apache-2.0
 *
 * fingerprint_host.c: the fingerprint on the CPU: of one plane, fast, for host memory; and the kernel's whole protocol,
 * for the CPU driver. The arithmetic is in fingerprint_ops.h; the order of sums is stated there and kept here.
 *
 * Loops over the 4-byte columns of a row of 256 vectors are left to the compiler to vectorise. They are built twice on
 * x86-64, for AVX2 with FMA and for any CPU, with the same results.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "fp-contract=off", "no-math-errno")
#else
#pragma STDC FP_CONTRACT OFF
#endif

#include "probes/core/kernel/fingerprint_sums.h"

#define ROW_WORDS  (FP_LANES * FP_VECTOR / 4)
#define ROW_BYTES  (FP_LANES * FP_VECTOR)
#define SELF_FMA   0 /* is __builtin_fmaf one instruction in functions without a target of their own? */
#define NOT_INLINE __attribute__((noinline, cold))

#if defined(__FMA__) || defined(__aarch64__)
#undef SELF_FMA
#define SELF_FMA 1
#endif

typedef uint16_t any_u16 __attribute__((aligned(1), may_alias));
typedef uint32_t any_u32 __attribute__((aligned(1), may_alias));
typedef uint64_t any_u64 __attribute__((aligned(1), may_alias));

struct totals {
	double sum;
	uint64_t hash, max, nan, inf;
};

/* One row: an accumulator for each column. Which type is used depends on the dtype. */
struct columns {
	union {
		float f[ROW_WORDS];
		double d[ROW_WORDS / 2];
		uint32_t u[ROW_WORDS];
	};
	uint64_t max64;
	uint32_t max;
};

static uint64_t load_bytes(const uint8_t *p, uint32_t n)
{
	if (n == 8)
		return *(const any_u64 *)p;
	if (n == 4)
		return *(const any_u32 *)p;
	return n == 2 ? *(const any_u16 *)p : *p;
}

/* ---- hash: the compiler does not see the 32-bit multiplications in fp_mix, so the vectors are spelt out ---- */

static uint64_t hash_words(const uint8_t *data, uint32_t n, uint64_t key)
{
	const any_u64 *w = (const any_u64 *)data;
	uint64_t sum = 0;
	for (uint32_t i = 0; i < n; i++, key += FP_STEP) {
		uint64_t x = w[i] + key;
		__asm__("" : "+r"(x)); /* in vectors of its own choice it is slower than this */
		sum += fp_mix(x);
	}
	return sum;
}

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,fma")))
#define QUAD static inline __attribute__((always_inline, target("avx2,fma")))
typedef uint64_t quad __attribute__((vector_size(32)));
typedef uint64_t any_quad __attribute__((vector_size(32), aligned(1), may_alias));
typedef int32_t eight __attribute__((vector_size(32)));

QUAD quad quad_low_times(quad x, uint32_t odd)
{
	const quad times = { odd, odd, odd, odd };
	return (quad)__builtin_ia32_pmuludq256((eight)x, (eight)times);
}

FP_DEFINE_MIX(QUAD, quad_mix, quad, quad_low_times)

AVX2 static uint64_t hash_words_avx2(const uint8_t *data, uint32_t n, uint64_t key)
{
	quad sum[2] = { { 0 } }, keys[2];
	for (uint32_t i = 0; i < 8; i++)
		keys[i / 4][i % 4] = key + i * FP_STEP;
	uint32_t done = 0;
	for (; done + 8 <= n; done += 8)
		for (int k = 0; k < 2; k++) {
			sum[k] += quad_mix(*(const any_quad *)(data + 8 * done + 32 * k) + keys[k]);
			keys[k] += 8 * FP_STEP;
		}
	sum[0] += sum[1];
	return sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3] +
	       hash_words(data + 8 * done, n - done, key + done * FP_STEP);
}
#else
#define hash_words_avx2 hash_words
#endif

/* The values of n words that stand in a row's columns from `first` on. */
FP_OPS void row_values(uint32_t dtype, struct columns *c, uint32_t first, const uint8_t *data, uint32_t n, int has_fma)
{
	const any_u32 *w = (const any_u32 *)data;
	if (dtype == FP_F64) {
		const any_u64 *pair = (const any_u64 *)data;
		double *acc = c->d + first / 2;
		uint64_t max = c->max64;
		for (uint32_t i = 0; i < n / 2; i++) {
			uint64_t bits = pair[i] & FP_F64_NOT_NEG;
			acc[i] = fp_square_add_f64(fp_f64(bits), acc[i]);
			max = (int64_t)bits > (int64_t)max ? bits : max; /* AVX2 compares signed */
		}
		c->max64 = max;
		return;
	}
	float *acc = c->f + first;
	uint32_t *exact = c->u + first, max = c->max;
	for (uint32_t i = 0; i < n; i++) {
		max = fp_max_word(dtype, w[i], max);
		if (dtype == FP_I8)
			exact[i] = fp_sum_word_i8(w[i], exact[i]);
		else
			acc[i] = fp_sum_word(dtype, w[i], acc[i], has_fma);
	}
	c->max = max;
}

FP_OPS double column_sum(uint32_t dtype, const struct columns *c)
{
	double lanes[FP_LANES];
	for (uint32_t t = 0; t < FP_LANES; t++) {
		if (dtype == FP_F64)
			lanes[t] = c->d[2 * t] + c->d[2 * t + 1];
		else if (dtype == FP_I8)
			lanes[t] = (double)(c->u[4 * t] + c->u[4 * t + 1] + c->u[4 * t + 2] + c->u[4 * t + 3]);
		else
			lanes[t] = (double)fp_lane_sum_f32(c->f + 4 * t);
	}
	return fp_tree(lanes, FP_LANES);
}

/* Vector i of a chunk, padded with zeros; returns how many bytes of it there are. */
static uint32_t load_padded(const uint8_t *data, uint32_t bytes, uint32_t i, uint32_t w[4])
{
	uint32_t n = bytes - i * FP_VECTOR < FP_VECTOR ? bytes - i * FP_VECTOR : FP_VECTOR;
	memset(w, 0, FP_VECTOR);
	memcpy(w, data + i * FP_VECTOR, n);
	return n;
}

/* A lane alone, with its elements again when it is special. */
static void lane_alone(uint32_t dtype, const uint8_t *data, uint32_t bytes, uint32_t t, double *sum,
		       struct totals *total)
{
	struct fp_lane lane = { 0 };
	for (uint32_t i = t; i * FP_VECTOR < bytes; i += FP_LANES) {
		uint32_t w[4];
		fp_keep_whole(dtype, w, load_padded(data, bytes, i, w));
		fp_lane_values(dtype, &lane, w, SELF_FMA);
	}
	struct fp_rare rare = { fp_lane_sum(dtype, &lane), fp_lane_max(dtype, &lane), 0, 0 };
	if (fp_special(dtype, rare.sum, rare.max)) {
		memset(&rare, 0, sizeof(rare));
		const uint32_t size = fp_elem_bytes(dtype);
		for (uint32_t i = t * FP_VECTOR; i < bytes; i += ROW_BYTES)
			for (uint32_t at = i; at + size <= bytes && at < i + FP_VECTOR; at += size)
				fp_rare_add(&rare, dtype, load_bytes(data + at, size));
	}
	*sum = rare.sum;
	total->max = rare.max > total->max ? rare.max : total->max;
	total->nan += rare.nan;
	total->inf += rare.inf;
}

/* The values of a chunk that has a special lane somewhere. */
NOT_INLINE static double chunk_alone(uint32_t dtype, const uint8_t *data, uint32_t bytes, struct totals *total)
{
	double lanes[FP_LANES];
	for (uint32_t t = 0; t < FP_LANES; t++)
		lane_alone(dtype, data, bytes, t, &lanes[t], total);
	return fp_tree(lanes, FP_LANES);
}

/* One chunk: adds to total all but the sum, which is returned. dtype and avx2 are constants. */
FP_OPS double chunk(uint32_t dtype, const uint8_t *data, uint32_t bytes, uint64_t position, struct totals *total,
		    int avx2)
{
	const int has_fma = avx2 || SELF_FMA;
	struct columns c;
	const uint32_t full = bytes / FP_VECTOR;
	memset(&c, 0, sizeof(c));
	for (uint32_t i = 0; i < full; i += FP_LANES) {
		uint32_t n = full - i < FP_LANES ? full - i : FP_LANES;
		total->hash +=
			(avx2 ? hash_words_avx2 : hash_words)(data + i * FP_VECTOR, 2 * n, fp_key(position + 2 * i));
		if (dtype != FP_RAW)
			row_values(dtype, &c, 0, data + i * FP_VECTOR, 4 * n, has_fma);
	}
	if (bytes % FP_VECTOR) {
		struct fp_lane lane = { 0 };
		uint32_t w[4], n = load_padded(data, bytes, full, w);
		fp_lane_hash(&lane, w, fp_key(position + 2 * full), n > 8 ? 2 : 1);
		total->hash += lane.hash;
		fp_keep_whole(dtype, w, n);
		if (dtype != FP_RAW)
			row_values(dtype, &c, full % FP_LANES * 4, (const uint8_t *)w, 4, has_fma);
	}
	if (dtype == FP_RAW)
		return 0;
	double sum = column_sum(dtype, &c);
	uint64_t max = dtype == FP_F64 ? c.max64 : fp_max_bits(dtype, c.max);
	if (fp_special(dtype, sum, max))
		return chunk_alone(dtype, data, bytes, total);
	total->max = max > total->max ? max : total->max;
	return sum;
}

FP_OPS void chunk_of_any(uint32_t dtype, const uint8_t *data, uint32_t bytes, uint64_t position, struct totals *total,
			 int avx2)
{
	switch (dtype) {
#define ONE(constant)                                                                                                  \
	case constant:                                                                                                 \
		total->sum = chunk(constant, data, bytes, position, total, avx2);                                      \
		break;
		ONE(FP_F64)
		ONE(FP_F32)
		ONE(FP_F16)
		ONE(FP_BF16)
		ONE(FP_F8E4M3)
		ONE(FP_F8E5M2)
		ONE(FP_I8)
		ONE(FP_I32)
#undef ONE
	default:
		total->sum = chunk(FP_RAW, data, bytes, position, total, avx2);
	}
}

static void chunk_plain(uint32_t dtype, const uint8_t *data, uint32_t bytes, uint64_t position, struct totals *total)
{
	chunk_of_any(dtype, data, bytes, position, total, 0);
}

#if defined(__x86_64__)
AVX2 static void chunk_avx2(uint32_t dtype, const uint8_t *data, uint32_t bytes, uint64_t position,
			    struct totals *total)
{
	chunk_of_any(dtype, data, bytes, position, total, 1);
}

static int has_avx2(void)
{
	__builtin_cpu_init(); /* we may run before the constructor that does this */
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static struct totals chunk_totals(uint32_t dtype, const uint8_t *data, uint32_t bytes, uint64_t position)
{
	struct totals total = { 0 };

#if defined(__x86_64__)
	if (has_avx2())
		chunk_avx2(dtype, data, bytes, position, &total);
	else
#endif
		chunk_plain(dtype, data, bytes, position, &total);
	return total;
}

/* ---- records ---- */

static void store_record(struct fp_record *record, const uint64_t word[FP_RECORD_WORDS], uint32_t sequence)
{
	for (uint32_t i = 0; i < FP_RECORD_WORDS; i++)
		__atomic_store_n(&record->word[i], word[i], __ATOMIC_RELAXED);
	/* After all reads of the chunk: whoever sees the record may take the memory away. */
	__atomic_store_n(&record->check, fp_record_check(word, sequence), __ATOMIC_RELEASE);
}

static void store_samples(const struct fp_chunk *c, const uint8_t *data, uint32_t bytes, int64_t slot, uint32_t status,
			  uint32_t sequence, struct fp_entry *entry)
{
	uint64_t word[FP_RECORD_WORDS] = { [FP_SLOT] = (uint64_t)slot, [FP_STATUS] = status };

	for (uint32_t i = 0; bytes && c->elems && i < FP_SAMPLES; i++)
		word[i] = load_bytes(data + fp_sample_offset(c->dtype, c->elems, i), fp_elem_bytes(c->dtype));
	store_record(&entry->record[c->record - 1], word, sequence);
}

static void store_chunk(const struct fp_chunk *c, const uint8_t *data, int64_t slot, uint32_t status, uint32_t sequence,
			struct fp_entry *entry)
{
	const uint32_t bytes = status == FP_OK ? c->bytes : 0;
	const struct totals t = chunk_totals(c->dtype, data, bytes, c->start / 8);
	const uint64_t word[FP_RECORD_WORDS] = {
		[FP_SUM] = fp_f64_bits(t.sum),      [FP_HASH] = t.hash,         [FP_MAX] = t.max,
		[FP_SPECIAL] = t.nan | t.inf << 32, [FP_SLOT] = (uint64_t)slot, [FP_STATUS] = status,
	};

	if (!c->start)
		store_samples(c, data, bytes, slot, status, sequence, entry);
	store_record(&entry->record[c->record], word, sequence);
}

void fp_host_chunk(const struct fp_chunk *chunk, const void *data, int64_t slot, uint32_t sequence,
		   struct fp_entry *entry)
{
	store_chunk(chunk, data, slot, FP_OK, sequence, entry);
}

struct fp_chunk fp_chunk_of(uint64_t base, int64_t stride, uint64_t bytes, uint64_t elems, uint32_t dtype,
			    uint32_t chunk_bytes, uint32_t index, uint32_t record)
{
	const uint64_t start = (uint64_t)index * chunk_bytes;

	return (struct fp_chunk) {
		.address = base + start,
		.stride = stride,
		.start = start,
		.elems = fp_elems(dtype, bytes, elems),
		.bytes = bytes - start < chunk_bytes ? (uint32_t)(bytes - start) : chunk_bytes,
		.dtype = dtype,
		.record = record + 1 + index,
	};
}

/* ---- one plane, whole ---- */

void fp_host_plane_of(const void *data, uint64_t bytes, uint64_t elems, uint32_t dtype, uint32_t chunk_bytes,
		      struct fp_print *out)
{
	struct fp_sums sums;

	fp_sums_begin(&sums);
	elems = fp_elems(dtype, bytes, elems);
	for (uint32_t i = 0; i < FP_SAMPLES; i++)
		out->sample[i] = elems ? load_bytes((const uint8_t *)data + fp_sample_offset(dtype, elems, i),
						    fp_elem_bytes(dtype))
				       : 0;
	for (uint64_t at = 0; at < bytes; at += chunk_bytes) {
		uint32_t n = bytes - at < chunk_bytes ? (uint32_t)(bytes - at) : chunk_bytes;
		struct totals t = chunk_totals(dtype, (const uint8_t *)data + at, n, at / 8);
		fp_sums_add(&sums, t.sum, t.hash, t.max, t.nan, t.inf);
	}
	fp_sums_finish(&sums, bytes, out);
}

void fp_host_plane(const void *data, uint64_t bytes, uint64_t elems, uint32_t dtype, struct fp_print *out)
{
	fp_host_plane_of(data, bytes, elems, dtype, fp_chunk_bytes(&bytes, sizeof bytes, 1), out);
}

/* ---- the protocol of one launch ---- */

static const uint8_t *host(uint64_t address)
{
	return (const uint8_t *)(uintptr_t)address;
}

static int64_t load_signed(const uint8_t *p, uint32_t n)
{
	uint64_t v = load_bytes(p, n);
	return n == 1 ? (int8_t)v : n == 2 ? (int16_t)v : n == 4 ? (int32_t)v : (int64_t)v;
}

static void snapshot_regions(const struct fp_launch *launch, struct fp_entry *entry)
{
	for (uint32_t r = 0; r < launch->n_regions; r++) {
		const struct fp_region *region = (const struct fp_region *)host(launch->regions) + r;
		struct fp_region_values *to = &entry->region[r];
		uint32_t n = region->n_values < FP_REGION_VALUES ? region->n_values : FP_REGION_VALUES;
		uint64_t check = 0;
		for (uint32_t i = 0; i < n; i++) {
			int64_t v = load_signed(host(region->base) + (uint64_t)i * region->value_bytes,
						region->value_bytes);
			__atomic_store_n(&to->value[i], v, __ATOMIC_RELAXED);
			check += fp_record_mix((uint64_t)v, i, launch->sequence);
		}
		__atomic_store_n(&to->check, check, __ATOMIC_RELEASE);
	}
}

void fp_host_launch(const struct fp_launch *launch)
{
	struct fp_entry *entry = (struct fp_entry *)(uintptr_t)launch->entry;
	const struct fp_chunk *chunks = (const struct fp_chunk *)host(launch->chunks);
	int64_t slot = launch->slot_ptr ? load_signed(host(launch->slot_ptr), launch->slot_ptr_bytes == 4 ? 4 : 8)
					: launch->slot;
	uint32_t status = fp_check_slot(slot, launch->first_slot, launch->n_slots);

	if (status == FP_OK)
		snapshot_regions(launch, entry);
	for (uint32_t i = 0; i < launch->n_chunks; i++) {
		const uint64_t apart = ((uint64_t)slot - (uint64_t)launch->first_slot) * (uint64_t)chunks[i].stride;
		store_chunk(&chunks[i], host(chunks[i].address + apart), slot, status, launch->sequence, entry);
	}
}
