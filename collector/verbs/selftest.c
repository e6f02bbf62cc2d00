/* SPDX-License-Identifier: Apache-2.0
 *
 * selftest.c: slotprobe selftest: the positive controls on this machine.
 *
 * A tool that finds no difference proves nothing until it has found one that is known to be there. Four recordings of the
 * toy server: clean, clean again, one slot altered, the donation probe left out. They must compare as equal, as differing in
 * that slot, and as not proven.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/driver.h"
#include "launch/install.h"
#include "options.h"
#include "print/print.h"

#define SELFTEST_SCHEMA   1
#define RECORDING_SECONDS "180"

enum { CONTROL_EQUAL, CONTROL_DIFFERS, CONTROL_NOT_PROVEN, CONTROL_COUNT };

struct control {
	const char *name, *against; /* the recording that is compared with the first */
	int expected, got;
	bool held;
	char text[512];
};

struct selftest {
	struct options o;
	bool cpu;
	struct driver_report report;
	char toyserver[PATH_MAX], cpudriver[PATH_MAX], self[PATH_MAX];
	char folder[PATH_MAX];
	int64_t slot; /* the one that is altered */
	struct control control[CONTROL_COUNT];
};

/* ---- which driver ---- */

static int use_cpu(struct selftest *t, struct error *error)
{
	t->cpu = true;
	if (install_helper("cpudriver/libcuda.so.1", t->cpudriver, sizeof(t->cpudriver), error))
		return -1;
	driver_probe(&t->report, t->cpudriver);
	if (t->report.state == DRIVER_WORKS)
		return 0;
	error_set(error, "the CPU driver '%s' does not work: %s", t->cpudriver, t->report.problem);
	return -1;
}

/* A CUDA driver that is there and fails is what the user must hear of: the CPU would hide it. */
static int choose_driver(struct selftest *t, struct error *error)
{
	const char *which = options_text(&t->o, "driver");
	bool no_driver;

	if (!strcmp(which, "cpu"))
		return use_cpu(t, error);
	driver_probe(&t->report, NULL);
	no_driver = t->report.state == DRIVER_ABSENT || (t->report.state == DRIVER_WORKS && t->report.stand_in);
	if (t->report.state == DRIVER_WORKS && !no_driver)
		return 0;
	if (no_driver && !strcmp(which, "auto"))
		return use_cpu(t, error);
	if (t->report.state == DRIVER_WORKS)
		error_set(error, "the libcuda.so.1 that the loader finds is slotprobe's CPU stand-in, which is no CUDA "
				 "driver: take its folder out of LD_LIBRARY_PATH, or test with --driver cpu");
	else if (no_driver)
		error_set(error, "there is no CUDA driver (libcuda.so.1); --driver cpu tests without one");
	else
		error_set(error,
			  "a CUDA driver is there and does not work: %s; 'slotprobe doctor' says more, --driver cpu "
			  "tests "
			  "without it",
			  t->report.problem);
	return -1;
}

/* ---- the recordings ---- */

static char *path_in(const struct selftest *t, const char *name, const char *suffix)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s%s", t->folder, name, suffix) < 0 ? NULL : path;
}

/* In the child: everything that is said goes into a file beside the run. */
static void record_exec(const struct selftest *t, char *const *argv, const char *said)
{
	int fd = open(said, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const char *before = getenv("LD_LIBRARY_PATH");
	char *libraries = NULL, *slash;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	if (t->cpu) {
		if (asprintf(&libraries, "%s%s%s", t->cpudriver, before ? ":" : "", before ? before : "") < 0)
			_exit(125);
		slash = strstr(libraries, "/libcuda.so.1");
		memmove(slash, slash + strlen("/libcuda.so.1"), strlen(slash + strlen("/libcuda.so.1")) + 1);
		setenv("LD_LIBRARY_PATH", libraries, 1);
	}
	execv(t->self, argv);
	_exit(125);
}

/* The last line that the recording said, for the error. */
static void last_words(const char *path, char *out, size_t size)
{
	char line[300];
	FILE *f = fopen(path, "re");

	snprintf(out, size, "it said nothing");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (*line)
			snprintf(out, size, "%s", line);
	}
	if (f)
		fclose(f);
}

static int record_wait(const char *name, const char *said, pid_t child, struct error *error)
{
	char words[300];
	int status = 0;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	last_words(said, words, sizeof(words));
	error_set(error, "the recording '%s' ended with status %d: %s", name,
		  WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), words);
	return -1;
}

/* Records the toy server as `name`; `option` and `value` (may be NULL) are what sets it apart. */
static int record(const struct selftest *t, const char *name, const char *option, const char *value,
		  struct error *error)
{
	char *run = path_in(t, name, ""), *said = path_in(t, name, ".txt");
	char *argv[] = { "slotprobe",
			 "record",
			 "-o",
			 run,
			 "--arm",
			 "graph-on",
			 "--min-free",
			 "64M",
			 "--max-size",
			 "1G",
			 "--",
			 "timeout",
			 "-k",
			 "5",
			 RECORDING_SECONDS,
			 (char *)t->toyserver,
			 "--arm",
			 "graph-on",
			 (char *)option,
			 (char *)value,
			 NULL };
	int failed = -1;
	pid_t child;

	fflush(NULL);
	child = run && said ? fork() : -1;
	if (!child)
		record_exec(t, argv, said);
	if (child > 0)
		failed = record_wait(name, said, child, error);
	else
		error_set(error, "cannot start the recording '%s': %s", name, strerror(errno));
	free(run);
	free(said);
	return failed;
}

/* ---- the comparisons ---- */

/* diff of the first recording with `name`, in this process: its JSON, and its status. */
static json_t *compare(const struct selftest *t, const char *name, int *status)
{
	char *a = path_in(t, "clean", ""), *b = path_in(t, name, ""), *out = path_in(t, name, ".json");
	char *argv[] = { "diff", "--format", "json", "-o", out, a, b, NULL };
	json_t *result = NULL;

	*status = -1;
	if (a && b && out) {
		*status = cmd_diff(7, argv);
		result = json_load_file(out, 0, NULL);
	}
	free(a);
	free(b);
	free(out);
	return result;
}

/* A slot that the clean runs compared: neither the first nor the last, so that off-by-one does not pass. */
static int choose_slot(struct selftest *t, const json_t *equal, struct error *error)
{
	const json_t *slots = json_object_get(equal, "slots");
	const json_t *slot = json_object_get(json_array_get(slots, json_array_size(slots) / 2), "slot");

	if (!json_is_integer(slot)) {
		error_set(error, "the clean recordings compared no slot: diff exited %d, %s",
			  t->control[CONTROL_EQUAL].got, t->control[CONTROL_EQUAL].text);
		return -1;
	}
	t->slot = json_integer_value(slot);
	return 0;
}

static bool names_slot(const json_t *result, int64_t wanted)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(result, "slots"), i, entry)
	{
		const char *verdict = json_string_value(json_object_get(entry, "verdict"));

		if (json_integer_value(json_object_get(entry, "slot")) == wanted && verdict &&
		    !strcmp(verdict, "differs"))
			return true;
	}
	return false;
}

static bool code_came_before(const json_t *result, size_t n, const char *code)
{
	const json_t *reasons = json_object_get(result, "reasons");

	for (size_t i = 0; i < n; i++) {
		const char *other = json_string_value(json_object_get(json_array_get(reasons, i), "code"));

		if (other && !strcmp(other, code))
			return true;
	}
	return false;
}

/* "verdict: reason, reason". */
static void describe(const json_t *result, char *out, size_t size)
{
	const char *verdict = json_string_value(json_object_get(result, "verdict"));
	size_t i, at = (size_t)snprintf(out, size, "%s", verdict ? verdict : "no result");
	const json_t *reason;

	json_array_foreach(json_object_get(result, "reasons"), i, reason)
	{
		const char *code = json_string_value(json_object_get(reason, "code"));

		/* Reasons of one code come many times: each code is said once. */
		if (at >= size || !code || code_came_before(result, i, code))
			continue;
		at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : ": ", code);
	}
}

static json_t *run_control(const struct selftest *t, struct control *c)
{
	json_t *result = compare(t, c->against, &c->got);

	describe(result, c->text, sizeof(c->text));
	c->held = c->got == c->expected;
	return result;
}

static void differs_control(const struct selftest *t, struct control *c)
{
	json_t *result = run_control(t, c);
	bool named = names_slot(result, t->slot);
	size_t at = strlen(c->text);

	c->held = c->held && named;
	snprintf(c->text + at, sizeof(c->text) - at, "; slot %" PRId64 " was altered and is %s", t->slot,
		 named ? "named" : "not named");
	json_decref(result);
}

static int run_all(struct selftest *t, struct error *error)
{
	char slot[32];
	json_t *result;
	int failed;

	if (record(t, "clean", NULL, NULL, error) || record(t, "again", NULL, NULL, error))
		return -1;
	result = run_control(t, &t->control[CONTROL_EQUAL]);
	failed = choose_slot(t, result, error);
	json_decref(result);
	snprintf(slot, sizeof(slot), "%" PRId64, t->slot);
	if (failed || record(t, "perturbed", "--perturb-slot", slot, error) ||
	    record(t, "unprobed", "--no-donate", NULL, error))
		return -1;
	differs_control(t, &t->control[CONTROL_DIFFERS]);
	json_decref(run_control(t, &t->control[CONTROL_NOT_PROVEN]));
	return 0;
}

/* ---- the folder ---- */

static int make_folder(struct selftest *t, struct error *error)
{
	const char *parent = getenv("TMPDIR");

	snprintf(t->folder, sizeof(t->folder), "%s/slotprobe-selftest.XXXXXX", parent && *parent ? parent : "/tmp");
	if (mkdtemp(t->folder))
		return 0;
	error_set(error, "cannot make '%s': %s; set TMPDIR to a folder that you can write", t->folder, strerror(errno));
	t->folder[0] = 0;
	return -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void remove_folder(const struct selftest *t)
{
	nftw(t->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static int find_parts(struct selftest *t, struct error *error)
{
	ssize_t n = readlink("/proc/self/exe", t->self, sizeof(t->self) - 1);

	if (n <= 0) {
		error_set(error, "cannot tell where slotprobe lies: /proc/self/exe: %s", strerror(errno));
		return -1;
	}
	t->self[n] = 0;
	return install_helper("toyserver/toyserver", t->toyserver, sizeof(t->toyserver), error);
}

/* ---- printing ---- */

static void print_json(const struct selftest *t, int status)
{
	json_t *array = json_array(), *all;

	for (int i = 0; i < CONTROL_COUNT; i++) {
		const struct control *c = &t->control[i];

		json_array_append_new(array,
				      json_pack("{s:s, s:i, s:i, s:b, s:o}", "name", c->name, "expected", c->expected,
						"got", c->got, "held", c->held, "text", json_text(c->text)));
	}
	all = json_pack("{s:i, s:s, s:i, s:s, s:o, s:o, s:o}", "schema_version", SELFTEST_SCHEMA, "tool",
			"slotprobe " SLOTPROBE_VERSION, "exit_status", status, "driver", t->cpu ? "cpu" : "cuda",
			"driver_version", json_text(t->report.driver), "device", json_text(t->report.device),
			"controls", array);
	json_print(stdout, all);
	json_decref(all);
}

static void print_text(const struct selftest *t, int status)
{
	bool color = t->o.color;

	printf("driver: %s (%s), device: %s\n", t->cpu ? "cpu" : "cuda", safe(t->report.driver),
	       safe(t->report.device));
	for (int i = 0; i < CONTROL_COUNT; i++) {
		const struct control *c = &t->control[i];

		printf("  %s%s%s  %-44s expected %d, got %d (%s)\n", color_on(color, c->held ? COLOR_GREEN : COLOR_RED),
		       c->held ? "ok  " : "FAIL", color_off(color), c->name, c->expected, c->got, safe(c->text));
	}
	printf("%s\n", status ? "selftest FAILED" : "selftest passed");
}

/* ---- the verb ---- */

static int judge(const struct selftest *t)
{
	for (int i = 0; i < CONTROL_COUNT; i++)
		if (!t->control[i].held)
			return 1;
	return 0;
}

/* 0 or 1; -1: *error says why nothing could be judged. */
static int selftest(struct selftest *t, struct error *error)
{
	if (choose_driver(t, error) || find_parts(t, error) || make_folder(t, error))
		return -1;
	if (run_all(t, error))
		return -1;
	return judge(t);
}

static void print(const struct selftest *t, int status)
{
	if (t->o.json)
		print_json(t, status);
	else
		print_text(t, status);
}

int cmd_selftest(int argc, char **argv)
{
	struct selftest t = {
		.control = { { .name = "two clean recordings are equal", .against = "again", .expected = 0 },
			     { .name = "one altered slot is found and named", .against = "perturbed", .expected = 1 },
			     { .name = "a disabled probe is not proven", .against = "unprobed", .expected = 3 } }
	};
	struct error error;
	int status = options_parse(VERB_selftest, argc, argv, &t.o);

	if (status >= 0)
		return status;
	status = selftest(&t, &error);
	/* Before anything is printed: whoever reads may go away, and the folder must not stay for that. */
	if (!status)
		remove_folder(&t);
	if (status < 0)
		complain("selftest", "%s", error.text);
	else
		print(&t, status);
	if (status && *t.folder)
		complain("selftest", "the recordings are kept in '%s'", t.folder);
	options_free(&t.o);
	return status ? 1 : 0;
}
