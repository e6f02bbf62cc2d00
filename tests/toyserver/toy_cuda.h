/* SPDX-License-Identifier: Apache-2.0
 *
 * toy_cuda.h: the part of the CUDA driver API that the toy server uses, declared here so that it builds with no toolkit
 * and as a stranger to slotprobe: nothing is shared with it but the public header.
 */
#ifndef TOY_CUDA_H
#define TOY_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t toy_ptr; /* CUdeviceptr */
typedef void *toy_stream, *toy_graph, *toy_exec, *toy_function, *toy_module, *toy_context;

#define TOY_STREAM_LEGACY     ((toy_stream)0)
#define TOY_STREAM_PER_THREAD ((toy_stream)2)
#define TOY_NON_BLOCKING      1
#define TOY_CAPTURE_GLOBAL    0

/* member, exported symbol, name for cuGetProcAddress, parameters */
#define TOY_CUDA_CALLS(X)                                                                                              \
	X(init, "cuInit", "cuInit", (unsigned flags))                                                                  \
	X(driver_version, "cuDriverGetVersion", "cuDriverGetVersion", (int *version))                                  \
	X(device_get, "cuDeviceGet", "cuDeviceGet", (int *device, int ordinal))                                        \
	X(device_name, "cuDeviceGetName", "cuDeviceGetName", (char *name, int bytes, int device))                      \
	X(ctx_retain, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", (toy_context * ctx, int device))         \
	X(ctx_release, "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease", (int device))                      \
	X(ctx_set, "cuCtxSetCurrent", "cuCtxSetCurrent", (toy_context ctx))                                            \
	X(stream_create, "cuStreamCreate", "cuStreamCreate", (toy_stream * stream, unsigned flags))                    \
	X(stream_destroy, "cuStreamDestroy_v2", "cuStreamDestroy", (toy_stream stream))                                \
	X(stream_sync, "cuStreamSynchronize", "cuStreamSynchronize", (toy_stream stream))                              \
	X(mem_alloc, "cuMemAlloc_v2", "cuMemAlloc", (toy_ptr * ptr, size_t bytes))                                     \
	X(mem_free, "cuMemFree_v2", "cuMemFree", (toy_ptr ptr))                                                        \
	X(to_device, "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync",                                                      \
	  (toy_ptr to, const void *from, size_t bytes, toy_stream stream))                                             \
	X(to_host, "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync",                                                        \
	  (void *to, toy_ptr from, size_t bytes, toy_stream stream))                                                   \
	X(copy, "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoDAsync",                                                           \
	  (toy_ptr to, toy_ptr from, size_t bytes, toy_stream stream))                                                 \
	X(set, "cuMemsetD8Async", "cuMemsetD8Async",                                                                   \
	  (toy_ptr to, unsigned char value, size_t bytes, toy_stream stream))                                          \
	X(module_load, "cuModuleLoadData", "cuModuleLoadData", (toy_module * module, const void *image))               \
	X(module_function, "cuModuleGetFunction", "cuModuleGetFunction",                                               \
	  (toy_function * function, toy_module module, const char *name))                                              \
	X(module_unload, "cuModuleUnload", "cuModuleUnload", (toy_module module))                                      \
	X(launch, "cuLaunchKernel", "cuLaunchKernel",                                                                  \
	  (toy_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,        \
	   unsigned shared_bytes, toy_stream stream, void **params, void **extra))                                     \
	X(capture_begin, "cuStreamBeginCapture_v2", "cuStreamBeginCapture", (toy_stream stream, int mode))             \
	X(capture_end, "cuStreamEndCapture", "cuStreamEndCapture", (toy_stream stream, toy_graph * graph))             \
	X(instantiate, "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags",                                   \
	  (toy_exec * exec, toy_graph graph, unsigned long long flags))                                                \
	X(graph_launch, "cuGraphLaunch", "cuGraphLaunch", (toy_exec exec, toy_stream stream))                          \
	X(exec_destroy, "cuGraphExecDestroy", "cuGraphExecDestroy", (toy_exec exec))                                   \
	X(graph_destroy, "cuGraphDestroy", "cuGraphDestroy", (toy_graph graph))

struct toy_cuda {
#define TOY_MEMBER(member, symbol, name, params) int(*member) params;
	TOY_CUDA_CALLS(TOY_MEMBER)
#undef TOY_MEMBER
};

extern struct toy_cuda cu;

/* Fills `cu` from that library: by dlsym, or by its cuGetProcAddress. Ends the program when it cannot. */
void toy_cuda_load(const char *library, bool by_proc_address);

/* The library's own entry, which no preload sees: for what is held against a call through `cu`. Ends the program when there is no way. */
void *toy_cuda_past(const char *library, const char *symbol);

/* Ends the program with what failed. A server that goes on after a driver error measures nothing. */
void toy_check(int result, const char *what);
#define CHECK(call) toy_check(cu.call, #call)

__attribute__((noreturn, format(printf, 1, 2))) void toy_die(const char *format, ...);

#endif
