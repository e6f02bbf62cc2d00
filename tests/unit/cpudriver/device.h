/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h: what the tests of the CPU driver have in common: a context, the test kernels, memory, threads.
 */
#ifndef TEST_DEVICE_H
#define TEST_DEVICE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/cpudriver/abi.h"
#include "tests/cpudriver/api.h"

#define OK(call) assert_int_equal((call), CU_SUCCESS)

extern const char kernels_ptx[];
extern cu_context context;
extern cu_function axpy, append, hold, record, count_down;

int device_setup(void **state);
int device_teardown(void **state);

cu_deviceptr device_new(size_t bytes);                       /* zeroed */
void device_read(void *to, cu_deviceptr from, size_t bytes); /* waits for the device */
void launch_append(cu_stream stream, cu_deviceptr list, uint32_t value);
void launch_hold(cu_stream stream, uint32_t *flag); /* flag: pinned */
uint32_t *new_flag(void);
void set_flag(uint32_t *flag);

/* Runs fn in another thread, with the context current there, and waits for it. */
void elsewhere(void (*fn)(void *), void *data);

#endif
