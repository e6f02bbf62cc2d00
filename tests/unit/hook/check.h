/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h: what the test programs share: a check that names its place, and the preload's account of what it saw.
 */
#ifndef TEST_CHECK_H
#define TEST_CHECK_H

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observer.h"

#define CHECK(what)                                                                                                    \
	do {                                                                                                           \
		if (!(what)) {                                                                                         \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                             \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)
#define CHECK_INT(a, b)                                                                                                \
	do {                                                                                                           \
		long long left = (long long)(a), right = (long long)(b);                                               \
		if (left != right) {                                                                                   \
			fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #a, left, right);         \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* Looked up, since a program under test must not depend on the preload. */
#define FROM_PRELOAD(name) ((__typeof__(&slotprobe_test_##name))dlsym(RTLD_DEFAULT, "slotprobe_test_" #name))

static inline struct seen *seen(void)
{
	__typeof__(&slotprobe_test_seen) f = FROM_PRELOAD(seen);

	CHECK(f);
	return f();
}

typedef int launch_fn(void *exec, void *stream);
typedef int any_fn(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
typedef int get_v1_fn(const char *name, void **out, int version, uint64_t flags);
typedef int get_v2_fn(const char *name, void **out, int version, uint64_t flags, int *status);

#define ERRNO_OF_DRIVER 77

#endif
