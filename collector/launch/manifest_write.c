/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest_write.c: what run.json says, and what it must not say: values whose names speak of secrets.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "launch/manifest_write.h"
#include "print/print.h"
#include "read/manifest.h"

#define REDACTED "[redacted]"

extern char **environ;

/* ---- secrets ---- */

static bool name_is_secret(const char *name, size_t n)
{
	static const char *const words[] = { "KEY", "TOKEN", "SECRET", "PASSWORD" };

	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
		for (size_t i = 0, m = strlen(words[w]); i + m <= n; i++)
			if (!strncasecmp(name + i, words[w], m))
				return true;
	return false;
}

/* One argument, word by word: a command line given to a shell holds its options inside of one argument. *pending: the word
 * before was an option of such a name, so this one is its value. */
static char *redact(const char *argument, bool *pending)
{
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	while (f && *argument) {
		size_t space = strspn(argument, " \t\n"), word, name;

		fwrite(argument, 1, space, f);
		argument += space;
		word = strcspn(argument, " \t\n");
		name = strcspn(argument, "= \t\n");
		if (word && *pending && *argument != '-') {
			fputs(REDACTED, f);
		} else if (name < word && name_is_secret(argument, name)) {
			fwrite(argument, 1, name, f);
			fputs("=" REDACTED, f);
		} else {
			fwrite(argument, 1, word, f);
		}
		if (word)
			*pending = *argument == '-' && name == word && name_is_secret(argument, word);
		argument += word;
	}
	if (f)
		fclose(f);
	return out;
}

static json_t *json_argv(char *const *argv)
{
	json_t *array = json_array();
	bool pending = false;

	for (; *argv; argv++) {
		char *text = redact(*argv, &pending);

		json_array_append_new(array, json_text(text ? text : REDACTED));
		free(text);
	}
	return array;
}

/* ---- environment: what changes what a server does on the GPU ---- */

static bool env_is_general(const char *entry)
{
	static const char *const prefix[] = { "CUDA_",       "GGML_CUDA_",
					      "XLA_",        "JAX_",
					      "PYTORCH_",    "TORCH_",
					      "TRITON_",     "NCCL_",
					      "SLOTPROBE_",  "NVIDIA_VISIBLE_DEVICES=",
					      "OMP_",        "PYTHONPATH=",
					      "LD_PRELOAD=", "LD_LIBRARY_PATH=" };

	for (size_t i = 0; i < sizeof(prefix) / sizeof(prefix[0]); i++)
		if (!strncmp(entry, prefix[i], strlen(prefix[i])))
			return true;
	return false;
}

/* A server's own variables are known by its adapter: NAME_... for the adapter NAME. */
static bool env_is_adapters(const char *entry, const struct adapter *adapters, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t bytes = strlen(adapters[i].name);

		if (!strncasecmp(entry, adapters[i].name, bytes) && entry[bytes] == '_')
			return true;
	}
	return false;
}

static json_t *json_env(const struct adapter *adapters, size_t n_adapters)
{
	json_t *object = json_object();
	char name[128], safe_name[520];

	for (char **e = environ; e && *e; e++) {
		size_t n = strcspn(*e, "=");

		if (!(*e)[n] || n >= sizeof(name) || !(env_is_general(*e) || env_is_adapters(*e, adapters, n_adapters)))
			continue;
		memcpy(name, *e, n);
		name[n] = 0;
		text_safe(safe_name, sizeof(safe_name), name, n);
		json_object_set_new(object, safe_name,
				    name_is_secret(name, n) ? json_string(REDACTED) : json_text(*e + n + 1));
	}
	return object;
}

/* ---- the object ---- */

static json_t *json_now(void)
{
	struct timespec now;
	struct tm tm;
	char text[64];
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%03ldZ", now.tv_nsec / 1000000);
	return json_string(text);
}

static json_t *json_adapters(const struct adapter *adapters, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *points = json_array();

		for (size_t p = 0; p < adapters[i].n_points; p++)
			json_array_append_new(points, json_text(adapters[i].points[p]));
		json_array_append_new(array, json_pack("{s:o, s:o, s:o, s:o}", "name", json_text(adapters[i].name),
						       "library", json_text(adapters[i].library), "package",
						       json_text(adapters[i].package), "points", points));
	}
	return array;
}

/* Start time of this process, as /proc counts it: with the pid it tells whether the recorder still lives. */
static json_t *json_recorder(void)
{
	char text[1024] = "";
	unsigned long long start = 0;
	FILE *f = fopen("/proc/self/stat", "re");
	char *p = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;

	if (f)
		fclose(f);
	for (int field = 3; p && field <= 22; field++)
		p = strchr(p + 1, ' ');
	if (p)
		start = strtoull(p, NULL, 10);
	return json_pack("{s:I, s:I}", "pid", (json_int_t)getpid(), "starttime", (json_int_t)start);
}

json_t *manifest_new(const char *arm, char *const *argv, const struct adapter *adapters, size_t n_adapters,
		     json_t *options)
{
	json_t *m = json_object();
	char *cwd = getcwd(NULL, 0);
	struct utsname host;

	json_object_set_new(m, "schema_version", json_integer(MANIFEST_VERSION));
	json_object_set_new(m, "tool_version", json_string(SLOTPROBE_VERSION));
	json_object_set_new(m, "arm", json_text(arm));
	json_object_set_new(m, "argv", json_argv(argv));
	json_object_set_new(m, "cwd", json_text(cwd));
	json_object_set_new(m, "host", uname(&host) ? json_null() : json_text(host.nodename));
	json_object_set_new(m, "started", json_now());
	json_object_set_new(m, "ended", json_null());
	json_object_set_new(m, "exit", json_null());
	json_object_set_new(m, "adapters", json_adapters(adapters, n_adapters));
	json_object_set_new(m, "options", options);
	json_object_set_new(m, "env", json_env(adapters, n_adapters));
	json_object_set_new(m, "recorder", json_recorder());
	free(cwd);
	return m;
}

void manifest_end(json_t *manifest, int exit_status)
{
	json_object_set_new(manifest, "ended", json_now());
	json_object_set_new(manifest, "exit", json_integer(exit_status));
}

/* ---- writing ---- */

static int write_new(const json_t *manifest, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	int failed, saved;

	if (!f)
		return -1;
	errno = 0;
	failed = json_print(f, manifest) | fflush(f) | ferror(f) | fsync(fd);
	saved = errno;
	if (fclose(f) && !failed)
		return -1;
	errno = saved;
	return failed ? -1 : 0;
}

int manifest_write(const json_t *manifest, const char *directory, struct error *error)
{
	char *path = NULL, *temporary = NULL;
	int failed = -1, saved = ENOMEM;

	if (asprintf(&path, "%s/%s", directory, MANIFEST_NAME) < 0)
		path = NULL;
	if (asprintf(&temporary, "%s/" MANIFEST_TEMPORARY, directory) < 0)
		temporary = NULL;
	if (path && temporary) {
		unlink(temporary);
		failed = write_new(manifest, temporary) || rename(temporary, path);
		saved = errno;
		if (failed)
			unlink(temporary);
	}
	if (failed)
		error_set(error, "cannot write '%s': %s", path ? path : MANIFEST_NAME, strerror(saved));
	free(path);
	free(temporary);
	return failed ? -1 : 0;
}
