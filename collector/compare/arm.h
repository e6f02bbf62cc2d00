/* SPDX-License-Identifier: Apache-2.0
 *
 * arm.h: the labels of runs that promise something, and those that were meant to.
 */
#ifndef COMPARE_ARM_H
#define COMPARE_ARM_H

/* What an arm promises about launches of graphs that touch a pool. */
enum arm_promise { ARM_PROMISES_NOTHING, ARM_PROMISES_LAUNCHES, ARM_PROMISES_NONE };
enum arm_promise arm_promise(const char *arm);
/* The known arm that this one may have been meant to be: case, blanks, dashes and underscores aside, two slips of the keyboard away, or
 * short for it. NULL: it is a known one, or like none. */
const char *arm_near_miss(const char *arm);

#endif
