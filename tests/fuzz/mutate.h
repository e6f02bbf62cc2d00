/* SPDX-License-Identifier: Apache-2.0
 *
 * mutate.h: mutators that know the formats: they take an input apart, change something inside, and put it together again
 * with checksums that are right, so that fuzzing gets past them.
 */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Each changes data in place, and returns its new size, at most `room`. */
size_t mutate_log(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t mutate_page(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t mutate_input(uint8_t *data, size_t size, size_t room, unsigned seed);

/* libFuzzer's own mutation of plain bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

/* A small generator of our own: the same seed gives the same mutation. */
struct dice {
	uint64_t state;
};
void dice_seed(struct dice *dice, unsigned seed);
uint32_t dice_below(struct dice *dice, uint32_t n); /* 0 for n 0 */

#endif
