/* SPDX-License-Identifier: Apache-2.0
 *
 * kvstore.c: keeps states in memory.
 */
#include <stddef.h>
#include <string.h>

#include "kvstore.h"

#define KEPT 256

static struct {
	int session;
	long n_tokens;
	uint64_t prefix;
	float state[KV_FLOATS];
} kept[KEPT];
static int n_kept;

int kv_save(int session, const float *state, long n_tokens, uint64_t prefix)
{
	if (n_kept == KEPT)
		return -1;
	kept[n_kept].session = session;
	kept[n_kept].n_tokens = n_tokens;
	kept[n_kept].prefix = prefix;
	memcpy(kept[n_kept].state, state, sizeof kept[0].state);
	return n_kept++;
}

const float *kv_peek(int ticket, int *session, long *n_tokens, uint64_t *prefix)
{
	if (ticket < 0 || ticket >= n_kept)
		return NULL;
	*session = kept[ticket].session;
	*n_tokens = kept[ticket].n_tokens;
	*prefix = kept[ticket].prefix;
	return kept[ticket].state;
}

long kv_load(int ticket, int session, float *state)
{
	(void)session;
	if (ticket < 0 || ticket >= n_kept)
		return -1;
	memcpy(state, kept[ticket].state, sizeof kept[0].state);
	return kept[ticket].n_tokens;
}
