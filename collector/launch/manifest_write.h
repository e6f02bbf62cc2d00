/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest_write.h: writes RUN/run.json, paired with read/manifest.h.
 */
#ifndef COLLECTOR_MANIFEST_WRITE_H
#define COLLECTOR_MANIFEST_WRITE_H

#include <jansson.h>

#include "error.h"
#include "launch/adapter.h"

/* What it is written as, until it is whole. */
#define MANIFEST_TEMPORARY ".run.json.new"

/* The fields that are known before the command runs. `options` is stolen. */
json_t *manifest_new(const char *arm, char *const *argv, const struct adapter *adapters, size_t n_adapters,
		     json_t *options);
void manifest_end(json_t *manifest, int exit_status);
/* Replaces RUN/run.json as a whole or not at all. */
int manifest_write(const json_t *manifest, const char *directory, struct error *error);

#endif
