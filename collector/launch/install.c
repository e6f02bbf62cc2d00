/* SPDX-License-Identifier: Apache-2.0
 *
 * install.c: finds the parts of slotprobe.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/install.h"

int install_folder(char *folder, size_t size, struct error *error)
{
	ssize_t n = readlink("/proc/self/exe", folder, size - 1);
	char *slash;

	if (n <= 0 || (size_t)n >= size - 1) {
		error_set(error, "cannot tell where slotprobe lies: /proc/self/exe: %s; is /proc mounted?",
			  n < 0 ? strerror(errno) : "too long");
		return -1;
	}
	folder[n] = 0;
	slash = strrchr(folder, '/');
	if (slash)
		*slash = 0;
	return 0;
}

/* The first of `under` (relative to the command's folder) that is there. */
static int find(const char *const *under, size_t n, const char *what, char *path, size_t size, struct error *error)
{
	char folder[PATH_MAX], tried[600] = "", candidate[2 * PATH_MAX];
	size_t at = 0;

	if (install_folder(folder, sizeof(folder), error))
		return -1;
	for (size_t i = 0; i < n; i++) {
		snprintf(candidate, sizeof(candidate), "%s/%s%s", folder, under[i], what);
		if (!access(candidate, R_OK)) {
			char *real = realpath(candidate, NULL);

			if (real && strlen(real) < size) {
				snprintf(path, size, "%s", real);
				free(real);
				return 0;
			}
			free(real);
		}
		if (at < sizeof(tried))
			at += (size_t)snprintf(tried + at, sizeof(tried) - at, "%s%s", i ? ", " : "", candidate);
	}
	error_set(error, "%s was not found (looked for %s): build or install slotprobe again", what, tried);
	return -1;
}

static int find_library(const char *name, char *path, size_t size, struct error *error)
{
	static const char *const under[] = { "", "../lib/slotprobe/", "../lib/" };

	return find(under, sizeof(under) / sizeof(under[0]), name, path, size, error);
}

int install_library(char *path, size_t size, struct error *error)
{
	return find_library("libslotprobe.so", path, size, error);
}

int install_audit(char *path, size_t size, struct error *error)
{
	return find_library("libslotprobe-audit.so", path, size, error);
}

int install_helper(const char *name, char *path, size_t size, struct error *error)
{
	static const char *const under[] = { "", "../libexec/slotprobe/" };

	return find(under, sizeof(under) / sizeof(under[0]), name, path, size, error);
}

/* The i-th non-empty part of a colon-separated list; *i becomes how many too few there are. */
static int list_part(const char *list, size_t *i, char *path, size_t size)
{
	for (const char *p = list; p; p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL) {
		size_t n = strcspn(p, ":");

		if (!n || n >= size)
			continue;
		if ((*i)--)
			continue;
		memcpy(path, p, n);
		path[n] = 0;
		return 0;
	}
	return -1;
}

int install_probe_folder(size_t i, char *path, size_t size)
{
	static const char *const under[] = { "probes", "../lib/slotprobe/probes" };
	char folder[PATH_MAX];

	if (!list_part(getenv("SLOTPROBE_PROBE_PATH"), &i, path, size))
		return 0;
	if (i >= sizeof(under) / sizeof(under[0]) || install_folder(folder, sizeof(folder), NULL))
		return -1;
	return (size_t)snprintf(path, size, "%s/%s", folder, under[i]) < size ? 0 : -1;
}
