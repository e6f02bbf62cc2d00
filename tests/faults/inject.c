/* SPDX-License-Identifier: Apache-2.0
 *
 * inject.c: a preload that makes single calls of libslotprobe.so fail: those into the C library, by its table of imported
 * addresses, and those of its own into the driver, by what it looks up for itself. Nobody else's calls are touched: not the
 * server's, not those that the shim passes on.
 *
 *	FAULT, FAULT_COUNT             see plan.h
 *	FAULT_CLOCK=AT:SECONDS         from its AT-th reading on CLOCK_REALTIME is SECONDS off
 *
 * NAME is a row of the tables below; a row of the driver's is called by its symbol; dlsym.CALL is the look-up of one.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/hook/driver.h"
#include "tests/faults/plan.h"

/* name, what it returns when it fails, how the error is told, which one */
#define LIBC_CALLS(X)                                                                                                  \
	X(calloc, 0, ERRNO, ENOMEM)                                                                                    \
	X(mmap, FAILS, ERRNO, ENOMEM)                                                                                  \
	X(mremap, FAILS, ERRNO, ENOMEM)                                                                                \
	X(munmap, FAILS, ERRNO, EINVAL)                                                                                \
	X(open, FAILS, ERRNO, EMFILE)                                                                                  \
	X(openat, FAILS, ERRNO, EMFILE)                                                                                \
	X(read, FAILS, ERRNO, EIO)                                                                                     \
	X(pread, FAILS, ERRNO, EIO)                                                                                    \
	X(write, FAILS, ERRNO, EIO)                                                                                    \
	X(pwritev, FAILS, ERRNO, EIO)                                                                                  \
	X(close, FAILS, DONE_TOO, EIO)                                                                                 \
	X(ftruncate, FAILS, ERRNO, EIO)                                                                                \
	X(fcntl, FAILS, ERRNO, EMFILE)                                                                                 \
	X(fstatvfs, FAILS, ERRNO, EIO)                                                                                 \
	X(faccessat, FAILS, ERRNO, EACCES)                                                                             \
	X(mkdir, FAILS, ERRNO, EACCES)                                                                                 \
	X(linkat, FAILS, ERRNO, EPERM)                                                                                 \
	X(unlink, FAILS, ERRNO, EACCES)                                                                                \
	X(unlinkat, FAILS, ERRNO, EACCES)                                                                              \
	X(readlink, FAILS, ERRNO, EACCES)                                                                              \
	X(getcwd, 0, ERRNO, ENOENT)                                                                                    \
	X(uname, FAILS, ERRNO, EFAULT)                                                                                 \
	X(posix_fallocate, 0, CODE, ENOSPC)                                                                            \
	X(pthread_create, 0, CODE, EAGAIN)                                                                             \
	X(pthread_attr_init, 0, CODE, ENOMEM)                                                                          \
	X(pthread_attr_setstacksize, 0, CODE, EINVAL)                                                                  \
	X(pthread_attr_setdetachstate, 0, CODE, EINVAL)                                                                \
	X(pthread_sigmask, 0, CODE, EINVAL)                                                                            \
	X(sigpending, FAILS, ERRNO, EFAULT)                                                                            \
	X(sigtimedwait, FAILS, ERRNO, EINTR)                                                                           \
	X(prctl, FAILS, ERRNO, EINVAL)                                                                                 \
	X(nanosleep, FAILS, ERRNO, EINTR)                                                                              \
	X(__register_atfork, 0, CODE, ENOMEM)                                                                          \
	X(__cxa_atexit, FAILS, ERRNO, ENOMEM)                                                                          \
	X(dlopen, 0, ERRNO, ENOMEM)                                                                                    \
	X(dladdr, 0, ERRNO, ENOMEM)                                                                                    \
	X(dl_iterate_phdr, 0, ERRNO, ENOMEM)                                                                           \
	X(dlclose, FAILS, ERRNO, EINVAL)

/* Calls that are made by number. */
#define SYSTEM_CALLS(X)                                                                                                \
	X(fstat, EIO)                                                                                                  \
	X(newfstatat, EIO)                                                                                             \
	X(getdents64, EIO)                                                                                             \
	X(futex, EINTR)                                                                                                \
	X(madvise, EINVAL)                                                                                             \
	X(rt_sigprocmask, EFAULT)                                                                                      \
	X(renameat2, EINVAL)

/* What cannot fail, or has no outcome that its caller could go wrong on. The test compares both lists with what the library
 * imports. */
#define HARMLESS(X)                                                                                                    \
	X(__cxa_finalize)                                                                                              \
	X(__errno_location)                                                                                            \
	X(__stack_chk_fail)                                                                                            \
	X(clock_gettime)                                                                                               \
	X(dlsym)                                                                                                       \
	X(dlvsym)                                                                                                      \
	X(environ)                                                                                                     \
	X(__environ)                                                                                                   \
	X(free)                                                                                                        \
	X(getauxval)                                                                                                   \
	X(geteuid)                                                                                                     \
	X(getpid)                                                                                                      \
	X(getppid)                                                                                                     \
	X(memchr)                                                                                                      \
	X(memcpy)                                                                                                      \
	X(memmove)                                                                                                     \
	X(memset)                                                                                                      \
	X(pthread_attr_destroy)                                                                                        \
	X(sched_yield)                                                                                                 \
	X(sigaddset)                                                                                                   \
	X(sigemptyset)                                                                                                 \
	X(sigfillset)                                                                                                  \
	X(sigismember)                                                                                                 \
	X(snprintf)                                                                                                    \
	X(strchr)                                                                                                      \
	X(strcmp)                                                                                                      \
	X(strcspn)                                                                                                     \
	X(strlen)                                                                                                      \
	X(strncasecmp)                                                                                                 \
	X(strncmp)                                                                                                     \
	X(strnlen)                                                                                                     \
	X(strrchr)                                                                                                     \
	X(syscall)                                                                                                     \
	X(sysconf)                                                                                                     \
	X(time)

enum row {
#define LIBC_ROW(name, ...)             ROW_##name,
#define SYSTEM_ROW(name, ...)           ROW_SYS_##name,
#define DRIVER_ROW(member, symbol, ...) ROW_##symbol, ROW_LOOK_##symbol,
	LIBC_CALLS(LIBC_ROW) SYSTEM_CALLS(SYSTEM_ROW) SHIM_DRIVER_CALLS(DRIVER_ROW) ROWS
};

static const struct plan_row rows[ROWS] = {
#define LIBC_IS(name, result, how, error) [ROW_##name] = { #name, result, how, error },
#define SYSTEM_IS(name, error)            [ROW_SYS_##name] = { "syscall." #name, FAILS, ERRNO, error },
#define DRIVER_IS(member, symbol, ...)                                                                                 \
	[ROW_##symbol] = { #symbol, 0, CODE, 999 }, [ROW_LOOK_##symbol] = { "dlsym." #symbol, 0, ERRNO, 0 },
	LIBC_CALLS(LIBC_IS) SYSTEM_CALLS(SYSTEM_IS) SHIM_DRIVER_CALLS(DRIVER_IS)
};

static word_fn *real[ROWS];

#define THUNK(name)                                                                                                    \
	static uintptr_t thunk_##name(WORDS(PARAM))                                                                    \
	{                                                                                                              \
		int error;                                                                                             \
		if (!plan_due(ROW_##name, &error))                                                                     \
			return real[ROW_##name](WORDS(ARG));                                                           \
		return PLAN_FAIL_CALL(&rows[ROW_##name], error, real[ROW_##name]);                                     \
	}
#define LIBC_THUNK(name, ...)             THUNK(name)
#define DRIVER_THUNK(member, symbol, ...) THUNK(symbol)
LIBC_CALLS(LIBC_THUNK)
SHIM_DRIVER_CALLS(DRIVER_THUNK)

static uintptr_t thunk_syscall(PARAM(0), PARAM(1), PARAM(2), PARAM(3), PARAM(4), PARAM(5), PARAM(6))
{
	int error;

	switch (a0) {
#define SYSTEM_CASE(name, ...)                                                                                         \
	case SYS_##name:                                                                                               \
		if (plan_due(ROW_SYS_##name, &error))                                                                  \
			return plan_fail(&rows[ROW_SYS_##name], error);                                                \
		break;
		SYSTEM_CALLS(SYSTEM_CASE)
	default:
		break;
	}
	return (uintptr_t)syscall((long)a0, a1, a2, a3, a4, a5, a6);
}

/* ---- the clock ---- */

static uint64_t clock_at = UINT64_MAX, clock_reads;
static int64_t clock_off;

static int64_t off_now(void)
{
	return __atomic_add_fetch(&clock_reads, 1, __ATOMIC_RELAXED) >= clock_at ? clock_off : 0;
}

static int our_clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = clock_gettime(clock, t);

	if (clock == CLOCK_REALTIME)
		t->tv_sec += off_now();
	return rc;
}

static time_t our_time(time_t *to)
{
	time_t now = time(NULL) + off_now();

	if (to)
		*to = now;
	return now;
}

/* ---- the driver: shim_driver fills its table in the order of the rows, and looks these names up for nothing else in a row ---- */

typedef void *dlsym_fn(void *handle, const char *name);
static dlsym_fn *libc_dlsym;
static uintptr_t library_start, library_end;
static __thread unsigned filling; /* rows that were looked up so far */

static const struct {
	const char *symbol;
	enum row row;
	word_fn *thunk;
} own[] = {
#define OWN(member, symbol, ...) { #symbol, ROW_##symbol, thunk_##symbol },
	SHIM_DRIVER_CALLS(OWN)
};
#define OWN_CALLS (sizeof own / sizeof own[0])

static void *look_up(void *handle, const char *name)
{
	void *found = libc_dlsym(handle, name);
	unsigned i = filling;
	int error;

	if (i >= OWN_CALLS || strcmp(name, own[i].symbol)) {
		filling = 0;
		return found;
	}
	filling = i + 1 < OWN_CALLS ? i + 1 : 0;
	if (plan_due(own[i].row + 1, &error))
		return NULL;
	if (!found)
		return NULL;
	__atomic_store_n(&real[own[i].row], (word_fn *)(uintptr_t)found, __ATOMIC_RELAXED);
	return (void *)own[i].thunk;
}

/* The library's own look-ups return into it. Others come by a jump, and libc must see their return address: so must we jump. */
__attribute__((optimize("O2"), noinline)) static void *our_dlsym(void *handle, const char *name)
{
	uintptr_t from = (uintptr_t)__builtin_return_address(0);

	if (from < library_start || from >= library_end || strncmp(name, "cu", 2))
		return libc_dlsym(handle, name);
	return look_up(handle, name);
}

static void *our_dlvsym(void *handle, const char *name, const char *version)
{
	void *found = dlvsym(RTLD_DEFAULT, name, version);

	(void)handle; /* RTLD_NEXT of a library that this one is not */
	if (!found || strcmp(name, "dlsym"))
		return found;
	libc_dlsym = (dlsym_fn *)(uintptr_t)found;
	return (void *)our_dlsym;
}

/* ---- the library's table of imported addresses ---- */

static const struct {
	const char *name;
	void *thunk;
	word_fn **real;
} imports[] = {
#define LIBC_IMPORT(name, ...) { #name, (void *)thunk_##name, &real[ROW_##name] },
	LIBC_CALLS(LIBC_IMPORT) { "syscall", (void *)thunk_syscall, NULL },
	{ "clock_gettime", (void *)our_clock_gettime, NULL },
	{ "time", (void *)our_time, NULL },
	{ "dlvsym", (void *)our_dlvsym, NULL },
};

static void redirect(uintptr_t *slot, const char *name)
{
	for (unsigned i = 0; i < sizeof imports / sizeof imports[0]; i++) {
		if (strcmp(name, imports[i].name))
			continue;
		if (imports[i].real)
			*imports[i].real = (word_fn *)*slot;
		*slot = (uintptr_t)imports[i].thunk;
	}
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *info)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return NULL;
}

static uintptr_t value_of(const ElfW(Dyn) * d, ElfW(Sxword) tag)
{
	for (; d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return d->d_un.d_val;
	return 0;
}

static void redirect_all(const struct dl_phdr_info *info, const ElfW(Dyn) * d, uintptr_t table, uintptr_t bytes)
{
	const ElfW(Sym) *symbols = (const void *)value_of(d, DT_SYMTAB);
	const char *names = (const void *)value_of(d, DT_STRTAB);
	const ElfW(Rela) *r = (const void *)table;

	for (size_t i = 0; i < bytes / sizeof *r; i++) {
		unsigned symbol = ELF64_R_SYM(r[i].r_info);
		if (symbol && r[i].r_addend == 0)
			redirect((void *)(info->dlpi_addr + r[i].r_offset), names + symbols[symbol].st_name);
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *unused)
{
	const ElfW(Dyn) *d = dynamic_of(info);

	(void)size, (void)unused;
	if (!d || !info->dlpi_name || !strstr(info->dlpi_name, "libslotprobe.so"))
		return 0;
	library_start = info->dlpi_addr;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = (info->dlpi_addr + p->p_vaddr) & ~4095ul;
		uintptr_t end = (info->dlpi_addr + p->p_vaddr + p->p_memsz + 4095) & ~4095ul;
		if (p->p_type == PT_LOAD && end > library_end)
			library_end = end;
		if (p->p_type == PT_GNU_RELRO && mprotect((void *)start, end - start, PROT_READ | PROT_WRITE))
			abort();
	}
	redirect_all(info, d, value_of(d, DT_RELA), value_of(d, DT_RELASZ));
	redirect_all(info, d, value_of(d, DT_JMPREL), value_of(d, DT_PLTRELSZ));
	return 1;
}

/* ---- what is asked for ---- */

__attribute__((constructor)) static void start(void)
{
	const char *clock = getenv("FAULT_CLOCK");

	plan_read(rows, ROWS);
	if (clock) {
		clock_at = strtoull(clock, NULL, 10);
		clock_off = strchr(clock, ':') ? atoll(strchr(clock, ':') + 1) : 0;
	}
	dl_iterate_phdr(visit, NULL);
}
