/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime.c: launches through the runtime: linked, or from plugins that were opened locally with runtimes of their own.
 */
#include "check.h"

#ifdef LINKED
extern int cudaGraphLaunch(void *exec, void *stream);
extern int cudaGraphLaunch_ptsz(void *exec, void *stream);

int main(int argc, char **argv)
{
	unsigned missed = argc > 1 && !strcmp(argv[1], "hidden");

	(void)argv;
	CHECK_INT(cudaGraphLaunch(NULL, NULL), 13);
	CHECK_INT(cudaGraphLaunch_ptsz(NULL, NULL), 13);
	CHECK_INT(seen()->runtime, 2);
	CHECK_INT(seen()->runtime_missed, missed ? 2 : 0);
	CHECK_INT(BEGINS(seen()), missed ? 0 : 2);
	CHECK(dlsym(RTLD_DEFAULT, "cudaGraphLaunch") == (void *)cudaGraphLaunch);
	return 0;
}
#else
static int launch_in(const char *plugin)
{
	void *lib = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
	int (*launch)(void) = lib ? (int (*)(void))dlsym(lib, "plugin_launch") : NULL;

	if (!launch)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(launch);
	return launch() * 100 + launch();
}

static int launch_from_many_places(const char *plugin)
{
	void *lib = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
	int (*launch)(void) = lib ? (int (*)(void))dlsym(lib, "plugin_launch_from_many_places") : NULL;

	CHECK(launch);
	return launch();
}

int main(void)
{
	CHECK(!dlsym(RTLD_DEFAULT, "cudaGraphLaunch"));
	CHECK_INT(launch_in("libplugin12.so"), 1212);
	CHECK_INT(launch_in("libplugin13.so"), 1313);
	CHECK_INT(launch_in("libplugin12.so"), 1212);
	CHECK_INT(seen()->runtime, 6);
	CHECK_INT(seen()->runtime_missed, 0);
	CHECK_INT(BEGINS(seen()), 6);
	CHECK_INT(launch_from_many_places("libplugin13.so"), 13);
	CHECK_INT(launch_from_many_places("libplugin12.so"), 12);
	CHECK_INT(launch_from_many_places("libplugin13.so"), 13);
	CHECK_INT(seen()->runtime, 6 + 3 * 101);
	CHECK(dlsym(RTLD_DEFAULT, "cudaGraphLaunch"));
	CHECK(!dlerror());
	return 0;
}
#endif
