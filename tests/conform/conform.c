/* SPDX-License-Identifier: Apache-2.0
 *
 * conform.c: makes every driver call that slotprobe makes or intercepts, and the calls around them, with good and bad
 * arguments, and writes what the driver answered: one JSON transcript, to be compared between drivers.
 *
 *	conform [-o FILE] [GROUP]...
 *
 * Each group runs in a process of its own, which loads libcuda.so.1 afresh: what one leaves behind cannot change another.
 * A group that a call ends is run again without that call, which stands in the transcript as crashed.
 * Exit status 0: every group ran to its end.
 */
#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform.h"
#include "shim/hook/driver.h"
#include "shim/hook/entry.h"

#define GROUP_SECONDS 60
#define MAX_CRASHES   8

struct conform_driver cu;

/* Compiling this is the check that every call of the shim stands in the table that conform calls through. */
__attribute__((unused)) static void every_call_of_the_shim(void)
{
#define KNOWN(member, symbol, needed, params) (void)cu.symbol;
	SHIM_DRIVER_CALLS(KNOWN)
#undef KNOWN
#define KNOWN(symbol, wrapper, args, ...) (void)cu.symbol;
	SHIM_ENTRIES(KNOWN)
#undef KNOWN
}

static const struct group {
	const char *name;
	void (*run)(void);
} groups[] = {
#define GROUP(name) { #name, group_##name },
	CONFORM_GROUPS(GROUP)
#undef GROUP
};
#define N_GROUPS (sizeof(groups) / sizeof(groups[0]))

/* ---- in the process of a group ---- */

static const char *group_name;
static FILE *out;         /* a line for each case that begins, one for each that ended */
static json_t *crashed;   /* cases that are left out */
static json_t *last_case; /* ended, not yet written: see() may still add to it */
static char name[512];

static void write_line(json_t *line)
{
	json_dumpf(line, out, JSON_COMPACT | JSON_PRESERVE_ORDER);
	fputc('\n', out);
	fflush(out);
	json_decref(line);
}

static void flush_case(void)
{
	if (last_case)
		write_line(last_case);
	last_case = NULL;
}

static void new_case(cu_result result)
{
	last_case = json_pack("{s:s, s:i}", "case", name, "result", result);
}

bool case_begin(const char *symbol, const char *what)
{
	flush_case();
	snprintf(name, sizeof(name), "%s/%s%s%s", group_name, symbol, *what ? " " : "", what);
	if (json_object_get(crashed, name)) {
		new_case(CASE_CRASHED);
		return false;
	}
	write_line(json_pack("{s:s}", "begin", name));
	return true;
}

cu_result case_end(cu_result result)
{
	new_case(result);
	return result;
}

static void see_value(const char *key, json_t *value)
{
	json_t *seen = json_object_get(last_case, "seen");

	if (!seen) {
		seen = json_object();
		json_object_set_new(last_case, "seen", seen);
	}
	json_object_set_new(seen, key, value);
}

void see(const char *key, long long value)
{
	see_value(key, json_integer(value));
}

void see_text(const char *key, const char *text)
{
	see_value(key, text ? json_string(text) : json_null());
}

void setup_failed(const char *call, cu_result result)
{
	flush_case();
	snprintf(name, sizeof(name), "%s/setup", group_name);
	new_case(result);
	see_text("call", call);
	flush_case();
	_exit(3);
}

static void load_driver(void)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	if (!libcuda)
		setup_failed(dlerror(), CASE_ABSENT);
#define LOAD(symbol, proc, version, params) cu.symbol = (cu_result(*) params)dlsym(libcuda, #symbol);
#define LOAD_PAIR(symbol, suffix, proc, version, params)                                                               \
	LOAD(symbol, proc, version, params) cu.symbol##suffix = (cu_result(*) params)dlsym(libcuda, #symbol #suffix);
	CPU_CALLS(LOAD, LOAD_PAIR)
}

static void run_group(const struct group *group, int fd)
{
	alarm(GROUP_SECONDS);
	group_name = group->name;
	out = fdopen(fd, "w");
	load_driver();
	group->run();
	flush_case();
	fclose(out);
	_exit(0);
}

/* ---- in the parent ---- */

/* Adds the cases of one run to `cases`; returns the name of the one that was under way at its end, or NULL. */
static char *read_cases(FILE *in, json_t *cases)
{
	char *under_way = NULL, *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, in) > 0) {
		json_t *row = json_loads(line, 0, NULL);
		const char *begun = json_string_value(json_object_get(row, "begin"));

		free(under_way);
		under_way = begun ? strdup(begun) : NULL;
		if (row && !begun)
			json_array_append(cases, row);
		json_decref(row);
	}
	free(line);
	return under_way;
}

/* Wait status of one run. */
static int run_once(const struct group *group, json_t *cases, char **under_way)
{
	int fd[2], status = -1;
	FILE *in;
	pid_t pid;

	if (pipe(fd) || (pid = fork()) < 0) {
		perror("conform");
		exit(2);
	}
	if (!pid) {
		close(fd[0]);
		run_group(group, fd[1]);
	}
	close(fd[1]);
	in = fdopen(fd[0], "r");
	*under_way = read_cases(in, cases);
	fclose(in);
	waitpid(pid, &status, 0);
	return status;
}

/* A group that crashed is run again without the case that was under way. */
static bool run_to_the_end(const struct group *group, json_t *all)
{
	crashed = json_object();
	for (int runs = 0; runs <= MAX_CRASHES; runs++) {
		json_t *cases = json_array();
		char *under_way;
		int status = run_once(group, cases, &under_way);
		bool whole = WIFEXITED(status) && !WEXITSTATUS(status);

		if (!whole)
			fprintf(stderr, "conform: %s: %s %d in %s\n", group->name,
				WIFSIGNALED(status) ? "signal" : "exit status",
				WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
				under_way ? under_way : "none of its cases");
		if (whole || !under_way || runs == MAX_CRASHES)
			json_array_extend(all, cases);
		json_decref(cases);
		if (under_way && !whole)
			json_object_set_new(crashed, under_way, json_true());
		if (whole || !under_way) {
			free(under_way);
			json_decref(crashed);
			return whole;
		}
		free(under_way);
	}
	json_decref(crashed);
	return false;
}

static bool wanted(const char *group, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(*names, group))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	json_t *cases = json_array(), *transcript;
	const char *path = NULL;
	bool good = true;
	int option, error;

	while ((option = getopt(argc, argv, "o:")) != -1) {
		if (option != 'o') {
			fprintf(stderr, "usage: conform [-o FILE] [GROUP]...\n");
			return 2;
		}
		path = optarg;
	}
	for (size_t i = 0; i < N_GROUPS; i++)
		if (wanted(groups[i].name, argv + optind))
			good &= run_to_the_end(&groups[i], cases);
	transcript = json_pack("{s:i, s:o}", "format", 1, "cases", cases);
	error = path ? json_dump_file(transcript, path, JSON_INDENT(1) | JSON_PRESERVE_ORDER)
		     : json_dumpf(transcript, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	if (error)
		fprintf(stderr, "conform: cannot write %s\n", path ? path : "to the standard output");
	json_decref(transcript);
	return good && !error ? 0 : 1;
}
