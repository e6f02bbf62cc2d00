/* SPDX-License-Identifier: Apache-2.0
 *
 * fingerprint.h: the contract between the fingerprint kernel and those who launch it. Included by the device source, by
 * its host twin and by probes/core; plain C types, no other header of ours.
 */
#ifndef FINGERPRINT_H
#define FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#define FP_SAMPLES       4
#define FP_THREADS       256
#define FP_MAX_REGIONS   8
#define FP_REGION_VALUES 64 /* first integers of a region that are kept */

/* One block fingerprints one chunk of one plane; a chunk never spans planes. Its size is a number of units and follows from the
 * bytes of the slot's planes alone, never from the GPU: l2 depends on it, and two runs must agree. */
#define FP_CHUNK_UNIT     24576u /* 6 vectors of 16 bytes for each thread: what they have in flight */
#define FP_CHUNK_MOST     170u   /* units: l2 adds up a thousand fp32 at most, and integers of 8 bits do not overflow */
#define FP_CHUNKS_AT_ONCE 396u   /* an H200 runs so many: three on each of 132 multiprocessors */

#define FP_KERNEL_NAME "slotprobe_fingerprint" /* (struct fp_launch by value); grid: n_chunks, block: FP_THREADS */
#define FP_READY_NAME  "slotprobe_ready" /* (uint64_t word, uint32_t value): stores value there, system-wide; 1 x 1 */

/* One chunk, as the kernel sees it. */
struct fp_chunk {
	uint64_t address; /* of the chunk in the pool's first slot */
	int64_t stride;   /* bytes from slot to slot */
	uint64_t start;   /* its offset in the plane; 0: the plane's first chunk, which brings the samples too */
	uint64_t elems;   /* of the plane */
	uint32_t bytes, dtype;
	uint32_t record; /* where its result goes; that of the samples stands before the first chunk's */
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

/* Where the result of one launch goes: host memory, mapped into the device. Every block writes its own records, and no
 * block waits for another: no counter, no fence. A record proves by its last word that all of it is there and that it is
 * of this launch: that word is a 64-bit sum over the others and the launch's sequence number (fp_record_check), so that what
 * is torn, or left of an earlier launch, passes once in 2^64. The launch is over when all of its records are in. */
#define FP_RECORD_WORDS 7
struct fp_record {
	uint64_t word[FP_RECORD_WORDS];
	uint64_t check;
};
/* Words of a chunk's record. That of the samples has them in the place of the first four. */
enum fp_word {
	FP_SUM,     /* bits of the fp64 sum of squares */
	FP_HASH,    /* sum, not finished */
	FP_MAX,     /* bits of the abs-max as fp64 */
	FP_SPECIAL, /* NaN count, Inf count from bit 32 on */
	FP_SLOT,    /* as this block read it */
	FP_STATUS,  /* enum fp_status; the first four words are zero unless it is FP_OK */
};

struct fp_region_values {
	int64_t value[FP_REGION_VALUES];
	uint64_t check; /* over the values that the region has */
};

struct fp_entry {
	struct fp_region_values region[FP_MAX_REGIONS]; /* written only where the first block found FP_OK */
	struct fp_record record[];                      /* for each plane its samples, then its chunks */
};

/* The kernel's argument. Every address is a device address. */
struct fp_launch {
	uint64_t chunks;   /* struct fp_chunk[n_chunks] */
	uint64_t entry;    /* struct fp_entry */
	uint64_t regions;  /* struct fp_region[n_regions] */
	uint64_t slot_ptr; /* != 0: the slot id is read there */
	int64_t slot;
	int64_t first_slot, n_slots;
	uint32_t slot_ptr_bytes; /* 4 or 8 */
	uint32_t n_chunks, n_regions;
	uint32_t sequence; /* != 0, and another than that of any launch before with this entry */
};

#ifndef __CUDACC__
/* Size of the chunks of a slot of n_planes planes, whose bytes stand `apart` bytes from each other. */
uint32_t fp_chunk_bytes(const uint64_t *bytes, size_t apart, uint32_t n_planes);

/* At least 1: a plane without bytes has one chunk without bytes. */
static inline uint64_t fp_plane_chunks(uint64_t plane_bytes, uint32_t chunk_bytes)
{
	return plane_bytes ? (plane_bytes + chunk_bytes - 1) / chunk_bytes : 1;
}

/* Chunk number `index` of a plane whose first slot is at `base`; record: that of the plane's samples. */
struct fp_chunk fp_chunk_of(uint64_t base, int64_t stride, uint64_t bytes, uint64_t elems, uint32_t dtype,
			    uint32_t chunk_bytes, uint32_t index, uint32_t record);

/* Host twin: fingerprints one plane at `data`, bit for bit as the kernel. chunk_bytes: fp_chunk_bytes of the whole slot. */
void fp_host_plane_of(const void *data, uint64_t bytes, uint64_t elems, uint32_t dtype, uint32_t chunk_bytes,
		      struct fp_print *out);
/* The same for a slot of this one plane. */
void fp_host_plane(const void *data, uint64_t bytes, uint64_t elems, uint32_t dtype, struct fp_print *out);

/* Host twin of one block: the records of the chunk whose bytes are at `data`. */
void fp_host_chunk(const struct fp_chunk *chunk, const void *data, int64_t slot, uint32_t sequence,
		   struct fp_entry *entry);

/* Host twin of the kernel's protocol, for the CPU driver: everything that one launch does. */
void fp_host_launch(const struct fp_launch *launch);

/* ---- the reader's side: fingerprint_read.c ---- */

/* Of `records` records those from `from` on that are in, up to the first that is not: the number of that one, or
 * `records`. What is in stays in. Any thread. */
uint32_t fp_records_in(const struct fp_entry *entry, uint32_t sequence, uint32_t from, uint32_t records);
/* Whether the values of `n` regions are in, or will not come. All records must be in. */
int fp_regions_in(const struct fp_entry *entry, uint32_t sequence, const struct fp_region *region, uint32_t n);
/* When all records are in: what the blocks found, and *slot. Blocks that do not agree: FP_OUT_OF_RANGE. */
uint32_t fp_read_status(const struct fp_entry *entry, uint32_t records, int64_t *slot);
/* The print of a plane of n_chunks chunks, whose samples are in record `first`. */
void fp_read_plane(const struct fp_entry *entry, uint32_t first, uint32_t n_chunks, uint64_t bytes,
		   struct fp_print *out);

/* The embedded PTX, NUL-terminated. */
extern const char fp_image[];
#endif

#endif
