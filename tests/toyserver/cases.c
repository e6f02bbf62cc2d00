/* SPDX-License-Identifier: Apache-2.0
 *
 * cases.c: the table of bugs.
 */
#include "cases.h"

#include <stdio.h>
#include <string.h>

static const struct toy_case cases[] = {
	{ .name = "clean", .built = true },
	{ .name = "stale-index-tail", .built = true, .stale_tail = true },
	{ .name = "path-never-walked", .built = true, .never_walk = true },
	{ .name = "switch-ignored", .built = true, .ignore_switch = true },
	{ .name = "wrong-position" },
	{ .name = "snapshot-too-early" },
	{ .name = "capture-writes-slot0" },
	{ .name = "conv-leak" },
	{ .name = "nan-survives-clear" },
	{ .name = "graph-wipes-state" },
	{ .name = "padding-aliases-live" },
	{ .name = "padded-eager-equal" },
	{ .name = "sync-hides-it" },
	{ .name = "aliased-write" },
	{ .name = "two-bugs" },
};

#define N_CASES (sizeof(cases) / sizeof(cases[0]))

const struct toy_case *toy_case_find(const char *name)
{
	for (size_t i = 0; i < N_CASES; i++)
		if (!strcmp(cases[i].name, name))
			return &cases[i];
	return NULL;
}

const char *toy_case_names(void)
{
	static char names[256];
	size_t used = 0;

	for (size_t i = 0; i < N_CASES; i++)
		if (cases[i].built)
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
						 cases[i].name);
	return names;
}
