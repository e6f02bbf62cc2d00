/* SPDX-License-Identifier: Apache-2.0
 *
 * lookup.c: what libcuda exports, and what cuGetProcAddress answers for each name at each version.
 */
#include <stdio.h>
#include <string.h>

#include "conform.h"

struct export
{
	const char *symbol, *name;
	int version;
	void **address;
};

static const struct export exports[] = {
#define EXPORT(symbol, name, version, params) { #symbol, #name, version, (void **)&cu.symbol },
#define EXPORT_PAIR(symbol, suffix, name, version, params)                                                             \
	{ #symbol, #name, version, (void **)&cu.symbol },                                                              \
		{ #symbol #suffix, #name, version, (void **)&cu.symbol##suffix },
	CPU_CALLS(EXPORT, EXPORT_PAIR)
};
#define N_EXPORTS (sizeof(exports) / sizeof(exports[0]))

static cu_result exported(size_t i)
{
	return *exports[i].address ? CU_SUCCESS : CU_NOT_FOUND;
}

void group_exports(void)
{
	for (size_t i = 0; i < N_EXPORTS; i++) {
		if (!case_begin(exports[i].symbol, ""))
			continue;
		case_end(exported(i));
		/* two names for one function are told apart by nobody: the first one stands for both */
		for (size_t j = 0; j < i && *exports[i].address; j++)
			if (*exports[j].address == *exports[i].address) {
				see_text("same as", exports[j].symbol);
				break;
			}
	}
}

static const char *symbol_at(const void *address)
{
	if (!address)
		return "NULL";
	for (size_t i = 0; i < N_EXPORTS; i++)
		if (*exports[i].address == address)
			return exports[i].symbol;
	return "not exported";
}

/* Every version that any name begins at, one below and above, and some that no driver has. */
static size_t versions(int *version)
{
	size_t n = 0;

	version[n++] = 0;
	for (size_t i = 0; i < N_EXPORTS; i++) {
		size_t at = 0;

		while (at < n && version[at] < exports[i].version)
			at++;
		if (at < n && version[at] == exports[i].version)
			continue;
		memmove(&version[at + 1], &version[at], (n - at) * sizeof(*version));
		version[at] = exports[i].version;
		n++;
	}
	version[n++] = 13000;
	version[n++] = 13010;
	version[n++] = 99990;
	return n;
}

/* "10000 cuGraphInstantiate, 11000 cuGraphInstantiate_v2": from which version on which answer, with its status. */
static void ask(const char *name, uint64_t flags, const char *key)
{
	int version[256];
	size_t n = versions(version), at = 0;
	char text[1024] = "", last[256] = "";

	for (size_t i = 0; i < n; i++) {
		void *fn = (void *)1;
		int status = -1;
		cu_result result = cu.cuGetProcAddress_v2(name, &fn, version[i], flags, &status);
		char answer[256];

		if (result)
			snprintf(answer, sizeof(answer), "error %d", result);
		else
			snprintf(answer, sizeof(answer), status ? "%s status %d" : "%s", symbol_at(fn), status);
		if (!strcmp(answer, last))
			continue;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d %s", at ? ", " : "", version[i], answer);
		if (at >= sizeof(text))
			at = sizeof(text) - 1;
		strcpy(last, answer);
	}
	see_text(key, text);
}

static void ask_name(const char *name)
{
	if (!case_begin("cuGetProcAddress_v2", name))
		return;
	case_end(CU_SUCCESS);
	ask(name, 0, "flags 0");
	ask(name, 1, "flags 1");
	ask(name, 2, "flags 2");
}

static bool asked_before(size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (!strcmp(exports[j].name, exports[i].name))
			return true;
	return false;
}

void group_procaddr(void)
{
	void *fn = NULL;
	int status = 7;

	NEED(cuInit, 0);
	for (size_t i = 0; i < N_EXPORTS; i++)
		if (!asked_before(i))
			ask_name(exports[i].name);
	ask_name("cuNoSuchThing");
	ask_name("cuMemAlloc_v2");
	T("no name", cuGetProcAddress_v2, NULL, &fn, 13000, 0, &status);
	T("no place", cuGetProcAddress_v2, "cuInit", NULL, 13000, 0, &status);
	T("no status", cuGetProcAddress_v2, "cuInit", &fn, 13000, 0, NULL);
	see("found", fn != NULL);
	T("flags 3", cuGetProcAddress_v2, "cuInit", &fn, 13000, 3, &status);
	T("flags 4", cuGetProcAddress_v2, "cuInit", &fn, 13000, 4, &status);
	T("version -1", cuGetProcAddress_v2, "cuInit", &fn, -1, 0, &status);
	T("", cuGetProcAddress, "cuGraphLaunch", &fn, 12000, 0);
	see_text("symbol", symbol_at(fn));
	T("per thread", cuGetProcAddress, "cuGraphLaunch", &fn, 12000, 2);
	see_text("symbol", symbol_at(fn));
	T("itself", cuGetProcAddress, "cuGetProcAddress", &fn, 11030, 0);
	see_text("symbol", symbol_at(fn));
	fn = (void *)1;
	T("too new", cuGetProcAddress, "cuGraphLaunch", &fn, 9000, 0);
	see("null", fn == NULL);
	fn = (void *)1;
	T("unknown", cuGetProcAddress, "cuNoSuchThing", &fn, 12000, 0);
	see("null", fn == NULL);
	T("no name", cuGetProcAddress, NULL, &fn, 12000, 0);
	T("no place", cuGetProcAddress, "cuInit", NULL, 12000, 0);
}

/* Nothing but a few questions works before cuInit. */
void group_uninitialised(void)
{
	int number = -1;
	cu_context c = NULL;
	cu_stream s = NULL;
	cu_graph graph = NULL;
	void *fn = NULL;
	const char *text = NULL;
	int mode = CU_MODE_RELAXED, status = -1;

	T("", cuDriverGetVersion, &number);
	see("version", number);
	T("", cuGetProcAddress_v2, "cuGraphLaunch", &fn, 12000, 0, &status);
	see("found", fn != NULL);
	T("", cuGetErrorName, CU_CAPTURE_IMPLICIT, &text);
	see_text("name", text);
	T("", cuDeviceGet, &number, 0);
	T("", cuDeviceGetCount, &number);
	T("", cuCtxGetCurrent, &c);
	T("", cuCtxPushCurrent_v2, NULL);
	T("", cuCtxPopCurrent_v2, &c);
	T("", cuCtxSynchronize, );
	T("", cuDevicePrimaryCtxRetain, &c, 0);
	T("", cuStreamCreate, &s, 0);
	T("", cuThreadExchangeStreamCaptureMode, &mode);
	see("mode", mode);
	T("", cuGraphCreate, &graph, 0);
	T("", cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	T("", cuGraphLaunch, NULL, NULL);
	T("flags 1", cuInit, 1);
	T("", cuInit, 0);
	T("again", cuInit, 0);
	T("after cuInit", cuCtxGetCurrent, &c);
	see("null", c == NULL);
	T("without a context", cuStreamCreate, &s, 0);
	T("without a context", cuGraphCreate, &graph, 0);
	T("without a context", cuCtxSynchronize, );
	T("without a context", cuCtxPopCurrent_v2, &c);
	T("without a context", cuCtxGetDevice, &number);
	mode = CU_MODE_RELAXED;
	T("without a context", cuThreadExchangeStreamCaptureMode, &mode);
	see("mode", mode);
	T("no place", cuDriverGetVersion, NULL);
}
