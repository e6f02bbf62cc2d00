/* SPDX-License-Identifier: Apache-2.0
 *
 * bypass.c: what is bound past the preload is found, once; and looking harms no fork.
 */
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#ifndef RTLD_DEEPBIND /* a sanitizer's C library may lack it */
#define RTLD_DEEPBIND 0
#endif

static unsigned looked(void)
{
	FROM_PRELOAD(bypass_look)();
	return seen()->bypassed;
}

static void *open_plugin(int mode)
{
	void *plugin = dlopen("libplugin.so", mode);

	CHECK(plugin);
	return plugin;
}

/* The driver's functions are fake: nothing is called, the bindings alone count. */
static void found(void)
{
	void *plugin;

	CHECK_INT(looked(), 0); /* no driver in the process */
	CHECK(dlopen("libcuda.so.1", RTLD_NOW));
	CHECK_INT(looked(), 0);
	plugin = open_plugin(RTLD_NOW | RTLD_LOCAL);
	CHECK_INT(looked(), 0);
	dlclose(plugin);
	CHECK_INT(looked(), 0);

	plugin = open_plugin(RTLD_NOW | RTLD_DEEPBIND);
	CHECK_INT(looked(), 1);
	CHECK(!strcmp(seen()->bypassed_symbol, "dlsym") && strstr(seen()->bypassed_object, "/libplugin.so"));
	CHECK_INT(looked(), 1); /* once */
	dlclose(plugin);
	CHECK_INT(looked(), 1);
	CHECK(dlopen("libstranger.so", RTLD_NOW));
	CHECK_INT(looked(), 1);
	plugin = open_plugin(RTLD_NOW | RTLD_DEEPBIND);
	CHECK_INT(looked(), 2); /* another time is another object */
	CHECK(dlopen("libquiet.so", RTLD_NOW));
	CHECK_INT(looked(), 2);
	CHECK(dlopen("libquiet-too.so", RTLD_NOW | RTLD_DEEPBIND)); /* exports nothing, so its hash table is empty */
	CHECK_INT(looked(), 3);
	CHECK(strstr(seen()->bypassed_object, "/libquiet-too.so"));
	dlclose(plugin);
	CHECK_INT(looked(), 3); /* and what stays is not told again when another goes */
}

/* Bound when it is first called, so nothing is said before; then it is found without anything else being loaded. */
static void lazy(void)
{
	void *plugin;
	int (*finds)(void);

	CHECK(dlopen("libcuda.so.1", RTLD_NOW));
	plugin = open_plugin(RTLD_LAZY | RTLD_DEEPBIND);
	CHECK_INT(looked(), 0);
	CHECK_INT(looked(), 0);
	finds = (int (*)(void))dlsym(plugin, "plugin_finds_its_own");
	CHECK(finds);
	finds();
	CHECK_INT(looked(), 1);
}

static bool stop;

static void *look_on(void *look)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		((void (*)(void))look)();
	return NULL;
}

static int each(struct dl_phdr_info *info, size_t bytes, void *n)
{
	(void)info, (void)bytes;
	++*(unsigned *)n;
	return 0;
}

/* The thread that looks holds the loader's lock a part of the time; no child may find it held. */
static void forks(void)
{
	pthread_t thread;
	int status;

	CHECK(dlopen("libcuda.so.1", RTLD_NOW));
	looked();
	CHECK(!pthread_create(&thread, NULL, look_on, (void *)FROM_PRELOAD(bypass_look)));
	for (unsigned i = 0; i < 400; i++) {
		pid_t child;

		dlclose(dlopen("libstranger.so", RTLD_NOW)); /* so that the look is a whole one */
		child = fork();
		if (!child) {
			unsigned n = 0;

			alarm(5);
			dl_iterate_phdr(each, &n);
			_exit(n < 3);
		}
		CHECK(child > 0 && waitpid(child, &status, 0) == child);
		CHECK_INT(status, 0);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "found"))
		found();
	else if (!strcmp(what, "lazy"))
		lazy();
	else if (!strcmp(what, "forks"))
		forks();
	else
		return 2;
	return 0;
}
