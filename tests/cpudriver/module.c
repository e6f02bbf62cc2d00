/* SPDX-License-Identifier: Apache-2.0
 *
 * module.c: modules, libraries, kernels and functions.
 *
 * Loading one under a capture that forbids it answers 0 and invalidates the capture all the same, as measured on the
 * real driver.
 */
#include <stdlib.h>
#include <string.h>

#include "cpudriver.h"

#define MOST_SHARED 232448 /* of a block on the device that we pretend to be */

static cu_module modules;
static cu_kernel kernels;
static cu_function functions;

static cu_function function_of(cu_context ctx, cu_module module, cu_kernel kernel, struct ptx_entry *entry)
{
	cu_function f;

	for (f = functions; f; f = f->next)
		if (f->entry == entry && f->ctx == ctx)
			return f;
	f = cpu_alloc(sizeof(*f));
	*f = (struct cu_function_st) { ctx, module, kernel, entry, module != NULL, functions };
	functions = f;
	handle_add(KIND_FUNCTION, f);
	return f;
}

cu_function function_in(cu_context ctx, cu_kernel kernel)
{
	return handle_is(KIND_KERNEL, kernel) ? function_of(ctx, NULL, kernel, kernel->entry) : NULL;
}

static bool goes(cu_function f, cu_context ctx, cu_module module, cu_library library)
{
	return (ctx && f->ctx == ctx) || (module && f->module == module) ||
	       (library && f->kernel && f->kernel->library == library);
}

static void end_functions(cu_context ctx, cu_module module, cu_library library)
{
	for (cu_function *link = &functions; *link;) {
		cu_function f = *link;

		if (!goes(f, ctx, module, library)) {
			link = &f->next;
			continue;
		}
		*link = f->next;
		handle_remove(f);
		free(f);
	}
}

static struct ptx_entry *find_entry(const struct ptx *ptx, const char *name, cu_result *result)
{
	*result = CU_SUCCESS;
	for (unsigned i = 0; i < ptx->n_entries; i++) {
		if (strcmp(ptx->entry[i].name, name))
			continue;
		if (ptx->entry[i].code)
			return &ptx->entry[i];
		cpu_say("kernel %s has no host code: no kernel object exports cpu_kernel_%s", name, name);
	}
	*result = CU_NOT_FOUND;
	return NULL;
}

/* ---- modules ---- */

static cu_result keep_module(cu_module *module, struct ptx *ptx)
{
	capture_unsafe();
	*module = cpu_alloc(sizeof(**module));
	(*module)->ctx = context_current();
	(*module)->ptx = *ptx;
	(*module)->next = modules;
	modules = *module;
	handle_add(KIND_MODULE, *module);
	return CU_SUCCESS;
}

cu_result cuModuleLoadData(cu_module *module, const void *image)
{
	struct ptx ptx;
	/* the search for host code takes the loader's lock, so it comes before ours */
	cu_result parsed = image && module ? ptx_parse(image, &ptx) : CU_INVALID_VALUE;

	API(cuModuleLoadData, NEED_CONTEXT);
	return parsed ? parsed : keep_module(module, &ptx);
}

cu_result cuModuleLoadDataEx(cu_module *module, const void *image, unsigned n, int *options, void **values)
{
	struct ptx ptx;
	cu_result parsed = image && module && (!n || (options && values)) ? ptx_parse(image, &ptx) : CU_INVALID_VALUE;

	API(cuModuleLoadDataEx, NEED_CONTEXT);
	return parsed ? parsed : keep_module(module, &ptx);
}

static void end_module(cu_module module)
{
	cu_module *link = &modules;

	while (*link != module)
		link = &(*link)->next;
	*link = module->next;
	end_functions(NULL, module, NULL);
	handle_remove(module);
	ptx_free(&module->ptx);
	free(module);
}

cu_result cuModuleUnload(cu_module module)
{
	cu_result result;

	API(cuModuleUnload, NEED_CONTEXT);
	if (!handle_is(KIND_MODULE, module))
		return CUX_INVALID_HANDLE;
	result = capture_unsafe();
	if (!result)
		end_module(module);
	return result;
}

void modules_end_context(cu_context ctx)
{
	cu_module next;

	for (cu_module module = modules; module; module = next) {
		next = module->next;
		if (module->ctx == ctx)
			end_module(module);
	}
	end_functions(ctx, NULL, NULL);
}

cu_result cuModuleGetFunction(cu_function *f, cu_module module, const char *name)
{
	struct ptx_entry *entry;
	cu_result result;

	API(cuModuleGetFunction, NEED_CONTEXT);
	if (!f || !name)
		return CU_INVALID_VALUE;
	if (!handle_is(KIND_MODULE, module))
		return CUX_INVALID_HANDLE;
	entry = find_entry(&module->ptx, name, &result);
	if (entry)
		*f = function_of(module->ctx, module, NULL, entry);
	return result;
}

/* ---- libraries: loaded once, functions in each context ---- */

cu_result cuLibraryLoadData(cu_library *library, const void *image, void **jit_options, void **jit_values,
			    unsigned n_jit, void **options, void **values, unsigned n_options)
{
	bool good = image && library && (!n_jit || (jit_options && jit_values)) && (!n_options || (options && values));
	struct ptx ptx;
	cu_result parsed = good ? ptx_parse(image, &ptx) : CU_INVALID_VALUE;

	API(cuLibraryLoadData, NEED_INIT);
	if (parsed && parsed != CUX_INVALID_IMAGE)
		return parsed;
	capture_unsafe();
	*library = cpu_alloc(sizeof(**library));
	(*library)->unreadable = parsed;
	(*library)->ptx = ptx;
	handle_add(KIND_LIBRARY, *library);
	return CU_SUCCESS;
}

cu_result cuLibraryUnload(cu_library library)
{
	cu_result result;

	API(cuLibraryUnload, NEED_INIT);
	if (!handle_is(KIND_LIBRARY, library))
		return CUX_INVALID_HANDLE;
	result = capture_unsafe();
	if (result)
		return result;
	end_functions(NULL, NULL, library);
	for (cu_kernel *link = &kernels; *link;) {
		cu_kernel kernel = *link;

		if (kernel->library != library) {
			link = &kernel->next;
			continue;
		}
		*link = kernel->next;
		handle_remove(kernel);
		free(kernel);
	}
	handle_remove(library);
	ptx_free(&library->ptx);
	free(library);
	return CU_SUCCESS;
}

static cu_kernel kernel_of(cu_library library, struct ptx_entry *entry)
{
	cu_kernel kernel;

	for (kernel = kernels; kernel; kernel = kernel->next)
		if (kernel->entry == entry)
			return kernel;
	kernel = cpu_alloc(sizeof(*kernel));
	*kernel = (struct cu_kernel_st) { library, entry, kernels };
	kernels = kernel;
	handle_add(KIND_KERNEL, kernel);
	return kernel;
}

cu_result cuLibraryGetKernel(cu_kernel *kernel, cu_library library, const char *name)
{
	struct ptx_entry *entry;
	cu_result result;

	API(cuLibraryGetKernel, NEED_INIT);
	if (!kernel || !name)
		return CU_INVALID_VALUE;
	if (!handle_is(KIND_LIBRARY, library))
		return CUX_INVALID_HANDLE;
	if (library->unreadable)
		return library->unreadable;
	entry = find_entry(&library->ptx, name, &result);
	if (entry)
		*kernel = kernel_of(library, entry);
	return result;
}

cu_result cuKernelGetFunction(cu_function *f, cu_kernel kernel)
{
	API(cuKernelGetFunction, NEED_CONTEXT);
	if (!f)
		return CU_INVALID_VALUE;
	if (!handle_is(KIND_KERNEL, kernel))
		return CUX_INVALID_HANDLE;
	*f = function_in(context_current(), kernel);
	return CU_SUCCESS;
}

/* ---- asking ---- */

/* Functions, and kernels in the place of functions. */
static struct ptx_entry *entry_of(const void *handle)
{
	if (handle_is(KIND_FUNCTION, handle))
		return ((const struct cu_function_st *)handle)->entry;
	if (handle_is(KIND_KERNEL, handle))
		return ((const struct cu_kernel_st *)handle)->entry;
	return NULL;
}

static cu_result get_name(const void *handle, const char **name)
{
	struct ptx_entry *entry = entry_of(handle);

	if (!handle || !name)
		return CU_INVALID_VALUE;
	if (!entry)
		return CUX_INVALID_HANDLE;
	*name = entry->name;
	return CU_SUCCESS;
}

static cu_result get_param_info(const void *handle, size_t index, size_t *offset, size_t *bytes)
{
	struct ptx_entry *entry = entry_of(handle);

	if (!handle)
		return CU_INVALID_VALUE;
	if (!entry)
		return CUX_INVALID_HANDLE;
	if (!offset || index >= entry->n_params)
		return CU_INVALID_VALUE;
	*offset = entry->param[index].offset;
	if (bytes)
		*bytes = entry->param[index].bytes;
	return CU_SUCCESS;
}

cu_result cuKernelGetName(const char **name, cu_kernel kernel)
{
	API(cuKernelGetName, NEED_INIT);
	return get_name(kernel, name);
}

cu_result cuKernelGetParamInfo(cu_kernel kernel, size_t index, size_t *offset, size_t *bytes)
{
	API(cuKernelGetParamInfo, NEED_INIT);
	return get_param_info(kernel, index, offset, bytes);
}

cu_result cuFuncGetName(const char **name, cu_function f)
{
	API(cuFuncGetName, NEED_INIT);
	return get_name(f, name);
}

cu_result cuFuncGetParamInfo(cu_function f, size_t index, size_t *offset, size_t *bytes)
{
	API(cuFuncGetParamInfo, NEED_INIT);
	return get_param_info(f, index, offset, bytes);
}

cu_result cuFuncLoad(cu_function f)
{
	API(cuFuncLoad, NEED_INIT);
	if (!handle_is(KIND_FUNCTION, f))
		return CUX_INVALID_HANDLE;
	if (!f->loaded)
		capture_unsafe();
	f->loaded = true;
	return CU_SUCCESS;
}

cu_result cuFuncIsLoaded(int *state, cu_function f)
{
	API(cuFuncIsLoaded, NEED_INIT);
	if (!handle_is(KIND_FUNCTION, f))
		return CUX_INVALID_HANDLE;
	if (!state)
		return CU_INVALID_VALUE;
	*state = f->loaded;
	return CU_SUCCESS;
}

cu_result cuFuncGetAttribute(int *value, int attribute, cu_function f)
{
	/* threads per block, shared, constant, local bytes, registers, PTX and binary version, cache mode, dynamic
	 * shared bytes, carve-out */
	static const int values[] = { 1024, 0, 0, 0, 32, 70, 90, 0, 0, -1 };

	API(cuFuncGetAttribute, NEED_INIT);
	if (!entry_of(f))
		return CUX_INVALID_HANDLE;
	if (!value || attribute < 0 || attribute >= (int)(sizeof(values) / sizeof(values[0])))
		return CU_INVALID_VALUE;
	*value = attribute == 8 ? (int)entry_of(f)->most_shared : values[attribute];
	return CU_SUCCESS;
}

/* Shared memory is the host code's own affair: only the bound of what a launch may ask for is kept. */
cu_result cuFuncSetAttribute(cu_function f, int attribute, int value)
{
	API(cuFuncSetAttribute, NEED_INIT);
	if (!entry_of(f))
		return CUX_INVALID_HANDLE;
	if (attribute == 9)
		return CU_SUCCESS;
	if (attribute != 8 || value < 0 || value > MOST_SHARED)
		return CU_INVALID_VALUE;
	entry_of(f)->most_shared = (unsigned)value;
	return CU_SUCCESS;
}

cu_result cuFuncGetModule(cu_module *module, cu_function f)
{
	API(cuFuncGetModule, NEED_INIT);
	if (!module)
		return CU_INVALID_VALUE;
	if (!handle_is(KIND_FUNCTION, f) || !f->module)
		return CUX_INVALID_HANDLE;
	*module = f->module;
	return CU_SUCCESS;
}
