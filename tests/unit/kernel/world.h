/* SPDX-License-Identifier: Apache-2.0
 *
 * world.h: a pool in host memory with everything that one launch needs, for the tests of the protocol.
 */
#ifndef WORLD_H
#define WORLD_H

#include "tests/unit/kernel/reference.h"

#define WORLD_PLANES  12
#define WORLD_CHUNKS  64
#define WORLD_REGIONS FP_MAX_REGIONS
#define WORLD_SLOTS   4

struct world_plane {
	uint64_t base, bytes, elems;
	int64_t stride;
	uint32_t dtype, n_chunks, record;
};

struct world {
	struct world_plane plane[WORLD_PLANES];
	struct fp_chunk chunk[WORLD_CHUNKS];
	struct fp_region region[WORLD_REGIONS];
	int64_t region_data[WORLD_REGIONS][FP_REGION_VALUES];
	int64_t slot64;
	int32_t slot32;
	uint32_t n_planes, n_records, chunk_bytes;
	struct fp_launch launch;
	struct fp_entry *entry;
};

/* An empty pool of WORLD_SLOTS slots from first_slot on, in a world that is zero or was started before. Its chunks are the
 * smallest. */
void world_start(struct world *w, int64_t first_slot);

/* A plane of random data whose slots lie at `shift` from a vector's boundary; gap: bytes between slots. */
void world_plane(struct world *w, uint32_t dtype, uint64_t bytes, uint32_t shift, uint32_t gap, enum fill fill);

/* Region of n values of `value_bytes`, -1, -2, ... */
void world_region(struct world *w, uint32_t n, uint32_t value_bytes);

/* Describes the chunks, fills the entry with garbage and sets the next sequence number. */
void world_arm(struct world *w);

/* Where a slot of a plane is. */
const void *world_address(const struct world *w, uint32_t plane, int64_t slot);

/* How many of the records are in, from the first on. */
uint32_t world_records_in(const struct world *w);

/* What the entry must hold now for a slot in range; fails the test if it does not. */
void world_expect(const struct world *w, int64_t slot);
void world_expect_nothing(const struct world *w, int64_t slot, uint32_t status);

#endif
