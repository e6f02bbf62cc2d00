/* SPDX-License-Identifier: Apache-2.0
 *
 * fingerprint_chunks.c: how the slots of a pool are cut into chunks: as many as a GPU runs at once, all of a plane alike, and as few
 * rounds of blocks as pay.
 */
#include "probes/core/kernel/fingerprint.h"

/* What a round of blocks costs beside its bytes: its start and its end, as bytes of a chunk read meanwhile. Of an H200. */
#define ROUND_BYTES 49152u

static uint64_t bytes_of(const uint64_t *bytes, size_t apart, uint32_t i)
{
	return *(const uint64_t *)(const void *)((const char *)bytes + i * apart);
}

static uint64_t count(const uint64_t *bytes, size_t apart, uint32_t n_planes, uint32_t most)
{
	uint64_t chunks = 0;

	for (uint32_t i = 0; i < n_planes; i++)
		chunks += fp_plane_chunks(bytes_of(bytes, apart, i), most);
	return chunks;
}

/* The smallest chunk, in rows, that makes no more than so many; more than FP_CHUNK_MOST has: none does. */
static uint32_t rows_for(const uint64_t *bytes, size_t apart, uint32_t n_planes, uint64_t chunks)
{
	uint32_t low = FP_CHUNK_LEAST / FP_CHUNK_ROW, high = FP_CHUNK_MOST / FP_CHUNK_ROW + 1;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (count(bytes, apart, n_planes, middle * FP_CHUNK_ROW) <= chunks)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

uint32_t fp_chunk_most(const uint64_t *bytes, size_t apart, uint32_t n_planes)
{
	const uint64_t least = count(bytes, apart, n_planes, FP_CHUNK_MOST);
	const uint64_t first = (least + FP_CHUNKS_AT_ONCE - 1) / FP_CHUNKS_AT_ONCE;
	uint64_t best = UINT64_MAX;
	uint32_t most = FP_CHUNK_MOST;

	for (uint64_t rounds = first; rounds < first + 4; rounds++) {
		uint32_t rows = rows_for(bytes, apart, n_planes, rounds * FP_CHUNKS_AT_ONCE);
		uint64_t cost = rounds * ((uint64_t)rows * FP_CHUNK_ROW + ROUND_BYTES);
		if (rows <= FP_CHUNK_MOST / FP_CHUNK_ROW && cost < best) {
			best = cost;
			most = rows * FP_CHUNK_ROW;
		}
	}
	return most;
}
