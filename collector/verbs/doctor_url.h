/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_url.h: what `slotprobe doctor --url` asks a running server.
 */
#ifndef COLLECTOR_DOCTOR_URL_H
#define COLLECTOR_DOCTOR_URL_H

#include <stdbool.h>

#include "options.h"

/* Whether an option of --url, or it, was given. */
bool doctor_url_asked(const struct options *o);
/* Asks, prints, and returns the exit status: 0, 1 with a problem, 2 for options that make no sense together. */
int doctor_url(const struct options *o);

#endif
