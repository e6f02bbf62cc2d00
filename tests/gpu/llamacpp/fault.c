/* SPDX-License-Identifier: Apache-2.0
 *
 * fault.c: spoils states on their way, for the tests. Loaded with `--probe`: after the adapter it spoils what the adapter
 * sees at a donation, before the adapter it spoils what both the adapter and the server see at a restore.
 *
 *   FAULT_ALTER=SEQ,N  the N-th checkpoint taken of sequence SEQ has one bit of its last element flipped
 *   FAULT_NAN=SEQ,N    the N-th checkpoint restored to sequence SEQ has a NaN for its last element (fp32)
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/slotprobe.h"

#define PARTIAL 1u

size_t llama_state_seq_get_data_ext(void *ctx, uint8_t *dst, size_t size, int32_t seq, uint32_t flags);
size_t llama_state_seq_set_data_ext(void *ctx, const uint8_t *src, size_t size, int32_t seq, uint32_t flags);

/* True once: this is the call that the environment names. */
static bool is_due(const char *name, int32_t seq, uint32_t flags, long *seen)
{
	const char *text = getenv(name);
	char *end;
	long wanted;

	if (!text || flags != PARTIAL)
		return false;
	wanted = strtol(text, &end, 10);
	if (wanted != seq || *end != ',')
		return false;
	return ++*seen == strtol(end + 1, NULL, 10);
}

static void say_done(void)
{
	slotprobe_hit(slotprobe_point("fault.done"), SLOTPROBE_HIT_COMMITTED);
}

size_t llama_state_seq_get_data_ext(void *ctx, uint8_t *dst, size_t size, int32_t seq, uint32_t flags)
{
	size_t (*next)(void *, uint8_t *, size_t, int32_t, uint32_t) =
		(size_t(*)(void *, uint8_t *, size_t, int32_t, uint32_t))dlsym(RTLD_NEXT, __func__);
	size_t n = next(ctx, dst, size, seq, flags);
	static long seen;

	if (n && is_due("FAULT_ALTER", seq, flags, &seen)) {
		dst[n - 4] ^= 1;
		say_done();
	}
	return n;
}

size_t llama_state_seq_set_data_ext(void *ctx, const uint8_t *src, size_t size, int32_t seq, uint32_t flags)
{
	size_t (*next)(void *, const uint8_t *, size_t, int32_t, uint32_t) =
		(size_t(*)(void *, const uint8_t *, size_t, int32_t, uint32_t))dlsym(RTLD_NEXT, __func__);
	const uint32_t nan = 0x7fc00000;
	static long seen;
	uint8_t *spoilt;
	size_t n;

	if (size < 4 || !is_due("FAULT_NAN", seq, flags, &seen))
		return next(ctx, src, size, seq, flags);
	spoilt = malloc(size);
	if (!spoilt)
		return next(ctx, src, size, seq, flags);
	memcpy(spoilt, src, size);
	memcpy(spoilt + size - 4, &nan, 4);
	n = next(ctx, spoilt, size, seq, flags);
	free(spoilt);
	say_done();
	return n;
}
