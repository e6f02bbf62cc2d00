/* SPDX-License-Identifier: Apache-2.0
 *
 * route.c: decides what dlsym and cuGetProcAddress hand out.
 *
 * By address, never by name alone: one name means another ABI at another version, and a stranger's library may export
 * the name for something else. An address that stands in our table is exactly one symbol of libcuda.
 */
#include <dlfcn.h>
#include <string.h>

#include "hook.h"

/* The assembly of dlsym asks the first for every name that begins with "cu", and ends in the second if it is true. */
bool shim_dlsym_wants(const char *name);
void *shim_dlsym_named(void *handle, const char *name);

void *shim_dlsym_ours(void *handle, const char *name); /* our dlsym, under a name that nobody can take over */
void *slotprobe_bind(const char *symbol);

static int entry_of(const char *symbol)
{
	for (int i = 0; i < SHIM_ENTRY_COUNT; i++)
		if (!strcmp(symbol, shim_entry[i].symbol))
			return i;
	return -1;
}

/* cuGetProcAddress is asked for a symbol's name without the suffixes of its version and of its default stream. */
static bool named_by(const char *name, const char *symbol)
{
	static const char *const suffix[] = { "", "_v2", "_ptsz", "_v2_ptsz" };
	size_t n = strlen(name);

	if (strncmp(name, symbol, n))
		return false;
	for (unsigned i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++)
		if (!strcmp(symbol + n, suffix[i]))
			return true;
	return false;
}

static bool table_name(const char *name)
{
	for (unsigned i = 0; i < SHIM_ENTRY_COUNT; i++)
		if (named_by(name, shim_entry[i].symbol))
			return true;
	return false;
}

static bool is_target(const void *address, unsigned i)
{
	return address == __atomic_load_n(&shim_target[i].real, __ATOMIC_RELAXED) ||
	       address == __atomic_load_n(&shim_target[i].raw, __ATOMIC_RELAXED);
}

/* Two symbols may share an address. With one ABI either will do; with two (a stub library, where all functions are one)
 * only a name that is a `symbol` decides: what cuGetProcAddress is asked for is not. -1: not known. */
static int entry_at(const void *address, const char *symbol)
{
	int found = -1;
	bool ambiguous = false;

	for (int i = 0; i < SHIM_ENTRY_COUNT; i++) {
		if (!is_target(address, i))
			continue;
		if (symbol && !strcmp(symbol, shim_entry[i].symbol))
			return i;
		if (found < 0)
			found = i;
		else if (shim_entry[i].wrapper != shim_entry[found].wrapper)
			ambiguous = true;
	}
	return ambiguous ? -1 : found;
}

static bool handed_out(const void *address)
{
	for (unsigned i = 0; i < SHIM_ENTRY_COUNT; i++)
		if (address == shim_entry[i].substitute || address == shim_entry[i].exported)
			return true;
	return false;
}

/* The address to hand out where `real` was found under `name`: ours, if it is an address that we know. */
static void *route(void *real, const char *name, bool is_symbol, int version, uint64_t flags)
{
	int entry;

	if (!real || !name)
		return real;
	shim_resolve_all();
	entry = entry_at(real, is_symbol ? name : NULL);
	if (entry >= 0)
		return shim_entry[entry].substitute;
	if (!handed_out(real) && table_name(name))
		SHIM_TELL(unrouted, name, version, flags);
	return real;
}

cu_result shim_wrap_get_proc_address(cu_result (*real)(const char *, void **, int, uint64_t), const char *name,
				     void **out, int version, uint64_t flags)
{
	cu_result result = real(name, out, version, flags);

	if (result == CU_SUCCESS && out)
		*out = route(*out, name, false, version, flags);
	return result;
}

cu_result shim_wrap_get_proc_address_v2(cu_result (*real)(const char *, void **, int, uint64_t, int *),
					const char *name, void **out, int version, uint64_t flags, int *status)
{
	cu_result result = real(name, out, version, flags, status);

	if (result == CU_SUCCESS && out)
		*out = route(*out, name, false, version, flags);
	return result;
}

bool shim_dlsym_wants(const char *name)
{
	return entry_of(name) >= 0 || shim_runtime_exported(name);
}

/* What the program's scope holds under this name, with our own export seen through: without something behind it the
 * name is not there, and programs test for a feature that way. The look-up that decides comes last, since it leaves
 * dlerror in the state that belongs to the answer. */
static void *entry_in_scope(int entry)
{
	const char *symbol = shim_entry[entry].symbol;
	void *first = shim_lookup(RTLD_DEFAULT, symbol);

	if (first && first != shim_entry[entry].exported) {
		int known = entry_at(first, symbol);

		return known < 0 ? first : shim_entry[known].substitute;
	}
	if (shim_libcuda() && !shim_lookup(RTLD_NEXT, symbol))
		return shim_lookup(shim_libcuda(), symbol) ? shim_entry[entry].substitute : NULL;
	return shim_lookup(RTLD_NEXT, symbol) ? shim_entry[entry].exported : NULL;
}

static void *runtime_in_scope(void *handle, const char *name, void *exported)
{
	bool there = shim_runtime_there(name);
	void *found = handle == RTLD_DEFAULT ? shim_lookup(handle, name) : shim_lookup_next(handle, name);

	if (found != exported || there)
		return found;
	return shim_lookup(RTLD_NEXT, name);
}

void *shim_dlsym_named(void *handle, const char *name)
{
	void *exported = shim_runtime_exported(name), *found;
	int saved = errno, entry;

	if (exported) {
		found = runtime_in_scope(handle, name, exported);
		errno = saved;
		return found;
	}
	entry = entry_of(name);
	shim_resolve_all();
	if (handle == RTLD_DEFAULT) {
		found = entry_in_scope(entry);
	} else {
		found = shim_lookup_next(handle, name);
		if (found == shim_entry[entry].exported)
			found = entry_in_scope(entry);
		else
			found = route(found, name, true, 0, 0);
	}
	errno = saved;
	return found;
}

/* For shim/audit: what stands for this name where the loader is about to bind it past us; NULL: none of ours. */
SHIM_EXPORT void *slotprobe_bind(const char *symbol)
{
	int entry = entry_of(symbol);

	if (entry >= 0)
		return shim_entry[entry].substitute;
	return strcmp(symbol, "dlsym") ? NULL : (void *)shim_dlsym_ours;
}
