/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h: which calls fail, and how many were made: what the failing preloads share.
 *
 *	FAULT=NAME:FROM-TO:ERROR,...   calls FROM to TO of NAME fail (from 1; TO empty: for good) with this errno or driver result;
 *				       ERROR "hang": they never return
 *	FAULT_COUNT=FILE               where the calls are counted, whoever is killed: one struct plan_count for each row
 */
#ifndef TESTS_FAULTS_PLAN_H
#define TESTS_FAULTS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* Calls pass through with as many words as any of them has: reading too many from the caller's frame harms nobody. */
#define WORDS(X) X(0), X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10)
#define PARAM(i) uintptr_t a##i
#define ARG(i)   a##i
typedef uintptr_t word_fn(WORDS(PARAM));

#define FAILS    ((uintptr_t)-1)
#define CODE     1 /* returns the error itself */
#define ERRNO    0
#define DONE_TOO 2 /* is done all the same: a descriptor whose close fails is closed */

struct plan_row {
	const char *name;
	uintptr_t result; /* what it returns when it fails */
	int how, error;
};

struct plan_count {
	char name[56];
	uint64_t calls;
};

/* Once, before any call is counted. */
void plan_read(const struct plan_row *rows, unsigned n);

/* Counts a call of that row. True: it is to fail, with this error. */
bool plan_due(unsigned row, int *error);

/* Fails as that row does. */
uintptr_t plan_fail(const struct plan_row *is, int error);

/* The same in a call that passes its words through, after what is done all the same. */
#define PLAN_FAIL_CALL(is, error, real)                                                                                \
	((is)->how == DONE_TOO ? (void)(real)(WORDS(ARG)) : (void)0, plan_fail(is, error))

#endif
