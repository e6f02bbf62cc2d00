/* SPDX-License-Identifier: Apache-2.0
 *
 * input.c: takes a fuzz input apart, and writes it as RUN directories.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/record/log_format.h"
#include "tests/fuzz/input.h"

void input_unpack(struct input *input, const uint8_t *data, size_t size)
{
	input->n = 0;
	while (input->n < INPUT_PARTS && size >= sizeof(struct part_header)) {
		struct part *part = &input->part[input->n++];

		memcpy(&part->h, data, sizeof part->h);
		data += sizeof part->h;
		size -= sizeof part->h;
		part->h.kind %= PART_KINDS;
		part->h.run %= INPUT_RUNS;
		part->h.process %= INPUT_PROCESSES;
		part->h.fill &= 1;
		if (part->h.bytes > size)
			part->h.bytes = (uint32_t)size;
		part->data = data;
		data += part->h.bytes;
		size -= part->h.bytes;
	}
}

size_t input_pack(const struct input *input, uint8_t *to, size_t room)
{
	size_t at = 0;

	for (unsigned i = 0; i < input->n; i++) {
		const struct part *part = &input->part[i];

		if (room - at < sizeof part->h || room - at - sizeof part->h < part->h.bytes)
			continue;
		memcpy(to + at, &part->h, sizeof part->h);
		if (part->h.bytes)
			memcpy(to + at + sizeof part->h, part->data, part->h.bytes);
		at += sizeof part->h + part->h.bytes;
	}
	return at;
}

/* ---- the folder ---- */

static char root[64], runs[INPUT_RUNS][80];

static void name_file(char *path, size_t room, unsigned run, unsigned process, unsigned kind)
{
	if (kind == PART_MANIFEST)
		snprintf(path, room, "%s/run.json", run_path(run));
	else
		snprintf(path, room, "%s/elsewhere.%u.7.%s", run_path(run), 4194301 + process,
			 kind == PART_PAGE ? "ctr" : "log");
}

static void empty_folder(const char *path)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;
	char file[600];

	while (directory && (entry = readdir(directory))) {
		snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
		unlink(file); /* what is a folder stays */
	}
	if (directory)
		closedir(directory);
}

static void empty_runs(void)
{
	for (unsigned run = 0; run < INPUT_RUNS; run++)
		empty_folder(runs[run]);
}

static pid_t owner;

static void remove_folder(void)
{
	if (getpid() != owner) /* a child that libFuzzer forked */
		return;
	empty_runs();
	empty_folder(root);
	for (unsigned run = 0; run < INPUT_RUNS; run++)
		rmdir(runs[run]);
	rmdir(root);
}

const char *folder(void)
{
	if (root[0])
		return root;
	strcpy(root, "/dev/shm/slotprobe-fuzz.XXXXXX");
	if (!mkdtemp(root)) {
		strcpy(root, "/tmp/slotprobe-fuzz.XXXXXX");
		if (!mkdtemp(root)) {
			root[0] = 0;
			return NULL;
		}
	}
	for (unsigned run = 0; run < INPUT_RUNS; run++) {
		snprintf(runs[run], sizeof runs[run], "%s/%c", root, 'a' + (int)run);
		if (mkdir(runs[run], 0700))
			return NULL;
	}
	owner = getpid();
	atexit(remove_folder);
	return root;
}

const char *run_path(unsigned run)
{
	return folder() ? runs[run % INPUT_RUNS] : "";
}

bool put_file(const char *path, const void *data, size_t size, bool fill)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool ok = fd >= 0 && write(fd, data, size) == (ssize_t)size;

	if (ok && fill && size < sizeof(struct ctr_page))
		ok = !ftruncate(fd, sizeof(struct ctr_page));
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool has_parts(const struct input *input, unsigned run)
{
	for (unsigned i = 0; i < input->n; i++)
		if (input->part[i].h.run == run)
			return true;
	return false;
}

bool input_write(const struct input *input)
{
	const bool twin[INPUT_RUNS] = { false, !has_parts(input, 1), !has_parts(input, 2) };
	char path[320];

	if (!folder())
		return false;
	empty_runs();
	for (unsigned i = 0; i < input->n; i++) {
		const struct part *p = &input->part[i];

		for (unsigned run = 0; run < INPUT_RUNS; run++) {
			if (p->h.run != run && !(twin[run] && !p->h.run))
				continue;
			name_file(path, sizeof path, run, p->h.process, p->h.kind);
			if (!put_file(path, p->data, p->h.bytes, p->h.kind == PART_PAGE && p->h.fill))
				return false;
		}
	}
	return true;
}
