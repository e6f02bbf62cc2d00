/* SPDX-License-Identifier: Apache-2.0
 *
 * caller.c: a library that calls, so that there are frames with names which are not the recorder's.
 */
#include <stdint.h>

uint32_t caller_inner(uint32_t (*take)(void));
uint32_t caller_first(uint32_t (*take)(void));
uint32_t caller_second(uint32_t (*take)(void));
uint32_t caller_even(uint32_t (*take)(void), unsigned bits, unsigned n);
uint32_t caller_odd(uint32_t (*take)(void), unsigned bits, unsigned n);

__attribute__((noinline)) uint32_t caller_inner(uint32_t (*take)(void))
{
	uint32_t id = take();

	__asm__ volatile("" ::: "memory");
	return id;
}

__attribute__((noinline)) uint32_t caller_first(uint32_t (*take)(void))
{
	uint32_t id = caller_inner(take);

	__asm__ volatile("" ::: "memory");
	return id;
}

__attribute__((noinline)) uint32_t caller_second(uint32_t (*take)(void))
{
	uint32_t id = caller_inner(take);

	__asm__ volatile("" ::: "memory");
	return id;
}

/* n frames, by the bits: 2^n stacks that all differ */
static uint32_t next(uint32_t (*take)(void), unsigned bits, unsigned n)
{
	if (!n)
		return take();
	return bits & 1 ? caller_odd(take, bits >> 1, n - 1) : caller_even(take, bits >> 1, n - 1);
}

__attribute__((noinline)) uint32_t caller_even(uint32_t (*take)(void), unsigned bits, unsigned n)
{
	uint32_t id = next(take, bits, n);

	__asm__ volatile("" ::: "memory");
	return id;
}

__attribute__((noinline)) uint32_t caller_odd(uint32_t (*take)(void), unsigned bits, unsigned n)
{
	uint32_t id = next(take, bits, n);

	__asm__ volatile("" ::: "memory");
	return id;
}
