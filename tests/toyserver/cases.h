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
	bool stale_tail;    /* the captured track kernel is bound to the tail of the index buffer */
	bool never_walk;    /* the condition in front of the donation path is never true */
	bool ignore_switch; /* the option that turns graphs off is read and forgotten */
};

/* NULL for an unknown name */
const struct toy_case *toy_case_find(const char *name);

/* The names of those that are built, separated by commas. */
const char *toy_case_names(void);

#endif
