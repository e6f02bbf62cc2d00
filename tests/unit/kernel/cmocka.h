/* SPDX-License-Identifier: Apache-2.0
 *
 * cmocka.h: cmocka with what it wants before it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
