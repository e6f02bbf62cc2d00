/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_run.c: fuzz target: whole RUN directories, through every verb that reads them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/input.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	return mutate_input(data, size, room, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *const runs[INPUT_RUNS] = { run_path(0), run_path(1), run_path(2) };
	struct answer answer;
	struct input input;

	input_unpack(&input, data, size);
	if (!input_write(&input))
		abort();
	for (int asked = 0; asked < ASK_COUNT; asked++) {
		ask((enum asked)asked, runs, &answer);
		if (answer.broken[0]) {
			fprintf(stderr, "%s\n", answer.broken);
			abort();
		}
	}
	return 0;
}
