/* SPDX-License-Identifier: Apache-2.0
 *
 * floating.c: uses and misuses of pools of host memory without fixed places, and of structures from before they grew.
 * Prints what each call answered. To be run under `slotprobe record`.
 */
#include <stddef.h>
#include <stdio.h>

#include "probes/core/slotprobe.h"

#define FLOATS 32

static float one[FLOATS], two[FLOATS], fixed[4][FLOATS];
static const struct slotprobe_plane plane = { "s", 0, SLOTPROBE_F32, 16, 0, FLOATS - 4 };
static const struct slotprobe_plane fixed_plane = { "s", 0, SLOTPROBE_F32, 0, 0, FLOATS };

static int add(const char *name, int device, uint64_t flags, uint32_t size)
{
	struct slotprobe_plane p = flags ? plane : fixed_plane;
	const struct slotprobe_pool pool = { size, name, device, 0, 4, &p, 1, flags };

	if (!flags) {
		p.base = (uintptr_t)fixed;
		p.slot_stride = sizeof fixed[0];
	}
	return slotprobe_pool_add(&pool);
}

static struct slotprobe_claim claim(int pool, int64_t slot, const void *state)
{
	return (struct slotprobe_claim) { .size = sizeof(struct slotprobe_claim),
					  .pool = pool,
					  .slot = slot,
					  .claimed_len = 5,
					  .key_len = -1,
					  .state = (uintptr_t)state };
}

static void say(const char *what, int64_t answer)
{
	printf("%s %lld\n", what, (long long)answer);
}

int main(void)
{
	const uint32_t old_pool = offsetof(struct slotprobe_pool, flags),
		       old_claim = offsetof(struct slotprobe_claim, state);
	struct slotprobe_claim c;
	int floating, placed;

	for (int i = 0; i < FLOATS; i++) {
		one[i] = two[i] = (float)(i + 1);
		fixed[2][i] = 3;
	}
	two[0] = 99; /* before the plane's offset: not part of the state */
	say("unknown_flag", add("x", -1, 6, sizeof(struct slotprobe_pool)));
	say("floating_on_a_device", add("x", 0, SLOTPROBE_POOL_FLOATING, sizeof(struct slotprobe_pool)));
	floating = add("floating", -1, SLOTPROBE_POOL_FLOATING, sizeof(struct slotprobe_pool));
	placed = add("placed", -1, 0, old_pool);
	say("floating", floating);
	say("placed", placed);
	c = claim(floating, 1, one);
	say("donate", slotprobe_donate(&c) > 0);
	c = claim(floating, 1, two);
	say("restore", slotprobe_restore(&c));
	c = claim(floating, 2, NULL);
	say("without_state", slotprobe_donate(&c));
	c = claim(floating, 4, one);
	say("slot_out_of_range", slotprobe_donate(&c));
	c = claim(floating, 1, one);
	say("copy", slotprobe_slot(SLOTPROBE_COPY, &c, 0));
	say("alloc", slotprobe_slot(SLOTPROBE_ALLOC, &c, -1));
	c = claim(floating, 1, NULL);
	say("free_without_state", slotprobe_slot(SLOTPROBE_FREE, &c, -1));
	c.size = old_claim;
	say("old_claim_of_floating", slotprobe_donate(&c));
	c = claim(placed, 2, one);
	say("state_of_placed", slotprobe_donate(&c));
	c = claim(placed, 2, NULL);
	c.size = old_claim;
	say("old_claim_of_placed", slotprobe_donate(&c) > 0);
	c.size = old_claim - 1;
	say("short_claim", slotprobe_donate(&c));
	return 0;
}
