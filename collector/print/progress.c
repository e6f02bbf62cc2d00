/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.c: one line on stderr, rewritten in place.
 */
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "print/print.h"
#include "print/progress.h"

#define CALLS 4096 /* a power of two */

static struct {
	uint64_t calls;
	double begun, printed;
	bool shown;
} state;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void progress(const char *what, uint64_t done, uint64_t all)
{
	double t;

	if (state.calls++ % CALLS)
		return;
	t = now();
	if (state.begun <= 0)
		state.begun = t;
	if (t - state.begun < 1 || t - state.printed < 0.2 || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%s: %s of %s", what, amount_bytes(done), amount_bytes(all));
	fflush(stderr);
	state.printed = t;
	state.shown = true;
}

void progress_end(void)
{
	if (state.shown)
		fputs("\r\033[K", stderr);
	state.shown = false;
}
