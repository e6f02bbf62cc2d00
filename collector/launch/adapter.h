/* SPDX-License-Identifier: Apache-2.0
 *
 * adapter.h: resolves --probe NAME into what must be loaded and which probes it declares.
 */
#ifndef COLLECTOR_ADAPTER_H
#define COLLECTOR_ADAPTER_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define ADAPTER_POINTS_MAX 256u
#define ADAPTER_WATCH_MAX  8u

struct adapter {
	char *name;    /* without folder and suffix */
	char *library; /* absolute path of NAME.so, for LD_PRELOAD; NULL: none */
	char *package; /* absolute path of the folder NAME, for PYTHONPATH; NULL: none */
	char **points; /* what NAME.points lists */
	size_t n_points;
	int64_t watch[ADAPTER_WATCH_MAX]; /* slots that NAME.points asks to watch where the user names none */
	size_t n_watch;
};

/* 0, or -1: `error` lists where it was looked for. */
int adapter_resolve(struct adapter *adapter, const char *given, struct error *error);
void adapter_free(struct adapter *adapter);

#endif
