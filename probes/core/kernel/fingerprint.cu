// SPDX-License-Identifier: Apache-2.0
//
// fingerprint.cu: who does what in one launch of the fingerprint kernel: lanes, blocks, and how the last of them finish.
// The arithmetic is in fingerprint_ops.h, the contract in fingerprint.h. Uses nothing newer than sm_70 and PTX ISA 7.0.
//
// A block fingerprints one chunk and says so in a record of its own, which proves itself (fingerprint.h): blocks share
// nothing, wait for nothing and need no fence, so that the end of the last one is the end of the launch. What the records of
// a plane make together is worked out by whoever reads them (fingerprint_read.c).
//
// No barrier depends on what was read: a slot id that another stream changes under us makes records that do not agree,
// never a launch that does not end.
#include "probes/core/kernel/fingerprint_ops.h"

#ifndef FP_AHEAD
#define FP_AHEAD 6 // vectors that a lane has in flight: those of FP_CHUNK_UNIT
#endif
#ifndef FP_BLOCKS
#define FP_BLOCKS 3 // blocks on a multiprocessor that the registers must allow: FP_CHUNKS_AT_ONCE
#endif

#define WARPS (FP_LANES / 32)

typedef unsigned long long u64;

#ifndef FP_EMULATED // tests/unit/kernel/emulator.h has these for the host
static __device__ __forceinline__ void store_relaxed_system(u64 *p, u64 v)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

static __device__ __forceinline__ void store_release_system(uint32_t *p, uint32_t v)
{
	asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
#endif

// The chunk of a block.
struct chunk {
	uint32_t bytes, dtype, record; // bytes: 0 unless the slot is in range
	uint64_t address, start, elems;
};

struct totals {
	double sum;
	u64 hash, max, special; // special: NaN count, Inf count from bit 32 on
};

struct block_shared {
	double sum[FP_LANES];
	u64 hash[FP_LANES], max[FP_LANES], special;
	int64_t slot;
};

static __device__ __forceinline__ struct fp_entry *entry_of(const struct fp_launch &a)
{
	return (struct fp_entry *)a.entry;
}

// ---- loads ----

// n little-endian bytes, n <= 8, at any address; one access where it is aligned.
static __device__ __forceinline__ uint64_t load_bytes(uint64_t address, uint32_t n)
{
	if (!(address & (n - 1))) {
		if (n == 8)
			return *(const uint64_t *)address;
		if (n == 4)
			return *(const uint32_t *)address;
		if (n == 2)
			return *(const uint16_t *)address;
	}
	uint64_t v = 0;
#pragma unroll 1
	for (uint32_t i = 0; i < n; i++)
		v |= (uint64_t)((const uint8_t *)address)[i] << 8 * i;
	return v;
}

static __device__ __forceinline__ int64_t load_signed(uint64_t address, uint32_t n)
{
	int64_t v = (int64_t)load_bytes(address, n);
	return n == 1 ? (int8_t)v : n == 2 ? (int16_t)v : n == 4 ? (int32_t)v : v;
}

// One vector at any address, of which only n bytes are there. Small rather than fast: units are shifted in from the top.
static __device__ __forceinline__ uint4 gather(uint64_t address, uint32_t n)
{
	const uint32_t unit = (address | n) & 1 ? 1 : 2;
	uint4 v = {};
#pragma unroll 1
	for (uint32_t i = 0; i < FP_VECTOR; i += unit, address += unit) {
		uint32_t x = 0;
		if (i < n)
			x = unit == 1 ? *(const uint8_t *)address : *(const uint16_t *)address;
		v.x = __funnelshift_r(v.x, v.y, 8 * unit);
		v.y = __funnelshift_r(v.y, v.z, 8 * unit);
		v.z = __funnelshift_r(v.z, v.w, 8 * unit);
		v.w = __funnelshift_r(v.w, x, 8 * unit);
	}
	return v;
}

// ---- one lane ----

// The first vectors of the n at `at`, FP_LANES vectors apart; zeros where there are none. What is read is read once: let it
// leave the caches first. at is a multiple of 4, and of 16 if `wide`.
static __device__ __forceinline__ void load_ahead(uint4 v[FP_AHEAD], uint64_t at, uint32_t n, bool wide)
{
	if (wide) {
#pragma unroll
		for (uint32_t i = 0; i < FP_AHEAD; i++)
			v[i] = i < n ? __ldcs((const uint4 *)at + i * FP_LANES) : make_uint4(0, 0, 0, 0);
		return;
	}
#pragma unroll
	for (uint32_t i = 0; i < FP_AHEAD; i++) {
		const uint32_t *p = (const uint32_t *)at + i * FP_LANES * 4;
		v[i] = i < n ? make_uint4(p[0], p[1], p[2], p[3]) : make_uint4(0, 0, 0, 0);
	}
}

// The values of count vectors; dtype and count are constants. A vector that is not there is zero and changes nothing.
static __device__ __forceinline__ void values_ahead(const uint32_t dtype, struct fp_lane *lane, const uint4 v[FP_AHEAD],
						    const int count)
{
#pragma unroll
	for (int i = 0; i < count; i++) {
		const uint32_t w[4] = { v[i].x, v[i].y, v[i].z, v[i].w };
		fp_lane_values(dtype, lane, w, 1);
	}
}

static __device__ __forceinline__ void values_of(uint32_t dtype, struct fp_lane *lane, const uint4 v[FP_AHEAD],
						 const int count)
{
	switch (dtype) {
#define ONE(constant)                                                                                                  \
	case constant:                                                                                                 \
		values_ahead(constant, lane, v, count);                                                                \
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
	}
}

// A round of vectors all of which are there, and at `at` the next, of which n are. A vector's place is loaded anew when it is
// hashed. Without branches between them, so that several are in work at once.
static __device__ __forceinline__ void hash_even(struct fp_lane *lane, uint4 v[FP_AHEAD], uint64_t at, uint32_t n,
						 uint64_t key)
{
#pragma unroll
	for (uint32_t i = 0; i < FP_AHEAD; i++) {
		const uint32_t w[4] = { v[i].x, v[i].y, v[i].z, v[i].w };
		fp_lane_hash(lane, w, key + i * (FP_STEP * (2 * FP_LANES)), 2);
		v[i] = i < n ? __ldcs((const uint4 *)at + i * FP_LANES) : make_uint4(0, 0, 0, 0);
	}
}

// The same where some may be missing, this time or the next; wide: what is loaded lies at a multiple of 16.
static __device__ __forceinline__ void hash_odd(struct fp_lane *lane, uint4 v[FP_AHEAD], uint64_t at, uint32_t n,
						uint64_t key, bool wide)
{
	const uint32_t there = wide ? n : 0;
#pragma unroll
	for (uint32_t i = 0; i < FP_AHEAD; i++) {
		if (i < n) {
			const uint32_t w[4] = { v[i].x, v[i].y, v[i].z, v[i].w };
			fp_lane_hash(lane, w, key + i * (FP_STEP * (2 * FP_LANES)), 2);
		}
		v[i] = i + FP_AHEAD < there ? __ldcs((const uint4 *)at + i * FP_LANES) : make_uint4(0, 0, 0, 0);
	}
	if (!wide && n > FP_AHEAD)
		load_ahead(v, at, n - FP_AHEAD, false);
}

// The n full vectors of this lane; the first FP_AHEAD of them are in v already.
static __device__ __forceinline__ void lane_vectors(uint32_t dtype, struct fp_lane *lane, uint4 v[FP_AHEAD],
						    uint64_t at, uint32_t n, uint64_t key)
{
#pragma unroll 1
	while (n) {
		values_of(dtype, lane, v, FP_AHEAD);
		at += FP_AHEAD * FP_LANES * FP_VECTOR;
		const bool wide = !(at % FP_VECTOR);
		if (wide && n >= FP_AHEAD)
			hash_even(lane, v, at, n - FP_AHEAD, key);
		else
			hash_odd(lane, v, at, n, key, wide);
		key += FP_AHEAD * (FP_STEP * (2 * FP_LANES));
		n = n > FP_AHEAD ? n - FP_AHEAD : 0;
	}
}

// Vectors that lane_vectors does not do, from number i on: all of a chunk at an odd address, or the torn one at a plane's end.
static __device__ __forceinline__ void lane_slow(struct fp_lane *lane, const struct chunk &c, uint32_t i)
{
#pragma unroll 1
	for (; i * FP_VECTOR < c.bytes; i += FP_LANES) {
		const uint32_t n = min(c.bytes - i * FP_VECTOR, FP_VECTOR);
		uint4 v[FP_AHEAD] = { gather(c.address + i * FP_VECTOR, n) };
		uint32_t w[4] = { v[0].x, v[0].y, v[0].z, v[0].w };
		fp_lane_hash(lane, w, fp_key(c.start / 8 + 2 * i), n > 8 ? 2 : 1);
		if (n & (fp_elem_bytes(c.dtype) - 1)) {
			fp_keep_whole(c.dtype, w, n);
			v[0] = make_uint4(w[0], w[1], w[2], w[3]);
		}
		values_of(c.dtype, lane, v, 1);
	}
}

// A special lane again, element by element.
static __device__ __forceinline__ struct fp_rare lane_rare(const struct chunk &c, uint32_t i)
{
	struct fp_rare rare = { 0, 0, 0, 0 };
	const uint32_t size = fp_elem_bytes(c.dtype);
#pragma unroll 1
	for (; i * FP_VECTOR < c.bytes; i += FP_LANES) {
		uint32_t end = min(c.bytes, (i + 1) * FP_VECTOR);
#pragma unroll 1
		for (uint32_t at = i * FP_VECTOR; at + size <= end; at += size)
			fp_rare_add(&rare, c.dtype, load_bytes(c.address + at, size));
	}
	return rare;
}

struct lane_result {
	double sum;
	u64 hash, max;
	int special;
};

static __device__ __forceinline__ struct lane_result lane_run(uint4 v[FP_AHEAD], uint32_t n, const struct chunk &c)
{
	const uint32_t t = threadIdx.x;
	struct fp_lane lane = {};
	lane_vectors(c.dtype, &lane, v, c.address + t * FP_VECTOR, n, fp_key(c.start / 8 + 2 * t));
	lane_slow(&lane, c, t + n * FP_LANES);
	struct lane_result r;
	r.hash = lane.hash;
	r.sum = fp_lane_sum(c.dtype, &lane);
	r.max = fp_lane_max(c.dtype, &lane);
	r.special = fp_special(c.dtype, r.sum, r.max);
	return r;
}

// ---- one block ----

// Read once for a block, where it lies on the device: should another stream change it now, all of a chunk is one slot's.
static __device__ __forceinline__ int64_t read_slot(const struct fp_launch &a, struct block_shared &s)
{
	if (!a.slot_ptr)
		return a.slot;
	if (!threadIdx.x)
		s.slot = load_signed(a.slot_ptr, a.slot_ptr_bytes == 4 ? 4 : 8);
	__syncthreads();
	return s.slot;
}

// The chunk of this block; nothing of it is read unless the slot is in range.
static __device__ __forceinline__ struct chunk chunk_of(const struct fp_launch &a, int64_t slot, uint32_t status)
{
	const struct fp_chunk *at = (const struct fp_chunk *)a.chunks + blockIdx.x;
	struct chunk c;
	c.address = at->address + ((uint64_t)slot - (uint64_t)a.first_slot) * (uint64_t)at->stride;
	c.start = at->start;
	c.elems = at->elems;
	c.dtype = at->dtype;
	c.record = at->record;
	c.bytes = status == FP_OK ? at->bytes : 0;
	return c;
}

// ---- records ----

// Eight lanes store one record, each its word; whoever calls does so with a whole warp, of which only `stores` store.
static __device__ __forceinline__ void store_record(const struct fp_launch &a, uint32_t record, u64 word, int stores)
{
	const uint32_t i = threadIdx.x % 8;
	u64 check = i < FP_RECORD_WORDS ? fp_record_mix(word, i, a.sequence) : 0;
#pragma unroll
	for (int apart = 4; apart; apart /= 2)
		check += __shfl_xor_sync(0xffffffffu, check, apart);
	if (stores)
		store_relaxed_system((u64 *)&entry_of(a)->record[record] + i, i < FP_RECORD_WORDS ? word : check);
}

// The sample of a lane of the last warp, if it has one: it comes from memory with the rest.
static __device__ __forceinline__ u64 sample_of(const struct chunk &c)
{
	const uint32_t i = threadIdx.x - (FP_LANES - 32);
	if (i >= FP_SAMPLES || c.start || !c.bytes || !c.elems)
		return 0;
	return load_bytes(c.address + fp_sample_offset(c.dtype, c.elems, i), fp_elem_bytes(c.dtype));
}

// By the last warp of a plane's first block.
static __device__ __forceinline__ void store_samples(const struct fp_launch &a, const struct chunk &c, u64 sample,
						     int64_t slot, uint32_t status)
{
	const uint32_t i = threadIdx.x % 32;
	store_record(a, c.record - 1, i == FP_SLOT ? (u64)slot : i == FP_STATUS ? status : sample, i < 8);
}

// The first integers of the regions, a warp each.
static __device__ __forceinline__ void snapshot_regions(const struct fp_launch &a)
{
	const uint32_t lane = threadIdx.x % 32;
#pragma unroll 1
	for (uint32_t r = threadIdx.x / 32; r < a.n_regions; r += WARPS) {
		const struct fp_region region = ((const struct fp_region *)a.regions)[r];
		struct fp_region_values *to = &entry_of(a)->region[r];
		const uint32_t n = min(region.n_values, (uint32_t)FP_REGION_VALUES);
		u64 check = 0;
#pragma unroll 1
		for (uint32_t i = lane; i < n; i += 32) {
			const u64 v =
				(u64)load_signed(region.base + (uint64_t)i * region.value_bytes, region.value_bytes);
			store_relaxed_system((u64 *)&to->value[i], v);
			check += fp_record_mix(v, i, a.sequence);
		}
#pragma unroll
		for (int apart = 16; apart; apart /= 2)
			check += __shfl_xor_sync(0xffffffffu, check, apart);
		if (!lane)
			store_relaxed_system((u64 *)&to->check, check);
	}
}

// Sums over the block's lanes; valid in warp 0. This order is the tree of fingerprint_ops.h.
static __device__ __forceinline__ double reduce_sum(const double *lanes)
{
	double sum = lanes[threadIdx.x];
#pragma unroll
	for (uint32_t w = 1; w < WARPS; w++)
		sum += lanes[threadIdx.x + 32 * w];
#pragma unroll
	for (int apart = 16; apart; apart /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, apart);
	return sum;
}

static __device__ __forceinline__ struct totals reduce(const struct block_shared &s)
{
	struct totals r = { reduce_sum(s.sum), 0, 0, 0 };
#pragma unroll
	for (uint32_t w = 0; w < WARPS; w++) {
		r.hash += s.hash[threadIdx.x + 32 * w];
		r.max = max(r.max, s.max[threadIdx.x + 32 * w]);
	}
#pragma unroll
	for (int apart = 16; apart; apart /= 2) {
		r.hash += __shfl_xor_sync(0xffffffffu, r.hash, apart);
		r.max = max(r.max, __shfl_xor_sync(0xffffffffu, r.max, apart));
	}
	return r;
}

// Some lane is special: do those again. Every thread of the block comes here.
static __device__ __forceinline__ void block_rare(struct block_shared &s, const struct chunk &c, int special)
{
	const uint32_t t = threadIdx.x;
	if (!t)
		s.special = 0;
	__syncthreads();
	if (special) {
		const struct fp_rare rare = lane_rare(c, t);
		s.sum[t] = rare.sum;
		s.max[t] = rare.max;
		if (rare.nan | rare.inf)
			atomicAdd(&s.special, (u64)rare.nan | (u64)rare.inf << 32);
	}
	__syncthreads();
}

// By the first warp.
static __device__ __forceinline__ void store_totals(const struct fp_launch &a, const struct chunk &c,
						    const struct totals &sum, int64_t slot, uint32_t status)
{
	const uint32_t i = threadIdx.x;
	u64 word = i == FP_SUM ? fp_f64_bits(sum.sum) : i == FP_HASH ? sum.hash : i == FP_MAX ? sum.max : sum.special;
	if (i >= FP_SLOT)
		word = i == FP_SLOT ? (u64)slot : i == FP_STATUS ? status : 0;
	store_record(a, c.record, word, i < 8);
}

extern "C" __global__ void __launch_bounds__(FP_THREADS, FP_BLOCKS) slotprobe_fingerprint(const struct fp_launch a)
{
	__shared__ struct block_shared s;
	const uint32_t t = threadIdx.x;
	const int64_t slot = read_slot(a, s);
	const uint32_t status = fp_check_slot(slot, a.first_slot, a.n_slots);
	const struct chunk c = chunk_of(a, slot, status);

	uint4 v[FP_AHEAD];
	const uint32_t full = c.address % 4 ? 0 : c.bytes / FP_VECTOR;
	const uint32_t n = full > t ? (full - t + FP_LANES - 1) / FP_LANES : 0;
	load_ahead(v, c.address + t * FP_VECTOR, n, c.address % FP_VECTOR == 0);

	// In the shadow of these loads: what else the launch must say.
	const u64 sample = sample_of(c);
	if (!blockIdx.x && a.n_regions && status == FP_OK)
		snapshot_regions(a);

	const struct lane_result lane = lane_run(v, n, c);
	s.sum[t] = lane.sum;
	s.hash[t] = lane.hash;
	s.max[t] = lane.max;
	if (t >= FP_LANES - 32 && !c.start)
		store_samples(a, c, sample, slot, status);
	const int rare = __syncthreads_or(lane.special);
	if (rare)
		block_rare(s, c, lane.special);
	if (t >= 32)
		return;
	struct totals sum = reduce(s);
	sum.special = rare ? s.special : 0;
	store_totals(a, c, sum, slot, status);
}

// Stores a word when the stream gets there: how the host learns that what it enqueued before is done.
extern "C" __global__ void slotprobe_ready(uint64_t word, uint32_t value)
{
	store_release_system((uint32_t *)word, value);
}
