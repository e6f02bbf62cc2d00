/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.c: the real driver for our own calls, and the guard around them.
 */
#include "driver.h"
#include "hook.h"

const struct shim_driver *shim_driver_found;

static void fill(struct shim_driver *driver, void *libcuda)
{
	bool complete = true;

#define FILL(member, symbol, needed, params)                                                                           \
	driver->member = (cu_result(*) params)shim_lookup(libcuda, #symbol);                                           \
	complete = complete && (driver->member || !(needed));
	SHIM_DRIVER_CALLS(FILL)
#undef FILL
	driver->complete = complete;
}

/* Who comes first publishes. Each thread fills a table of its own, because a lock, or a table that is half filled by a
 * thread that a fork left behind, would stop the others. More threads at once than tables: the last ones get none yet. */
const struct shim_driver *shim_driver_find(void)
{
	static struct shim_driver tables[4];
	static unsigned taken;
	const struct shim_driver *none = NULL;
	int saved = errno;
	void *libcuda;
	unsigned mine;

	libcuda = shim_libcuda();
	if (!libcuda)
		return NULL;
	mine = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
	if (mine < sizeof(tables) / sizeof(tables[0])) {
		fill(&tables[mine], libcuda);
		__atomic_compare_exchange_n(&shim_driver_found, &none, &tables[mine], false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE);
	}
	errno = saved;
	return __atomic_load_n(&shim_driver_found, __ATOMIC_ACQUIRE);
}

void shim_guard_enter(struct shim_guard *guard)
{
	const struct shim_driver *driver;

	guard->saved_errno = errno;
	guard->mode = CU_MODE_RELAXED;
	driver = shim_driver();
	guard->exchanged =
		driver && driver->exchange_capture_mode && driver->exchange_capture_mode(&guard->mode) == CU_SUCCESS;
}

void shim_mode_retry(const struct shim_driver *driver, int mode)
{
	for (unsigned i = 1; i < SHIM_UNDO_TRIES && driver->exchange_capture_mode(&mode) != CU_SUCCESS; i++)
		;
}

/* The mode that enter took out goes back in, so that guards nest. A failure that passes must not leave the server's thread in
 * another mode than its own. */
void shim_guard_leave(struct shim_guard *guard)
{
	if (guard->exchanged)
		shim_mode_restore(shim_driver_found, &guard->mode);
	errno = guard->saved_errno;
}
