/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include "kvstore/kvstore.h"
#include "probes/core/slotprobe.h"

static void say(int restore, int session, const float *state, long n, uint64_t prefix)
{
	static const struct slotprobe_plane plane = { "state", -1, SLOTPROBE_F32, 0, 0, KV_FLOATS };
	static struct slotprobe_pool pool = { sizeof pool, "sessions", -1, 0, 64, &plane, 1, SLOTPROBE_POOL_FLOATING };
	static int id = -1;
	if (id < 0)
		id = slotprobe_pool_add(&pool);
	struct slotprobe_claim claim = { .size = sizeof claim, .pool = id, .slot = session, .claimed_len = n };
	claim.key = prefix;
	claim.key_len = n;
	claim.state = (uintptr_t)state;
	int failed = restore ? slotprobe_restore(&claim) < 0 : slotprobe_donate(&claim) < 0;
	slotprobe_hit(slotprobe_point(restore ? "kvprobe.load" : "kvprobe.save"),
		      failed ? SLOTPROBE_HIT_ERROR : SLOTPROBE_HIT_COMMITTED);
}

int kv_save(int session, const float *state, long n, uint64_t prefix)
{
	say(0, session, state, n, prefix); /* while the state is there */
	return ((int (*)(int, const float *, long, uint64_t))dlsym(RTLD_NEXT, "kv_save"))(session, state, n, prefix);
}

long kv_load(int ticket, int session, float *state)
{
	int from = 0;
	long n = 0;
	uint64_t prefix = 0;
	const float *kept = kv_peek(ticket, &from, &n, &prefix);
	say(1, from, kept, n, prefix); /* before it is copied; of the session that donated it */
	return ((long (*)(int, int, float *))dlsym(RTLD_NEXT, "kv_load"))(ticket, session, state);
}
