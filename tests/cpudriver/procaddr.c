/* SPDX-License-Identifier: Apache-2.0
 *
 * procaddr.c: cuGetProcAddress, old and new, answered from the table of api.h.
 *
 * The addresses are those that dlsym gives too: the library is linked -Bsymbolic, so that a preload's symbols never
 * stand here in place of ours.
 */
#include <string.h>

#include "cpudriver.h"

/* Per-thread forms came with this version. */
#define PER_THREAD_SINCE 7000

struct procedure {
	const char *name;
	int version;
	void *legacy, *per_thread;
};

static const struct procedure procedures[] = {
#define ROW(symbol, name, version, params)              { #name, version, (void *)symbol, (void *)symbol },
#define ROW_PAIR(symbol, suffix, name, version, params) { #name, version, (void *)symbol, (void *)symbol##suffix },
	CPU_CALLS(ROW, ROW_PAIR)
#undef ROW
#undef ROW_PAIR
};

static int since(const struct procedure *p, bool per_thread)
{
	if (per_thread && p->legacy != p->per_thread && p->version < PER_THREAD_SINCE)
		return PER_THREAD_SINCE;
	return p->version;
}

static bool has_per_thread_form(const char *name)
{
	for (size_t i = 0; i < sizeof(procedures) / sizeof(procedures[0]); i++)
		if (!strcmp(procedures[i].name, name) && procedures[i].legacy != procedures[i].per_thread)
			return true;
	return false;
}

static cu_result look_up(const char *name, void **fn, int version, uint64_t flags, void **found, int *status)
{
	const struct procedure *best = NULL;
	bool per_thread = flags & CUX_PROC_PER_THREAD, paired;

	if (!name || !fn || flags > 3 || version > CPU_DRIVER_VERSION)
		return CU_INVALID_VALUE;
	*status = CUX_PROC_UNKNOWN;
	/* where a name has per-thread forms, its older versions without one are no answer to who asks for one */
	paired = per_thread && has_per_thread_form(name);
	for (size_t i = 0; i < sizeof(procedures) / sizeof(procedures[0]); i++) {
		const struct procedure *p = &procedures[i];

		if (strcmp(p->name, name) || (paired && p->legacy == p->per_thread))
			continue;
		if (since(p, per_thread) > version) {
			if (!best)
				*status = CUX_PROC_TOO_NEW;
			continue;
		}
		if (!best || since(p, per_thread) >= since(best, per_thread))
			best = p;
		*status = CUX_PROC_FOUND;
	}
	*found = best ? per_thread ? best->per_thread : best->legacy : NULL;
	return CU_SUCCESS;
}

/* Where it finds nothing, what `fn` points to stays as it was; the newer form writes NULL there. */
cu_result cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags)
{
	void *found = NULL;
	cu_result result;
	int status;

	API(cuGetProcAddress, NEED_NOTHING);
	result = look_up(name, fn, version, flags, &found, &status);
	if (!result && !found)
		result = CU_NOT_FOUND;
	if (!result)
		*fn = found;
	return result;
}

cu_result cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	void *found = NULL;
	cu_result result;
	int found_status = CUX_PROC_UNKNOWN;

	API(cuGetProcAddress_v2, NEED_NOTHING);
	result = look_up(name, fn, version, flags, &found, &found_status);
	if (!result)
		*fn = found;
	if (status)
		*status = found_status;
	return result;
}
