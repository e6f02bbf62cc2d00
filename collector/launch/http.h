/* SPDX-License-Identifier: Apache-2.0
 *
 * http.h: one GET, by libcurl.
 */
#ifndef COLLECTOR_HTTP_H
#define COLLECTOR_HTTP_H

#include <stddef.h>

#include "error.h"

/* The body, at most `most` bytes, NUL-terminated; free() it. NULL: `error` says why. libcurl is opened when it is needed, so
 * that nothing else needs it. */
char *http_get(const char *url, size_t most, struct error *error);

#endif
