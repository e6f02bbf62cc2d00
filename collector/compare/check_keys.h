/* SPDX-License-Identifier: Apache-2.0
 *
 * check_keys.h: what the invariants look things up by, whether the run's events are kept or not.
 */
#ifndef COMPARE_CHECK_KEYS_H
#define COMPARE_CHECK_KEYS_H

#include "read/model.h"

static inline uint64_t check_fold(uint64_t a, uint64_t b)
{
	return log_mix64(a * 0x9e3779b97f4a7c15ull + b + 1);
}

static inline uint64_t check_key_of_slot(uint32_t pool, int64_t slot)
{
	return check_fold(check_fold(1, pool), (uint64_t)slot);
}

static inline uint64_t check_slot_key(const struct model_event *e)
{
	return check_key_of_slot(e->pool, e->slot);
}

static inline uint64_t check_claim_key(const struct model_event *e)
{
	return check_fold(check_fold(check_fold(2, e->pool), e->key), (uint64_t)e->claimed_len);
}

#endif
