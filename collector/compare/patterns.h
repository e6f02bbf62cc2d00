/* SPDX-License-Identifier: Apache-2.0
 *
 * patterns.h: what the differences of a finding, or all of them, have in common and no equal donation shares: these
 * planes only, lengths of this remainder only, padded batches only, reused slots only, after a restore only, one rank only.
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
	/* The batch was padded at every difference, and at some equal donation it was not. The same of slots that had an
	 * owner before, and of slots that were restored or copied into since they were set up. */
	bool padded, reused, restored;
	const char *rank; /* every difference is of this rank, and another has equal donations; NULL */
};

/* Of the rows of one finding, or with ALIGN_NONE of all that differ. */
void find_patterns(const struct diff *diff, uint32_t finding, struct patterns *patterns);

#endif
