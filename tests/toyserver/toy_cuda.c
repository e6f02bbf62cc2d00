/* SPDX-License-Identifier: Apache-2.0
 *
 * toy_cuda.c: finds the driver's entry points.
 */
#include "toy_cuda.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct toy_cuda cu;

/* The newest form of each entry at this version is the one that toy_cuda.h declares. */
#define TOY_CUDA_VERSION 12000

typedef int (*proc_address)(const char *name, void **found, int version, uint64_t flags, int *status);

void toy_die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("toyserver: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

void toy_check(int result, const char *what)
{
	if (result)
		toy_die("driver error %d in %s", result, what);
}

static void *find(void *library, proc_address get, const char *symbol, const char *name)
{
	void *found = NULL;
	int status = 0;

	if (!get)
		found = dlsym(library, symbol);
	else if (get(name, &found, TOY_CUDA_VERSION, 0, &status) || status)
		found = NULL;
	if (!found)
		toy_die("the driver has no %s", get ? name : symbol);
	return found;
}

void toy_cuda_load(const char *path, bool by_proc_address)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	proc_address get = NULL;

	if (!library)
		toy_die("no CUDA driver: %s (--driver-lib PATH names another)", dlerror());
	if (by_proc_address) {
		get = (proc_address)dlsym(library, "cuGetProcAddress_v2");
		if (!get)
			toy_die("the driver has no cuGetProcAddress_v2");
	}
#define TOY_FIND(member, symbol, name, params) cu.member = (int(*) params)find(library, get, symbol, name);
	TOY_CUDA_CALLS(TOY_FIND)
#undef TOY_FIND
}

/* With the C library's own dlsym, which a preload's does not stand before. */
void *toy_cuda_past(const char *path, const char *symbol)
{
	static const char *const version[] = { "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34" };
	void *(*own)(void *, const char *) = NULL;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *found = NULL;

	for (size_t i = 0; i < sizeof version / sizeof version[0] && !own; i++)
		*(void **)&own = dlvsym(RTLD_DEFAULT, "dlsym", version[i]);
	if (own && library)
		found = own(library, symbol);
	if (!found)
		toy_die("no way past the preload");
	return found;
}
