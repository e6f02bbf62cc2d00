/* SPDX-License-Identifier: Apache-2.0
 *
 * api.c: what every call passes through: the lock, the counters, initialisation, fork and exit.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cpudriver.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(uint64_t) counts[CPU_N_CALLS], legacy_work, device_peak;
static _Atomic(uint64_t) last_id, last_thread;
static bool initialised, forked;
static pid_t initialised_by;
static int n_devices;
static pthread_once_t kernels_once = PTHREAD_ONCE_INIT;

unsigned cpu_delay_us;
_Atomic(bool) cpu_stopping;

void cpu_lock(void)
{
	pthread_mutex_lock(&lock);
}

void cpu_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void cpu_wait(pthread_cond_t *cond)
{
	pthread_cond_wait(cond, &lock);
}

void cpu_say(const char *format, ...)
{
	char line[512] = "cpudriver: ";
	size_t at = strlen(line);
	va_list args;

	va_start(args, format);
	vsnprintf(line + at, sizeof(line) - at - 1, format, args);
	va_end(args);
	at = strlen(line);
	line[at] = '\n';
	if (write(STDERR_FILENO, line, at + 1) < 0)
		return;
}

cu_result cpu_lacks(const char *what)
{
	cpu_say("not implemented: %s", what);
	return CU_NOT_SUPPORTED;
}

void *cpu_alloc(size_t bytes)
{
	void *memory = calloc(1, bytes ? bytes : 1);

	if (!memory) {
		cpu_say("out of memory for %zu bytes", bytes);
		abort();
	}
	return memory;
}

uint64_t cpu_next_id(void)
{
	return atomic_fetch_add(&last_id, 1) + 1;
}

uint64_t cpu_thread(void)
{
	static __thread uint64_t mine;

	if (!mine)
		mine = atomic_fetch_add(&last_thread, 1) + 1;
	return mine;
}

int cpu_device_count(void)
{
	return n_devices;
}

bool cpu_device_ok(cu_device device)
{
	return device >= 0 && device < n_devices;
}

/* Like the real driver: a child of an initialised process cannot use it. The lock may be held by a thread that the
 * child does not have. */
static void after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	if (initialised)
		forked = true;
}

static long from_environment(const char *name, long otherwise, long most)
{
	const char *text = getenv(name);
	char *end;
	long value;

	if (!text || !*text)
		return otherwise;
	errno = 0;
	value = strtol(text, &end, 10);
	if (*end || errno || value < 0 || value > most) {
		cpu_say("%s is not a number from 0 to %ld: %s", name, most, text);
		return otherwise;
	}
	return value;
}

cu_result cpu_init(void)
{
	if (forked)
		return CU_NOT_INITIALIZED;
	if (!initialised) {
		n_devices = (int)from_environment("CPUDRIVER_DEVICES", 1, CPU_MAX_DEVICES);
		cpu_delay_us = (unsigned)from_environment("CPUDRIVER_DELAY_US", 0, 10000000);
		if (!n_devices)
			return CUX_NO_DEVICE;
		initialised = true;
		initialised_by = getpid();
	}
	return CU_SUCCESS;
}

static cu_result refused(enum cpu_need need)
{
	cu_context ctx;

	if (work_in_host_function() && need != NEED_NOTHING)
		return CUX_NOT_PERMITTED;
	if (need == NEED_NOTHING)
		return CU_SUCCESS;
	if (!initialised || forked)
		return CU_NOT_INITIALIZED;
	if (cpu_stopping)
		return CU_DEINITIALIZED;
	if (need == NEED_INIT)
		return CU_SUCCESS;
	ctx = context_current();
	if (!ctx)
		return CUX_INVALID_CONTEXT;
	if (!ctx->alive)
		return CUX_CONTEXT_IS_DESTROYED;
	return ctx->sticky;
}

struct api_scope api_enter(enum cpu_call call, enum cpu_need need)
{
	struct api_scope scope = { .locked = true };

	atomic_fetch_add_explicit(&counts[call], 1, memory_order_relaxed);
	/* dlopen takes the loader's lock: never while holding ours */
	if (call == CALL_cuInit)
		pthread_once(&kernels_once, kernels_open);
	cpu_lock();
	scope.result = refused(need);
	return scope;
}

void api_leave(struct api_scope *scope)
{
	if (scope->locked)
		cpu_unlock();
}

__attribute__((constructor)) static void loaded(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

static const char *const call_name[CPU_N_CALLS] = {
#define NAME(symbol, name, version, params) [CALL_##symbol] = #symbol,
#define NAME_PAIR(symbol, suffix, name, version, params)                                                               \
	[CALL_##symbol] = #symbol, [CALL_##symbol##suffix] = (#symbol #suffix),
	CPU_CALLS(NAME, NAME_PAIR)
#undef NAME
#undef NAME_PAIR
};

void api_count_legacy_work(void)
{
	atomic_fetch_add_explicit(&legacy_work, 1, memory_order_relaxed);
}

/* Under the lock: nobody else raises it meanwhile. */
void api_count_device_bytes(uint64_t in_use)
{
	if (in_use > atomic_load(&device_peak))
		atomic_store(&device_peak, in_use);
}

/* $CPUDRIVER_COUNTS, where %p stands for the process id. */
static void write_counts(void)
{
	const char *pattern = getenv("CPUDRIVER_COUNTS"), *mark;
	char path[4096];
	FILE *file;

	if (!pattern || !*pattern)
		return;
	mark = strstr(pattern, "%p");
	if (mark)
		snprintf(path, sizeof(path), "%.*s%ld%s", (int)(mark - pattern), pattern, (long)getpid(), mark + 2);
	else
		snprintf(path, sizeof(path), "%s", pattern);
	file = fopen(path, "we");
	if (!file) {
		cpu_say("cannot write the call counts to %s: %s", path, strerror(errno));
		return;
	}
	for (int i = 0; i < CPU_N_CALLS; i++)
		fprintf(file, "%s %llu\n", call_name[i], (unsigned long long)atomic_load(&counts[i]));
	fprintf(file, "legacy_stream_work %llu\n", (unsigned long long)atomic_load(&legacy_work));
	fprintf(file, "device_bytes_peak %llu\n", (unsigned long long)atomic_load(&device_peak));
	fclose(file);
}

/* Exit must not wait for work that may never end: streams are told to start nothing more, who waits is let go, and
 * every later call is refused. Kernels' code and the memory they use stay mapped until the process is gone. */
__attribute__((destructor)) static void unloading(void)
{
	struct timespec soon;

	if (!initialised || getpid() != initialised_by)
		return;
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_nsec += 200000000;
	if (soon.tv_nsec >= 1000000000) {
		soon.tv_nsec -= 1000000000;
		soon.tv_sec++;
	}
	if (!pthread_mutex_timedlock(&lock, &soon)) {
		cpu_stopping = true;
		stream_stop_waiting();
		pthread_mutex_unlock(&lock);
	}
	write_counts();
}
