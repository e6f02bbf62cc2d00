/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.c: a flat prefix cache with LRU eviction. Small, so every look-up is a scan.
 */
#include "cache.h"

#include <stdlib.h>

#include "toy_cuda.h"

void toy_cache_open(struct toy_cache *cache, int room)
{
	*cache = (struct toy_cache) { .room = room, .entries = calloc((size_t)room, sizeof(*cache->entries)) };
	if (!cache->entries)
		toy_die("out of memory");
}

void toy_cache_close(struct toy_cache *cache)
{
	free(cache->entries);
}

uint64_t toy_cache_key(const int32_t *tokens, int64_t n)
{
	uint64_t h = (uint64_t)n * 0x9e3779b97f4a7c15ull;

	for (int64_t i = 0; i < n; i++) {
		h = (h ^ (uint64_t)(uint32_t)tokens[i]) * 0xbf58476d1ce4e5b9ull;
		h ^= h >> 29;
	}
	return h ? h : 1;
}

static struct toy_cached *find(struct toy_cache *cache, uint64_t key, int64_t len)
{
	for (int i = 0; i < cache->n; i++)
		if (cache->entries[i].key == key && cache->entries[i].len == len)
			return &cache->entries[i];
	return NULL;
}

bool toy_cache_insert(struct toy_cache *cache, uint64_t key, int64_t len, int slot)
{
	struct toy_cached *there = find(cache, key, len);

	if (there) {
		there->used = ++cache->clock;
		return false;
	}
	cache->entries[cache->n++] =
		(struct toy_cached) { .key = key, .len = len, .slot = slot, .used = ++cache->clock };
	return true;
}

bool toy_cache_match(struct toy_cache *cache, const int32_t *tokens, int64_t n, struct toy_cached *found)
{
	struct toy_cached *best = NULL;

	for (int i = 0; i < cache->n; i++) {
		struct toy_cached *entry = &cache->entries[i];

		if (entry->len < n && (!best || entry->len > best->len) &&
		    entry->key == toy_cache_key(tokens, entry->len))
			best = entry;
	}
	if (!best)
		return false;
	best->used = ++cache->clock;
	best->pinned = true;
	*found = *best;
	return true;
}

void toy_cache_unpin(struct toy_cache *cache, const struct toy_cached *found)
{
	find(cache, found->key, found->len)->pinned = false;
}

int toy_cache_evict(struct toy_cache *cache)
{
	struct toy_cached *oldest = NULL;
	int slot;

	for (int i = 0; i < cache->n; i++)
		if (!cache->entries[i].pinned && (!oldest || cache->entries[i].used < oldest->used))
			oldest = &cache->entries[i];
	if (!oldest)
		return -1;
	slot = oldest->slot;
	*oldest = cache->entries[--cache->n]; /* order means nothing here: `used` decides */
	return slot;
}
