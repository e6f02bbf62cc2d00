/* SPDX-License-Identifier: Apache-2.0
 *
 * fingerprint_chunks.c: how the slots of a pool are cut into chunks: as many as a GPU runs at once, in whole units, and in as few rounds
 * of blocks as pay. Whole units are quicker than chunks of a plane that are all alike: none but a plane's last has a round of vectors
 * that is not full.
 */
#include "probes/core/kernel/fingerprint.h"

/* What a round of blocks costs beside its bytes: its start and its end, as bytes of a chunk read meanwhile. Of an H200. */
#define ROUND_BYTES 49152u

/* With chunks of so many units. */
static uint64_t chunks_of(const uint64_t *bytes, size_t apart, uint32_t n_planes, uint32_t units)
{
	uint64_t chunks = 0;

	for (uint32_t i = 0; i < n_planes; i++) {
		const void *at = (const char *)bytes + i * apart;
		chunks += fp_plane_chunks(*(const uint64_t *)at, units * FP_CHUNK_UNIT);
	}
	return chunks;
}

/* The fewest units that make no more than so many chunks, which FP_CHUNK_MOST do. */
static uint32_t units_for(const uint64_t *bytes, size_t apart, uint32_t n_planes, uint64_t chunks)
{
	uint32_t low = 1, high = FP_CHUNK_MOST;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (chunks_of(bytes, apart, n_planes, middle) <= chunks)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

uint32_t fp_chunk_bytes(const uint64_t *bytes, size_t apart, uint32_t n_planes)
{
	const uint64_t least = chunks_of(bytes, apart, n_planes, FP_CHUNK_MOST);
	const uint64_t first = (least + FP_CHUNKS_AT_ONCE - 1) / FP_CHUNKS_AT_ONCE;
	uint64_t best = UINT64_MAX;
	uint32_t taken = 0;

	for (uint64_t rounds = first; rounds < first + 4; rounds++) {
		const uint32_t units = units_for(bytes, apart, n_planes, rounds * FP_CHUNKS_AT_ONCE);
		const uint64_t cost = rounds * ((uint64_t)units * FP_CHUNK_UNIT + ROUND_BYTES);
		if (cost < best) {
			best = cost;
			taken = units;
		}
	}
	return taken * FP_CHUNK_UNIT;
}
