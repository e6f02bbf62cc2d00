/* SPDX-License-Identifier: Apache-2.0
 *
 * donate_loop.c: a donation as a server in C makes it, timed where it is made: for programs in Python that compare it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <time.h>

#include "probes/core/slotprobe.h"

int64_t donate_timed(int32_t pool, int64_t slot, uint64_t stream, uint64_t *ns);

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The donation's id or a negative errno; *ns: what the call took. */
int64_t donate_timed(int32_t pool, int64_t slot, uint64_t stream, uint64_t *ns)
{
	static int64_t (*donate)(const struct slotprobe_claim *);
	struct slotprobe_claim claim = { .size = sizeof claim,
					 .pool = pool,
					 .slot = slot,
					 .claimed_len = 1,
					 .key = 1,
					 .stream = stream,
					 .key_len = 1 };
	uint64_t begin;
	int64_t said;

	if (!donate)
		donate = (int64_t(*)(const struct slotprobe_claim *))(uintptr_t)dlsym(RTLD_DEFAULT, "slotprobe_donate");
	if (!donate)
		return -ENOSYS;
	begin = now_ns();
	said = donate(&claim);
	*ns = now_ns() - begin;
	return said;
}
