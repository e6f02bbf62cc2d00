/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.h: the prefix cache: donated slots, found by the hash of the exact tokens that they stand for.
 */
#ifndef TOY_CACHE_H
#define TOY_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct toy_cached {
	uint64_t key;
	int64_t len;
	int slot;
	uint64_t used; /* when: the smallest goes first */
	bool pinned;
};

struct toy_cache {
	struct toy_cached *entries;
	int n, room;
	uint64_t clock;
};

void toy_cache_open(struct toy_cache *cache, int room);
void toy_cache_close(struct toy_cache *cache);

/* Identity of a prefix; never 0. */
uint64_t toy_cache_key(const int32_t *tokens, int64_t n);

/* false when that prefix is there already: the slot is not taken. */
bool toy_cache_insert(struct toy_cache *cache, uint64_t key, int64_t len, int slot);

/* Finds the longest cached prefix of tokens[0 .. n) that is shorter than n (the last token has to be computed for its
 * output) and pins it: it stays until it is unpinned. */
bool toy_cache_match(struct toy_cache *cache, const int32_t *tokens, int64_t n, struct toy_cached *found);
void toy_cache_unpin(struct toy_cache *cache, const struct toy_cached *found);

/* Slot of the entry that was used least recently, which is gone then; -1 when nothing may go. */
int toy_cache_evict(struct toy_cache *cache);

#endif
