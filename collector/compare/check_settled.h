/* SPDX-License-Identifier: Apache-2.0
 *
 * check_settled.h: the invariants of a run without its events in memory.
 */
#ifndef COMPARE_CHECK_SETTLED_H
#define COMPARE_CHECK_SETTLED_H

#include "compare/check.h"

/* True: nothing is broken; the results are there, and the model holds everything but events. false: nothing is open, and nothing
 * is said: load the run whole. */
bool check_settled(struct check *check, const char *path);

#endif
