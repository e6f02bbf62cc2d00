/* SPDX-License-Identifier: Apache-2.0
 *
 * perturb.c: a probe that does what no probe may do, for the tests that must notice: a preload in front of libslotprobe.so
 * that wraps slotprobe_donate. PERTURB=sync waits for the stream, alloc allocates device memory under a relaxed capture mode, unsafe
 * allocates under the thread's own, deadly does that too and, some time after it was refused for a capture's sake, ends the process as a
 * driver may, legacy puts work on the legacy stream; each at every 8th donation. PERTURB=hoard allocates
 * 16 MiB once and keeps them.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTPROBE_IMPLEMENTATION
#include "probes/core/slotprobe.h"

#define EXPORT __attribute__((visibility("default")))
#define MIB    ((size_t)1 << 20)

static void *driver(const char *name)
{
	return dlsym(RTLD_DEFAULT, name) ?: dlsym(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW), name);
}

static uint64_t allocate(size_t bytes)
{
	uint64_t memory = 0;

	((int (*)(uint64_t *, size_t))driver("cuMemAlloc_v2"))(&memory, bytes);
	return memory;
}

static void relaxed(int *mode)
{
	((int (*)(int *))driver("cuThreadExchangeStreamCaptureMode"))(mode);
}

static void perturb(const char *how, const struct slotprobe_claim *claim)
{
	static uint64_t memory;
	int mode = 2;

	if (!strcmp(how, "sync")) {
		((int (*)(void *))driver("cuStreamSynchronize"))((void *)(uintptr_t)claim->stream);
	} else if (!strcmp(how, "unsafe")) {
		allocate(MIB);
	} else if (!strcmp(how, "deadly")) {
		if (!allocate(MIB)) {
			usleep(500000); /* the capture that is lost ends in that time */
			raise(SIGSEGV);
		}
	} else if (!strcmp(how, "alloc") || !memory) {
		relaxed(&mode);
		memory = allocate(strcmp(how, "hoard") ? MIB : 16 * MIB);
		relaxed(&mode);
	}
	if (!strcmp(how, "legacy"))
		((int (*)(uint64_t, unsigned char, size_t, void *))driver("cuMemsetD8Async"))(memory, 1, 16, NULL);
}

EXPORT int64_t slotprobe_donate(const struct slotprobe_claim *claim)
{
	static unsigned calls;
	int64_t (*next)(const struct slotprobe_claim *) =
		(int64_t(*)(const struct slotprobe_claim *))dlsym(RTLD_NEXT, "slotprobe_donate");
	const char *how = getenv("PERTURB");

	if (how && __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % 8 == 0)
		perturb(how, claim);
	return next ? next(claim) : -38;
}
