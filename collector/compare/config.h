/* SPDX-License-Identifier: Apache-2.0
 *
 * config.h: in what do two runs' command lines, recording options and environments differ, as their manifests have them?
 */
#ifndef COMPARE_CONFIG_H
#define COMPARE_CONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "read/manifest.h"

struct config {
	json_t *differences; /* [{part: "argv", "options" or "env", name, a, b}]: null where one lacks it */
	bool known;          /* both runs say how they were started */
};

/* false: out of memory */
bool config_compare(struct config *config, const struct manifest *a, const struct manifest *b);
void config_free(struct config *config);

#endif
