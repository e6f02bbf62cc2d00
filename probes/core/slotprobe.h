/* SPDX-License-Identifier: Apache-2.0
 *
 * slotprobe.h: what a server or an adapter tells slotprobe. This header is all that a program needs.
 *
 * Compile it in for good: nothing is linked. Each call finds libslotprobe.so by dlsym the first time and is one branch
 * from then on; without the preload it returns -ENOSYS. (glibc older than 2.34: link with -ldl. A static program always
 * gets -ENOSYS.)
 *
 * No call blocks, synchronises with the device or allocates on the hot path; each may be made from any thread, in
 * stream capture or not, but no claim on a device pool in a signal handler: it calls the driver, which takes locks that
 * the interrupted thread may hold. pool_add and pool_remove are not hot: they may wait, bounded, for slotprobe's own copy of the
 * layout.
 *
 * Return values: >= 0 done (paused too: counted as filtered); -ENOSYS no preload, or the process is not recorded;
 * -EBUSY the stream is capturing; -EAGAIN dropped, a queue was full; -EINVAL an argument makes no sense.
 */
#ifndef SLOTPROBE_H
#define SLOTPROBE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum slotprobe_dtype {
	SLOTPROBE_F64,
	SLOTPROBE_F32,
	SLOTPROBE_F16,
	SLOTPROBE_BF16,
	SLOTPROBE_F8E4M3,
	SLOTPROBE_F8E5M2,
	SLOTPROBE_I8,
	SLOTPROBE_I32,
	SLOTPROBE_RAW, /* bytes without a value: hashed only */
};

/* One (layer, tensor) part of a pool. Slot s lies at base + (s - first_slot) * slot_stride. */
struct slotprobe_plane {
	const char *tensor;  /* name of the tensor, the same in every layer */
	int32_t layer;       /* -1: the tensor has no layers */
	uint32_t dtype;      /* enum slotprobe_dtype */
	uint64_t base;       /* address of the first slot: device memory, or host memory in a pool with device -1 */
	int64_t slot_stride; /* bytes from one slot to the next */
	uint64_t elems;      /* elements per slot (bytes, for SLOTPROBE_RAW) */
};

struct slotprobe_pool {
	uint32_t size;    /* sizeof(struct slotprobe_pool): lets the structure grow */
	const char *name; /* pools of two runs pair by rank and name */
	int32_t device;   /* CUDA ordinal; -1: host memory */
	int64_t first_slot, n_slots;
	const struct slotprobe_plane *planes;
	uint32_t n_planes;
	uint64_t flags; /* SLOTPROBE_POOL_*; read when `size` reaches this far */
};

/* Host memory whose slots have no fixed place: a server that hands over copies in buffers of its own. A plane's base is an
 * offset into claim.state, slot_stride is not used, and what a slot held before cannot be looked up: such a pool takes
 * donations, restores, allocations and clears with a state, and no copies. */
enum { SLOTPROBE_POOL_FLOATING = 1 };

/* What is said of one slot at one moment. */
struct slotprobe_claim {
	uint32_t size; /* sizeof(struct slotprobe_claim) */
	int32_t pool;  /* what slotprobe_pool_add returned */
	int64_t slot;
	uint64_t slot_ptr; /* != 0: device address of the slot id, read by the kernel on `stream` and never on the host
			    */
	uint32_t slot_ptr_bytes; /* 4 or 8: width of the integer at slot_ptr */
	int64_t claimed_len;     /* tokens that the state is said to stand for */
	uint64_t key;            /* identity of the request or prefix; 0 without key_text: none */
	const char *key_text;    /* wins over key; hashed, unless the run keeps keys */
	uint64_t stream;  /* CUstream: the one that every writer of the pool uses; 0 and 1 legacy, 2 per-thread */
	uint32_t flags;   /* 0 */
	int64_t key_len;  /* tokens that the key stands for; <= 0: unknown */
	uint64_t state;   /* floating pool: address of the state, read before the call returns; read when `size` reaches
			    this far */
	uint64_t src_ptr; /* copy: != 0: device address of the source slot's id, in place of the argument; read like
			     slot_ptr, when `size` reaches src_ptr_bytes */
	uint32_t src_ptr_bytes; /* 4 or 8 */
};

/* Slot events. The source of SLOTPROBE_COPY is a slot, unless the claim says where its id lies; of SLOTPROBE_DISCARD the donation id that was not taken. */
enum { SLOTPROBE_ALLOC = 1, SLOTPROBE_CLEAR, SLOTPROBE_COPY, SLOTPROBE_DISCARD, SLOTPROBE_FREE };

enum {
	SLOTPROBE_MODE_EAGER = 1,
	SLOTPROBE_MODE_GRAPH = 2,
	SLOTPROBE_MODE_SEEN = 3, /* graph if the process launched a graph since the step before, else eager */
};

/* One forward of the server. */
struct slotprobe_step {
	uint32_t size; /* sizeof(struct slotprobe_step) */
	const char *name;
	uint64_t value;
	int32_t batch, padded; /* rows with a request; rows that the graph runs with. -1: unknown */
	uint32_t mode;         /* SLOTPROBE_MODE_*; 0: unknown */
};

/* What an adapter says of a point of its own with slotprobe_hit. */
enum { SLOTPROBE_HIT_COMMITTED, SLOTPROBE_HIT_FILTERED, SLOTPROBE_HIT_ERROR };

/*
 * The calls, one row each: return type, name, parameters, arguments, the value without a preload.
 *
 * - pool_add: pool id >= 0. The layout is copied. -ENOSPC: too many pools or planes. -ETIMEDOUT: the device did not answer.
 * - pool_remove: 0; donations in flight still commit.
 * - donate: positive donation id; the slot is fingerprinted on claim->stream.
 * - restore: 0; fingerprinted on claim->stream, so call it before the server's copy is enqueued there.
 * - slot: 0; alloc and clear fingerprint the slot, copy fingerprints source and destination (call it after the copy was
 *   enqueued), free and discard only record.
 * - step: 0; the steps of a process are numbered in the order of these calls.
 * - rank: 0; one call for each axis ("tp", "pp", "dp", ...).
 * - region: region id >= 0. A small buffer whose address graphs bind, for instance the indices of a captured kernel.
 * - tap: 0; fingerprints a named tensor. -ENOSYS until taps are built.
 * - point: id of an adapter's own counted point "GROUP.POINT", registered at 0; -ENOSPC: too many.
 * - hit: 0; counts one attempt at that point and its outcome.
 * - hash: 0; the hash over a donated slot's planes. -EAGAIN: not in yet. -ENOENT: it was not measured, or over 1000
 *   events ago.
 */
#define SLOTPROBE_CALLS(X)                                                                                             \
	X(int, pool_add, (const struct slotprobe_pool *pool), (pool), -38)                                             \
	X(int, pool_remove, (int pool), (pool), -38)                                                                   \
	X(int64_t, donate, (const struct slotprobe_claim *claim), (claim), -38)                                        \
	X(int, restore, (const struct slotprobe_claim *claim), (claim), -38)                                           \
	X(int, slot, (uint32_t event, const struct slotprobe_claim *claim, int64_t src_slot_or_donation),              \
	  (event, claim, src_slot_or_donation), -38)                                                                   \
	X(int, step, (const struct slotprobe_step *step), (step), -38)                                                 \
	X(int, rank, (const char *axis, int32_t index, int32_t count), (axis, index, count), -38)                      \
	X(int, region, (const char *name, uint64_t base, uint64_t bytes, uint32_t dtype), (name, base, bytes, dtype),  \
	  -38)                                                                                                         \
	X(int, tap, (const char *name, uint64_t ptr, uint64_t elems, uint32_t dtype, uint64_t stream),                 \
	  (name, ptr, elems, dtype, stream), -38)                                                                      \
	X(int, point, (const char *name), (name), -38)                                                                 \
	X(int, hit, (int point, uint32_t outcome), (point, outcome), -38)                                              \
	X(int, hash, (int64_t donation, uint64_t * hash), (donation, hash), -38)

#ifdef SLOTPROBE_IMPLEMENTATION
#define SLOTPROBE_DECLARE(ret, name, params, args, absent)                                                             \
	__attribute__((visibility("default"))) ret slotprobe_##name params;
#else
#include <dlfcn.h>
/* dlsym with a null handle is RTLD_DEFAULT, whose macro needs _GNU_SOURCE. A library cannot be preloaded later: one
 * look-up per call and translation unit is enough, and a race only looks up twice. */
#define SLOTPROBE_DECLARE(ret, name, params, args, absent)                                                             \
	__attribute__((unused)) static ret slotprobe_##name params                                                     \
	{                                                                                                              \
		static ret(*found) params;                                                                             \
		static int looked;                                                                                     \
		if (__builtin_expect(!__atomic_load_n(&looked, __ATOMIC_ACQUIRE), 0)) {                                \
			__atomic_store_n(&found, (ret(*) params)dlsym((void *)0, "slotprobe_" #name),                  \
					 __ATOMIC_RELAXED);                                                            \
			__atomic_store_n(&looked, 1, __ATOMIC_RELEASE);                                                \
		}                                                                                                      \
		ret(*call) params = __atomic_load_n(&found, __ATOMIC_RELAXED);                                         \
		return call ? call args : absent;                                                                      \
	}
#endif
SLOTPROBE_CALLS(SLOTPROBE_DECLARE)
#undef SLOTPROBE_DECLARE

#ifdef __cplusplus
}
#endif

#endif
