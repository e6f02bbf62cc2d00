/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_page.c: fuzz target: a counters page. An odd first byte fills it up with zeros to its full size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/counters.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	if (size < 2)
		return LLVMFuzzerMutate(data, size, room);
	return 1 + mutate_page(data + 1, size - 1, room - 1, seed);
}

static void look_at(const struct ctr_snapshot *s)
{
	if (s->n_rows > CTR_MAX_ROWS || strlen(s->label) >= sizeof s->label || s->state > CTR_ENDED)
		abort();
	for (uint32_t i = 0; i < s->n_rows; i++) {
		const struct ctr_values *v = &s->row[i];
		uint64_t sum = v->in_flight;

		for (int o = 0; o < CTR_OUTCOME_COUNT; o++)
			sum += v->outcome[o];
		if (v->kind > CTR_PLAIN || strlen(v->name) >= sizeof v->name)
			abort();
		if (v->kind == CTR_PROBE && v->reconciled && s->reconciled && sum > v->attempted)
			abort();
		ctr_find(s, v->name);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ctr_snapshot snapshot;
	char path[128];

	snprintf(path, sizeof path, "%s/page", run_path(0));
	if (!folder() || !size || !put_file(path, data + 1, size - 1, data[0] & 1))
		return 0;
	if (ctr_read(path, &snapshot, NULL) == CTR_READ_OK)
		look_at(&snapshot);
	remove(path);
	return 0;
}
