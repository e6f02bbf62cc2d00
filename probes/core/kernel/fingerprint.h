/* SPDX-License-Identifier: Apache-2.0
 *
 * fingerprint.h: the contract between the fingerprint kernel and those who launch it. Included by the device source, by
 * its host twin and by probes/core; plain C types, no other header of ours.
 */
#ifndef FINGERPRINT_H
#define FINGERPRINT_H

#include <stdint.h>

#define FP_SAMPLES       4
#define FP_THREADS       256
#define FP_MAX_REGIONS   8
#define FP_REGION_VALUES 64 /* first integers of a region that are kept */

#ifndef FP_CHUNK_BYTES         /* l2 depends on it: change it in every build or in none */
#define FP_CHUNK_BYTES 172032u /* one block fingerprints one chunk of one plane; a chunk never spans planes */
#endif

#define FP_KERNEL_NAME                                                                                                 \
	"slotprobe_fingerprint"         /* (struct fp_launch by value); grid: max(n_chunks, 1), block: FP_THREADS */
#define FP_READY_NAME "slotprobe_ready" /* (uint64_t word, uint32_t value): stores value there, system-wide; 1 x 1 */

/* One plane, as the kernel sees it. base is the address of slot first_slot. */
struct fp_plane {
	uint64_t base;
	int64_t stride;
	uint64_t bytes, elems; /* per slot */
	uint32_t dtype;        /* enum slotprobe_dtype */
	uint32_t first_chunk;  /* number of its first chunk among those of the slot */
	uint32_t n_chunks;     /* 0 for a plane without bytes */
	uint32_t reserved;
};

struct fp_region {
	uint64_t base;
	uint32_t n_values;    /* <= FP_REGION_VALUES */
	uint32_t value_bytes; /* 1, 4 or 8, sign-extended */
};

struct fp_print { /* same layout as struct log_plane_print */
	double absmax, l2;
	uint64_t nan, inf, hash;
	uint64_t sample[FP_SAMPLES];
};

enum fp_status { FP_OK = 0, FP_PADDING = 1, FP_OUT_OF_RANGE = 2 };

/* Where the result of one launch goes: host memory, mapped into the device. The kernel writes everything, then a
 * system-wide fence, then `done`. A reader loads `done` with acquire and reads the rest only when it equals the
 * launch's sequence number. */
struct fp_entry {
	uint32_t done;
	uint32_t status; /* enum fp_status; planes are written only for FP_OK */
	int64_t slot;    /* as read */
	int64_t region_value[FP_MAX_REGIONS][FP_REGION_VALUES];
	uint32_t region_values[FP_MAX_REGIONS];
	struct fp_print plane[];
};

/* The kernel's argument. Every address is a device address. */
struct fp_launch {
	uint64_t planes; /* struct fp_plane[n_planes] */
	uint64_t chunks; /* uint32_t[n_chunks]: plane of each chunk */
	uint64_t
		scratch; /* fp_scratch_bytes() bytes, zero before the first launch; every launch leaves it zero again */
	uint64_t entry;  /* struct fp_entry */
	uint64_t regions;  /* struct fp_region[n_regions] */
	uint64_t slot_ptr; /* != 0: the slot id is read there */
	int64_t slot;
	int64_t first_slot, n_slots;
	uint32_t slot_ptr_bytes; /* 4 or 8 */
	uint32_t n_planes, n_chunks, n_regions;
	uint32_t sequence; /* != 0 */
	uint32_t reserved;
};

/* Scratch: FP_SCRATCH_PLANE bytes per plane, 8 per chunk (partial sums of squares), 64 for the launch. */
#define FP_SCRATCH_PLANE 64u
static inline uint64_t fp_scratch_bytes(uint32_t n_planes, uint32_t n_chunks)
{
	return 64u + (uint64_t)n_planes * FP_SCRATCH_PLANE + ((uint64_t)n_chunks * 8u + 63u) / 64u * 64u;
}

static inline uint32_t fp_plane_chunks(uint64_t bytes)
{
	return (uint32_t)((bytes + FP_CHUNK_BYTES - 1) / FP_CHUNK_BYTES);
}

#ifndef __CUDACC__
/* Host twin: fingerprints one plane at `data`. Same hash, abs-max, NaN, Inf, samples and l2 as the kernel, bit for bit.
 */
void fp_host_plane(const void *data, uint64_t bytes, uint64_t elems, uint32_t dtype, struct fp_print *out);

/* Host twin of the kernel's protocol, for the CPU driver: everything that one launch does. */
void fp_host_launch(const struct fp_launch *launch);

/* The embedded PTX, NUL-terminated. */
extern const char fp_image[];
#endif

#endif
