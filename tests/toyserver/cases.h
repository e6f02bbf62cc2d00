/* SPDX-License-Identifier: Apache-2.0
 *
 * cases.h: the bugs that the toy can play. A bug changes what the server reads, writes or orders; it never changes what
 * the server reports.
 */
#ifndef TOY_CASES_H
#define TOY_CASES_H

#include <stdbool.h>

struct toy_case {
	const char *name;
	bool built;
	bool everywhere;    /* played in every arm; the others only where decode steps take the graph path */
	bool stale_tail;    /* the captured track kernel is bound to the tail of the index buffer */
	bool never_walk;    /* the condition in front of the donation path is never true */
	bool ignore_switch; /* the option that turns graphs off is read and forgotten */
	/* In what comes before capture: */
	bool nan_warm_up;   /* it leaves a NaN in a slot that nobody owns yet */
	bool dirty_warm_up; /* it runs the kernels on slot 0 */
	/* In what a new owner does to a live slot: */
	bool clear_multiplies; /* with 0, so a NaN stays */
	bool clear_owned_only; /* a slot without a previous owner is thought to be zero */
	bool leak_conv;        /* conv is not cleared; the first chunk rolls its window on from what is there */
	/* In a prefill: */
	bool early_position; /* of several requests: all but the first are checkpointed where the chunk begins */
	bool early_donation; /* a checkpoint is handed over before the forward that writes it */
	/* In a decode step: */
	bool alias_padding; /* padded rows work on slot 0 */
	bool wipe;          /* a captured kernel zeroes the rows' states */
	bool stray;         /* a kernel that was given no pointer into the pool adds to the rows' states */
	bool by_rows;       /* the order of a sum depends on the number of rows that are launched */
};

/* NULL for an unknown name */
const struct toy_case *toy_case_find(const char *name);

/* What of it an arm plays: the bug or, in an arm that does not have it, "clean". */
const struct toy_case *toy_case_played(const struct toy_case *bug, bool graph_path);

/* The names of those that are built, separated by commas. */
const char *toy_case_names(void);

#endif
