/* SPDX-License-Identifier: Apache-2.0
 *
 * reference.h: the fingerprint written a second time, plainly and slowly, from the words of fingerprint_ops.h and not
 * from its code, for the tests to hold the fast ones against.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "probes/core/kernel/fingerprint.h"

#include <stddef.h>

void reference_plane(const void *data, uint64_t bytes, uint64_t elems, uint32_t dtype, uint32_t chunk_bytes,
		     struct fp_print *out);

/* Value of the element with these bits; exact. */
double reference_value(uint32_t dtype, uint64_t bits);

/* sqrt of the sum of squares of the finite elements, in long double: how far off is l2? */
long double reference_l2(const void *data, uint64_t bytes, uint32_t dtype);

uint32_t reference_elem_bytes(uint32_t dtype);

/* ---- data ---- */

uint64_t random_u64(uint64_t *state);

/* What a plane is filled with. Sparse: one lane has all that is not zero, so that no rounding of its sum is lost in those
 * of others. */
enum fill { FILL_ORDINARY, FILL_SPECIAL, FILL_BITS, FILL_ZERO, FILL_TINY, FILL_HUGE, FILL_SPARSE, FILL_COUNT };

void fill_plane(void *data, uint64_t bytes, uint32_t dtype, enum fill fill, uint64_t seed);

/* `bytes` of memory that ends (tail != 0) or begins at an unmapped page, `shift` bytes from it; NULL on failure. Never
 * freed: tests are short. */
void *guarded(size_t bytes, size_t shift, int tail);

#endif
