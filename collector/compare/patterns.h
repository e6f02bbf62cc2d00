/* SPDX-License-Identifier: Apache-2.0
 *
 * patterns.h: what all differences have in common and no equal donation shares: these planes only, lengths of this
 * remainder only, padded batches only.
 */
#ifndef COMPARE_PATTERNS_H
#define COMPARE_PATTERNS_H

#include <stdbool.h>
#include <stdint.h>

struct diff;

#define PATTERN_TENSORS 8

struct patterns {
	/* Planes: of these tensors and layers only, while the pool has others. */
	bool planes;
	const char *tensor[PATTERN_TENSORS];
	uint32_t n_tensors;
	int32_t first_layer, last_layer;
	/* Claimed lengths: remainder modulo this, and no equal donation has it. 0: none. */
	int64_t modulus, remainder;
	/* Steps: the batch was padded at every difference, and at some equal donation it was not. */
	bool padded;
};

void find_patterns(const struct diff *diff, struct patterns *patterns);

#endif
