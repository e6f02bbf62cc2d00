/* SPDX-License-Identifier: Apache-2.0
 *
 * own.h: counting in a word in which one thread alone counts. Others may read it at any time.
 */
#ifndef RECORD_OWN_H
#define RECORD_OWN_H

#include <stdbool.h>
#include <stdint.h>

/* One instruction: what a signal handler on this thread adds is not lost. Without the lock prefix, which waits for all stores before
 * it: 8 ns each on an H200's host, beside a graph launch of 2 us. n: less than 2^31. */
static inline __attribute__((always_inline)) void own_add(uint64_t *word, uint64_t n)
{
#if defined(__x86_64__)
	__asm__ volatile("addq %1, %0" : "+m"(*word) : "er"(n) : "cc");
#else
	__atomic_fetch_add(word, n, __ATOMIC_RELAXED);
#endif
}

/* The same, or, on any other thread, to the word beside it that those share. */
static inline __attribute__((always_inline)) void own_or_shared_add(bool own, uint64_t *own_word, uint64_t *shared,
								    uint64_t n)
{
	if (own)
		own_add(own_word, n);
	else
		__atomic_fetch_add(shared, n, __ATOMIC_RELAXED);
}

/* Stores of x86 are seen in the order in which they were made. */
static inline __attribute__((always_inline)) void own_subtract(uint64_t *word, uint64_t n)
{
#if defined(__x86_64__)
	__asm__ volatile("subq %1, %0" : "+m"(*word) : "er"(n) : "cc", "memory");
#else
	__atomic_fetch_sub(word, n, __ATOMIC_RELEASE);
#endif
}

#endif
