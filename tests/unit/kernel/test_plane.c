/* SPDX-License-Identifier: Apache-2.0
 *
 * test_plane.c: one plane on the host against the reference: every dtype, size, alignment and kind of data, bit for bit,
 * in both builds of the loops.
 */
#include "tests/unit/kernel/cmocka.h"
#include "tests/unit/kernel/reference.h"
#include "probes/core/slotprobe.h"
#include "shim/record/log_format.h"
/* its static functions are what is tested */
#include "probes/core/kernel/fingerprint_host.c"

_Static_assert((int)FP_F64 == (int)SLOTPROBE_F64 && (int)FP_F32 == (int)SLOTPROBE_F32, "dtypes");
_Static_assert((int)FP_F16 == (int)SLOTPROBE_F16 && (int)FP_BF16 == (int)SLOTPROBE_BF16, "dtypes");
_Static_assert((int)FP_F8E4M3 == (int)SLOTPROBE_F8E4M3 && (int)FP_F8E5M2 == (int)SLOTPROBE_F8E5M2, "dtypes");
_Static_assert((int)FP_I8 == (int)SLOTPROBE_I8 && (int)FP_I32 == (int)SLOTPROBE_I32, "dtypes");
_Static_assert((int)FP_RAW == (int)SLOTPROBE_RAW, "dtypes");
_Static_assert(sizeof(struct fp_print) == sizeof(struct log_plane_print), "prints");
_Static_assert(offsetof(struct fp_print, sample) == offsetof(struct log_plane_print, sample), "prints");
_Static_assert(offsetof(struct fp_print, hash) == offsetof(struct log_plane_print, hash), "prints");
_Static_assert(FP_LANES == FP_THREADS, "a block is the lanes of its chunk");

#define N_DTYPES 9

static const uint64_t sizes[] = { 0,     1,     2,     3,     4,     5,      7,      8,     9,     15,    16,
				  17,    24,    31,    32,    33,    63,     64,     100,   255,   256,   1000,
				  4079,  4080,  4081,  4095,  4096,  4097,   4104,   8192,  10000, 65521, 65535,
				  65536, 65537, 65552, 65560, 70000, 131072, 196608, 200001 };

static void same(const struct fp_print *want, const struct fp_print *got, const char *what, uint32_t dtype,
		 uint64_t bytes, int fill)
{
	if (!memcmp(want, got, sizeof(*want)))
		return;
	fail_msg("%s dtype %u bytes %llu fill %d: absmax %a %a l2 %a %a nan %llu %llu inf %llu %llu hash %llx %llx",
		 what, dtype, (unsigned long long)bytes, fill, want->absmax, got->absmax, want->l2, got->l2,
		 (unsigned long long)want->nan, (unsigned long long)got->nan, (unsigned long long)want->inf,
		 (unsigned long long)got->inf, (unsigned long long)want->hash, (unsigned long long)got->hash);
}

/* Of a slot of one plane. */
static uint32_t cut(uint64_t bytes)
{
	return fp_chunk_bytes(&bytes, sizeof bytes, 1);
}

/* Without AVX2, whatever this CPU has. */
static void plain_print(const void *data, uint64_t bytes, uint32_t dtype, struct fp_print *out)
{
	struct fp_sums sums;
	const uint32_t size = cut(bytes);

	fp_sums_begin(&sums);
	for (uint64_t at = 0; at < bytes; at += size) {
		struct totals t = { 0 };
		chunk_plain(dtype, (const uint8_t *)data + at, bytes - at < size ? (uint32_t)(bytes - at) : size,
			    at / 8, &t);
		fp_sums_add(&sums, t.sum, t.hash, t.max, t.nan, t.inf);
	}
	fp_sums_finish(&sums, bytes, out);
}

static void check_plane(const void *data, uint64_t bytes, uint32_t dtype, int fill)
{
	struct fp_print want, got;
	uint64_t elems = bytes / reference_elem_bytes(dtype);
	reference_plane(data, bytes, elems, dtype, cut(bytes), &want);
	memset(&got, 0xa5, sizeof(got));
	fp_host_plane(data, bytes, elems, dtype, &got);
	same(&want, &got, "host", dtype, bytes, fill);
	plain_print(data, bytes, dtype, &got);
	same(&want, &got, "plain", dtype, bytes, fill);
}

static void test_sizes(void **state)
{
	(void)state;
	for (uint32_t dtype = 0; dtype < N_DTYPES; dtype++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (int fill = 0; fill < FILL_COUNT; fill++) {
				void *data = guarded(sizes[i], 0, i & 1);
				assert_non_null(data);
				fill_plane(data, sizes[i], dtype, (enum fill)fill, i * 7 + dtype);
				check_plane(data, sizes[i], dtype, fill);
			}
}

static void test_alignments(void **state)
{
	(void)state;
	for (uint32_t dtype = 0; dtype < N_DTYPES; dtype++)
		for (size_t shift = 0; shift < 16; shift++)
			for (int tail = 0; tail < 2; tail++) {
				uint64_t bytes = 4096 * 3 + 16 * 5 + shift * 3;
				void *data = guarded(bytes, shift, tail);
				assert_non_null(data);
				fill_plane(data, bytes, dtype, FILL_SPECIAL, shift + 100 * dtype);
				check_plane(data, bytes, dtype, FILL_SPECIAL);
			}
}

/* Every code of the small dtypes, alone: so that nothing hides behind a larger neighbour. */
static void test_every_code(void **state)
{
	(void)state;
	static const uint32_t dtypes[] = { FP_F16, FP_BF16, FP_F8E4M3, FP_F8E5M2, FP_I8 };
	for (size_t k = 0; k < 5; k++) {
		uint32_t dtype = dtypes[k], size = reference_elem_bytes(dtype);
		for (uint32_t code = 0; code < 1u << 8 * size; code++) {
			struct fp_print got;
			uint64_t bits = code;
			double x = reference_value(dtype, code);
			fp_host_plane(&bits, size, 1, dtype, &got);
			assert_true(got.nan == (uint64_t)(isnan(x) != 0) && got.inf == (uint64_t)(isinf(x) != 0));
			assert_true(got.absmax == (isnan(x) ? 0 : fabs(x)));
			assert_true(got.sample[0] == code && got.sample[3] == code);
			if (isfinite(x) && dtype != FP_BF16)
				assert_true(got.l2 == fabs(x));
		}
	}
}

static void test_l2_is_near_the_truth(void **state)
{
	(void)state;
	static unsigned char data[300000];
	for (uint32_t dtype = 0; dtype < N_DTYPES - 1; dtype++) {
		struct fp_print got;
		fill_plane(data, sizeof(data), dtype, FILL_SPECIAL, dtype);
		fp_host_plane(data, sizeof(data), sizeof(data), dtype, &got);
		long double want = reference_l2(data, sizeof(data), dtype);
		if (isinf((double)want) || isinf(got.l2))
			continue; /* fp64's squares leave fp64 */
		assert_true(want > 0 && fabsl((long double)got.l2 - want) < 1e-6L * want);
	}
}

static void test_soft_fma(void **state)
{
	(void)state;
	uint64_t seed = 1;
	for (int i = 0; i < 3000000; i++) {
		uint64_t r = random_u64(&seed);
		float x = fp_f32((uint32_t)r), acc = fp_f32((uint32_t)(r >> 33));
		if (i % 3 == 0) /* near each other, so that every bit counts */
			acc = fp_f32(fp_f32_bits(x * x) + (uint32_t)(r >> 60) - 8u) * (i & 1 ? 1.0f : 0x1p24f);
		if (!(acc >= 0))
			continue;
		float want = fmaf(x, x, acc), got = fp_soft_square_add(x, acc);
		if (isnan(want) ? !isnan(got) : fp_f32_bits(want) != fp_f32_bits(got))
			fail_msg("x %a acc %a: %a, not %a", (double)x, (double)acc, (double)got, (double)want);
	}
}

static void test_elems_may_lie(void **state)
{
	(void)state;
	unsigned char *data = guarded(100, 0, 1);
	struct fp_print want, got;
	assert_non_null(data);
	fill_plane(data, 100, FP_F32, FILL_ORDINARY, 5);
	static const uint64_t elems[] = { 0, 1, 2, 24, 25, 26, 1000, UINT64_MAX };
	for (size_t i = 0; i < 8; i++) {
		reference_plane(data, 100, elems[i], FP_F32, cut(100), &want);
		fp_host_plane(data, 100, elems[i], FP_F32, &got);
		same(&want, &got, "elems", FP_F32, 100, (int)i);
	}
}

/* Where an fp64 sum must not be fused, and an fp32 sum must: often, for each bit is seen only now and then. */
static void test_roundings(void **state)
{
	(void)state;
	static unsigned char data[FP_CHUNK_UNIT];
	for (uint32_t dtype = 0; dtype < N_DTYPES; dtype++)
		for (uint64_t seed = 0; seed < 20; seed++) {
			fill_plane(data, sizeof(data), dtype, FILL_SPARSE, seed);
			check_plane(data, sizeof(data), dtype, FILL_SPARSE);
		}
}

static void test_many_chunks(void **state)
{
	(void)state;
	const uint64_t bytes = 300ull * FP_CHUNK_UNIT * 7 + 20;
	assert_true(fp_plane_chunks(bytes, cut(bytes)) > FP_LANES);
	unsigned char *data = malloc(bytes);
	assert_non_null(data);
	fill_plane(data, bytes, FP_F32, FILL_SPECIAL, 3);
	check_plane(data, bytes, FP_F32, FILL_SPECIAL);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),      cmocka_unit_test(test_alignments),
		cmocka_unit_test(test_every_code), cmocka_unit_test(test_l2_is_near_the_truth),
		cmocka_unit_test(test_soft_fma),   cmocka_unit_test(test_elems_may_lie),
		cmocka_unit_test(test_roundings),  cmocka_unit_test(test_many_chunks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
