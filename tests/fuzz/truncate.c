/* SPDX-License-Identifier: Apache-2.0
 *
 * truncate.c: cuts one file of a run at every byte and asks every verb each time. Usage: truncate RUN log|ctr|json [STEP FIRST LAST]
 *
 * RUN has one process. A cut file is loss: verify, check, report and diff (against the whole run) say 3, status and export
 * warn in one line, but for a log that was cut before its first byte of magic was complete and a manifest, which make it no
 * run: 2, and one line. Runs under a limit of 512 MiB of memory.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/record/log_format.h"
#include "tests/fuzz/ask.h"
#include "tests/fuzz/input.h"

#define MEMORY_LIMIT (512ul << 20)

static struct {
	unsigned char bytes[1 << 22];
	size_t n;
	char path[400];
} cut;

static void fail(const char *what, const char *detail)
{
	fprintf(stderr, "truncate: %s: %s\n", what, detail);
	exit(1);
}

static size_t read_file(const char *path, unsigned char *to, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, room);

	if (n < 0 || (size_t)n == room)
		fail(path, "cannot be read, or is too long");
	close(fd);
	return (size_t)n;
}

/* Copies RUN into all runs of the folder, and keeps the file that shall be cut. */
static void take_run(const char *from, const char *kind)
{
	static unsigned char bytes[1 << 22];
	DIR *directory = opendir(from);
	const struct dirent *entry;
	char path[600], to[400];

	if (!directory || !folder())
		fail(from, "cannot be opened");
	while ((entry = readdir(directory))) {
		const char *end = strrchr(entry->d_name, '.');
		size_t n;

		if (!end || end == entry->d_name || !end[1])
			continue;
		snprintf(path, sizeof path, "%s/%s", from, entry->d_name);
		n = read_file(path, bytes, sizeof bytes);
		for (unsigned run = 0; run < INPUT_RUNS; run++) {
			snprintf(to, sizeof to, "%s/%s", run_path(run), entry->d_name);
			if (!put_file(to, bytes, n, false))
				fail(to, "cannot be written");
		}
		if (strcmp(end + 1, kind))
			continue;
		memcpy(cut.bytes, bytes, n);
		cut.n = n;
		snprintf(cut.path, sizeof cut.path, "%s/%s", run_path(0), entry->d_name);
	}
	closedir(directory);
	if (!cut.n)
		fail(from, "has no such file");
}

/* What a verb must say about the run whose file has `n` bytes left. */
static int wanted_status(enum asked asked, const char *kind)
{
	if (!strcmp(kind, "json"))
		return 2;
	return asked_judges(asked) ? 3 : 0;
}

/* Of a run that is readable with loss, status and export to JSON lines say so of page and log, the other exports of the log
 * alone, which is all that they take from. */
static unsigned wanted_complaints(enum asked asked, const char *kind)
{
	bool exports = asked == ASK_PERFETTO || asked == ASK_CSV;

	if (!strcmp(kind, "json"))
		return 1;
	return asked_judges(asked) || (exports && !strcmp(kind, "ctr")) ? 0 : 1;
}

static void look(enum asked asked, const char *kind, size_t n)
{
	const char *const runs[INPUT_RUNS] = { run_path(0), run_path(1), run_path(2) };
	struct answer a;

	ask(asked, runs, &a);
	if (!a.broken[0] && a.status == wanted_status(asked, kind) && a.complaints == wanted_complaints(asked, kind))
		return;
	fprintf(stderr, "truncate: %s of %zu bytes cut to %zu: %s: status %d, %u lines on stderr; %s\n", kind, cut.n, n,
		asked_name(asked), a.status, a.complaints, a.broken);
	exit(1);
}

static void limit_memory(void)
{
	struct rlimit limit = { MEMORY_LIMIT, MEMORY_LIMIT };

	if (setrlimit(RLIMIT_AS, &limit))
		fail("setrlimit", "refused");
}

int main(int argc, char **argv)
{
	/* Of the forms of a verb, those that print differently from the same facts are left out. */
	static const enum asked all[] = { ASK_STATUS, ASK_VERIFY, ASK_CHECK, ASK_REPORT,
					  ASK_DIFF,   ASK_JSONL,  ASK_CSV,   ASK_PERFETTO };
	size_t step = argc > 3 ? strtoul(argv[3], NULL, 10) : 1, first = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
	size_t asked = 0, last;

	if (argc < 3 || !step)
		fail("usage", "truncate RUN log|ctr|json [STEP FIRST LAST]");
	if (!getenv("FUZZ_NO_LIMIT")) /* a sanitizer needs more */
		limit_memory();
	take_run(argv[1], argv[2]);
	last = argc > 5 && strtoul(argv[5], NULL, 10) < cut.n ? strtoul(argv[5], NULL, 10) : cut.n;
	for (size_t n = first; n < last; n += step) {
		if (!put_file(cut.path, cut.bytes, n, false))
			fail(cut.path, "cannot be written");
		for (size_t i = 0; i < sizeof all / sizeof all[0]; i++, asked++)
			look(all[i], argv[2], n);
	}
	unlink(cut.path);
	printf("%zu cuts of %s, %zu answers\n", (last - first + step - 1) / step, argv[2], asked);
	return 0;
}
