/* SPDX-License-Identifier: Apache-2.0
 *
 * played.c: stands in for libcupti where there is none, to try calls.c: the test makes the calls (played_call). $PLAYED=refuse does not
 * let anybody subscribe; $PLAYED=replay makes a few calls by itself, of no server. As libcuda.so.1 it is a driver whose calls are called back for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct call {
	int site;
	const char *name;
	const void *params;
	const int *result;
};

typedef void callback(void *arg, int domain, uint32_t id, const struct call *call);

static const char *const names[] = {
	"INVALID",
	"cuInit",
	"cuLaunchKernel",
	"cuLaunchKernel_ptsz",
	"cuLaunchKernelEx",
	"cuGraphLaunch",
	"cuGraphLaunch_ptsz",
	"cuMemsetD8Async",
	"cuMemcpyHtoD_v2",
	"cuMemcpyHtoD_v2_ptds",
	"cuMemAlloc_v2",
	"cuStreamBeginCapture_v2",
	"cuStreamEndCapture",
	"cuStreamSynchronize",
	"cuMemcpyBatchAsync_v2",
	"cuMemGetInfo_v2",
	"cuThreadExchangeStreamCaptureMode",
};

static callback *subscriber;

EXPORT int played_call(const char *name, int site, const void *params, int result);
EXPORT int cuMemGetInfo_v2(size_t *unused, size_t *total);
EXPORT int cuThreadExchangeStreamCaptureMode(int *mode);
EXPORT int cuptiGetCallbackName(int domain, uint32_t id, const char **name);
EXPORT int cuptiSubscribe(void **handle, callback *called, void *arg);
EXPORT int cuptiEnableDomain(uint32_t on, void *handle, int domain);

int cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
	if (domain != 1 || id >= sizeof(names) / sizeof(*names))
		return 1;
	*name = names[id];
	return 0;
}

static int is(const char *how)
{
	const char *said = getenv("PLAYED");

	return said && !strcmp(said, how);
}

int cuptiSubscribe(void **handle, callback *called, void *arg)
{
	(void)arg;
	if (is("refuse"))
		return 999;
	*handle = &subscriber;
	subscriber = called;
	return 0;
}

/* A name that is in no list comes under a number without a name. */
int played_call(const char *name, int site, const void *params, int result)
{
	uint32_t id = 0, n = sizeof(names) / sizeof(*names);
	struct call call = { .site = site, .name = name, .params = params, .result = &result };

	while (id < n && strcmp(names[id], name))
		id++;
	subscriber(NULL, 1, id, &call);
	return (int)id;
}

int cuptiEnableDomain(uint32_t on, void *handle, int domain)
{
	const uintptr_t arguments[8] = { 0 };

	(void)on, (void)handle;
	if (domain == 1 && is("replay"))
		for (uint32_t id = 1; id < sizeof(names) / sizeof(*names); id++)
			played_call(names[id], 0, arguments, 0);
	return domain == 1 ? 0 : 1;
}

static void called_back(const char *name)
{
	played_call(name, 0, NULL, 0);
	played_call(name, 1, NULL, 0);
}

int cuMemGetInfo_v2(size_t *unused, size_t *total)
{
	called_back("cuMemGetInfo_v2");
	*unused = 1 << 20;
	*total = 3 << 20;
	return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
	(void)mode;
	called_back("cuThreadExchangeStreamCaptureMode");
	return 0;
}
