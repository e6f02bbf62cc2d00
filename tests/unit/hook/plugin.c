/* SPDX-License-Identifier: Apache-2.0
 *
 * plugin.c: a library that is opened locally and asks for its own symbols by RTLD_DEFAULT, and that launches through the
 * runtime which it links.
 */
#include <dlfcn.h>
#include <stddef.h>

int plugin_finds_its_own(void);
int cu_of_plugin(void);
int cu_of_plugin(void)
{
	return 1;
}

int plugin_finds_its_own(void)
{
	return dlsym(RTLD_DEFAULT, "plugin_finds_its_own") == (void *)plugin_finds_its_own &&
	       dlsym(RTLD_DEFAULT, "cu_of_plugin") == (void *)cu_of_plugin && !dlsym(RTLD_DEFAULT, "cu_none");
}

#ifdef WITH_RUNTIME
extern int cudaGraphLaunch(void *exec, void *stream);
int plugin_launch(void);
int plugin_launch_from_many_places(void);

#define HERE                                                                                                           \
	if (cudaGraphLaunch((void *)1, NULL) != expected)                                                              \
		return 0;
#define TEN(place) place place place place place place place place place place

/* More than anybody remembers: each answers alike. */
int plugin_launch_from_many_places(void)
{
	const int expected = plugin_launch();

	TEN(TEN(HERE))
	return expected;
}

int plugin_launch(void)
{
	int result = cudaGraphLaunch((void *)1, NULL);

	__asm__ volatile("" : "+r"(result)); /* no tail call: the caller shall be this library */
	return result;
}
#endif
