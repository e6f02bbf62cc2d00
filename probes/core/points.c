/* SPDX-License-Identifier: Apache-2.0
 *
 * points.c: an adapter's own counted points. Registered at 0, so that one that was never reached reads as never fired.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

static bool sound(const char *name)
{
	const size_t room = sizeof record_page()->row[0].name;
	size_t n = name ? strnlen(name, room) : 0, dots = 0;

	if (!n || n == room || name[0] == '.' || name[n - 1] == '.')
		return false;
	for (size_t i = 0; i < n; i++) {
		bool letter = (unsigned)(name[i] | 32) - 'a' <= 25u;
		bool digit = (unsigned)name[i] - '0' <= 9u;
		dots += name[i] == '.';
		if (!letter && !digit && name[i] != '.' && name[i] != '_' && name[i] != '-')
			return false;
	}
	return dots && strncmp(name, "core.", 5); /* ours are ours */
}

/* An id is the number of the row, which is the same before and after the recording starts. */
int probe_point(const char *name)
{
	struct ctr_row *row;

	if (!record_options()->dir)
		return -ENOSYS;
	if (!sound(name))
		return -EINVAL;
	row = ctr_named(name, CTR_PROBE);
	return row ? (int)(row - record_page()->row) : -ENOSPC;
}

int probe_hit(int point, uint32_t outcome)
{
	static const enum ctr_outcome of[] = { [SLOTPROBE_HIT_COMMITTED] = CTR_COMMITTED,
					       [SLOTPROBE_HIT_FILTERED] = CTR_FILTERED_ADAPTER,
					       [SLOTPROBE_HIT_ERROR] = CTR_ERROR_ADAPTER };
	struct ctr_page *page = record_page();
	bool known = outcome < sizeof of / sizeof of[0];

	/* Counted before the recording starts, too: a process may reach its points before it has anything to record. */
	if (!record_options()->dir)
		return -ENOSYS;
	(void)probe_on_or_inherits();
	if (point < (int)CTR_CORE_ROW_COUNT || point >= (int)CTR_MAX_ROWS ||
	    (uint32_t)point >= __atomic_load_n(&page->n_rows, __ATOMIC_ACQUIRE) || page->row[point].kind != CTR_PROBE)
		return -EINVAL;
	ctr_begin(&page->row[point]);
	ctr_finish(&page->row[point], known ? of[outcome] : CTR_ERROR_ARGUMENT);
	return known ? 0 : -EINVAL;
}
