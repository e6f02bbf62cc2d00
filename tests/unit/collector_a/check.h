/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h: cmocka and the headers that it wants before it.
 */
#ifndef COLLECTOR_A_CHECK_H
#define COLLECTOR_A_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

#endif
