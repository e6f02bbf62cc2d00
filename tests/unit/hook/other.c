/* SPDX-License-Identifier: Apache-2.0
 *
 * other.c: another preload that wants the same launches. Built three ways: NEXT goes on by RTLD_NEXT; HANDLE asks dlsym
 * for libcuda's own; DLSYM overrides dlsym as well and post-processes every result, as virtual-GPU libraries do.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef int launch_fn(void *exec, void *stream);
typedef void *dlsym_fn(void *handle, const char *name);

unsigned other_calls;
int cuGraphLaunch(void *exec, void *stream);

#if defined(DLSYM)
static dlsym_fn *real(void)
{
#ifdef __x86_64__
	return (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
#else
	return (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
#endif
}

void *dlsym(void *handle, const char *name);
void *dlsym(void *handle, const char *name)
{
	void *found = real()(handle, name);

	return found && !strcmp(name, "cuGraphLaunch") ? (void *)cuGraphLaunch : found;
}
#define NEXT_LAUNCH real()(dlopen("libcuda.so.1", RTLD_NOW), "cuGraphLaunch")
#elif defined(HANDLE)
#define NEXT_LAUNCH dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGraphLaunch")
#else
#define NEXT_LAUNCH dlsym(RTLD_NEXT, "cuGraphLaunch")
#endif

int cuGraphLaunch(void *exec, void *stream)
{
	static int depth;
	launch_fn *next = (launch_fn *)NEXT_LAUNCH;
	int result;

	other_calls++;
	if (depth || !next)
		return 9999;
	depth++;
	result = next(exec, stream);
	depth--;
	return result;
}
