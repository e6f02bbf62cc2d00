/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cuda.c: a libcuda.so.1 that does nothing but count: every symbol of the entry table, cuGetProcAddress that
 * answers by name, version and flags as a real driver does, and just enough of captures.
 *
 * Built with -DSTUB it is a library in which all functions are one, as in the toolkit's stubs.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/hook/entry.h"

#define ERRNO_OF_DRIVER 77 /* what a call of the driver leaves in errno */

unsigned fake_calls[SHIM_ENTRY_COUNT];
uintptr_t fake_arg[8]; /* of the last call */
__thread int fake_errno_at_entry;
int fake_result;    /* what every call answers */
int fake_capturing; /* what cuStreamIsCapturing says */
int fake_mode = 0;  /* the thread's capture mode */
int fake_mode_seen = -1;
int fake_device;             /* of the current context */
uintptr_t fake_stream_asked; /* by cuStreamIsCapturing */

unsigned fake_count(const char *symbol);
unsigned fake_total(void);

unsigned fake_count(const char *symbol)
{
#define NAME(name, ...) #name,
	static const char *const names[] = { SHIM_ENTRIES(NAME) };

	for (unsigned i = 0; i < SHIM_ENTRY_COUNT; i++)
		if (!strcmp(symbol, names[i]))
			return __atomic_load_n(&fake_calls[i], __ATOMIC_RELAXED);
	abort();
}

unsigned fake_total(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < SHIM_ENTRY_COUNT; i++)
		sum += __atomic_load_n(&fake_calls[i], __ATOMIC_RELAXED);
	return sum;
}

static int called(int id)
{
	fake_errno_at_entry = errno;
	__atomic_fetch_add(&fake_calls[id], 1, __ATOMIC_RELAXED);
	errno = ERRNO_OF_DRIVER;
	return fake_result;
}

#ifdef STUB

int fake_stub(void);
int fake_stub(void)
{
	return called(0);
}
#define STUB_ROW(symbol, wrapper, args, ...) int symbol(__VA_ARGS__) __attribute__((alias("fake_stub")));
#define cuGetProcAddress_v2                  fake_stub_unused
SHIM_ENTRIES(STUB_ROW)
#undef cuGetProcAddress_v2

/* Answers every name with the one function. */
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
	(void)name, (void)version, (void)flags;
	*out = (void *)fake_stub;
	*status = 0;
	return 0;
}

#else

#define PLAIN(symbol, set, ...)                                                                                        \
	int symbol(__VA_ARGS__);                                                                                       \
	int symbol(__VA_ARGS__)                                                                                        \
	{                                                                                                              \
		set;                                                                                                   \
		return called(SHIM_ENTRY_##symbol);                                                                    \
	}
#define SEE(i, x)   (fake_arg[i] = (uintptr_t)(x))

PLAIN(cuInit, SEE(0, flags), unsigned flags)
PLAIN(cuGraphLaunch, (SEE(0, exec), SEE(1, stream)), void *exec, void *stream)
PLAIN(cuGraphLaunch_ptsz, (SEE(0, exec), SEE(1, stream)), void *exec, void *stream)
#define MAKE(value) (fake_result ? (void)0 : (void)(*exec = (void *)(uintptr_t)(value)))
PLAIN(cuGraphInstantiate, (MAKE(0x11), SEE(1, graph), SEE(2, node), SEE(3, log), SEE(4, n)), void **exec, void *graph,
      void *node, char *log, size_t n)
PLAIN(cuGraphInstantiate_v2, (MAKE(0x12), SEE(1, graph), SEE(2, node), SEE(3, log), SEE(4, n)), void **exec,
      void *graph, void *node, char *log, size_t n)
PLAIN(cuGraphInstantiateWithFlags, (MAKE(0x13), SEE(1, graph), SEE(2, flags)), void **exec, void *graph,
      unsigned long long flags)
PLAIN(cuGraphInstantiateWithParams, (MAKE(0x14), SEE(1, graph), SEE(2, params)), void **exec, void *graph, void *params)
PLAIN(cuGraphInstantiateWithParams_ptsz, (MAKE(0x15), SEE(1, graph), SEE(2, params)), void **exec, void *graph,
      void *params)
PLAIN(cuGraphExecDestroy, SEE(0, exec), void *exec)
PLAIN(cuGraphExecUpdate, (SEE(0, exec), SEE(1, graph), SEE(2, node), SEE(3, result)), void *exec, void *graph,
      void *node, int *result)
PLAIN(cuGraphExecUpdate_v2, (SEE(0, exec), SEE(1, graph), SEE(2, info)), void *exec, void *graph, void *info)
#define SET(symbol) PLAIN(symbol, (SEE(0, exec), SEE(1, node), SEE(2, params)), void *exec, void *node, void *params)
#define SET_IN(symbol)                                                                                                 \
	PLAIN(symbol, (SEE(0, exec), SEE(1, node), SEE(2, params), SEE(3, ctx)), void *exec, void *node, void *params, \
	      void *ctx)
SET(cuGraphExecKernelNodeSetParams)
SET(cuGraphExecKernelNodeSetParams_v2)
SET_IN(cuGraphExecMemcpyNodeSetParams)
SET_IN(cuGraphExecMemsetNodeSetParams)
SET(cuGraphExecChildGraphNodeSetParams)
SET(cuGraphExecNodeSetParams)
SET(cuGraphExecHostNodeSetParams)
SET(cuGraphExecExternalSemaphoresSignalNodeSetParams)
SET(cuGraphExecExternalSemaphoresWaitNodeSetParams)
SET(cuGraphExecBatchMemOpNodeSetParams)
SET(cuGraphExecEventRecordNodeSetEvent)
SET(cuGraphExecEventWaitNodeSetEvent)
PLAIN(cuStreamBeginCapture, SEE(0, stream), void *stream)
PLAIN(cuStreamBeginCapture_ptsz, SEE(0, stream), void *stream)
PLAIN(cuStreamBeginCapture_v2, (SEE(0, stream), SEE(1, mode)), void *stream, int mode)
PLAIN(cuStreamBeginCapture_v2_ptsz, (SEE(0, stream), SEE(1, mode)), void *stream, int mode)
#define TO_GRAPH(symbol)                                                                                               \
	PLAIN(symbol, (SEE(0, stream), SEE(1, graph), SEE(2, deps), SEE(3, edges), SEE(4, n), SEE(5, mode)),           \
	      void *stream, void *graph, void *deps, void *edges, size_t n, int mode)
TO_GRAPH(cuStreamBeginCaptureToGraph)
TO_GRAPH(cuStreamBeginCaptureToGraph_ptsz)
PLAIN(cuStreamEndCapture, (SEE(0, stream), SEE(1, graph)), void *stream, void **graph)
PLAIN(cuStreamEndCapture_ptsz, (SEE(0, stream), SEE(1, graph)), void *stream, void **graph)
PLAIN(cuStreamDestroy, SEE(0, stream), void *stream)
PLAIN(cuStreamDestroy_v2, SEE(0, stream), void *stream)
PLAIN(cuMemFree, SEE(0, ptr), unsigned ptr)
PLAIN(cuMemFree_v2, SEE(0, ptr), unsigned long long ptr)
PLAIN(cuMemFreeAsync, (SEE(0, ptr), SEE(1, stream)), unsigned long long ptr, void *stream)
PLAIN(cuMemFreeAsync_ptsz, (SEE(0, ptr), SEE(1, stream)), unsigned long long ptr, void *stream)
PLAIN(cuMemUnmap, (SEE(0, ptr), SEE(1, n)), unsigned long long ptr, size_t n)
PLAIN(cuIpcCloseMemHandle, SEE(0, ptr), unsigned long long ptr)
PLAIN(cuMemFreeHost, SEE(0, ptr), void *ptr)
PLAIN(cuMemHostUnregister, SEE(0, ptr), void *ptr)
PLAIN(cuCtxDestroy, SEE(0, ctx), void *ctx)
PLAIN(cuCtxDestroy_v2, SEE(0, ctx), void *ctx)
PLAIN(cuDevicePrimaryCtxRetain, (SEE(0, ctx), SEE(1, device)), void **ctx, int device)
PLAIN(cuDevicePrimaryCtxRelease, SEE(0, device), int device)
PLAIN(cuDevicePrimaryCtxRelease_v2, SEE(0, device), int device)
PLAIN(cuDevicePrimaryCtxReset, SEE(0, device), int device)
PLAIN(cuDevicePrimaryCtxReset_v2, SEE(0, device), int device)
PLAIN(cuGreenCtxDestroy, SEE(0, ctx), void *ctx)

/* Not in the table. */
int cuStreamIsCapturing(void *stream, int *status);
int cuStreamIsCapturing(void *stream, int *status)
{
	fake_stream_asked = (uintptr_t)stream;
	fake_mode_seen = fake_mode;
	*status = fake_capturing;
	return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode);
int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int old = fake_mode;

	fake_mode = *mode;
	*mode = old;
	return 0;
}

int cuCtxFromGreenCtx(void **ctx, void *green);
int cuCtxFromGreenCtx(void **ctx, void *green)
{
	*ctx = (char *)green + 1;
	return 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	*flags = 0;
	*active = device == 1;
	return 0;
}

/* A newer driver's version of a table name, and a function that is none of ours. */
int fake_launch_of_the_future(void *exec, void *stream, int more);
int fake_launch_of_the_future(void *exec, void *stream, int more)
{
	(void)exec, (void)stream, (void)more;
	return 4242;
}

/* What slotprobe cannot do without, so that the driver table is complete. */
#define NEEDED(symbol)                                                                                                 \
	int symbol(void);                                                                                              \
	int symbol(void)                                                                                               \
	{                                                                                                              \
		return 801;                                                                                            \
	}
NEEDED(cuDriverGetVersion)
NEEDED(cuDeviceGet)
NEEDED(cuDeviceGetName)
NEEDED(cuDeviceGetAttribute)
NEEDED(cuCtxPushCurrent_v2)
NEEDED(cuCtxPopCurrent_v2)
NEEDED(cuStreamCreate)
NEEDED(cuLaunchKernel)
NEEDED(cuMemcpyHtoDAsync_v2)
NEEDED(cuMemsetD8Async)
NEEDED(cuMemAlloc_v2)
NEEDED(cuMemHostRegister_v2)
NEEDED(cuMemHostGetDevicePointer_v2)
NEEDED(cuModuleLoadData)
NEEDED(cuModuleUnload)
NEEDED(cuModuleGetFunction)
NEEDED(cuGraphGetNodes)
NEEDED(cuGraphNodeGetType)
NEEDED(cuGraphMemcpyNodeGetParams)
NEEDED(cuGraphMemsetNodeGetParams)
NEEDED(cuGraphChildGraphNodeGetGraph)

#define FAKE_CTX                        ((void *)0xc1)
int cuStreamGetCtx(void *stream, void **ctx);
int cuStreamGetCtx(void *stream, void **ctx)
{
	*ctx = (uintptr_t)stream == 0x99 ? (void *)0xc2 : FAKE_CTX;
	return 0;
}

int cuCtxGetCurrent(void **ctx);
int cuCtxGetCurrent(void **ctx)
{
	*ctx = FAKE_CTX;
	return 0;
}

int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device)
{
	*device = fake_device;
	return 0;
}

/* Which symbol answers a name from which version on, as driver 580 does; the newest row that is not too new. */
struct answer {
	const char *name;
	int version;
	void *plain, *ptsz;
};
int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);
#define ROW(name, version, symbol)      { name, version, (void *)symbol, (void *)symbol },
#define ROW_PTSZ(name, version, symbol) { name, version, (void *)symbol, (void *)symbol##_ptsz },
static const struct answer answers[] = {
	ROW("cuInit", 2000, cuInit) ROW("cuGetProcAddress", 11030, cuGetProcAddress) ROW(
		"cuGetProcAddress", 12000, cuGetProcAddress_v2) ROW_PTSZ("cuGraphLaunch", 10000, cuGraphLaunch)
		ROW("cuGraphLaunch", 14000, fake_launch_of_the_future) ROW(
			"cuFakeOther", 14000, fake_launch_of_the_future) ROW("cuGraphInstantiate", 10000,
									     cuGraphInstantiate)
			ROW("cuGraphInstantiate", 11000, cuGraphInstantiate_v2) ROW("cuGraphInstantiateWithFlags",
										    11040, cuGraphInstantiateWithFlags)
				ROW_PTSZ("cuGraphInstantiateWithParams", 12000, cuGraphInstantiateWithParams) ROW(
					"cuGraphExecUpdate", 11000, cuGraphExecUpdate) ROW("cuGraphExecUpdate", 12000,
											   cuGraphExecUpdate_v2)
					ROW("cuGraphExecKernelNodeSetParams", 10010,
					    cuGraphExecKernelNodeSetParams) ROW("cuGraphExecKernelNodeSetParams", 12000,
										cuGraphExecKernelNodeSetParams_v2)
						ROW_PTSZ("cuStreamBeginCapture", 10000, cuStreamBeginCapture)
							ROW_PTSZ("cuStreamBeginCapture", 10010, cuStreamBeginCapture_v2)
								ROW("cuMemFree", 2000, cuMemFree)
									ROW("cuMemFree", 3020, cuMemFree_v2)
										ROW("cuStreamIsCapturing", 10000,
										    cuStreamIsCapturing)
};

int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
	int known = 0;

	*out = NULL;
	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		if (strcmp(name, answers[i].name))
			continue;
		known = 1;
		if (version >= answers[i].version)
			*out = flags == 2 ? answers[i].ptsz : answers[i].plain;
	}
	if (status)
		*status = *out ? 0 : known ? 2 : 1;
	return called(SHIM_ENTRY_cuGetProcAddress_v2);
}

int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
	int result = cuGetProcAddress_v2(name, out, version, flags, NULL);

	return called(SHIM_ENTRY_cuGetProcAddress) ? result : *out ? 0 : 500;
}

#endif
