/* SPDX-License-Identifier: Apache-2.0
 *
 * resolve.c: finds the functions that ours stand in front of: libc's dlsym, libcuda, the next definition.
 *
 * Everything may run before any constructor has, from any thread, and twice at once: each result is one word that is
 * the same whoever finds it, so there is no lock that a fork or a signal could leave held.
 */
#include <dlfcn.h>

#include "shim/compat.h"
#include "hook.h"

typedef void *dlsym_fn(void *handle, const char *name);

/* Both are read by the assembly of dlsym. */
extern void *shim_dlsym_real, *shim_dlsym_next;
void shim_dlsym_resolve(void);

void *shim_dlsym_real, *shim_dlsym_next;
struct shim_target shim_target[SHIM_ENTRY_COUNT];

/* The result passes through a register that the compiler must not look through: a tail call would hide this library
 * from libc, which takes the caller from the return address. */
static void *call(void *fn, void *handle, const char *name)
{
	void *found = fn ? ((dlsym_fn *)fn)(handle, name) : NULL;

	__asm__ volatile("" : "+r"(found));
	return found;
}

/* The architecture's first version comes first: every libc since has it, so that no failing look-up allocates a message
 * while an allocator is only just starting. dlvsym wants the exact version, and ours has none: it cannot find us. */
void shim_dlsym_resolve(void)
{
	static const char versions[][12] = {
#ifdef __x86_64__
		"GLIBC_2.2.5",
#endif
		"GLIBC_2.17", "GLIBC_2.34", "GLIBC_2.2.5"
	};
	void *real = NULL, *next;

	for (unsigned i = 0; !real && i < sizeof(versions) / sizeof(versions[0]); i++)
		real = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	next = call(real, RTLD_NEXT, "dlsym");
	__atomic_store_n(&shim_dlsym_next, next ? next : real, __ATOMIC_RELEASE);
	__atomic_store_n(&shim_dlsym_real, real, __ATOMIC_RELEASE);
}

void *shim_lookup(void *handle, const char *name)
{
	if (!__atomic_load_n(&shim_dlsym_real, __ATOMIC_ACQUIRE))
		shim_dlsym_resolve();
	return call(__atomic_load_n(&shim_dlsym_real, __ATOMIC_ACQUIRE), handle, name);
}

void *shim_lookup_next(void *handle, const char *name)
{
	if (!__atomic_load_n(&shim_dlsym_next, __ATOMIC_ACQUIRE))
		shim_dlsym_resolve();
	return call(__atomic_load_n(&shim_dlsym_next, __ATOMIC_ACQUIRE), handle, name);
}

void *shim_libcuda(void)
{
	static void *libcuda;
	static const char names[][13] = { "libcuda.so.1", "libcuda.so" };
	void *handle = __atomic_load_n(&libcuda, __ATOMIC_ACQUIRE);
	int saved = errno;

	for (unsigned i = 0; !handle && i < 2; i++)
		handle = dlopen(names[i], RTLD_NOLOAD | RTLD_LAZY);
	if (handle)
		__atomic_store_n(&libcuda, handle, __ATOMIC_RELEASE);
	errno = saved;
	return handle;
}

static bool ours(const void *address)
{
	for (unsigned i = 0; i < SHIM_ENTRY_COUNT; i++)
		if (address == shim_entry[i].substitute || address == shim_entry[i].exported)
			return true;
	return false;
}

void *shim_find_real(enum shim_entry_id id)
{
	void *libcuda = shim_libcuda(), *raw, *real;
	int saved = errno;

	if (!libcuda)
		return NULL;
	raw = shim_lookup(libcuda, shim_entry[id].symbol);
	real = shim_lookup_next(libcuda, shim_entry[id].symbol);
	if (!real || ours(real))
		real = raw;
	__atomic_store_n(&shim_target[id].raw, raw, __ATOMIC_RELAXED);
	__atomic_store_n(&shim_target[id].real, real, __ATOMIC_RELAXED);
	errno = saved;
	return real;
}

void *shim_find_next(enum shim_entry_id id)
{
	int saved = errno;
	void *next = shim_lookup(RTLD_NEXT, shim_entry[id].symbol);

	if (!next)
		next = shim_find_real(id);
	__atomic_store_n(&shim_target[id].next, next, __ATOMIC_RELAXED);
	errno = saved;
	return next;
}

bool shim_resolve_all(void)
{
	static bool done;

	if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		return true;
	if (!shim_libcuda())
		return false;
	for (unsigned i = 0; i < SHIM_ENTRY_COUNT; i++)
		shim_find_real(i);
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	return true;
}

cu_result shim_absent(void)
{
	return shim_libcuda() ? CU_NOT_FOUND : CU_NOT_INITIALIZED;
}
