/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.h: the real driver, for our own calls. Every call that slotprobe makes stands in this one table, under the
 * exact symbol that libcuda exports (the symbol fixes the ABI; a macro name does not).
 *
 * Nothing here loads libcuda: it is found where the process has already loaded it.
 */
#ifndef SHIM_DRIVER_H
#define SHIM_DRIVER_H

#include <stdbool.h>

#include "cuda_abi.h"

/* name of the member, exact symbol, 1 if slotprobe cannot measure without it, parameters */
#define SHIM_DRIVER_CALLS(X)                                                                                           \
	X(driver_get_version, cuDriverGetVersion, 1, (int *version))                                                   \
	X(device_get, cuDeviceGet, 1, (cu_device * device, int ordinal))                                               \
	X(device_get_name, cuDeviceGetName, 1, (char *name, int bytes, cu_device device))                              \
	X(device_get_uuid, cuDeviceGetUuid_v2, 0, (struct cu_uuid * uuid, cu_device device))                           \
	X(device_get_attribute, cuDeviceGetAttribute, 1, (int *value, int attribute, cu_device device))                \
	X(device_total_mem, cuDeviceTotalMem_v2, 0, (size_t * bytes, cu_device device))                                \
	X(ctx_get_current, cuCtxGetCurrent, 1, (cu_context * ctx))                                                     \
	X(ctx_push, cuCtxPushCurrent_v2, 1, (cu_context ctx))                                                          \
	X(ctx_pop, cuCtxPopCurrent_v2, 1, (cu_context * ctx))                                                          \
	X(ctx_get_device, cuCtxGetDevice, 1, (cu_device * device))                                                     \
	X(primary_ctx_get_state, cuDevicePrimaryCtxGetState, 0, (cu_device device, unsigned *flags, int *active))      \
	X(primary_ctx_retain, cuDevicePrimaryCtxRetain, 0, (cu_context * ctx, cu_device device))                       \
	X(primary_ctx_release, cuDevicePrimaryCtxRelease_v2, 0, (cu_device device))                                    \
	X(ctx_from_green, cuCtxFromGreenCtx, 0, (cu_context * ctx, cu_green_ctx green))                                \
	X(stream_create, cuStreamCreate, 1, (cu_stream * stream, unsigned flags))                                      \
	X(stream_destroy, cuStreamDestroy_v2, 1, (cu_stream stream))                                                   \
	X(stream_get_ctx, cuStreamGetCtx, 1, (cu_stream stream, cu_context * ctx))                                     \
	X(stream_is_capturing, cuStreamIsCapturing, 1, (cu_stream stream, int *status))                                \
	X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, 1, (int *mode))                                    \
	X(launch_kernel, cuLaunchKernel, 1,                                                                            \
	  (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,                \
	   unsigned shared_bytes, cu_stream stream, void **params, void **extra))                                      \
	X(memcpy_htod_async, cuMemcpyHtoDAsync_v2, 1, (cu_deviceptr dst, const void *src, size_t bytes, cu_stream))    \
	X(mem_alloc, cuMemAlloc_v2, 1, (cu_deviceptr * ptr, size_t bytes))                                             \
	X(mem_free, cuMemFree_v2, 1, (cu_deviceptr ptr))                                                               \
	X(mem_host_register, cuMemHostRegister_v2, 1, (void *ptr, size_t bytes, unsigned flags))                       \
	X(mem_host_unregister, cuMemHostUnregister, 1, (void *ptr))                                                    \
	X(mem_host_get_device_pointer, cuMemHostGetDevicePointer_v2, 1, (cu_deviceptr * dev, void *host, unsigned))    \
	X(pointer_get_attribute, cuPointerGetAttribute, 0, (void *value, int attribute, cu_deviceptr ptr))             \
	X(library_load_data, cuLibraryLoadData, 0,                                                                     \
	  (cu_library * library, const void *image, void **jit_options, void **jit_values, unsigned n_jit,             \
	   void **options, void **values, unsigned n_options))                                                         \
	X(library_unload, cuLibraryUnload, 0, (cu_library library))                                                    \
	X(library_get_kernel, cuLibraryGetKernel, 0, (cu_kernel * kernel, cu_library library, const char *name))       \
	X(kernel_get_function, cuKernelGetFunction, 0, (cu_function * f, cu_kernel kernel))                            \
	X(kernel_get_name, cuKernelGetName, 0, (const char **name, cu_kernel kernel))                                  \
	X(kernel_get_param_info, cuKernelGetParamInfo, 0,                                                              \
	  (cu_kernel kernel, size_t index, size_t * offset, size_t * bytes))                                           \
	X(func_load, cuFuncLoad, 0, (cu_function f))                                                                   \
	X(func_get_name, cuFuncGetName, 0, (const char **name, cu_function f))                                         \
	X(func_get_param_info, cuFuncGetParamInfo, 0, (cu_function f, size_t index, size_t * offset, size_t * bytes))  \
	X(module_load_data, cuModuleLoadData, 1, (cu_module * module, const void *image))                              \
	X(module_unload, cuModuleUnload, 1, (cu_module module))                                                        \
	X(module_get_function, cuModuleGetFunction, 1, (cu_function * f, cu_module module, const char *name))          \
	X(graph_get_nodes, cuGraphGetNodes, 1, (cu_graph graph, cu_graph_node * nodes, size_t * n))                    \
	X(graph_node_get_type, cuGraphNodeGetType, 1, (cu_graph_node node, int *type))                                 \
	X(graph_kernel_get_params, cuGraphKernelNodeGetParams_v2, 0,                                                   \
	  (cu_graph_node, struct cu_kernel_params * params))                                                           \
	X(graph_memcpy_get_params, cuGraphMemcpyNodeGetParams, 1, (cu_graph_node, struct cu_memcpy_params * params))   \
	X(graph_memset_get_params, cuGraphMemsetNodeGetParams, 1, (cu_graph_node, struct cu_memset_params * params))   \
	X(graph_child_get_graph, cuGraphChildGraphNodeGetGraph, 1, (cu_graph_node node, cu_graph * graph))

struct shim_driver {
#define SHIM_MEMBER(member, symbol, needed, params) cu_result(*member) params;
	SHIM_DRIVER_CALLS(SHIM_MEMBER)
#undef SHIM_MEMBER
	bool complete; /* every needed call is there */
};

extern const struct shim_driver *shim_driver_found __attribute__((visibility("hidden")));
const struct shim_driver *shim_driver_find(void);

/* The driver that this process has loaded, or NULL while there is none. Cheap after the first success. */
static inline const struct shim_driver *shim_driver(void)
{
	const struct shim_driver *driver = __atomic_load_n(&shim_driver_found, __ATOMIC_ACQUIRE);

	return __builtin_expect(driver != NULL, 1) ? driver : shim_driver_find();
}

/* How often a call that puts back what is the server's is tried. */
#define SHIM_UNDO_TRIES 4u

void shim_mode_retry(const struct shim_driver *driver, int mode);

/* Puts the thread's capture mode back. */
static inline void shim_mode_restore(const struct shim_driver *driver, int *mode)
{
	if (__builtin_expect(driver->exchange_capture_mode(mode) != CU_SUCCESS, 0))
		shim_mode_retry(driver, *mode);
}

/* Brackets a group of our own calls: capture mode RELAXED on this thread, errno saved. Nests; never fails. */
struct shim_guard {
	int mode, saved_errno;
	bool exchanged;
};
void shim_guard_enter(struct shim_guard *guard);
void shim_guard_leave(struct shim_guard *guard);

/* Stream captures that are open in this process, as far as our wrappers saw them begin and end. */
unsigned shim_captures_open(void);

/* A launch of ours on the legacy stream must not meet a capture that begins between the check and the launch: begin
 * returns false while anything captures, and until the matching end a BeginCapture of another thread waits (it spins,
 * bounded). */
bool shim_legacy_begin(void);
void shim_legacy_end(void);

#endif
