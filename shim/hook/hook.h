/* SPDX-License-Identifier: Apache-2.0
 *
 * hook.h: what the files of shim/hook share among themselves.
 */
#ifndef SHIM_HOOK_H
#define SHIM_HOOK_H

#include <errno.h>
#include <stdbool.h>

#include "entry.h"
#include "observer.h"

#define SHIM_EXPORT      __attribute__((visibility("default")))
#define shim_unlikely(x) __builtin_expect(!!(x), 0)

/* Tells the observer, who may not want to know; the application's errno is not his to change. */
#define SHIM_TELL(member, ...)                                                                                         \
	do {                                                                                                           \
		if (shim_observer.member) {                                                                            \
			int told_errno = errno;                                                                        \
			shim_observer.member(__VA_ARGS__);                                                             \
			errno = told_errno;                                                                            \
		}                                                                                                      \
	} while (0)

/* ---- resolve.c: whom to call. All of it is idempotent and without locks of ours; errno is kept. ---- */

/* libc's own dlsym, called from inside this library: RTLD_NEXT means after us. */
void *shim_lookup(void *handle, const char *name);
/* The dlsym that the application would have got without us: another preload's after us, else libc's. */
void *shim_lookup_next(void *handle, const char *name);
/* Handle of the libcuda that this process has loaded; NULL while there is none. It stays loaded from then on. */
void *shim_libcuda(void);

struct shim_target {
	void *real; /* libcuda's, or what another preload's dlsym gives for it */
	void *next; /* the next definition in the program's scope, else as real */
	void *raw;  /* libcuda's own */
};
extern struct shim_target shim_target[SHIM_ENTRY_COUNT] __attribute__((visibility("hidden")));

/* The slow path of the functions in entry.c: NULL, the target is not there. */
void *shim_find_real(enum shim_entry_id id);
void *shim_find_next(enum shim_entry_id id);
/* Resolves every entry, once libcuda is loaded. False: it is not. */
bool shim_resolve_all(void);
/* What a call answers whose target is not there. */
cu_result shim_absent(void);

/* ---- runtime.c ---- */

/* The exported wrapper of this runtime name; NULL: not one of them. */
void *shim_runtime_exported(const char *name);
/* Is there a definition for it to call, in any loaded library? */
bool shim_runtime_there(const char *name);

/* ---- launch.c: this thread's launches ---- */
enum shim_launch {
	SHIM_LAUNCH_NEVER,  /* it has launched nothing yet */
	SHIM_LAUNCH_OWN,    /* it counts in words of its own */
	SHIM_LAUNCH_SHARED, /* it does not */
	SHIM_LAUNCH_INSIDE  /* of a driver launch that has been told */
};
struct shim_thread {
	unsigned driver_launches; /* ever */
	uint8_t launch;           /* enum shim_launch */
	bool in_runtime;
};
extern __thread struct shim_thread shim_thread;

/* ---- capture.c ---- */

/* Captures on streams of this context, or of this device, have gone with it. */
void shim_capture_ctx_gone(cu_context ctx);
void shim_capture_device_gone(cu_device device);

#endif
