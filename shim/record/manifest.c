/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest.c: run.json for a run that nobody else described: without `slotprobe record` the first process writes it.
 * It appears whole or not at all, and never replaces one.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define MANIFEST_NAME "run.json"
#define REDACTED      "[redacted]"

#ifndef SLOTPROBE_VERSION
#define SLOTPROBE_VERSION "unknown"
#endif

/* JSON on its way out, a buffer at a time; the first error sticks. */
struct json {
	int fd, error;
	bool comma;
	size_t n;
	char buffer[4096];
};

static void json_flush(struct json *j)
{
	size_t done = 0;

	while (!j->error && done < j->n) {
		ssize_t n = write(j->fd, j->buffer + done, j->n - done);
		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			j->error = n == 0 ? EIO : errno;
	}
	j->n = 0;
}

static void json_raw(struct json *j, const char *s, size_t n)
{
	for (; n--; s++) {
		if (j->n == sizeof j->buffer)
			json_flush(j);
		j->buffer[j->n++] = *s;
	}
}

static void json_text(struct json *j, const char *s)
{
	json_raw(j, s, strlen(s));
}

/* Length of the well-formed UTF-8 sequence at s, 0 if there is none: overlong forms, surrogates and what lies past
 * U+10FFFF are not. */
static size_t utf8_length(const unsigned char *s, const unsigned char *end)
{
	size_t n = *s < 0x80                 ? 1
		   : *s >= 0xc2 && *s < 0xe0 ? 2
		   : (*s & 0xf0) == 0xe0     ? 3
		   : *s >= 0xf0 && *s < 0xf5 ? 4
					     : 0;

	if (!n || n > (size_t)(end - s))
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return n;
}

static void json_escaped(struct json *j, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	char escape[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };

	if (c == '"' || c == '\\') {
		escape[1] = (char)c;
		json_raw(j, escape, 2);
	} else if (c < 0x20 || c == 0x7f) {
		json_raw(j, escape, 6);
	} else {
		json_raw(j, (const char *)&c, 1);
	}
}

static void json_string(struct json *j, const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + n;

	json_text(j, "\"");
	while (p < end) {
		size_t length = utf8_length(p, end);
		if (length == 1) {
			json_escaped(j, *p);
		} else if (length) {
			json_raw(j, (const char *)p, length);
		} else {
			json_text(j, "\xef\xbf\xbd"); /* U+FFFD */
			length = 1;
		}
		p += length;
	}
	json_text(j, "\"");
}

static void json_key(struct json *j, const char *name, size_t n)
{
	json_text(j, j->comma ? ",\n  " : "\n  ");
	json_string(j, name, n);
	json_text(j, ": ");
	j->comma = true;
}

static void json_member(struct json *j, const char *name, const char *value)
{
	json_key(j, name, strlen(name));
	if (value)
		json_string(j, value, strlen(value));
	else
		json_text(j, "null");
}

/* ---- what must not be told ---- */

/* One argument or one environment entry: what follows the first '=' after a telling name is left out, in `NAME=value`,
 * `--api-key=value` and `--env=NAME=value` alike. Returns whether the next argument is a value to leave out. */
static bool json_redacted(struct json *j, const char *arg, size_t n, bool hide)
{
	char shown[4096];
	struct record_text t = record_text_start(shown, sizeof shown);
	size_t at = 0;

	if (hide) {
		json_string(j, REDACTED, strlen(REDACTED));
		return false;
	}
	while (at < n && !(arg[at] == '=' && record_options_sensitive(arg, at)))
		at++;
	if (at == n) {
		json_string(j, arg, n);
		return arg[0] == '-' && !memchr(arg, '=', n) && record_options_sensitive(arg, n);
	}
	record_text_add_n(&t, arg, at + 1);
	record_text_add(&t, REDACTED);
	json_string(j, shown, strlen(shown));
	return false;
}

static void json_argv(struct json *j)
{
	static char args[65536];
	size_t n = record_text_read_file("/proc/self/cmdline", args, sizeof args);
	bool hide = false;

	json_key(j, "argv", 4);
	json_text(j, "[");
	for (size_t at = 0; at < n; at += strlen(args + at) + 1) {
		size_t length = strlen(args + at);
		if (at)
			json_text(j, ", ");
		/* Another option follows: the telling one was a switch, --skip-tokenizer-init say. */
		if (hide && !strncmp(args + at, "--", 2))
			hide = false;
		hide = json_redacted(j, args + at, length, hide);
	}
	json_text(j, "]");
}

static void json_env(struct json *j)
{
	const char *entry = record_options_env();

	json_key(j, "env", 3);
	json_text(j, "{");
	for (bool first = true; *entry; entry += strlen(entry) + 1, first = false) {
		size_t name = strcspn(entry, "=");
		json_text(j, first ? "\n    " : ",\n    ");
		json_string(j, entry, name);
		json_text(j, ": ");
		if (record_options_sensitive(entry, name))
			json_string(j, REDACTED, strlen(REDACTED));
		else
			json_redacted(j, entry + name + 1, strlen(entry + name + 1), false);
	}
	json_text(j, "\n  }");
}

/* ---- when and where ---- */

/* UTC by the calendar's arithmetic: gmtime_r takes the time zone's lock, and we may be in anybody's hands. */
static void iso_time(char *to, size_t bytes)
{
	uint64_t now = (uint64_t)time(NULL), day = now / 86400, second = now % 86400;
	uint64_t z = day + 719468, era = z / 146097, doe = z % 146097;
	uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
	uint64_t month = mp < 10 ? mp + 3 : mp - 9;
	struct record_text t = record_text_start(to, bytes);

	record_text_add_u64(&t, yoe + era * 400 + (month <= 2), 4);
	record_text_add(&t, "-");
	record_text_add_u64(&t, month, 2);
	record_text_add(&t, "-");
	record_text_add_u64(&t, doy - (153 * mp + 2) / 5 + 1, 2);
	record_text_add(&t, "T");
	record_text_add_u64(&t, second / 3600, 2);
	record_text_add(&t, ":");
	record_text_add_u64(&t, second / 60 % 60, 2);
	record_text_add(&t, ":");
	record_text_add_u64(&t, second % 60, 2);
	record_text_add(&t, "Z");
}

static void json_all(struct json *j)
{
	char now[40], cwd[PATH_MAX];
	struct utsname name;

	iso_time(now, sizeof now);
	json_text(j, "{");
	json_key(j, "schema_version", 14);
	json_text(j, "1");
	json_member(j, "tool_version", SLOTPROBE_VERSION);
	json_member(j, "arm", record_options()->arm);
	json_argv(j);
	json_member(j, "cwd", getcwd(cwd, sizeof cwd) ? cwd : NULL);
	json_member(j, "host", uname(&name) ? "unknown" : name.nodename);
	json_member(j, "started", now);
	json_member(j, "ended", NULL);
	json_member(j, "exit", NULL);
	json_key(j, "adapters", 8);
	json_text(j, "[]");
	json_key(j, "options", 7);
	json_text(j, "{}");
	json_env(j);
	json_text(j, "\n}\n");
	json_flush(j);
}

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1u
#endif

/* A hard link appears whole and never replaces; where there are none (some network file systems), a rename that does not
 * replace. Losing the race to another process of the run is success. */
void record_manifest_write(const struct record_rundir *dir)
{
	static struct json j; /* one start at a time; the stack may be anybody's */
	char name[64];
	struct record_text t = record_text_start(name, sizeof name);

	if (!faccessat(dir->fd, MANIFEST_NAME, F_OK, 0))
		return;
	memset(&j, 0, sizeof j);
	record_text_add(&t, ".run.json.");
	record_text_add_u64(&t, dir->pid, 1);
	record_text_add(&t, ".");
	record_text_add_u64(&t, dir->starttime, 1);
	j.fd = openat(dir->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (j.fd < 0) {
		ctr_internal_error();
		return;
	}
	json_all(&j);
	close(j.fd);
	if (!j.error && linkat(dir->fd, name, dir->fd, MANIFEST_NAME, 0) && errno != EEXIST &&
	    syscall(SYS_renameat2, dir->fd, name, dir->fd, MANIFEST_NAME, RENAME_NOREPLACE) && errno != EEXIST)
		j.error = errno;
	unlinkat(dir->fd, name, 0);
	if (j.error)
		ctr_internal_error();
}
