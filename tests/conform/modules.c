/* SPDX-License-Identifier: Apache-2.0
 *
 * modules.c: modules, libraries, and what can be asked about their kernels.
 */
#include <string.h>

#include "conform.h"

extern const char fingerprint_ptx[];

static void params_of_function(cu_function f, const char *whose)
{
	for (size_t i = 0; i < 8; i++) {
		size_t offset = 0, bytes = 0;
		char what[64];

		strcpy(what, whose);
		strcat(what, " 0");
		what[strlen(what) - 1] = (char)('0' + i);
		if (T(what, cuFuncGetParamInfo, f, i, &offset, &bytes))
			return;
		see("offset", (long long)offset);
		see("bytes", (long long)bytes);
	}
}

void group_modules(void)
{
	cu_module module = NULL, toy = NULL, fingerprint = NULL;
	cu_function f = NULL;
	const char *text = NULL;
	size_t offset = 0;

	device_open();
	T("no image", cuModuleLoadData, &module, NULL);
	T("no place", cuModuleLoadData, NULL, conform_ptx);
	T("text", cuModuleLoadData, &module, "hello");
	T("empty", cuModuleLoadData, &module, "");
	T("bad PTX", cuModuleLoadData, &module, ".version 7.0\n.target sm_70\n.address_size 64\nnonsense\n");
	T("PTX without an entry", cuModuleLoadData, &module, ".version 7.0\n.target sm_70\n.address_size 64\n");
	T("", cuModuleLoadData, &module, conform_ptx);
	T("toy", cuModuleLoadData, &toy, toy_ptx);
	T("fingerprint", cuModuleLoadData, &fingerprint, fingerprint_ptx);
	T("", cuModuleGetFunction, &f, module, "conform_wide");
	T("no such name", cuModuleGetFunction, &f, module, "conform_no_such");
	T("no name", cuModuleGetFunction, &f, module, NULL);
	T("no place", cuModuleGetFunction, NULL, module, "conform_store");
	T("no module", cuModuleGetFunction, &f, NULL, "conform_store");
	NEED(cuModuleGetFunction, &f, module, "conform_wide");
	T("", cuFuncGetName, &text, f);
	see_text("name", text);
	T("no place", cuFuncGetName, NULL, f);
	T("NULL", cuFuncGetName, &text, NULL);
	params_of_function(f, "wide");
	T("no offset", cuFuncGetParamInfo, f, 0, NULL, &offset);
	T("no size", cuFuncGetParamInfo, f, 1, &offset, NULL);
	see("offset", (long long)offset);
	T("NULL", cuFuncGetParamInfo, NULL, 0, &offset, NULL);
	/* what their parameters are changes with slotprobe: the transcript shall not */
	T("toy", cuModuleGetFunction, &f, toy, "toy_layer");
	T("fingerprint", cuModuleGetFunction, &f, fingerprint, "slotprobe_fingerprint");
	T("", cuFuncLoad, f);
	T("again", cuFuncLoad, f);
	T("NULL", cuFuncLoad, NULL);
	T("", cuModuleUnload, toy);
	T("NULL", cuModuleUnload, NULL);
	T("second", cuModuleUnload, fingerprint);
}

void group_libraries(void)
{
	cu_library library = NULL, toy = NULL;
	cu_kernel kernel = NULL, again = NULL;
	cu_function f = NULL, g = NULL;
	const char *text = NULL;
	size_t offset = 0, bytes = 0;
	void *params[2];
	uint32_t value = 5;

	device_open();
	T("", cuLibraryLoadData, &library, conform_ptx, NULL, NULL, 0, NULL, NULL, 0);
	T("no image", cuLibraryLoadData, &toy, NULL, NULL, NULL, 0, NULL, NULL, 0);
	T("no place", cuLibraryLoadData, NULL, conform_ptx, NULL, NULL, 0, NULL, NULL, 0);
	T("text", cuLibraryLoadData, &toy, "hello", NULL, NULL, 0, NULL, NULL, 0);
	T("", cuLibraryGetKernel, &kernel, library, "conform_store");
	NEED(cuLibraryGetKernel, &again, library, "conform_store");
	see("same again", kernel == again);
	T("no such name", cuLibraryGetKernel, &again, library, "conform_no_such");
	T("no place", cuLibraryGetKernel, NULL, library, "conform_store");
	T("no name", cuLibraryGetKernel, &again, library, NULL);
	T("NULL", cuLibraryGetKernel, &again, NULL, "conform_store");
	T("", cuKernelGetFunction, &f, kernel);
	NEED(cuKernelGetFunction, &g, kernel);
	see("same again", f == g);
	T("no place", cuKernelGetFunction, NULL, kernel);
	T("NULL", cuKernelGetFunction, &g, NULL);
	T("", cuKernelGetName, &text, kernel);
	see_text("name", text);
	T("no place", cuKernelGetName, NULL, kernel);
	T("NULL", cuKernelGetName, &text, NULL);
	T("", cuKernelGetParamInfo, kernel, 1, &offset, &bytes);
	see("offset", (long long)offset);
	see("bytes", (long long)bytes);
	T("one too many", cuKernelGetParamInfo, kernel, 2, &offset, &bytes);
	T("no offset", cuKernelGetParamInfo, kernel, 0, NULL, &bytes);
	T("no size", cuKernelGetParamInfo, kernel, 0, &offset, NULL);
	T("NULL", cuKernelGetParamInfo, NULL, 0, &offset, &bytes);
	T("of a library", cuFuncLoad, f);
	T("of a library", cuFuncGetName, &text, f);
	see_text("name", text);
	T("of a library", cuFuncGetParamInfo, f, 1, &offset, &bytes);
	see("offset", (long long)offset);
	params[0] = &memory;
	params[1] = &value;
	T("function of a library", cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
	see("stored", peek(memory));
	value = 6;
	T("kernel in place of a function", cuLaunchKernel, (cu_function)kernel, 1, 1, 1, 1, 1, 1, 0, stream, params,
	  NULL);
	see("stored", peek(memory));
	T("", cuLibraryUnload, library);
	T("NULL", cuLibraryUnload, NULL);
}
