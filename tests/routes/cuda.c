/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda.c: gets hold of the driver, in each of the ways that programs do.
 */
#include "cuda.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda cu;
static void *library;

#define CUDA_VERSION 12020 /* its newest form of each entry is the one that cuda.h declares */
#define PER_THREAD   2     /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */

typedef int proc_fn(const char *name, void **found, int version, uint64_t flags);
typedef int proc_v2_fn(const char *name, void **found, int version, uint64_t flags, int *status);

void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_Exit(2);
}

static void *by_symbol(const char *symbol)
{
	void *found = library ? dlsym(library, symbol) : NULL;

	if (!found)
		die("the driver has no %s", symbol);
	return found;
}

static void *by_name(const char *how, const char *name)
{
	void *found = NULL;
	int status = 0, result;

	if (!strcmp(how, "proc"))
		result = ((proc_fn *)by_symbol("cuGetProcAddress"))(name, &found, CUDA_VERSION, 0);
	else
		result = ((proc_v2_fn *)by_symbol("cuGetProcAddress_v2"))(
			name, &found, CUDA_VERSION, strcmp(how, "per-thread") ? 0 : PER_THREAD, &status);
	if (result || status || !found)
		die("the driver gives no %s", name);
	return found;
}

#ifdef LINKED
#define CUDA_DECLARE(member, symbol, name, args, params) extern int symbol params;
CUDA_CALLS(CUDA_DECLARE)
/* A call and an address are bound by different relocations, but where there are both the linker makes one of them. */
#ifdef BY_ADDRESS
#define CUDA_LINK(member, symbol, name, args, params) cu.member = symbol;
#else
#define CUDA_CALL(member, symbol, name, args, params)                                                                  \
	static int call_##member params                                                                                \
	{                                                                                                              \
		return symbol args;                                                                                    \
	}
CUDA_CALLS(CUDA_CALL)
#define CUDA_LINK(member, symbol, name, args, params) cu.member = call_##member;
#endif

static void load_linked(void)
{
	CUDA_CALLS(CUDA_LINK)
}
#else
static void load_linked(void)
{
	die("not linked to libcuda");
}
#endif

void cuda_load(const char *how)
{
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		die("no CUDA driver: %s", dlerror());
	if (!strcmp(how, "linked")) {
		load_linked();
		return;
	}
#define CUDA_FIND(member, symbol, name, args, params)                                                                  \
	cu.member = (int(*) params)(strcmp(how, "dlsym") ? by_name(how, name) : by_symbol(#symbol));
	CUDA_CALLS(CUDA_FIND)
}

void *cuda_find(const char *symbol)
{
	return by_symbol(symbol);
}
