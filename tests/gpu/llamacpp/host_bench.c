/* SPDX-License-Identifier: Apache-2.0
 *
 * host_bench.c: how fast host memory is fingerprinted, against memcpy of the same bytes in the same process: donations of
 * a floating pool, as an adapter makes them. Prints one JSON object. To be run under `slotprobe record`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probes/core/slotprobe.h"

#define PLANES      72
#define PLANE_BYTES (1u << 20)
#define STATE_BYTES ((size_t)PLANES * PLANE_BYTES)
#define STATES      4 /* rotated: more than the caches hold */
#define ROUNDS      9

/* Both run on this thread alone: its own time leaves out what else the machine does. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int add_pool(uint32_t dtype, uint32_t elem, const char *name)
{
	struct slotprobe_plane plane[PLANES];
	const struct slotprobe_pool pool = { .size = sizeof pool,
					     .name = name,
					     .device = -1,
					     .n_slots = STATES,
					     .planes = plane,
					     .n_planes = PLANES,
					     .flags = SLOTPROBE_POOL_FLOATING };

	for (int i = 0; i < PLANES; i++)
		plane[i] = (struct slotprobe_plane) { "s", i, dtype, (uint64_t)i * PLANE_BYTES, 0, PLANE_BYTES / elem };
	return slotprobe_pool_add(&pool);
}

static double median(double *t)
{
	for (int i = 1; i < ROUNDS; i++)
		for (int k = i; k && t[k] < t[k - 1]; k--) {
			double swap = t[k];
			t[k] = t[k - 1];
			t[k - 1] = swap;
		}
	return t[ROUNDS / 2];
}

int main(void)
{
	static const struct {
		const char *name;
		uint32_t dtype, elem;
	} types[] = { { "f32", SLOTPROBE_F32, 4 }, { "bf16", SLOTPROBE_BF16, 2 }, { "f16", SLOTPROBE_F16, 2 } };
	unsigned char *from = malloc(STATES * STATE_BYTES), *to = malloc(STATE_BYTES);
	double copied[ROUNDS], printed[ROUNDS];

	if (!from || !to)
		return 2;
	for (size_t i = 0; i < STATES * STATE_BYTES; i++) /* small finite values in every dtype */
		from[i] = (unsigned char)(i % 4 == 3 ? 0x3c : i % 2 ? 0x38 : i * 2654435761u >> 24);
	memset(to, 1, STATE_BYTES);
	printf("{\"state_bytes\": %zu", STATE_BYTES);
	for (unsigned d = 0; d < sizeof types / sizeof types[0]; d++) {
		int pool = add_pool(types[d].dtype, types[d].elem, types[d].name);
		for (int r = 0; r < ROUNDS; r++) {
			const unsigned char *state = from + (size_t)(r % STATES) * STATE_BYTES;
			const struct slotprobe_claim claim = { .size = sizeof claim,
							       .pool = pool,
							       .slot = r % STATES,
							       .claimed_len = r + 1,
							       .key_len = -1,
							       .state = (uintptr_t)state };
			double t = now();
			memcpy(to, state, STATE_BYTES);
			copied[r] = now() - t;
			t = now();
			if (slotprobe_donate(&claim) <= 0)
				return 3;
			printed[r] = now() - t;
		}
		printf(", \"%s\": {\"copy_gb_s\": %.2f, \"fingerprint_gb_s\": %.2f}", types[d].name,
		       (double)STATE_BYTES / median(copied) / 1e9, (double)STATE_BYTES / median(printed) / 1e9);
	}
	puts("}");
	free(from);
	free(to);
	return 0;
}
