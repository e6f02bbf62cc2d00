/* SPDX-License-Identifier: Apache-2.0
 *
 * kept.c: the hashes that came in last, for a caller that asks for one of them.
 *
 * The writer's thread alone writes. An entry's number is taken away before its hash changes and given back after: a reader
 * that finds the same number before and after it has read the hash has that number's hash.
 */
#include "core.h"

#include <errno.h>

#define KEPT 1024u /* events */

static struct {
	uint64_t event; /* 0: none */
	uint64_t hash;
	uint32_t measured;
} kept[KEPT];

void probe_keep(uint64_t event, bool measured, uint64_t hash)
{
	const uint32_t i = event % KEPT;

	__atomic_store_n(&kept[i].event, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&kept[i].hash, hash, __ATOMIC_RELAXED);
	__atomic_store_n(&kept[i].measured, measured, __ATOMIC_RELAXED);
	__atomic_store_n(&kept[i].event, event, __ATOMIC_RELEASE);
}

int probe_kept(uint64_t event, uint64_t *hash)
{
	const uint32_t i = event % KEPT;
	const uint64_t found = __atomic_load_n(&kept[i].event, __ATOMIC_ACQUIRE);
	const uint64_t said = __atomic_load_n(&kept[i].hash, __ATOMIC_RELAXED);
	const uint32_t measured = __atomic_load_n(&kept[i].measured, __ATOMIC_RELAXED);

	if (!event || !hash || event > __atomic_load_n(&probe_counts.events, __ATOMIC_RELAXED))
		return -EINVAL;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (found > event)
		return -ENOENT;
	if (found != event || __atomic_load_n(&kept[i].event, __ATOMIC_RELAXED) != event)
		return -EAGAIN;
	if (!measured)
		return -ENOENT;
	*hash = said;
	return 0;
}
