/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.c: the code of kernels, in shared objects on the host, and the calls that launch it.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpudriver.h"

#define MAX_OBJECTS 64

static void *object[MAX_OBJECTS];
static unsigned n_objects;

static void open_object(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		cpu_say("cannot load kernels: %s", dlerror());
	else if (n_objects == MAX_OBJECTS)
		cpu_say("too many kernel objects: %s is left out", path);
	else
		object[n_objects++] = handle;
}

static void open_listed(const char *list)
{
	char *copy = strdup(list), *rest = copy, *path;

	while ((path = strsep(&rest, ":")))
		if (*path)
			open_object(path);
	free(copy);
}

static int is_object(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 3 && !strcmp(entry->d_name + n - 3, ".so");
}

static void open_folder(const char *folder)
{
	struct dirent **entry;
	int n = scandir(folder, &entry, is_object, alphasort);

	for (int i = 0; i < n; i++) {
		char path[4096];

		if (snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name) < (int)sizeof(path))
			open_object(path);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
}

void kernels_open(void)
{
	const char *list = getenv("CPUDRIVER_KERNELS");
	char folder[4096];
	Dl_info self;
	const char *slash;

	if (list)
		open_listed(list);
	if (!dladdr((void *)kernels_open, &self))
		return;
	slash = strrchr(self.dli_fname, '/');
	if (snprintf(folder, sizeof(folder), "%.*skernels", slash ? (int)(slash + 1 - self.dli_fname) : 0,
		     self.dli_fname) < (int)sizeof(folder))
		open_folder(folder);
}

void *kernels_find(const char *entry)
{
	char symbol[512];
	void *code = NULL;

	if (snprintf(symbol, sizeof(symbol), "cpu_kernel_%s", entry) >= (int)sizeof(symbol))
		return NULL;
	for (unsigned i = 0; i < n_objects && !code; i++)
		code = dlsym(object[i], symbol);
	return code;
}

/* ---- launching ---- */

cu_result function_find(cu_function handle, cu_kernel kernel, cu_context ctx, cu_function *function, cu_kernel *kern)
{
	*function = NULL;
	*kern = NULL;
	if (handle && handle_is(KIND_FUNCTION, handle)) {
		*function = handle;
		return handle->ctx == ctx ? CU_SUCCESS : CUX_INVALID_HANDLE;
	}
	*kern = handle ? (cu_kernel)handle : kernel;
	return handle_is(KIND_KERNEL, *kern) ? CU_SUCCESS : CUX_INVALID_HANDLE;
}

/* The parameters as one buffer: {1, buffer, 2, &bytes, 0} */
static const void *extra_buffer(void **extra, size_t *bytes)
{
	const void *buffer = NULL;

	*bytes = 0;
	for (size_t i = 0; extra[i] != CU_EXTRA_END; i += 2) {
		if (extra[i] == CU_EXTRA_BUFFER)
			buffer = extra[i + 1];
		else if (extra[i] == CU_EXTRA_SIZE)
			*bytes = *(size_t *)extra[i + 1];
		else
			return NULL;
	}
	return buffer;
}

/* As it was given, for who asks the node; a buffer that is too short leaves the rest 0. */
static void keep_extra(struct work *work, void *bytes, size_t n)
{
	void *extra[] = { CU_EXTRA_BUFFER, bytes, CU_EXTRA_SIZE, &work->kernel.extra_bytes, CU_EXTRA_END };

	work->kernel.by_extra = true;
	work->kernel.extra_bytes = n;
	memcpy(work->kernel.extra, extra, sizeof(extra));
}

static cu_result copy_params(struct work *work, const struct ptx_entry *entry, void **params, void **extra)
{
	unsigned char *bytes = (unsigned char *)(((uintptr_t)&work->data[entry->n_params] + 15) & ~(uintptr_t)15);
	const unsigned char *buffer = NULL;
	size_t buffer_bytes;

	if (params && extra)
		return CU_INVALID_VALUE;
	if (extra) {
		buffer = extra_buffer(extra, &buffer_bytes);
		if (entry->n_params && !buffer)
			return CU_INVALID_VALUE;
		if (buffer_bytes > entry->param_bytes)
			return CUX_LAUNCH_OUT_OF_RESOURCES;
		if (buffer_bytes)
			memcpy(bytes, buffer, buffer_bytes);
		keep_extra(work, bytes, buffer_bytes);
	} else if (entry->n_params && !params) {
		return CU_INVALID_VALUE;
	}
	work->kernel.n_params = entry->n_params;
	work->kernel.params = (void **)work->data;
	for (unsigned i = 0; i < entry->n_params; i++) {
		const struct ptx_param *p = &entry->param[i];

		if (params)
			memcpy(bytes + p->offset, params[i], p->bytes);
		work->kernel.params[i] = bytes + p->offset;
	}
	return CU_SUCCESS;
}

static bool dimensions_ok(const unsigned *grid, const unsigned *block)
{
	return grid[0] && grid[1] && grid[2] && grid[0] <= 0x7fffffff && grid[1] <= 65535 && grid[2] <= 65535 &&
	       block[0] && block[1] && block[2] && block[0] <= 1024 && block[1] <= 1024 && block[2] <= 64 &&
	       block[0] * block[1] * block[2] <= 1024;
}

cu_result kernel_work(cu_context ctx, const struct cu_kernel_params *params, struct work **work)
{
	cu_function function;
	cu_kernel kern;
	struct ptx_entry *entry;
	struct work *made;
	cu_result result = function_find(params->func, params->kern, ctx, &function, &kern);

	if (result)
		return result;
	entry = function ? function->entry : kern ? kern->entry : NULL;
	if (!entry)
		return CUX_INVALID_HANDLE;
	if (!dimensions_ok(params->grid, params->block) || params->shared_bytes > entry->most_shared)
		return CU_INVALID_VALUE;
	/* parameters start 16-aligned, behind the pointers to them */
	made = work_new(WORK_KERNEL, ctx, entry->n_params * sizeof(uint64_t) + entry->param_bytes + 16);
	made->kernel.func = function;
	made->kernel.kern = kern;
	made->kernel.code = entry->code;
	for (int i = 0; i < 3; i++) {
		made->kernel.launch.grid[i] = params->grid[i];
		made->kernel.launch.block[i] = params->block[i];
	}
	made->kernel.launch.shared_bytes = params->shared_bytes;
	made->kernel.launch.set_conditional = condition_set;
	result = copy_params(made, entry, params->params, params->extra);
	if (result)
		work_put(made);
	else
		*work = made;
	return result;
}

static cu_result launch(const struct cu_kernel_params *params, cu_stream handle, bool per_thread, bool programmatic)
{
	struct work *work;
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (result)
		return result;
	result = kernel_work(stream->ctx, params, &work);
	if (result && stream->capture)
		capture_break(stream->capture);
	if (result)
		return result;
	work->kernel.programmatic = programmatic;
	return submit(stream, work, NULL);
}

cu_result cuLaunchKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			 unsigned shared_bytes, cu_stream stream, void **params, void **extra)
{
	struct cu_kernel_params p = { f, { gx, gy, gz }, { bx, by, bz }, shared_bytes, params, extra, NULL, NULL };

	API(cuLaunchKernel, NEED_CONTEXT);
	return launch(&p, stream, false, false);
}

cu_result cuLaunchKernel_ptsz(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			      unsigned bz, unsigned shared_bytes, cu_stream stream, void **params, void **extra)
{
	struct cu_kernel_params p = { f, { gx, gy, gz }, { bx, by, bz }, shared_bytes, params, extra, NULL, NULL };

	API(cuLaunchKernel_ptsz, NEED_CONTEXT);
	return launch(&p, stream, true, false);
}

static bool cluster_ok(const struct cux_launch_config *config, const unsigned *cluster)
{
	for (int i = 0; i < 3; i++)
		if (!cluster[i] || config->grid[i] % cluster[i])
			return false;
	return cluster[0] * cluster[1] * cluster[2] <= 8;
}

/* Most only steer where and when a kernel runs, of which there is nothing to see here. */
static cu_result check_attributes(const struct cux_launch_config *config, bool *programmatic)
{
	if (config->n_attributes && !config->attributes)
		return CU_INVALID_VALUE;
	for (unsigned i = 0; i < config->n_attributes; i++) {
		const struct cux_launch_attribute *a = &config->attributes[i];

		switch (a->id) {
		case CUX_ATTR_CLUSTER:
			if (!cluster_ok(config, a->value.cluster))
				return CUX_INVALID_CLUSTER_SIZE;
			break;
		case CUX_ATTR_PROGRAMMATIC:
			*programmatic = a->value.number != 0;
			break;
		case CUX_ATTR_PROGRAMMATIC_EVENT:
		case CUX_ATTR_COMPLETION_EVENT:
		case CUX_ATTR_DEVICE_UPDATABLE:
			return cpu_lacks(
				"launch attributes that name an event or make a node updatable from the device");
		default:
			if (a->id < CUX_ATTR_IGNORE || a->id > CUX_ATTR_CARVEOUT)
				return CU_INVALID_VALUE;
		}
	}
	return CU_SUCCESS;
}

static cu_result launch_ex(const struct cux_launch_config *config, cu_function f, void **params, void **extra,
			   bool per_thread)
{
	struct cu_kernel_params p = { .func = f, .params = params, .extra = extra };
	bool programmatic = false;
	cu_result result;

	if (!config)
		return CU_INVALID_VALUE;
	result = check_attributes(config, &programmatic);
	if (result)
		return result;
	memcpy(p.grid, config->grid, sizeof(p.grid));
	memcpy(p.block, config->block, sizeof(p.block));
	p.shared_bytes = config->shared_bytes;
	return launch(&p, config->stream, per_thread, programmatic);
}

cu_result cuLaunchKernelEx(const struct cux_launch_config *config, cu_function f, void **params, void **extra)
{
	API(cuLaunchKernelEx, NEED_CONTEXT);
	return launch_ex(config, f, params, extra, false);
}

cu_result cuLaunchKernelEx_ptsz(const struct cux_launch_config *config, cu_function f, void **params, void **extra)
{
	API(cuLaunchKernelEx_ptsz, NEED_CONTEXT);
	return launch_ex(config, f, params, extra, true);
}

static cu_result launch_host(cu_stream handle, bool per_thread, cux_host_fn fn, void *data)
{
	struct cux_host_params params = { fn, data };
	cu_stream stream;
	cu_result result = stream_find(handle, per_thread, &stream);

	if (result)
		return result;
	if (!fn)
		return CU_INVALID_VALUE;
	return submit(stream, work_host(stream->ctx, &params), NULL);
}

cu_result cuLaunchHostFunc(cu_stream stream, cux_host_fn fn, void *data)
{
	API(cuLaunchHostFunc, NEED_CONTEXT);
	return launch_host(stream, false, fn, data);
}

cu_result cuLaunchHostFunc_ptsz(cu_stream stream, cux_host_fn fn, void *data)
{
	API(cuLaunchHostFunc_ptsz, NEED_CONTEXT);
	return launch_host(stream, true, fn, data);
}
