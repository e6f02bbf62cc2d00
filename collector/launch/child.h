/* SPDX-License-Identifier: Apache-2.0
 *
 * child.h: runs the command and stands in for it: signals go through, its end is ours.
 */
#ifndef COLLECTOR_CHILD_H
#define COLLECTOR_CHILD_H

#include <sys/types.h>

/* Runs argv with the environment as it is. Returns its wait status, or -1 with *exec_errno set when it never ran (errno of
 * exec or fork). *pid (may be NULL) is the child's. */
int child_run(char *const *argv, int *exec_errno, pid_t *pid);

#endif
