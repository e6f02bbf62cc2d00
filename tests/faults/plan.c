/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: reads which calls fail, and counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/faults/plan.h"

#define ROWS_MAX 512

static const struct plan_row *rows;
static unsigned n_rows;
static struct plan_count in_memory[ROWS_MAX], *counted = in_memory;

static struct fault {
	unsigned row;
	uint64_t from, to;
	int error; /* 0: the row's own */
	bool hang;
} faults[16];
static unsigned n_faults;

bool plan_due(unsigned row, int *error)
{
	uint64_t now = __atomic_add_fetch(&counted[row].calls, 1, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < n_faults; i++)
		if (faults[i].row == row && now >= faults[i].from && now <= faults[i].to) {
			*error = faults[i].error ? faults[i].error : rows[row].error;
			while (faults[i].hang)
				pause();
			return true;
		}
	return false;
}

uintptr_t plan_fail(const struct plan_row *is, int error)
{
	if (is->how == CODE)
		return (uintptr_t)error;
	errno = error;
	return is->result;
}

static void parse_one(char *text)
{
	char *name = strsep(&text, ":"), *range = strsep(&text, ":"), *to = range ? strchr(range, '-') : NULL;
	struct fault *f = &faults[n_faults];

	for (f->row = 0; f->row < n_rows && strcmp(rows[f->row].name, name); f->row++)
		;
	if (f->row == n_rows || !range || n_faults == sizeof faults / sizeof faults[0]) {
		fprintf(stderr, "FAULT: %s: no such call\n", name);
		abort();
	}
	f->from = f->to = strtoull(range, NULL, 10);
	if (to)
		f->to = to[1] ? strtoull(to + 1, NULL, 10) : UINT64_MAX;
	f->error = text ? atoi(text) : 0;
	f->hang = text && !strcmp(text, "hang");
	n_faults++;
}

static void map_counts(const char *path)
{
	size_t bytes = n_rows * sizeof *counted;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *map;

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		abort();
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		abort();
	close(fd);
	counted = map;
	for (unsigned i = 0; i < n_rows; i++)
		strncpy(counted[i].name, rows[i].name, sizeof counted[i].name - 1);
}

void plan_read(const struct plan_row *of, unsigned n)
{
	const char *asked = getenv("FAULT"), *count = getenv("FAULT_COUNT");
	char copy[1024] = "", *rest = copy, *one;

	if (n > ROWS_MAX)
		abort();
	rows = of;
	n_rows = n;
	if (asked)
		snprintf(copy, sizeof copy, "%s", asked);
	while ((one = strsep(&rest, ",")))
		if (*one)
			parse_one(one);
	if (count)
		map_counts(count);
}
