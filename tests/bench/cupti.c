/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti.c: what people would do instead of wrapping a graph launch: a preload that asks CUPTI to be called back at each
 * cuGraphLaunch, or, with BENCH_CUPTI=nodes, to trace every kernel of a graph as Nsight Systems does. Built where CUPTI is. A process in
 * which CUPTI refuses, or has nothing to say by the end, exits with a status of its own: what it cost was not measured.
 */
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long calls; /* what CUPTI has called here */

static void CUPTIAPI called(void *arg, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	(void)arg, (void)domain, (void)id, (void)data;
	calls++;
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *records)
{
	calls++;
	*size = 8 << 20;
	*buffer = aligned_alloc(8, *size);
	*records = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	(void)context, (void)stream, (void)size, (void)valid;
	free(buffer);
}

static void give_up(const char *why)
{
	fprintf(stderr, "cupti: %s\n", why);
	_exit(9);
}

__attribute__((destructor)) static void was_it_there(void)
{
	fflush(stdout);
	if (!calls)
		give_up("not called once");
}

__attribute__((constructor)) static void subscribe(void)
{
	const char *what = getenv("BENCH_CUPTI");
	static CUpti_SubscriberHandle subscriber;

	if (what && !strcmp(what, "nodes")) {
		if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) ||
		    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL))
			give_up("no activity");
		return;
	}
	if (cuptiSubscribe(&subscriber, called, NULL) ||
	    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch) ||
	    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz))
		give_up("no callback");
}
