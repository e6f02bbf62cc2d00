/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_manifest.c: fuzz target: run.json.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print/print.h"
#include "read/manifest.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest manifest;
	struct error error = { "" };
	char path[128];

	snprintf(path, sizeof path, "%s/" MANIFEST_NAME, run_path(0));
	if (!folder() || !put_file(path, data, size, false))
		abort();
	if (!manifest_read(&manifest, run_path(0), &error)) {
		for (size_t i = 0; i < manifest.n_adapters; i++)
			for (size_t p = 0; p < manifest.adapters[i].n_points; p++)
				safe(manifest.adapters[i].points[p]);
		json_decref(json_escaped(manifest.root));
		manifest_free(&manifest);
	} else if (!error.text[0] || strchr(error.text, '\n')) {
		abort(); /* refused without a line that says why */
	}
	remove(path);
	return 0;
}
