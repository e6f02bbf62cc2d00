/* SPDX-License-Identifier: Apache-2.0
 *
 * calls.c: a preload that counts a process's driver calls by name, as the CPU driver does by itself: through CUPTI, which sees a call
 * whichever way it comes, those past any preload too. Writes $CALLS_OUT at the end, a line `FUNCTION CALLS` each, then legacy_stream_work,
 * device_bytes_peak, the most that was in use on the device at the ends of the calls listed below, memory_first, what was at the first of them,
 * memory_samples, and `grew:FUNCTION BYTES` for those at whose end more was in use than ever before. A process in which CUPTI ($CALLS_CUPTI)
 * refuses, or has nothing to say by the end, exits with status 9: nothing was measured.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is used of CUPTI, as cupti_callbacks.h has it in CUDA 12 and 13: CUpti_CallbackData as far as it is looked at. */
enum { DRIVER_API = 1, ENTER = 0, EXIT = 1, MOST = 4096 };

struct call {
	int site;
	const char *name;
	const void *params; /* the arguments, laid out as a structure */
	const int *result;
};

typedef void callback(void *arg, int domain, uint32_t id, const struct call *call);

enum legacy { NEVER, ALWAYS, BY_ARGUMENT, BY_CONFIG };

static struct function {
	const char *name;
	enum legacy legacy;
	size_t stream; /* its place among the arguments */
	bool per_thread, sampled, begins, ends;
	atomic_ullong calls, grew;
} functions[MOST];

static atomic_ullong called, unnamed, legacy_work, peak, first, samples;
static atomic_int captures; /* open in the process: nothing is asked meanwhile */
static pid_t owner;
static __thread bool inside; /* in a call of our own */
static int (*memory_info)(size_t *unused, size_t *total);
static int (*exchange_mode)(int *mode);

/* Where the stream lies among the arguments (generated_cuda_meta.h; a _ptsz twin has the same). */
static const struct {
	const char *name;
	size_t at;
} streams[] = {
	{ "cuLaunchKernel", 40 },
	{ "cuLaunchCooperativeKernel", 40 },
	{ "cuLaunchHostFunc", 0 },
	{ "cuGraphLaunch", 8 },
	{ "cuMemsetD8Async", 24 },
	{ "cuMemsetD16Async", 24 },
	{ "cuMemsetD32Async", 24 },
	{ "cuMemsetD2D8Async", 40 },
	{ "cuMemsetD2D16Async", 40 },
	{ "cuMemsetD2D32Async", 40 },
	{ "cuMemcpyAsync", 24 },
	{ "cuMemcpyHtoDAsync_v2", 24 },
	{ "cuMemcpyDtoHAsync_v2", 24 },
	{ "cuMemcpyDtoDAsync_v2", 24 },
	{ "cuMemcpyPeerAsync", 40 },
	{ "cuMemcpy2DAsync_v2", 8 },
	{ "cuMemcpy3DAsync_v2", 8 },
	{ "cuMemcpy3DPeerAsync", 8 },
	{ "cuMemcpyBatchAsync", 64 },
	{ "cuMemcpyBatchAsync_v2", 56 },
	{ "cuMemAllocAsync", 16 },
	{ "cuMemFreeAsync", 8 },
	{ "cuMemAllocFromPoolAsync", 24 },
	{ "cuStreamWaitEvent", 0 },
	{ "cuStreamAddCallback", 0 },
	{ "cuStreamWaitValue32_v2", 0 },
	{ "cuStreamWaitValue64_v2", 0 },
	{ "cuStreamWriteValue32_v2", 0 },
	{ "cuStreamWriteValue64_v2", 0 },
	{ "cuStreamBatchMemOp_v2", 0 },
	{ "cuEventRecord", 8 },
	{ "cuEventRecordWithFlags", 8 },
};

enum { STREAM_IN_CONFIG = 32 }; /* of cuLaunchKernelEx */

/* What may take device memory, and what comes after all that did: at their ends the device is asked what is free. */
static const char *const sampled[] = {
	"cuMemAlloc",    "cuMemCreate",  "cuMemMap",       "cuMemHost",          "cuModuleLoad",
	"cuLibrary",     "cuFuncLoad",   "cuStreamCreate", "cuGraphInstantiate", "cuKernelGetFunction",
	"cuGraphLaunch", "cuStreamSync", "cuCtxSync",
};

static void give_up(const char *why)
{
	fprintf(stderr, "calls: %s\n", why);
	_exit(9);
}

static bool begins_with(const char *name, const char *start)
{
	return !strncmp(name, start, strlen(start));
}

static void classify(struct function *f, const char *name)
{
	const char *end = strstr(name, "_ptsz");
	size_t length = end ? (size_t)(end - name) : strlen(name);
	bool copies = begins_with(name, "cuMemcpy") || begins_with(name, "cuMemset");

	f->name = name;
	f->per_thread = end || strstr(name, "_ptds");
	f->begins = begins_with(name, "cuStreamBeginCapture");
	f->ends = begins_with(name, "cuStreamEndCapture");
	if (copies && !strstr(name, "Async") && !f->per_thread)
		f->legacy = ALWAYS;
	else if (length == strlen("cuLaunchKernelEx") && begins_with(name, "cuLaunchKernelEx"))
		f->legacy = BY_CONFIG;
	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++) {
		if (length == strlen(streams[i].name) && begins_with(name, streams[i].name)) {
			f->legacy = BY_ARGUMENT;
			f->stream = streams[i].at;
		}
	}
	for (size_t i = 0; i < sizeof(sampled) / sizeof(*sampled); i++)
		f->sampled |= begins_with(name, sampled[i]);
}

/* NULL is the thread's own stream in a _ptsz twin; CU_STREAM_LEGACY, 1, is the legacy stream in both. */
static bool is_legacy(const struct function *f, const void *params)
{
	const char *at = params;
	uintptr_t stream;

	if (f->legacy == NEVER || f->legacy == ALWAYS)
		return f->legacy == ALWAYS;
	if (!at)
		return false;
	if (f->legacy == BY_CONFIG) {
		memcpy(&at, params, sizeof(at));
		if (!at)
			return false;
	}
	memcpy(&stream, at + (f->legacy == BY_CONFIG ? STREAM_IN_CONFIG : f->stream), sizeof(stream));
	return stream == 1 || (!stream && !f->per_thread);
}

static void sample(struct function *f)
{
	size_t unused, total;
	unsigned long long used, before = atomic_load(&peak);
	int mode = 2; /* relaxed: whatever begins to capture meanwhile is not harmed */

	if (atomic_load(&captures) || exchange_mode(&mode))
		return;
	if (!memory_info(&unused, &total)) {
		used = total - unused;
		if (!atomic_fetch_add(&samples, 1))
			atomic_store(&first, used);
		while (used > before && !atomic_compare_exchange_weak(&peak, &before, used))
			;
		if (used > before)
			atomic_fetch_add(&f->grew, used - before);
	}
	exchange_mode(&mode);
}

static void entered(struct function *f, const struct call *call)
{
	atomic_fetch_add(&f->calls, 1);
	if (is_legacy(f, call->params))
		atomic_fetch_add(&legacy_work, 1);
	if (f->begins)
		atomic_fetch_add(&captures, 1);
}

static void left(struct function *f, const struct call *call)
{
	bool failed = call->result && *call->result;

	if (f->ends || (f->begins && failed))
		atomic_fetch_sub(&captures, 1);
	if (f->sampled && !failed)
		sample(f);
}

static void on_call(void *arg, int domain, uint32_t id, const struct call *call)
{
	(void)arg;
	if (inside || domain != DRIVER_API)
		return;
	inside = true;
	if (call->site == ENTER)
		atomic_fetch_add(&called, 1);
	if (id < MOST && functions[id].name) {
		if (call->site == ENTER)
			entered(&functions[id], call);
		else if (call->site == EXIT)
			left(&functions[id], call);
	} else if (call->site == ENTER) {
		atomic_fetch_add(&unnamed, 1);
	}
	inside = false;
}

__attribute__((constructor)) static void subscribe(void)
{
	const char *path = getenv("CALLS_CUPTI");
	void *cupti = dlopen(path && *path ? path : "libcupti.so", RTLD_NOW), *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	int (*name_of)(int, uint32_t, const char **), (*subscribe_to)(void **, callback *, void *),
		(*enable)(uint32_t, void *, int);
	static void *subscriber;
	const char *name;
	bool any = false;

	if (!cupti || !cuda)
		give_up(cuda ? "no libcupti" : "no libcuda.so.1");
	name_of = (int (*)(int, uint32_t, const char **))dlsym(cupti, "cuptiGetCallbackName");
	subscribe_to = (int (*)(void **, callback *, void *))dlsym(cupti, "cuptiSubscribe");
	enable = (int (*)(uint32_t, void *, int))dlsym(cupti, "cuptiEnableDomain");
	memory_info = (int (*)(size_t *, size_t *))dlsym(cuda, "cuMemGetInfo_v2");
	exchange_mode = (int (*)(int *))dlsym(cuda, "cuThreadExchangeStreamCaptureMode");
	if (!name_of || !subscribe_to || !enable || !memory_info || !exchange_mode)
		give_up("a function is missing");
	for (uint32_t id = 1; id < MOST; id++) {
		name = NULL;
		if (!name_of(DRIVER_API, id, &name) && name) {
			classify(&functions[id], name);
			any = true;
		}
	}
	owner = getpid();
	if (!any)
		give_up("no names of functions");
	if (subscribe_to(&subscriber, on_call, NULL) || enable(1, subscriber, DRIVER_API))
		give_up("CUPTI refuses");
}

__attribute__((destructor)) static void write_counts(void)
{
	const char *path = getenv("CALLS_OUT");
	FILE *file;

	if (!owner || getpid() != owner)
		return;
	fflush(stdout);
	if (!atomic_load(&called))
		give_up("not called once");
	file = path && *path ? fopen(path, "we") : NULL;
	if (!file)
		give_up("cannot write $CALLS_OUT");
	for (uint32_t id = 1; id < MOST; id++)
		if (functions[id].name)
			fprintf(file, "%s %llu\n", functions[id].name, atomic_load(&functions[id].calls));
	fprintf(file, "unnamed %llu\nlegacy_stream_work %llu\n", atomic_load(&unnamed), atomic_load(&legacy_work));
	fprintf(file, "device_bytes_peak %llu\nmemory_first %llu\nmemory_samples %llu\n", atomic_load(&peak),
		atomic_load(&first), atomic_load(&samples));
	for (uint32_t id = 1; id < MOST; id++)
		if (atomic_load(&functions[id].grew))
			fprintf(file, "grew:%s %llu\n", functions[id].name, atomic_load(&functions[id].grew));
	fclose(file);
}
