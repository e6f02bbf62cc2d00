/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest.h: reads RUN/run.json, and never trusts it.
 */
#ifndef COLLECTOR_MANIFEST_H
#define COLLECTOR_MANIFEST_H

#include <jansson.h>
#include <stddef.h>

#include "error.h"

#define MANIFEST_NAME    "run.json"
#define MANIFEST_VERSION 1
#define MANIFEST_MAX     (1u << 20) /* bytes; a larger run.json is refused */

struct manifest_adapter {
	const char *name;
	const char **points; /* probes that it declares */
	size_t n_points;
};

/* Every text points into `root` and lives as long; NULL: absent or null. Escape before printing. */
struct manifest {
	json_t *root;
	const char *tool_version, *arm, *cwd, *host, *started, *ended;
	json_t *argv;    /* array of texts; NULL: none */
	json_t *exit;    /* integer or NULL */
	json_t *options; /* object or NULL */
	struct manifest_adapter *adapters;
	size_t n_adapters;
};

/* 0, or -1: the run is not readable (absent, not JSON, over the limit, unknown version, a field of the wrong kind). */
int manifest_read(struct manifest *manifest, const char *directory, struct error *error);
void manifest_free(struct manifest *manifest);

#endif
