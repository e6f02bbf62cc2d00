/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest.c: reads and checks RUN/run.json.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "print/print.h"
#include "read/manifest.h"

/* The whole file, at most MANIFEST_MAX bytes. NULL: *error says why. */
static char *read_file(const char *path, size_t *bytes, struct error *error)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *text = NULL;
	size_t n = 0;
	ssize_t got;
	struct stat st;

	if (fd < 0) {
		error_set(error,
			  errno == ENOENT ? "'%s' is missing: this is no run of slotprobe" : "cannot open '%s'%s%s",
			  path, errno == ENOENT ? "" : ": ", errno == ENOENT ? "" : strerror(errno));
		return NULL;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		error_set(error, "'%s' is no regular file", path);
		goto fail;
	}
	if (st.st_size > (off_t)MANIFEST_MAX) {
		error_set(error, "'%s' has %lld bytes, over the limit of %u: it is no manifest of slotprobe", path,
			  (long long)st.st_size, MANIFEST_MAX);
		goto fail;
	}
	text = malloc(MANIFEST_MAX + 1);
	while (text && n <= MANIFEST_MAX && (got = read(fd, text + n, MANIFEST_MAX + 1 - n)) > 0)
		n += (size_t)got;
	if (!text || n > MANIFEST_MAX) {
		error_set(error, "cannot read '%s': %s", path, text ? "it grew over the limit" : "out of memory");
		goto fail;
	}
	close(fd);
	*bytes = n;
	return text;
fail:
	close(fd);
	free(text);
	return NULL;
}

/* A field that is a text, null or absent. -1: something else. */
static int take_text(const struct manifest *m, const char *name, const char **text)
{
	const json_t *value = json_object_get(m->root, name);

	*text = json_string_value(value);
	if (!value)
		return 0;
	return *text || json_is_null(value) ? 0 : -1;
}

/* A field of one JSON type, null or absent. -1: something else. */
static int take_typed(const struct manifest *m, const char *name, json_type type, json_t **value)
{
	*value = json_object_get(m->root, name);
	if (json_is_null(*value))
		*value = NULL;
	return *value && json_typeof(*value) != type ? -1 : 0;
}

/* {"name": ..., "points": [...]}, or a bare text. */
static int take_adapter(const json_t *value, struct manifest_adapter *adapter)
{
	const json_t *points = json_object_get(value, "points");
	size_t n = json_array_size(points);

	adapter->name = json_string_value(json_is_string(value) ? value : json_object_get(value, "name"));
	if (!adapter->name || (points && !json_is_array(points)))
		return -1;
	adapter->points = calloc(n + 1, sizeof(*adapter->points));
	if (!adapter->points)
		return -1;
	for (size_t i = 0; i < n; i++) {
		adapter->points[i] = json_string_value(json_array_get(points, i));
		if (!adapter->points[i])
			return -1;
	}
	adapter->n_points = n;
	return 0;
}

static int take_adapters(struct manifest *m)
{
	json_t *list;

	if (take_typed(m, "adapters", JSON_ARRAY, &list))
		return -1;
	m->n_adapters = json_array_size(list);
	m->adapters = calloc(m->n_adapters + 1, sizeof(*m->adapters));
	if (!m->adapters)
		return -1;
	for (size_t i = 0; i < m->n_adapters; i++)
		if (take_adapter(json_array_get(list, i), &m->adapters[i]))
			return -1;
	return 0;
}

/* NULL: every field is of its kind; otherwise the one that is not. */
static const char *take_fields(struct manifest *m)
{
	const struct {
		const char *name;
		const char **into;
	} text[] = {
		{ "tool_version", &m->tool_version }, { "arm", &m->arm },    { "cwd", &m->cwd }, { "host", &m->host },
		{ "started", &m->started },           { "ended", &m->ended }
	};

	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		if (take_text(m, text[i].name, text[i].into))
			return text[i].name;
	if (take_typed(m, "argv", JSON_ARRAY, &m->argv))
		return "argv";
	if (take_typed(m, "exit", JSON_INTEGER, &m->exit))
		return "exit";
	if (take_typed(m, "options", JSON_OBJECT, &m->options))
		return "options";
	return take_adapters(m) ? "adapters" : NULL;
}

static int check(struct manifest *m, const char *path, struct error *error)
{
	const json_t *version = json_object_get(m->root, "schema_version");
	const char *wrong;

	if (!json_is_integer(version)) {
		error_set(error, "'%s' has no schema_version: this is no run of slotprobe", path);
		return -1;
	}
	if (json_integer_value(version) != MANIFEST_VERSION) {
		error_set(error, "'%s' has schema_version %lld; this slotprobe reads %d: use the one that recorded it",
			  path, (long long)json_integer_value(version), MANIFEST_VERSION);
		return -1;
	}
	wrong = take_fields(m);
	if (!wrong)
		return 0;
	error_set(error, "'%s': the field '%s' is not of the kind that it must be: record the run again", path, wrong);
	return -1;
}

static int parse(struct manifest *m, const char *path, struct error *error)
{
	json_error_t why;
	size_t bytes = 0;
	char *text = read_file(path, &bytes, error);

	if (!text)
		return -1;
	/* An embedded NUL is no error for jansson unless a string holds it, which is then refused. */
	m->root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
	free(text);
	if (json_is_object(m->root))
		return check(m, path, error);
	if (m->root)
		error_set(error, "'%s' is not a JSON object: this is no run of slotprobe", path);
	else
		error_set(error, "'%s' is not JSON, line %d: %s", path, why.line, why.text);
	return -1;
}

int manifest_read(struct manifest *manifest, const char *directory, struct error *error)
{
	char *path = NULL;
	int failed;

	*manifest = (struct manifest) { 0 };
	if (asprintf(&path, "%s/%s", directory, MANIFEST_NAME) < 0) {
		error_set(error, "out of memory");
		return -1;
	}
	failed = parse(manifest, path, error);
	free(path);
	if (failed)
		manifest_free(manifest);
	return failed;
}

void manifest_free(struct manifest *manifest)
{
	for (size_t i = 0; manifest->adapters && i < manifest->n_adapters; i++)
		free(manifest->adapters[i].points);
	free(manifest->adapters);
	json_decref(manifest->root);
	*manifest = (struct manifest) { 0 };
}
