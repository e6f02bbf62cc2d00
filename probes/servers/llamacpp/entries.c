/* SPDX-License-Identifier: Apache-2.0
 *
 * entries.c: finds llama.cpp's real functions, each once.
 *
 * RTLD_NEXT finds them when the program was linked with libllama. When a program or an extension module loaded it with
 * dlopen and RTLD_LOCAL, its calls still reach us but RTLD_NEXT does not see it: then the caller's own object, through
 * whose dependencies it must be reachable, is asked.
 */
#include <dlfcn.h>

#include "probes/servers/llamacpp/entries.h"

enum entry {
#define LC_ENUM(ret, name, params, args, absent, needed) ENTRY_##name,
	LC_WRAPPED(LC_ENUM) LC_ASKED(LC_ENUM)
#undef LC_ENUM
		ENTRY_COUNT
};

static const struct {
	const char *name;
	bool needed;
} entry[ENTRY_COUNT] = {
#define LC_ROW(ret, name, params, args, absent, needed) [ENTRY_##name] = { #name, needed },
	LC_WRAPPED(LC_ROW) LC_ASKED(LC_ROW)
#undef LC_ROW
};

static void *real[ENTRY_COUNT];
static __thread void *caller;

void lc_entries_caller(void *return_address)
{
	caller = return_address;
}

static void *find_through_caller(const char *name)
{
	void *handle, *found;
	Dl_info info;

	if (!caller || !dladdr(caller, &info) || !info.dli_fname)
		return NULL;
	handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	found = dlsym(handle, name);
	dlclose(handle);
	return found;
}

static void *find(enum entry e)
{
	void *found = __atomic_load_n(&real[e], __ATOMIC_ACQUIRE);

	if (found)
		return found;
	found = dlsym(RTLD_NEXT, entry[e].name);
	if (!found)
		found = find_through_caller(entry[e].name);
	if (found)
		__atomic_store_n(&real[e], found, __ATOMIC_RELEASE);
	return found;
}

#define LC_DEFINE(ret, name, params, args, absent, needed)                                                             \
	ret lc_real_##name params                                                                                      \
	{                                                                                                              \
		ret(*call) params = (ret(*) params)find(ENTRY_##name);                                                 \
		if (!call)                                                                                             \
			return absent;                                                                                 \
		return call args;                                                                                      \
	}
LC_WRAPPED(LC_DEFINE)
LC_ASKED(LC_DEFINE)

void lc_entries_survey(unsigned *found, unsigned *missing)
{
	bool can_run = dlsym(RTLD_NEXT, "llama_process") || dlsym(RTLD_NEXT, "llama_decode");

	*found = can_run;
	*missing = !can_run;
	for (unsigned e = 0; e < ENTRY_COUNT; e++) {
		if (!entry[e].needed)
			continue;
		if (dlsym(RTLD_NEXT, entry[e].name))
			++*found;
		else
			++*missing;
	}
}
