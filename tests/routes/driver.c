/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.c: one route to the driver API: launches graphs and says how many.
 *
 *	driver HOW WHAT N                        HOW, WHAT: see cuda.h and work.h
 *	driver HOW WHAT N plugin MODE FILE HOW2  then the same in a library that is opened MODE (local, deepbind,
 *	                                         deepbind-lazy); HOW none: there alone
 *	driver HOW WHAT N fork|exec|spawn        first fork, and work in both; first work, then become the same program
 *	                                         again; posix_spawn itself, and work in both
 */
#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda.h"
#include "work.h"

#ifndef RTLD_DEEPBIND
#define RTLD_DEEPBIND 0
#endif

extern char **environ;

typedef unsigned plugin_fn(const char *how, const char *what, unsigned n);

static void wait_for(pid_t child)
{
	int status = -1;

	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("the child ended with status %d", status);
}

static int mode_of(const char *name)
{
	if (!strcmp(name, "local"))
		return RTLD_NOW | RTLD_LOCAL;
	if (!strcmp(name, "deepbind"))
		return RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
	if (!strcmp(name, "deepbind-lazy"))
		return RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND;
	die("there is no mode %s", name);
}

static void work_in_plugin(char **argv, const char *what, unsigned n)
{
	void *plugin = dlopen(argv[1], mode_of(argv[0]));
	plugin_fn *run = plugin ? (plugin_fn *)dlsym(plugin, "plugin_work") : NULL;

	if (!run)
		die("%s", dlerror());
	launched += run(argv[2], what, n);
}

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[1] : "", *what = argc > 3 ? argv[2] : "";
	const char *then = argc > 4 ? argv[4] : "";
	unsigned n = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	char *again[] = { argv[0], argv[1], argv[2], argv[3], NULL };
	pid_t child = 0;

	if (argc < 4)
		die("usage: driver HOW WHAT N [plugin MODE FILE HOW | fork | exec | spawn]");
	if (!strcmp(then, "fork"))
		child = fork();
	else if (!strcmp(then, "spawn") && posix_spawn(&child, "/proc/self/exe", NULL, NULL, again, environ))
		child = -1;
	if (strcmp(how, "none"))
		work(how, what, child ? n + 1 : n);
	if (!strcmp(then, "plugin") && argc > 7)
		work_in_plugin(argv + 5, what, n);
	if (child)
		wait_for(child);
	say_launches();
	if (!strcmp(then, "exec")) {
		execv("/proc/self/exe", again);
		die("exec failed");
	}
	return 0;
}
