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
	{ .name = "path-never-walked", .built = true, .everywhere = true, .never_walk = true },
	{ .name = "switch-ignored", .built = true, .everywhere = true, .ignore_switch = true },
	{ .name = "wrong-position", .built = true, .early_position = true },
	{ .name = "snapshot-too-early", .built = true, .early_donation = true },
	{ .name = "capture-writes-slot0", .built = true, .dirty_warm_up = true, .clear_owned_only = true },
	{ .name = "conv-leak", .built = true, .leak_conv = true },
	{ .name = "nan-survives-clear", .built = true, .nan_warm_up = true, .clear_multiplies = true },
	{ .name = "graph-wipes-state", .built = true, .wipe = true },
	{ .name = "padding-aliases-live", .built = true, .alias_padding = true },
	{ .name = "padded-eager-equal", .built = true, .everywhere = true, .by_rows = true },
	{ .name = "sync-hides-it" },
	{ .name = "aliased-write", .built = true, .stray = true },
	{ .name = "two-bugs", .built = true, .stale_tail = true, .nan_warm_up = true, .clear_multiplies = true },
};

#define N_CASES (sizeof(cases) / sizeof(cases[0]))

const struct toy_case *toy_case_find(const char *name)
{
	for (size_t i = 0; i < N_CASES; i++)
		if (!strcmp(cases[i].name, name))
			return &cases[i];
	return NULL;
}

const struct toy_case *toy_case_played(const struct toy_case *bug, bool graph_path)
{
	return graph_path || bug->everywhere ? bug : &cases[0];
}

const char *toy_case_names(void)
{
	static char names[512];
	size_t used = 0;

	for (size_t i = 0; i < N_CASES; i++)
		if (cases[i].built)
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
						 cases[i].name);
	return names;
}
