/* SPDX-License-Identifier: Apache-2.0
 *
 * kvserver.c: the server that the examples are tried on: sessions whose state is updated token by token and kept now and
 * then. `kvserver [SESSION,SAVE]` spoils the state of that session before its SAVE-th save. Prints how often it saved and
 * loaded.
 */
#include <stdio.h>
#include <string.h>

#include "kvstore.h"

#define SESSIONS 3
#define ROUNDS   4

static float state[SESSIONS][KV_FLOATS];

static uint64_t advance(int session, uint64_t prefix, int token)
{
	for (int i = 0; i < KV_FLOATS; i++)
		state[session][i] = 0.75f * state[session][i] + (float)((token * 31 + i * 7) % 17 - 8);
	return prefix * 1000003u + (uint64_t)token + 1;
}

int main(int argc, char **argv)
{
	int bad_session = -1, bad_save = -1, saves = 0, loads = 0, ticket[SESSIONS];

	if (argc > 1 && sscanf(argv[1], "%d,%d", &bad_session, &bad_save) != 2)
		return 2;
	for (int round = 0; round < ROUNDS; round++) {
		for (int s = 0; s < SESSIONS; s++) {
			uint64_t prefix = 0;
			long n = 0;
			memset(state[s], 0, sizeof state[s]);
			if (round) {
				int from;
				kv_peek(ticket[s], &from, &n, &prefix);
				n = kv_load(ticket[s], s, state[s]);
				loads++;
			}
			for (int t = 0; t < 5; t++, n++)
				prefix = advance(s, prefix, 10 * s + t + round);
			if (s == bad_session && round == bad_save)
				state[s][7] += 0.5f;
			ticket[s] = kv_save(s, state[s], n, prefix);
			saves++;
		}
	}
	printf("{\"saves\": %d, \"loads\": %d}\n", saves, loads);
	return 0;
}
