/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_points.c: fuzz target: the .points file of an adapter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/adapter.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct adapter adapter;
	struct error error = { "" };
	char path[128], library[128];

	if (!folder())
		abort();
	snprintf(library, sizeof library, "%s/fuzz.so", folder());
	snprintf(path, sizeof path, "%s/fuzz.points", folder());
	if (!put_file(library, "", 0, false) || !put_file(path, data, size, false))
		abort();
	if (adapter_resolve(&adapter, library, &error)) {
		if (!error.text[0] || strchr(error.text, '\n'))
			abort(); /* refused without a line that says why */
		return 0;
	}
	for (size_t i = 0; i < adapter.n_points; i++)
		if (!strchr(adapter.points[i], '.') || strlen(adapter.points[i]) > 47)
			abort(); /* no name of a probe */
	if (!adapter.n_points || adapter.n_points > ADAPTER_POINTS_MAX)
		abort();
	adapter_free(&adapter);
	return 0;
}
