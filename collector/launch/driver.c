/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.c: asks the CUDA driver who it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/driver.h"

#define PROBE_SECONDS 60
#define STAND_IN      "slotprobe CPU driver" /* what the device of our stand-in is called */

/* The oldest ISA and target that slotprobe's own kernel is built for. */
static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry slotprobe_doctor() { ret; }\n";

struct driver_calls {
	int (*init)(unsigned);
	int (*version)(int *);
	int (*count)(int *);
	int (*get)(int *, int);
	int (*name)(char *, int, int);
	int (*error)(int, const char **);
	int (*retain)(void **, int);
	int (*release)(int);
	int (*set_current)(void *);
	int (*load)(void **, const void *);
	int (*unload)(void *);
};

/* A function pointer from dlsym, without a cast that ISO C forbids. */
static void take(void *library, const char *name, void *into)
{
	void *symbol = dlsym(library, name);

	memcpy(into, &symbol, sizeof(symbol));
}

static void take_all(void *library, struct driver_calls *c)
{
	take(library, "cuInit", &c->init);
	take(library, "cuDriverGetVersion", &c->version);
	take(library, "cuDeviceGetCount", &c->count);
	take(library, "cuDeviceGet", &c->get);
	take(library, "cuDeviceGetName", &c->name);
	take(library, "cuGetErrorString", &c->error);
	take(library, "cuDevicePrimaryCtxRetain", &c->retain);
	take(library, "cuDevicePrimaryCtxRelease_v2", &c->release);
	take(library, "cuCtxSetCurrent", &c->set_current);
	take(library, "cuModuleLoadData", &c->load);
	take(library, "cuModuleUnload", &c->unload);
}

static void fails(struct driver_report *report, const struct driver_calls *c, const char *what, int result)
{
	const char *text = NULL;

	if (c->error)
		c->error(result, &text);
	report->state = DRIVER_FAILS;
	snprintf(report->problem, sizeof(report->problem), "%s returned %d (%s)", what, result, text ? text : "?");
}

static int load_ptx(const struct driver_calls *c, int device)
{
	void *context = NULL, *module = NULL;
	int result;

	if (!c->retain || !c->release || !c->set_current || !c->load || !c->unload)
		return -1;
	result = c->retain(&context, device);
	if (result)
		return result;
	result = c->set_current(context);
	if (!result)
		result = c->load(&module, ptx);
	if (!result)
		c->unload(module);
	c->release(device);
	return result;
}

/* In the child: every word goes into shared memory, so what was said before a crash is kept. */
static void ask(struct driver_report *report, const char *library)
{
	void *handle = dlopen(library ? library : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	struct driver_calls c = { 0 };
	int version = 0, device = 0, result;

	if (!handle) {
		const char *why = dlerror();

		/* A file that is not there is no driver; one that cannot be loaded is a broken one. */
		report->state = why && strstr(why, "No such file") ? DRIVER_ABSENT : DRIVER_FAILS;
		snprintf(report->problem, sizeof(report->problem), "%s", why ? why : "dlopen failed");
		return;
	}
	take_all(handle, &c);
	if (!c.init || !c.version || !c.count || !c.get || !c.name) {
		report->state = DRIVER_FAILS;
		snprintf(report->problem, sizeof(report->problem), "libcuda.so.1 lacks the calls of a CUDA driver");
		return;
	}
	result = c.init(0);
	if (result) {
		fails(report, &c, "cuInit", result);
		return;
	}
	if (!c.version(&version))
		snprintf(report->driver, sizeof(report->driver), "CUDA %d.%d", version / 1000, version % 1000 / 10);
	result = c.count(&report->devices);
	if (!result && report->devices)
		result = c.get(&device, 0);
	if (!result && report->devices)
		result = c.name(report->device, sizeof(report->device), device);
	if (result || !report->devices) {
		fails(report, &c, result ? "asking for device 0" : "there is no device: cuDeviceGetCount", result);
		return;
	}
	report->stand_in = !strncmp(report->device, STAND_IN, sizeof(report->device));
	report->ptx = load_ptx(&c, device);
	report->state = DRIVER_WORKS;
}

void driver_probe(struct driver_report *report, const char *library)
{
	struct driver_report *shared =
		mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t child;

	*report =
		(struct driver_report) { .state = DRIVER_FAILS, .problem = "cannot start a process to ask the driver" };
	if (shared == MAP_FAILED)
		return;
	*shared = (struct driver_report) { .state = DRIVER_FAILS, .problem = "the driver crashed or did not answer" };
	fflush(NULL);
	child = fork();
	if (!child) {
		signal(SIGALRM, SIG_DFL);
		alarm(PROBE_SECONDS);
		ask(shared, library);
		_exit(0);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child > 0) {
		*report = *shared;
		report->device[sizeof(report->device) - 1] = 0;
		if (status && report->state == DRIVER_WORKS)
			report->state = DRIVER_FAILS;
		if (report->state == DRIVER_WORKS)
			report->problem[0] = 0;
	}
	munmap(shared, sizeof(*shared));
}
