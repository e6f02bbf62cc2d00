/* SPDX-License-Identifier: Apache-2.0
 *
 * reference.c: see reference.h.
 */
#include "tests/unit/kernel/reference.h"
#include "probes/core/slotprobe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const uint32_t elem_bytes[] = { 8, 4, 2, 2, 1, 1, 1, 4, 1 };

uint32_t reference_elem_bytes(uint32_t dtype)
{
	return elem_bytes[dtype];
}

static double minifloat(uint32_t code, int exponent_bits, int mantissa_bits, int bias)
{
	int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
	int mantissa = code & ((1 << mantissa_bits) - 1);
	double sign = code >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
	if (!exponent)
		return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
	return sign * ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

double reference_value(uint32_t dtype, uint64_t bits)
{
	double d;
	float f;
	uint32_t low = (uint32_t)bits, high = (uint32_t)bits << 16;
	switch (dtype) {
	case SLOTPROBE_F64:
		memcpy(&d, &bits, 8);
		return d;
	case SLOTPROBE_F32:
		memcpy(&f, &low, 4);
		return (double)f;
	case SLOTPROBE_BF16:
		memcpy(&f, &high, 4);
		return (double)f;
	case SLOTPROBE_F16:
		if ((low & 0x7c00) == 0x7c00)
			return low & 0x3ff ? (double)NAN : low & 0x8000 ? -(double)INFINITY : (double)INFINITY;
		return minifloat(low, 5, 10, 15);
	case SLOTPROBE_F8E5M2:
		if ((low & 0x7c) == 0x7c)
			return low & 3 ? (double)NAN : low & 0x80 ? -(double)INFINITY : (double)INFINITY;
		return minifloat(low, 5, 2, 15);
	case SLOTPROBE_F8E4M3:
		return (low & 0x7f) == 0x7f ? (double)NAN : minifloat(low, 4, 3, 7);
	case SLOTPROBE_I8:
		return (int8_t)low;
	case SLOTPROBE_I32:
		return (int32_t)low;
	}
	return 0;
}

static uint64_t element_bits(const uint8_t *data, uint64_t at, uint32_t n)
{
	uint64_t bits = 0;
	for (uint32_t i = 0; i < n; i++)
		bits |= (uint64_t)data[at + i] << 8 * i;
	return bits;
}

/* ---- sum of squares ---- */

static double tree(const double *lanes)
{
	volatile double y[32], z[32];
	for (int i = 0; i < 32; i++) {
		y[i] = lanes[i];
		for (int w = 1; w < 8; w++)
			y[i] = y[i] + lanes[i + 32 * w];
	}
	for (int apart = 16; apart; apart /= 2) {
		for (int i = 0; i < 32; i++)
			z[i] = y[i] + y[i ^ apart];
		for (int i = 0; i < 32; i++)
			y[i] = z[i];
	}
	return y[0];
}

/* Lane t of a chunk: the elements of its vectors, whole ones only, one by one. `special` tells whether the fast sum
 * stands. */
static double lane_sum(const uint8_t *chunk, uint64_t bytes, uint32_t dtype, int t, int again, int *special)
{
	const uint32_t size = elem_bytes[dtype];
	volatile float f[4] = { 0 };
	volatile double d[2] = { 0 }, rare = 0, square;
	uint64_t exact = 0;
	*special = 0;
	for (uint64_t v = (uint64_t)t; v * 16 < bytes; v += 256)
		for (uint64_t at = v * 16; at < v * 16 + 16 && at + size <= bytes; at += size) {
			double x = reference_value(dtype, element_bits(chunk, at, size));
			if (!isfinite(x)) {
				*special = 1;
				continue;
			}
			square = x * x;
			rare = rare + square;
			if (dtype == SLOTPROBE_F64)
				d[at % 16 / 8] = d[at % 16 / 8] + square;
			else if (dtype == SLOTPROBE_I8)
				exact += (uint64_t)(x * x);
			else
				f[at % 16 / 4] = fmaf((float)x, (float)x, f[at % 16 / 4]);
		}
	if (again)
		return rare;
	if (dtype == SLOTPROBE_I8)
		return (double)exact;
	if (dtype == SLOTPROBE_F64)
		square = d[0] + d[1];
	else {
		volatile float low = f[0] + f[1], high = f[2] + f[3], sum = low + high;
		square = (double)sum;
	}
	*special |= !isfinite(square);
	return square;
}

static double chunk_sum(const uint8_t *chunk, uint64_t bytes, uint32_t dtype)
{
	double lanes[256];
	for (int t = 0; t < 256; t++) {
		int special;
		lanes[t] = lane_sum(chunk, bytes, dtype, t, 0, &special);
		if (special)
			lanes[t] = lane_sum(chunk, bytes, dtype, t, 1, &special);
	}
	return tree(lanes);
}

static double plane_sum(const uint8_t *data, uint64_t bytes, uint32_t dtype, uint32_t chunk)
{
	double lanes[256] = { 0 };
	for (uint64_t c = 0; c * chunk < bytes; c++) {
		uint64_t left = bytes - c * chunk;
		lanes[c % 256] += chunk_sum(data + c * chunk, left < chunk ? left : chunk, dtype);
	}
	return tree(lanes);
}

/* ---- hash ---- */

static uint64_t mix(uint64_t x)
{
	static const uint64_t odd[4] = { 0xa0761d65, 0xe7037ed1, 0x8ebc6af1, 0x589965cd };
	uint32_t half[2] = { (uint32_t)x, (uint32_t)(x >> 32) };
	for (int i = 0; i < 4; i++) {
		uint64_t product = half[(i + 1) % 2] * odd[i];
		half[i % 2] ^= (uint32_t)product ^ (uint32_t)(product >> 32);
	}
	return (uint64_t)half[1] << 32 | half[0];
}

static uint64_t plane_hash(const uint8_t *data, uint64_t bytes)
{
	uint64_t sum = 0;
	for (uint64_t p = 0; p * 8 < bytes; p++) {
		uint64_t word = element_bits(data, p * 8, bytes - p * 8 < 8 ? (uint32_t)(bytes - p * 8) : 8);
		sum += mix(word + (p + 1) * 0x9e3779b97f4a7c15ull);
	}
	return mix(sum ^ bytes * 0xd1342543de82ef95ull);
}

void reference_plane(const void *data, uint64_t bytes, uint64_t elems, uint32_t dtype, uint32_t chunk_bytes,
		     struct fp_print *out)
{
	const uint8_t *p = data;
	const uint32_t size = elem_bytes[dtype];
	uint64_t whole = bytes / size;
	memset(out, 0, sizeof(*out));
	for (uint64_t i = 0; dtype != SLOTPROBE_RAW && i < whole; i++) {
		double x = fabs(reference_value(dtype, element_bits(p, i * size, size)));
		out->nan += isnan(x) != 0;
		out->inf += isinf(x) != 0;
		out->absmax = x > out->absmax ? x : out->absmax;
	}
	if (dtype != SLOTPROBE_RAW)
		out->l2 = sqrt(plane_sum(p, bytes, dtype, chunk_bytes));
	out->hash = plane_hash(p, bytes);
	elems = elems < whole ? elems : whole;
	for (uint64_t i = 0; i < FP_SAMPLES && elems; i++)
		out->sample[i] = element_bits(p, i * (elems - 1) / 3 * size, size);
}

long double reference_l2(const void *data, uint64_t bytes, uint32_t dtype)
{
	long double sum = 0;
	const uint32_t size = elem_bytes[dtype];
	for (uint64_t at = 0; at + size <= bytes; at += size) {
		long double x = (long double)reference_value(dtype, element_bits(data, at, size));
		if (isfinite(x))
			sum += x * x;
	}
	return sqrtl(sum);
}

/* ---- data ---- */

uint64_t random_u64(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static const uint64_t specials[][8] = {
	[SLOTPROBE_F64] = { 0, 1ull << 63, 1, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001,
			    0x7fefffffffffffff, 0x000fffffffffffff },
	[SLOTPROBE_F32] = { 0, 0x80000000, 1, 0x7f800000, 0xff800000, 0xffc00001, 0x7f7fffff, 0x007fffff },
	[SLOTPROBE_F16] = { 0, 0x8000, 1, 0x7c00, 0xfc00, 0x7c01, 0xfbff, 0x03ff },
	[SLOTPROBE_BF16] = { 0, 0x8000, 1, 0x7f80, 0xff80, 0x7f81, 0xff7f, 0x007f },
	[SLOTPROBE_F8E4M3] = { 0, 0x80, 1, 0x7f, 0xff, 0x7e, 0xfe, 0x07 },
	[SLOTPROBE_F8E5M2] = { 0, 0x80, 1, 0x7c, 0xfc, 0x7d, 0xfb, 0x03 },
	[SLOTPROBE_I8] = { 0, 0x80, 1, 0x7f, 0xff, 0x81, 0x40, 0x10 },
	[SLOTPROBE_I32] = { 0, 0x80000000, 1, 0x7fffffff, 0xffffffff, 0x80000001, 0x01000001, 0x1ffffff },
	[SLOTPROBE_RAW] = { 0 },
};

/* Bits of about 2^exponent, for the dtypes that have room for it. */
static uint64_t scaled(uint32_t dtype, uint64_t r, int exponent)
{
	uint32_t bits;
	float f = (float)ldexp(1 + (double)(r >> 12) * 0x1p-52, exponent);
	double d = ldexp(1 + (double)(r >> 12) * 0x1p-52, exponent == 1 ? 1 : exponent * 8);
	uint64_t wide;
	memcpy(&bits, &f, 4);
	memcpy(&wide, &d, 8);
	switch (dtype) {
	case SLOTPROBE_F64:
		return wide | r << 63;
	case SLOTPROBE_F32:
		return bits | (uint32_t)r << 31;
	case SLOTPROBE_BF16:
		return bits >> 16 | (r & 1) << 15;
	}
	return r;
}

static uint64_t one_element(uint32_t dtype, enum fill fill, uint64_t *state)
{
	uint64_t r = random_u64(state);
	switch (fill) {
	case FILL_ZERO:
		return 0;
	case FILL_BITS:
		return r;
	case FILL_TINY:
		return scaled(dtype, r, -60 - (int)(r >> 20 & 63));
	case FILL_HUGE:
		return scaled(dtype, r, 60 + (int)(r >> 20 & 15));
	case FILL_SPECIAL:
		if (r % 1021 < 8)
			return specials[dtype][r % 1021];
		break;
	default:
		break;
	}
	if (dtype == SLOTPROBE_F16)
		return (r & 0x83ff) | (8 + (r >> 20) % 12) << 10;
	if (dtype == SLOTPROBE_F8E5M2)
		return (r & 0x83) | (8 + (r >> 20) % 12) << 2;
	if (dtype == SLOTPROBE_F8E4M3)
		return (r & 0x87) | (r >> 20) % 14 << 3;
	return scaled(dtype, r, fill == FILL_SPARSE ? (int)(r >> 20 & 1) : (int)(r >> 20 & 7) - 4);
}

void fill_plane(void *data, uint64_t bytes, uint32_t dtype, enum fill fill, uint64_t seed)
{
	const uint32_t size = elem_bytes[dtype];
	uint8_t *p = data;
	for (uint64_t at = 0; at < bytes; at += size) {
		uint64_t bits = one_element(dtype, fill, &seed);
		if (fill == FILL_SPARSE && at / 16 % 256 != 3)
			bits = 0;
		memcpy(p + at, &bits, bytes - at < size ? bytes - at : size);
	}
}

void *guarded(size_t bytes, size_t shift, int tail)
{
	const size_t page = 4096, room = (bytes + shift + page - 1) / page * page;
	char *map = mmap(NULL, room + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED || mprotect(map, page, PROT_NONE) || mprotect(map + page + room, page, PROT_NONE))
		return NULL;
	return tail ? map + page + room - shift - bytes : map + page + shift;
}
