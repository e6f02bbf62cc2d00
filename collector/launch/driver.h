/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.h: is there a CUDA driver, does it work, and would it take our PTX.
 */
#ifndef COLLECTOR_DRIVER_H
#define COLLECTOR_DRIVER_H

#include <stdbool.h>

enum driver_state {
	DRIVER_WORKS,
	DRIVER_ABSENT, /* no libcuda.so.1 */
	DRIVER_FAILS   /* one is there, and does not work */
};

struct driver_report {
	enum driver_state state;
	char driver[64];  /* "CUDA 13.0" */
	char device[128]; /* of ordinal 0 */
	int devices;
	bool stand_in; /* it works, and it is slotprobe's own CPU stand-in: no CUDA driver */
	int ptx;       /* result of loading PTX of the oldest kind that slotprobe embeds: 0 works, else a CUresult */
	char problem[256];
};

/* Asks `library` (NULL: libcuda.so.1 wherever the loader finds it) in a process of its own: a driver that crashes, hangs or
 * leaves threads behind must not take us along. */
void driver_probe(struct driver_report *report, const char *library);

#endif
