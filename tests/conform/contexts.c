/* SPDX-License-Identifier: Apache-2.0
 *
 * contexts.c: devices and contexts.
 */
#include <string.h>

#include "conform.h"

void group_devices(void)
{
	static const int attributes[] = { CU_ATTRIBUTE_MULTIPROCESSORS, CU_ATTRIBUTE_CAPABILITY_MAJOR,
					  CU_ATTRIBUTE_CAPABILITY_MINOR };
	cu_device device = -1;
	struct cu_uuid uuid = { { 0 } }, again = { { 0 } };
	char name[64] = "";
	size_t bytes = 0;
	int n = 0, value;

	NEED(cuInit, 0);
	T("", cuDeviceGetCount, &n);
	see("some", n > 0);
	T("no place", cuDeviceGetCount, NULL);
	T("", cuDeviceGet, &device, 0);
	see("device", device);
	T("-1", cuDeviceGet, &device, -1);
	T("one too many", cuDeviceGet, &device, n);
	T("no place", cuDeviceGet, NULL, 0);
	T("", cuDeviceGetName, name, sizeof(name), 0);
	see_text("name", name);
	memset(name, 'x', sizeof(name));
	T("4 bytes", cuDeviceGetName, name, 4, 0);
	see("ends", (long long)strnlen(name, sizeof(name)));
	T("0 bytes", cuDeviceGetName, name, 0, 0);
	T("no place", cuDeviceGetName, NULL, 64, 0);
	T("no such device", cuDeviceGetName, name, 64, n);
	T("", cuDeviceGetUuid_v2, &uuid, 0);
	NEED(cuDeviceGetUuid_v2, &again, 0);
	see("same again", !memcmp(&uuid, &again, sizeof(uuid)));
	T("no such device", cuDeviceGetUuid_v2, &uuid, n);
	T("no place", cuDeviceGetUuid_v2, NULL, 0);
	T("", cuDeviceGetUuid, &again, 0);
	see("same as v2", !memcmp(&uuid, &again, sizeof(uuid)));
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		char what[32] = "16";

		what[0] = (char)('0' + attributes[i] / 10);
		what[1] = (char)('0' + attributes[i] % 10);
		T(what, cuDeviceGetAttribute, &value, attributes[i], 0);
		see("value", value);
	}
	T("0", cuDeviceGetAttribute, &value, 0, 0);
	T("-1", cuDeviceGetAttribute, &value, -1, 0);
	T("9999", cuDeviceGetAttribute, &value, 9999, 0);
	T("no place", cuDeviceGetAttribute, NULL, 16, 0);
	T("no such device", cuDeviceGetAttribute, &value, 16, n);
	T("", cuDeviceTotalMem_v2, &bytes, 0);
	see("some", bytes > 0);
	T("no place", cuDeviceTotalMem_v2, NULL, 0);
	T("no such device", cuDeviceTotalMem_v2, &bytes, n);
	T("no such device", cuDevicePrimaryCtxRetain, &ctx, n);
	T("no such device", cuDevicePrimaryCtxRelease_v2, n);
	T("no such device", cuDevicePrimaryCtxReset_v2, n);
}

void group_contexts(void)
{
	cu_context a = NULL, b = NULL, c = NULL;
	cu_device device = -1;
	cu_stream s = NULL;
	unsigned flags = 77;
	int least = 9, greatest = 9;

	NEED(cuInit, 0);
	T("", cuCtxCreate_v2, &a, 0, 0);
	T("", cuCtxGetCurrent, &c);
	see("the new one", c == a);
	T("no place", cuCtxGetCurrent, NULL);
	T("", cuCtxGetDevice, &device);
	see("device", device);
	T("no place", cuCtxGetDevice, NULL);
	T("", cuCtxGetFlags, &flags);
	see("flags", flags);
	T("", cuCtxGetStreamPriorityRange, &least, &greatest);
	see("least", least);
	see("greatest", greatest);
	T("second", cuCtxCreate_v2, &b, 0, 0);
	T("no place", cuCtxCreate_v2, NULL, 0, 0);
	T("bad device", cuCtxCreate_v2, &c, 0, 99);
	T("", cuCtxPopCurrent_v2, &c);
	see("the second", c == b);
	NEED(cuCtxGetCurrent, &c);
	see("the first below", c == a);
	T("", cuCtxPushCurrent_v2, b);
	T("NULL", cuCtxPushCurrent_v2, NULL);
	T("first form", cuCtxPushCurrent, a);
	T("first form", cuCtxPopCurrent, &c);
	see("it", c == a);
	T("no place", cuCtxPopCurrent_v2, NULL);
	NEED(cuCtxGetCurrent, &c);
	see("the first", c == a);
	T("NULL", cuCtxSetCurrent, NULL);
	NEED(cuCtxGetCurrent, &c);
	see("none", c == NULL);
	T("none left", cuCtxPopCurrent_v2, &c);
	T("none", cuCtxGetDevice, &device);
	T("none", cuStreamCreate, &s, 0);
	T("none", cuCtxSynchronize, );
	T("", cuCtxSetCurrent, b);
	NEED(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	NEED(cuCtxSetCurrent, a);
	c = NULL;
	T("of another context", cuStreamGetCtx, s, &c);
	see("it", c == b);
	T("of another context", cuStreamSynchronize, s);
	T("of another context", cuStreamDestroy_v2, s);
	T("not current", cuCtxDestroy_v2, b);
	T("NULL", cuCtxDestroy_v2, NULL);
	T("NULL, first form", cuCtxDestroy, NULL);
	T("current", cuCtxDestroy_v2, a);
	NEED(cuCtxGetCurrent, &c);
	see("none", c == NULL);
	T("for the first form", cuCtxCreate_v2, &a, 0, 0);
	T("", cuCtxDestroy, a);
}

void group_primary(void)
{
	cu_context a = NULL, b = NULL, c = NULL;
	unsigned flags = 99;
	int active = -1;
	cu_deviceptr ptr = 0;

	NEED(cuInit, 0);
	T("before", cuDevicePrimaryCtxGetState, 0, &flags, &active);
	see("flags", flags);
	see("active", active);
	T("no flags", cuDevicePrimaryCtxGetState, 0, NULL, &active);
	T("no active", cuDevicePrimaryCtxGetState, 0, &flags, NULL);
	T("bad device", cuDevicePrimaryCtxGetState, 99, &flags, &active);
	T("not retained", cuDevicePrimaryCtxRelease_v2, 0);
	T("not retained", cuDevicePrimaryCtxReset_v2, 0);
	T("no place", cuDevicePrimaryCtxRetain, NULL, 0);
	T("", cuDevicePrimaryCtxRetain, &a, 0);
	T("twice", cuDevicePrimaryCtxRetain, &b, 0);
	see("same", a == b);
	T("retained", cuDevicePrimaryCtxGetState, 0, &flags, &active);
	see("flags", flags);
	see("active", active);
	NEED(cuCtxGetCurrent, &c);
	see("not current", c == NULL);
	NEED(cuCtxSetCurrent, a);
	T("the primary one", cuCtxDestroy_v2, a);
	T("", cuDevicePrimaryCtxRelease_v2, 0);
	NEED(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	see("active", active);
	NEED(cuMemAlloc_v2, &ptr, 64);
	T("", cuDevicePrimaryCtxReset_v2, 0);
	NEED(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	see("active", active);
	T("memory after reset", cuMemFree_v2, ptr);
	T("after reset", cuDevicePrimaryCtxRetain, &c, 0);
	see("same", c == a);
	NEED(cuCtxSetCurrent, c);
	T("after reset", cuMemAlloc_v2, &ptr, 64);
	T("first form", cuDevicePrimaryCtxReset, 0);
	T("first form", cuDevicePrimaryCtxRelease, 0);
	T("flags", cuDevicePrimaryCtxSetFlags_v2, 0, 4);
	NEED(cuDevicePrimaryCtxGetState, 0, &flags, &active);
	see("flags", flags);
}

void group_green(void)
{
	struct cux_dev_resource resource;
	cux_resource_desc desc = NULL;
	cu_green_ctx green = NULL;
	cu_context c = NULL, d = NULL;
	cu_stream s = NULL;

	device_open();
	T("", cuDeviceGetDevResource, 0, &resource, 1);
	T("", cuDevResourceGenerateDesc, &desc, &resource, 1);
	T("flags 0", cuGreenCtxCreate, &green, desc, 0, 0);
	T("", cuGreenCtxCreate, &green, desc, 0, 1);
	T("", cuCtxFromGreenCtx, &c, green);
	see("not the primary one", c != NULL && c != ctx);
	NEED(cuCtxFromGreenCtx, &d, green);
	see("same again", c == d);
	T("no place", cuCtxFromGreenCtx, NULL, green);
	T("NULL", cuCtxFromGreenCtx, &d, NULL);
	T("", cuGreenCtxStreamCreate, &s, green, CU_STREAM_NON_BLOCKING, 0);
	d = NULL;
	T("of a green context", cuStreamGetCtx, s, &d);
	see("the context from it", d == c);
	see("the primary one", d == ctx);
	T("of a green context", cuStreamDestroy_v2, s);
	T("", cuGreenCtxDestroy, green);
	T("NULL", cuGreenCtxDestroy, NULL);
}
