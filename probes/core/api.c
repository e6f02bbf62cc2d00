/* SPDX-License-Identifier: Apache-2.0
 *
 * api.c: the public calls. Each keeps errno, and says -ENOSYS in a process that is not recorded.
 */
#include "core.h"

#include <errno.h>

/* `expression` with errno kept. */
#define KEEPING_ERRNO(type, expression)                                                                                \
	do {                                                                                                           \
		int *errno_is = &errno, saved_errno = *errno_is;                                                       \
		type result = (expression);                                                                            \
		*errno_is = saved_errno;                                                                               \
		return result;                                                                                         \
	} while (0)

int slotprobe_pool_add(const struct slotprobe_pool *pool)
{
	KEEPING_ERRNO(int, probe_pool_add(pool));
}

int slotprobe_pool_remove(int pool)
{
	KEEPING_ERRNO(int, probe_pool_remove(pool));
}

/* Those that measure one slot. */
static inline int64_t measured(enum log_event_kind kind, enum ctr_core_row row, const struct slotprobe_claim *claim)
{
	int64_t id = probe_claim_usual(kind, ctr_core(row), claim);

	return __builtin_expect(id != 0, 1) ? id : probe_claim(kind, claim, -1);
}

int64_t slotprobe_donate(const struct slotprobe_claim *claim)
{
	KEEPING_ERRNO(int64_t, measured(LOG_EV_DONATE, CTR_ROW_DONATE, claim));
}

/* Calls other than donate say 0, not the event's number. */
static int done(int64_t result)
{
	return result < 0 ? (int)result : 0;
}

int slotprobe_restore(const struct slotprobe_claim *claim)
{
	KEEPING_ERRNO(int, done(measured(LOG_EV_RESTORE, CTR_ROW_RESTORE, claim)));
}

static int slot_event(uint32_t event, const struct slotprobe_claim *claim, int64_t src)
{
	static const struct {
		enum log_event_kind kind;
		bool has_src;
	} of[] = {
		[SLOTPROBE_ALLOC] = { LOG_EV_ALLOC, false }, [SLOTPROBE_CLEAR] = { LOG_EV_CLEAR, false },
		[SLOTPROBE_COPY] = { LOG_EV_COPY, true },    [SLOTPROBE_DISCARD] = { LOG_EV_DISCARD, true },
		[SLOTPROBE_FREE] = { LOG_EV_FREE, false },
	};

	if (!probe_on_or_inherits())
		return -ENOSYS;
	if (event < SLOTPROBE_ALLOC || event > SLOTPROBE_FREE)
		return -EINVAL; /* of no known point: there is no row to count it in */
	if (event == SLOTPROBE_ALLOC)
		return done(measured(LOG_EV_ALLOC, CTR_ROW_ALLOC, claim));
	if (event == SLOTPROBE_CLEAR)
		return done(measured(LOG_EV_CLEAR, CTR_ROW_CLEAR, claim));
	return done(probe_claim(of[event].kind, claim, of[event].has_src ? src : -1));
}

int slotprobe_slot(uint32_t event, const struct slotprobe_claim *claim, int64_t src_slot_or_donation)
{
	KEEPING_ERRNO(int, slot_event(event, claim, src_slot_or_donation));
}

int slotprobe_step(const struct slotprobe_step *step)
{
	KEEPING_ERRNO(int, probe_step(step));
}

int slotprobe_rank(const char *axis, int32_t index, int32_t count)
{
	KEEPING_ERRNO(int, probe_rank(axis, index, count));
}

int slotprobe_region(const char *name, uint64_t base, uint64_t bytes, uint32_t dtype)
{
	KEEPING_ERRNO(int, probe_region_add(name, base, bytes, dtype));
}

int slotprobe_tap(const char *name, uint64_t ptr, uint64_t elems, uint32_t dtype, uint64_t stream)
{
	(void)name, (void)ptr, (void)elems, (void)dtype, (void)stream;
	return -ENOSYS;
}

int slotprobe_hash(int64_t donation, uint64_t *hash)
{
	KEEPING_ERRNO(int, !record_active() ? -ENOSYS : donation <= 0 ? -EINVAL : probe_kept((uint64_t)donation, hash));
}

int slotprobe_point(const char *name)
{
	KEEPING_ERRNO(int, probe_point(name));
}

int slotprobe_hit(int point, uint32_t outcome)
{
	KEEPING_ERRNO(int, probe_hit(point, outcome));
}
