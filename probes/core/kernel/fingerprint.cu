// SPDX-License-Identifier: Apache-2.0
//
// fingerprint.cu: who does what in one launch of the fingerprint kernel: lanes, blocks, and how the last of them finish.
// The arithmetic is in fingerprint_ops.h, the contract in fingerprint.h. Uses nothing newer than sm_70 and PTX ISA 7.0.
//
// Every block counts, whatever it saw, and no barrier depends on what was read: a slot id that another stream changes
// under us makes a wrong status, never a launch that does not end or a scratch that is not zero again.
//
// Orderings: a block's results, then its count at the plane (acq_rel); the plane's last block writes the print, then
// counts the plane at the launch (acq_rel); the last of those writes the status, then `done` (release, system). Fences
// are cumulative, so whoever reads `done` with acquire sees what all blocks wrote to the entry.
#include "probes/core/kernel/fingerprint_ops.h"

#ifndef FP_AHEAD
#define FP_AHEAD 7 // vectors that a lane has in flight; a chunk is six times that
#endif
#ifndef FP_BLOCKS
#define FP_BLOCKS 4 // blocks on a multiprocessor that the registers must allow
#endif

#define WARPS (FP_LANES / 32)

typedef unsigned long long u64;

#ifndef FP_EMULATED // tests/unit/kernel/emulator.h has these for the host
static __device__ __forceinline__ u64 add_acq_rel(u64 *p, u64 v)
{
	u64 old;
	asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(p), "l"(v) : "memory");
	return old;
}

static __device__ __forceinline__ void add_relaxed(u64 *p, u64 v)
{
	asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

static __device__ __forceinline__ void max_relaxed(u64 *p, u64 v)
{
	asm volatile("red.relaxed.gpu.global.max.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

static __device__ __forceinline__ void store_release_system(uint32_t *p, uint32_t v)
{
	asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
#endif

// What a plane's blocks share, in the launch's scratch; zero between launches.
struct plane_scratch {
	u64 max, nan, inf, hash;
	u64 counted; // blocks, and from bit 32 on blocks that could not read the slot
	u64 room[3];
};
static_assert(sizeof(struct plane_scratch) == FP_SCRATCH_PLANE, "scratch");

// The chunk of a block.
struct chunk {
	uint32_t plane, dtype, n_chunks;
	uint32_t index, bytes; // among the plane's chunks
	uint64_t plane_address, plane_bytes, elems;
	uint64_t address, start; // of the chunk; its offset in the plane
};

struct totals {
	double sum;
	u64 hash, max, nan, inf;
};

struct block_shared {
	double sum[FP_LANES];
	u64 hash[FP_LANES], max[FP_LANES];
	unsigned nan, inf, bad;
	u64 counted;
};

static __device__ __forceinline__ u64 *launch_scratch(const struct fp_launch &a)
{
	return (u64 *)a.scratch;
}

static __device__ __forceinline__ struct plane_scratch *scratch_of(const struct fp_launch &a, uint32_t plane)
{
	return (struct plane_scratch *)(a.scratch + 64) + plane;
}

static __device__ __forceinline__ double *chunk_sums(const struct fp_launch &a, uint32_t first_chunk)
{
	return (double *)(a.scratch + 64 + (uint64_t)a.n_planes * FP_SCRATCH_PLANE) + first_chunk;
}

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

// The n full vectors of this lane; the first FP_AHEAD of them are in v already. A vector's place is loaded anew as soon as it is
// hashed, so that few of the loads wait for arithmetic.
static __device__ __forceinline__ void lane_vectors(uint32_t dtype, struct fp_lane *lane, uint4 v[FP_AHEAD],
						    uint64_t at, uint32_t n, uint64_t key)
{
#pragma unroll 1
	while (n) {
		values_of(dtype, lane, v, FP_AHEAD);
		at += FP_AHEAD * FP_LANES * FP_VECTOR;
		const uint32_t wide = at % FP_VECTOR ? 0 : n; // of which those from FP_AHEAD on are loaded here
#pragma unroll
		for (uint32_t i = 0; i < FP_AHEAD; i++) {
			if (i < n) {
				const uint32_t w[4] = { v[i].x, v[i].y, v[i].z, v[i].w };
				fp_lane_hash(lane, w, key + i * (FP_STEP * (2 * FP_LANES)), 2);
			}
			v[i] = i + FP_AHEAD < wide ? __ldcs((const uint4 *)at + i * FP_LANES) : make_uint4(0, 0, 0, 0);
		}
		key += FP_AHEAD * (FP_STEP * (2 * FP_LANES));
		n = n > FP_AHEAD ? n - FP_AHEAD : 0;
		if (!wide)
			load_ahead(v, at, n, false);
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

static __device__ __forceinline__ int64_t read_slot(const struct fp_launch &a)
{
	return a.slot_ptr ? load_signed(a.slot_ptr, a.slot_ptr_bytes == 4 ? 4 : 8) : a.slot;
}

// The chunk of this block; nothing of it is read unless the slot is in range.
static __device__ __forceinline__ struct chunk chunk_of(const struct fp_launch &a, int64_t slot, uint32_t status)
{
	struct chunk c = {};
	if (blockIdx.x >= a.n_chunks)
		return c;
	c.plane = ((const uint32_t *)a.chunks)[blockIdx.x];
	const struct fp_plane plane = ((const struct fp_plane *)a.planes)[c.plane];
	c.dtype = plane.dtype;
	c.n_chunks = plane.n_chunks;
	c.index = blockIdx.x - plane.first_chunk;
	c.plane_bytes = plane.bytes;
	c.elems = fp_elems(plane.dtype, plane.bytes, plane.elems);
	c.plane_address = fp_slot_address(&plane, slot, a.first_slot);
	c.start = (uint64_t)c.index * FP_CHUNK_BYTES;
	c.address = c.plane_address + c.start;
	if (status == FP_OK)
		c.bytes = (uint32_t)min((u64)FP_CHUNK_BYTES, (u64)(plane.bytes - c.start));
	return c;
}

// The block in which a sampled element lies puts it into the entry: it comes from memory with the rest of the chunk.
static __device__ __forceinline__ void samples_of(const struct fp_launch &a, const struct chunk &c)
{
	const uint32_t i = threadIdx.x - (FP_LANES - FP_SAMPLES);
	if (i >= FP_SAMPLES || !c.bytes)
		return;
	uint64_t *sample = &entry_of(a)->plane[c.plane].sample[i];
	if (!c.elems) {
		if (!c.index)
			*sample = 0;
		return;
	}
	const uint64_t offset = fp_sample_offset(c.dtype, c.elems, i);
	if (offset - c.start < c.bytes)
		*sample = load_bytes(c.plane_address + offset, fp_elem_bytes(c.dtype));
}

// The first integers of the regions, a warp each.
static __device__ __forceinline__ void snapshot_regions(const struct fp_launch &a)
{
	struct fp_entry *entry = entry_of(a);
	const uint32_t lane = threadIdx.x % 32;
#pragma unroll 1
	for (uint32_t r = threadIdx.x / 32; r < FP_MAX_REGIONS; r += WARPS) {
		struct fp_region region = {};
		if (r < a.n_regions)
			region = ((const struct fp_region *)a.regions)[r];
		const uint32_t n = min(region.n_values, (uint32_t)FP_REGION_VALUES);
		for (uint32_t i = lane; i < n; i += 32)
			entry->region_value[r][i] =
				load_signed(region.base + (uint64_t)i * region.value_bytes, region.value_bytes);
		if (!lane)
			entry->region_values[r] = n;
	}
}

static __device__ __forceinline__ void write_print(struct fp_print *out, const struct totals &sum, uint64_t bytes)
{
	out->absmax = fp_f64(sum.max);
	out->l2 = sqrt(sum.sum);
	out->nan = sum.nan;
	out->inf = sum.inf;
	out->hash = fp_hash_finish(sum.hash, bytes);
}

// Planes without bytes have no block: block 0 prints them, if `print`, and returns how many there are.
static __device__ __forceinline__ uint32_t empty_planes(const struct fp_launch &a, int print)
{
	uint32_t n = 0;
#pragma unroll 1
	for (uint32_t first = 0; first < a.n_planes; first += FP_LANES) {
		const uint32_t i = first + threadIdx.x;
		const int empty = i < a.n_planes && !((const struct fp_plane *)a.planes)[i].n_chunks;
		if (empty && print) {
			struct fp_print *out = &entry_of(a)->plane[i];
			write_print(out, totals {}, 0);
			for (int s = 0; s < FP_SAMPLES; s++)
				out->sample[s] = 0;
		}
		n += __syncthreads_count(empty);
	}
	return n;
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
	struct totals r = { reduce_sum(s.sum), 0, 0, 0, 0 };
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

// Some lane is special, or could not read the slot: do those again. Every thread of the block comes here.
static __device__ __forceinline__ void block_rare(struct block_shared &s, const struct chunk &c, int special,
						  uint32_t status)
{
	const uint32_t t = threadIdx.x;
	if (!t)
		s.nan = s.inf = s.bad = 0;
	__syncthreads();
	if (status != FP_OK)
		s.bad = 1;
	if (special) {
		const struct fp_rare rare = lane_rare(c, t);
		s.sum[t] = rare.sum;
		s.max[t] = rare.max;
		if (rare.nan)
			atomicAdd(&s.nan, (unsigned)rare.nan);
		if (rare.inf)
			atomicAdd(&s.inf, (unsigned)rare.inf);
	}
	__syncthreads();
}

// Adds a block's totals to its plane and counts it; thread 0 only. What it returns is the plane's count.
static __device__ __forceinline__ u64 count_chunk(const struct fp_launch &a, const struct chunk &c,
						  const struct totals &sum, u64 bad)
{
	struct plane_scratch *plane = scratch_of(a, c.plane);
	if (!bad) {
		add_relaxed(&plane->hash, sum.hash);
		max_relaxed(&plane->max, sum.max);
		if (sum.nan)
			add_relaxed(&plane->nan, sum.nan);
		if (sum.inf)
			add_relaxed(&plane->inf, sum.inf);
		*chunk_sums(a, blockIdx.x) = sum.sum;
	}
	const u64 one = 1 | bad << 32;
	return add_acq_rel(&plane->counted, one) + one;
}

// The totals of a plane of many chunks, by its last block; leaves its scratch zero. Valid in thread 0.
static __device__ __forceinline__ struct totals gather_plane(const struct fp_launch &a, const struct chunk &c,
							     struct block_shared &s)
{
	const uint32_t t = threadIdx.x;
	double *sums = chunk_sums(a, blockIdx.x - c.index), mine = 0;
#pragma unroll 4
	for (uint32_t i = t; i < c.n_chunks; i += FP_LANES) {
		mine += __ldcg(sums + i);
		sums[i] = 0;
	}
	struct totals r = {};
	if (!t) {
		struct plane_scratch *plane = scratch_of(a, c.plane);
		r.hash = __ldcg(&plane->hash);
		r.max = __ldcg(&plane->max);
		r.nan = __ldcg(&plane->nan);
		r.inf = __ldcg(&plane->inf);
		plane->hash = plane->max = plane->nan = plane->inf = plane->counted = 0;
	}
	s.sum[t] = mine;
	__syncthreads();
	if (t < 32)
		r.sum = reduce_sum(s.sum);
	return r;
}

// The end of the launch; thread 0 of the block that finished the last plane.
static __device__ __forceinline__ void finish_launch(const struct fp_launch &a, int64_t slot, uint32_t status, u64 bad)
{
	struct fp_entry *entry = entry_of(a);
	if (bad && status == FP_OK)
		status = FP_OUT_OF_RANGE; // blocks read different slot ids
	if (status != FP_OK)
		for (int r = 0; r < FP_MAX_REGIONS; r++)
			entry->region_values[r] = 0;
	entry->status = status;
	entry->slot = slot;
	*launch_scratch(a) = 0;
	store_release_system(&entry->done, a.sequence);
}

// Counts n finished planes; the one who counts the last ends the launch. Thread 0 only.
static __device__ __forceinline__ void count_planes(const struct fp_launch &a, uint32_t n, int64_t slot,
						    uint32_t status, u64 bad)
{
	if (n < a.n_planes) {
		if (!n)
			return;
		const u64 mine = n | (u64)(bad != 0) << 32;
		const u64 counted = add_acq_rel(launch_scratch(a), mine) + mine;
		if ((uint32_t)counted != a.n_planes)
			return;
		bad = counted >> 32;
	}
	finish_launch(a, slot, status, bad);
}

extern "C" __global__ void __launch_bounds__(FP_THREADS, FP_BLOCKS) slotprobe_fingerprint(const struct fp_launch a)
{
	__shared__ struct block_shared s;
	const uint32_t t = threadIdx.x;
	const int64_t slot = read_slot(a);
	const uint32_t status = fp_check_slot(slot, a.first_slot, a.n_slots);
	const struct chunk c = chunk_of(a, slot, status);

	uint4 v[FP_AHEAD];
	const uint32_t full = c.address % 4 ? 0 : c.bytes / FP_VECTOR;
	const uint32_t n = full > t ? (full - t + FP_LANES - 1) / FP_LANES : 0;
	load_ahead(v, c.address + t * FP_VECTOR, n, c.address % FP_VECTOR == 0);

	// In the shadow of these loads: what else the launch must say.
	samples_of(a, c);
	uint32_t finished = 0;
	if (!blockIdx.x) {
		if (status == FP_OK)
			snapshot_regions(a);
		if (a.n_planes != 1 || a.n_chunks != 1)
			finished = empty_planes(a, status == FP_OK);
	}

	const struct lane_result lane = lane_run(v, n, c);
	s.sum[t] = lane.sum;
	s.hash[t] = lane.hash;
	s.max[t] = lane.max;
	struct totals sum = {};
	u64 bad = 0;
	const int rare = __syncthreads_or(lane.special || status != FP_OK);
	if (rare)
		block_rare(s, c, lane.special, status);
	if (t < 32)
		sum = reduce(s);
	if (rare) {
		sum.nan = s.nan;
		sum.inf = s.inf;
		bad = s.bad;
	}

	// A plane of one chunk is finished here; else the block that counts the plane's last chunk does it.
	uint32_t own = c.n_chunks == 1;
	if (c.n_chunks > 1) {
		if (!t)
			s.counted = count_chunk(a, c, sum, bad);
		__syncthreads();
		bad = s.counted >> 32;
		own = (uint32_t)s.counted == c.n_chunks;
		if (own)
			sum = gather_plane(a, c, s);
	}
	if (t)
		return;
	if (own && status == FP_OK)
		write_print(&entry_of(a)->plane[c.plane], sum, c.plane_bytes);
	count_planes(a, finished + own, slot, status, bad);
}

// Stores a word when the stream gets there: how the host learns that what it enqueued before is done.
extern "C" __global__ void slotprobe_ready(uint64_t word, uint32_t value)
{
	store_release_system((uint32_t *)word, value);
}
