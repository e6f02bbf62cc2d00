/* SPDX-License-Identifier: Apache-2.0
 *
 * points.c: registers the adapter's points when it is loaded, and tells which of the functions that it needs are there: a
 * static or stripped build then shows errors at `symbols` instead of only silence.
 */
#include <errno.h>
#include <string.h>

#include "probes/core/slotprobe.h"
#include "probes/servers/llamacpp/entries.h"
#include "probes/servers/llamacpp/points.h"

static int id[LC_POINT_COUNT];

void lc_hit(enum lc_point point, uint32_t outcome)
{
	if (id[point] >= 0)
		slotprobe_hit(id[point], outcome);
}

/* The preload comes into every program that the server starts: those are not asked for llama.cpp's functions. */
static bool is_server(unsigned found)
{
	return found || strstr(program_invocation_short_name, "llama");
}

__attribute__((constructor)) static void start(void)
{
	static const char *const name[] = {
#define LC_NAME(point, text) text,
		LC_POINTS(LC_NAME)
#undef LC_NAME
	};
	unsigned found, missing;
	int saved = errno;

	for (unsigned i = 0; i < LC_POINT_COUNT; i++)
		id[i] = slotprobe_point(name[i]);
	lc_entries_survey(&found, &missing);
	if (is_server(found)) {
		for (; found; found--)
			lc_hit(LC_SYMBOLS, SLOTPROBE_HIT_COMMITTED);
		for (; missing; missing--)
			lc_hit(LC_SYMBOLS, SLOTPROBE_HIT_ERROR);
	}
	errno = saved;
}
