/* SPDX-License-Identifier: Apache-2.0
 *
 * test_hash.c: what the hash promises: no change of one word is missed, and those changes that fool weaker sums (swaps, top
 * bits, moved runs, more zeros) are not missed either.
 */
#include "tests/unit/kernel/cmocka.h"
#include "tests/unit/kernel/reference.h"
#include "probes/core/kernel/fingerprint_ops.h"
#include "shim/record/log_format.h"

#define WORDS 512
#define TOP   (1ull << 63)

static uint64_t words[WORDS];

static uint64_t hash_of(const void *data, uint64_t bytes)
{
	struct fp_print print;
	fp_host_plane(data, bytes, bytes, FP_RAW, &print);
	return print.hash;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void expect_distinct(uint64_t *hashes, size_t n)
{
	qsort(hashes, n, sizeof(*hashes), ascending);
	for (size_t i = 1; i < n; i++)
		assert_true(hashes[i] != hashes[i - 1]);
}

/* Its inverse, round by round: so it is a bijection. */
static void test_mix_is_bijective(void **state)
{
	(void)state;
	uint64_t seed = 4;
	for (int i = 0; i < 100000; i++) {
		uint64_t x = random_u64(&seed), y = fp_mix(x);
		y = fp_mix_up(y, 0x589965cdu);
		y = fp_mix_down(y, 0x8ebc6af1u);
		y = fp_mix_up(y, 0xe7037ed1u);
		assert_true(fp_mix_down(y, 0xa0761d65u) == x);
	}
}

static void test_every_bit(void **state)
{
	(void)state;
	uint64_t seed = 1;
	uint64_t *hashes = malloc((WORDS * 64 + 1) * sizeof(*hashes));
	assert_non_null(hashes);
	for (int ordinary = 0; ordinary < 2; ordinary++) {
		for (int i = 0; i < WORDS; i++)
			words[i] = ordinary ? random_u64(&seed) : 0;
		size_t n = 0;
		hashes[n++] = hash_of(words, sizeof(words));
		for (int i = 0; i < WORDS; i++)
			for (int bit = 0; bit < 64; bit++) {
				words[i] ^= 1ull << bit;
				hashes[n++] = hash_of(words, sizeof(words));
				words[i] ^= 1ull << bit;
			}
		expect_distinct(hashes, n);
	}
	free(hashes);
}

static void swap(int i, int k)
{
	uint64_t x = words[i];
	words[i] = words[k];
	words[k] = x;
}

/* Words that differ in one bit only change places: each such pair, far and near, each bit of the word. */
static void test_swaps(void **state)
{
	(void)state;
	static uint64_t hashes[8 + 64 * 90];
	for (int base = 0; base < 3; base++) {
		const uint64_t x = base == 0 ? 0 : base == 1 ? 0x3f8000003f800000ull : 0x123456789abcdef0ull;
		for (int bit = 0; bit < 64; bit++) {
			size_t n = 0;
			for (int i = 0; i < 16; i++)
				words[i] = i & 1 ? x ^ 1ull << bit : x;
			hashes[n++] = hash_of(words, 128);
			for (int i = 0; i < 16; i++)
				for (int k = i + 1; k < 16; k += 2) { /* one of each kind */
					swap(i, k);
					hashes[n++] = hash_of(words, 128);
					swap(i, k);
				}
			expect_distinct(hashes, n);
		}
	}
}

/* What is left in the sum when two words that differ by `change` change places. */
static uint64_t swap_residue(uint64_t (*mix)(uint64_t), uint64_t change, uint64_t x, uint64_t r)
{
	uint64_t a = fp_key(r & 0xfffff), b = fp_key((r & 0xfffff) + 1 + (r >> 50)), y = x ^ change;
	return mix(x + a) + mix(y + b) - mix(y + a) - mix(x + b);
}

/* It must look random, else swaps would cancel each other: 16 of its bits are zero about once in 65536. Returns how much
 * more often the worst 16 are. */
static double worst_excess(uint64_t (*mix)(uint64_t), uint64_t change)
{
	const int n = 1 << 20;
	int zero[4] = { 0 }, worst = 0;
	uint64_t seed = change;
	for (int i = 0; i < n; i++) {
		static const uint64_t ordinary[] = { 0, 0x3f8000003f800000ull, 0x3f803f803f803f80ull };
		uint64_t r = random_u64(&seed), x = i & 1 ? random_u64(&seed) : ordinary[r % 3];
		uint64_t d = swap_residue(mix, change, x, r);
		assert_true(d != 0);
		for (int k = 0; k < 4; k++)
			zero[k] += !(d >> 16 * k & 0xffff);
	}
	for (int k = 0; k < 4; k++)
		worst = zero[k] > worst ? zero[k] : worst;
	return worst / (n / 65536.0);
}

static uint64_t own_mix(uint64_t x)
{
	return fp_mix(x);
}

static uint64_t short_mix(uint64_t x)
{
	return fp_mix_down(fp_mix_up(fp_mix_down(x, 0xa0761d65u), 0xe7037ed1u), 0x8ebc6af1u);
}

static uint64_t multiply_add(uint64_t x)
{
	return x * 0xd6e8feb86659fd93ull;
}

static uint64_t logs_mix(uint64_t x)
{
	return log_mix64(x);
}

static void test_swaps_do_not_cancel(void **state)
{
	(void)state;
	static const uint64_t changes[] = { TOP,
					    TOP | 1ull << 31,
					    0x8000800080008000ull,
					    0x8080808080808080ull,
					    1,
					    1ull << 32,
					    1ull << 31,
					    0x80,
					    0x3f8000003f800000ull,
					    ~0ull };
	for (size_t c = 0; c < sizeof(changes) / sizeof(changes[0]); c++)
		assert_true(worst_excess(own_mix, changes[c]) < 3.5);
	/* that the measure can tell: why it is not one of these */
	assert_true(worst_excess(short_mix, 0x80) > 10);
	assert_true(worst_excess(logs_mix, TOP | 1ull << 31) > 10);
	assert_true(multiply_add(5) + multiply_add(TOP + 9) == multiply_add(TOP + 5) + multiply_add(9));
}

static void test_moved_runs(void **state)
{
	(void)state;
	static unsigned char data[4096];
	static uint64_t hashes[4096];
	size_t n = 0;
	for (size_t run = 64; run <= 256; run *= 2)
		for (size_t at = 0; at + run <= sizeof(data); at += 8) {
			memset(data, 0x3f,
			       sizeof(data)); /* the same everywhere else: only where the zeros are can tell */
			memset(data + at, 0, run);
			hashes[n++] = hash_of(data, sizeof(data));
		}
	expect_distinct(hashes, n);
}

static void test_lengths(void **state)
{
	(void)state;
	static unsigned char data[2048];
	static uint64_t hashes[2049];
	for (int fill = 0; fill < 2; fill++) {
		memset(data, 0, sizeof(data));
		data[0] = fill ? 0x5a : 0;
		for (size_t n = 0; n <= sizeof(data); n++)
			hashes[n] = hash_of(data, n);
		expect_distinct(hashes, sizeof(data) + 1);
	}
}

/* The bytes alone decide. */
static void test_dtype_is_no_part(void **state)
{
	(void)state;
	static unsigned char data[5003];
	fill_plane(data, sizeof(data), FP_RAW, FILL_BITS, 8);
	for (uint32_t dtype = 0; dtype < FP_RAW; dtype++) {
		struct fp_print print;
		fp_host_plane(data, sizeof(data), 10, dtype, &print);
		assert_true(print.hash == hash_of(data, sizeof(data)));
	}
}

/* Written down in docs: who changes one of these changes every recorded hash. */
static void test_known_values(void **state)
{
	(void)state;
	static const unsigned char text[] = "slotprobe";
	static const unsigned char zeros[16];
	assert_true(hash_of(text, 0) == 0);
	assert_true(hash_of(text, 9) == 0xf32420cdb99bbaeull);
	assert_true(hash_of(zeros, 16) == 0x2cb8147d82baf335ull);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mix_is_bijective),
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_swaps),
		cmocka_unit_test(test_swaps_do_not_cancel),
		cmocka_unit_test(test_moved_runs),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_dtype_is_no_part),
		cmocka_unit_test(test_known_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
