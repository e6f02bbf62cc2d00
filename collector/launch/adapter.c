/* SPDX-License-Identifier: Apache-2.0
 *
 * adapter.c: finds an adapter's library, package and points.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launch/adapter.h"
#include "launch/install.h"
#include "shim/record/log_format.h"
#include "trouble.h"

#define POINTS_BYTES_MAX 65536

static bool is_kind(const char *path, mode_t kind)
{
	struct stat st;

	return !stat(path, &st) && (st.st_mode & S_IFMT) == kind;
}

/* What is there has a real path; half an adapter would record something else than what was asked for. */
static char *real_path(const char *path)
{
	char *real = realpath(path, NULL);

	if (!real)
		trouble_end("cannot resolve '%s': %s", path, strerror(errno));
	return real;
}

/* Looks at STEM.so and at the folder STEM. True when either is there. */
static bool take_stem(struct adapter *adapter, const char *stem)
{
	char library[PATH_MAX + 8];

	snprintf(library, sizeof(library), "%s.so", stem);
	if (is_kind(library, S_IFREG))
		adapter->library = real_path(library);
	if (is_kind(stem, S_IFDIR))
		adapter->package = real_path(stem);
	return adapter->library || adapter->package;
}

static bool point_is_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
	const char *dot = strchr(name, '.');

	return dot && dot != name && dot[1] && !name[n] && n < sizeof(((struct ctr_row *)0)->name);
}

/* "watch N": a slot of which the adapter knows that what goes astray ends there. */
static int take_watch(struct adapter *adapter, const char *number)
{
	char *end;
	long long slot;

	errno = 0;
	slot = strtoll(number, &end, 10);
	end += strspn(end, " \t");
	if (!isdigit((unsigned char)*number) || *end || errno || adapter->n_watch == ADAPTER_WATCH_MAX)
		return -1;
	adapter->watch[adapter->n_watch++] = slot;
	return 0;
}

/* One line of a .points file; a comment begins with '#'. -1: no name of a probe. */
static int take_line(struct adapter *adapter, char *line)
{
	char *end;

	line[strcspn(line, "#\r\n")] = 0;
	while (isspace((unsigned char)*line))
		line++;
	end = line + strcspn(line, " \t");
	if (!*line)
		return 0;
	if (!strncmp(line, "watch", 5) && line[5] && strchr(" \t", line[5]))
		return take_watch(adapter, line + 5 + strspn(line + 5, " \t"));
	if (end[strspn(end, " \t")])
		return -1;
	*end = 0;
	if (!point_is_valid(line) || adapter->n_points == ADAPTER_POINTS_MAX)
		return -1;
	adapter->points = trouble_need(realloc(adapter->points, (adapter->n_points + 1) * sizeof(*adapter->points)));
	adapter->points[adapter->n_points++] = trouble_need(strdup(line));
	return 0;
}

static int read_points(struct adapter *adapter, const char *path, FILE *f, struct error *error)
{
	char line[512];
	int failed = 0, number = 0;
	long bytes = 0;

	while (!failed && fgets(line, sizeof(line), f)) {
		number++;
		bytes += (long)strlen(line);
		/* What is left of a longer line would be taken for a line of its own: the end of a comment for a probe. */
		failed = bytes > POINTS_BYTES_MAX || (strlen(line) == sizeof(line) - 1 && !strchr(line, '\n')) ||
			 take_line(adapter, line);
	}
	if (failed)
		error_set(error,
			  "'%s', line %d, is no probe name (GROUP.POINT, at most %zu bytes, at most %u of them) and "
			  "no 'watch N'",
			  path, number, sizeof(((struct ctr_row *)0)->name) - 1, ADAPTER_POINTS_MAX);
	else if (!adapter->n_points)
		error_set(error, "'%s' lists no probe: write their names there, one a line", path);
	return failed || !adapter->n_points ? -1 : 0;
}

/* NAME.points lies beside the library or the folder, or in the folder. Without it a probe that never registered could not
 * be told from one that does not exist. */
static int take_points(struct adapter *adapter, const char *stem, struct error *error)
{
	char path[2][2 * PATH_MAX];
	FILE *f = NULL;
	int i, failed;

	snprintf(path[0], sizeof(path[0]), "%s.points", stem);
	snprintf(path[1], sizeof(path[1]), "%s/%s.points", stem, adapter->name);
	for (i = 0; i < 2 && !f; i++)
		if (is_kind(path[i], S_IFREG))
			f = fopen(path[i], "re");
	if (!f) {
		error_set(error, "adapter '%s' has no readable '%s': write the names of its probes there, one a line",
			  adapter->name, path[0]);
		return -1;
	}
	failed = read_points(adapter, path[i - 1], f, error);
	if (!failed && ferror(f)) {
		error_set(error, "cannot read '%s' to its end", path[i - 1]);
		failed = -1;
	}
	fclose(f);
	return failed;
}

/* The given path without "/" at its end and without ".so". */
static int stem_of(const char *given, char *stem, size_t size)
{
	size_t n = strlen(given);

	while (n > 1 && given[n - 1] == '/')
		n--;
	if (n > 3 && !memcmp(given + n - 3, ".so", 3))
		n -= 3;
	if (n >= size)
		return -1;
	memcpy(stem, given, n);
	stem[n] = 0;
	return 0;
}

static bool find_by_path(struct adapter *adapter, const char *given, char *stem, size_t size)
{
	return !stem_of(given, stem, size) && take_stem(adapter, stem);
}

/* Searches the folders; *tried collects their names. */
static bool find_by_name(struct adapter *adapter, const char *given, char *stem, size_t size, char *tried,
			 size_t tried_size)
{
	char folder[PATH_MAX];
	size_t at = 0;

	for (size_t i = 0; !install_probe_folder(i, folder, sizeof(folder)); i++) {
		if ((size_t)snprintf(stem, size, "%s/%s", folder, given) < size && take_stem(adapter, stem))
			return true;
		if (at < tried_size)
			at += (size_t)snprintf(tried + at, tried_size - at, "%s%s", at ? ", " : "", folder);
	}
	return false;
}

int adapter_resolve(struct adapter *adapter, const char *given, struct error *error)
{
	char stem[PATH_MAX], tried[600] = "";
	bool by_path = strchr(given, '/') != NULL;

	*adapter = (struct adapter) { 0 };
	if (by_path ? !find_by_path(adapter, given, stem, sizeof(stem))
		    : !find_by_name(adapter, given, stem, sizeof(stem), tried, sizeof(tried))) {
		if (by_path)
			error_set(error, "there is no adapter at '%s': it is a library NAME.so or a folder NAME",
				  given);
		else
			error_set(error,
				  "unknown probe '%s': no %s.so and no folder %s in %s; SLOTPROBE_PROBE_PATH adds "
				  "folders",
				  given, given, given, tried);
		return -1;
	}
	adapter->name = trouble_need(strdup(strrchr(stem, '/') ? strrchr(stem, '/') + 1 : stem));
	if (!take_points(adapter, stem, error))
		return 0;
	adapter_free(adapter);
	return -1;
}

void adapter_free(struct adapter *adapter)
{
	for (size_t i = 0; i < adapter->n_points; i++)
		free(adapter->points[i]);
	free(adapter->points);
	free(adapter->name);
	free(adapter->library);
	free(adapter->package);
	*adapter = (struct adapter) { 0 };
}
