/* SPDX-License-Identifier: Apache-2.0
 *
 * digest.h: one number for all that a fingerprint says of one plane, and for which plane it is.
 */
#ifndef READ_DIGEST_H
#define READ_DIGEST_H

#include <stdint.h>
#include <string.h>

#include "shim/record/log_format.h"

#define DIGEST_WORDS (sizeof(struct log_plane_print) / 8)

/* What a word says and where. The places' numbers are digits of pi: were they multiples of one another, what a word is more and the next
 * is less would cancel in their product, and counts are small numbers. */
static inline uint64_t digest_placed(const uint64_t *word, unsigned i)
{
	static const uint64_t place[] = {
		0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89, 0x452821e638d01377,
		0xbe5466cf34e90c6c, 0xc0ac29b7c97c50dd, 0x3f84d5b5b5470917, 0x9216d5d98979fb1b,
	};

	_Static_assert(sizeof place / sizeof place[0] == DIGEST_WORDS, "a number for each word");
	return word[i] ^ place[i];
}

/* The halves of a product, of which every bit of both factors turns about half; each with its factor, for zero hides the other. */
static inline uint64_t digest_mix_two(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return ((uint64_t)product + a) ^ ((uint64_t)(product >> 64) + b);
}

/* A mix of a sum over the plane's words, mixed two by two: every bit of every fact counts; the mixes depend on nothing but their words,
 * so that they overlap. */
static inline uint64_t digest_plane(uint64_t identity, const struct log_plane_print *plane)
{
	uint64_t word[DIGEST_WORDS], sum = identity;
	unsigned i = 0;

	memcpy(word, plane, sizeof word);
	for (; i + 1 < DIGEST_WORDS; i += 2)
		sum += digest_mix_two(digest_placed(word, i), digest_placed(word, i + 1));
	for (; i < DIGEST_WORDS; i++)
		sum += log_mix64(digest_placed(word, i));
	return log_mix64(sum);
}

#endif
