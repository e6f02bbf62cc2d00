/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime.c: the runtime's graph launch, watched only to attribute: a runtime launch in which no driver launch was seen
 * went by a route that is not hooked.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "shim/compat.h"
#include "hook.h"

#define INITIALIZATION_ERROR 3 /* cudaErrorInitializationError */

typedef int runtime_launch_fn(void *exec, void *stream);

static const char *const runtime_name[2] = { "cudaGraphLaunch", "cudaGraphLaunch_ptsz" };

/* A process may hold several runtimes, and what a caller is bound to depends on the caller: remembered by the place of
 * the call. Both words are written once; a place whose function is still missing is looked up again. */
struct site {
	uintptr_t place;
	void *function;
};
static struct site sites[2][64];

static bool is_runtime_file(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, "libcudart", 9);
}

static bool in_runtime_file(void *function)
{
	Dl_info info;

	return dladdr(function, &info) && info.dli_fname && is_runtime_file(info.dli_fname);
}

static bool ours(const void *function, unsigned which)
{
	return function == shim_runtime_exported(runtime_name[which]);
}

/* What the caller's library would have been bound to by its own dependencies. Only the runtime is kept loaded, never
 * the caller. */
static void *find_by_caller(unsigned which, void *place)
{
	Dl_info info;
	void *handle, *function;

	if (!place || !dladdr(place, &info) || !info.dli_fname)
		return NULL;
	handle = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
	if (!handle)
		return NULL;
	function = shim_lookup(handle, runtime_name[which]);
	if (function && (ours(function, which) || !dladdr(function, &info) || !info.dli_fname ||
			 !dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY)))
		function = NULL;
	dlclose(handle);
	return function;
}

struct search {
	unsigned skip;
	char path[1024];
};

static int match_runtime(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;

	(void)size;
	if (!info->dlpi_name || !is_runtime_file(info->dlpi_name))
		return 0;
	if (search->skip) {
		search->skip--;
		return 0;
	}
	snprintf(search->path, sizeof(search->path), "%s", info->dlpi_name);
	return 1;
}

/* Any loaded runtime, however it came in. dlopen runs outside of the iteration, which holds the loader's lock. */
static void *find_loaded(unsigned which)
{
	for (unsigned n = 0; n < 16; n++) {
		struct search search = { .skip = n };
		void *handle, *function;

		if (!dl_iterate_phdr(match_runtime, &search))
			return NULL;
		handle = dlopen(search.path, RTLD_NOLOAD | RTLD_LAZY);
		function = handle ? shim_lookup(handle, runtime_name[which]) : NULL;
		if (function && !ours(function, which))
			return function;
		if (handle)
			dlclose(handle);
	}
	return NULL;
}

/* Another preload behind us comes first, as it would without us; among runtimes the caller's own wins. */
static void *find(unsigned which, void *place)
{
	int saved = errno;
	void *next = shim_lookup(RTLD_NEXT, runtime_name[which]), *function = next;

	if (!next || in_runtime_file(next))
		function = find_by_caller(which, place);
	if (!function)
		function = next;
	if (!function)
		function = find_loaded(which);
	errno = saved;
	return function;
}

static void *function_for(unsigned which, void *place)
{
	uintptr_t key = (uintptr_t)place, hash = key ^ (key >> 7);
	void *function;

	for (unsigned i = 0; i < 8; i++) {
		struct site *site = &sites[which][(hash + i) % 64];
		uintptr_t there = __atomic_load_n(&site->place, __ATOMIC_ACQUIRE);

		if (!there &&
		    __atomic_compare_exchange_n(&site->place, &there, key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			there = key;
		if (there != key)
			continue;
		function = __atomic_load_n(&site->function, __ATOMIC_ACQUIRE);
		if (!function) {
			function = find(which, place);
			__atomic_store_n(&site->function, function, __ATOMIC_RELEASE);
		}
		return function;
	}
	return find(which, place);
}

static inline int launch(unsigned which, void *exec, void *stream, void *place)
{
	runtime_launch_fn *real = function_for(which, place);
	unsigned before = shim_thread.driver_launches;
	int result;

	if (!real)
		return INITIALIZATION_ERROR;
	if (shim_thread.in_runtime)
		return real(exec, stream);
	shim_thread.in_runtime = true;
	result = real(exec, stream);
	shim_thread.in_runtime = false;
	SHIM_TELL(runtime_launch, shim_thread.driver_launches - before, result);
	return result;
}

__attribute__((used)) static int runtime_launch(void *exec, void *stream)
{
	return launch(0, exec, stream, __builtin_return_address(0));
}

__attribute__((used)) static int runtime_launch_ptsz(void *exec, void *stream)
{
	return launch(1, exec, stream, __builtin_return_address(0));
}

SHIM_EXPORT int cudaGraphLaunch(void *exec, void *stream) __attribute__((alias("runtime_launch")));
SHIM_EXPORT int cudaGraphLaunch_ptsz(void *exec, void *stream) __attribute__((alias("runtime_launch_ptsz")));

void *shim_runtime_exported(const char *name)
{
	if (!strcmp(name, runtime_name[0]))
		return (void *)runtime_launch;
	if (!strcmp(name, runtime_name[1]))
		return (void *)runtime_launch_ptsz;
	return NULL;
}

bool shim_runtime_there(const char *name)
{
	return find(!!strcmp(name, runtime_name[0]), NULL);
}
