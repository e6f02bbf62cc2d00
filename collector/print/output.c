/* SPDX-License-Identifier: Apache-2.0
 *
 * output.c: where a verb's result goes: stdout or -o FILE, noticing when it did not get there. And colour.
 */
#include <errno.h>
#include <string.h>

#include "print/print.h"

int output_open(struct output *output, const char *path, struct error *error)
{
	output->path = path;
	output->f = path ? fopen(path, "we") : stdout;
	if (output->f)
		return 0;
	error_set(error, "cannot write '%s': %s; give -o another file", path, strerror(errno));
	return -1;
}

int output_close(struct output *output, struct error *error)
{
	const char *where = output->path ? output->path : "stdout";
	int failed, saved;

	errno = 0;
	failed = fflush(output->f) || ferror(output->f);
	saved = errno;
	if (output->path && fclose(output->f)) {
		saved = failed ? saved : errno;
		failed = 1;
	}
	output->f = NULL;
	if (!failed)
		return 0;
	error_set(error, "writing to %s failed: %s; what is there is not whole", where,
		  saved ? strerror(saved) : "an earlier write failed");
	return -1;
}

const char *color_on(bool color, enum color which)
{
	static const char *const code[] = {
		[COLOR_NONE] = "",          [COLOR_BOLD] = "\033[1m",    [COLOR_RED] = "\033[31m",
		[COLOR_GREEN] = "\033[32m", [COLOR_YELLOW] = "\033[33m", [COLOR_DIM] = "\033[2m",
	};

	return color ? code[which] : "";
}

const char *color_off(bool color)
{
	return color ? "\033[0m" : "";
}
