/* SPDX-License-Identifier: Apache-2.0
 *
 * input.h: one fuzz input that stands for up to three RUN directories: parts (manifest, counters page, log), each behind a
 * small header. Only tests/fuzz knows this container.
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum part_kind { PART_MANIFEST, PART_PAGE, PART_LOG, PART_KINDS };

#define INPUT_PARTS     12
#define INPUT_RUNS      3 /* two that are compared, and one for --third and --noise */
#define INPUT_PROCESSES 3

struct part_header {
	uint8_t kind, run, process;
	uint8_t fill; /* a page: 1: zeros follow up to a page's size, so that an input need not carry them */
	uint32_t bytes;
};

struct part {
	struct part_header h;
	const uint8_t *data;
};

struct input {
	struct part part[INPUT_PARTS];
	unsigned n;
};

/* Whatever the bytes are, this much of them makes sense: sizes are cut to what is there, numbers are taken modulo. */
void input_unpack(struct input *input, const uint8_t *data, size_t size);
/* Bytes written; parts that do not fit are left out. */
size_t input_pack(const struct input *input, uint8_t *to, size_t room);

/* ---- the folder that the verbs read ---- */

/* A folder of this process's own in memory, removed at exit. NULL: it could not be made. */
const char *folder(void);
/* Path of a run in it: 0, 1 or 2. */
const char *run_path(unsigned run);
/* Makes one file; `fill`: zeros up to a page's size. false: it could not be written. */
bool put_file(const char *path, const void *data, size_t size, bool fill);
/* The runs as the input says; a later run without parts is the first's twin. false: they could not be written. */
bool input_write(const struct input *input);

#endif
