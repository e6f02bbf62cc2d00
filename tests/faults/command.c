/* SPDX-License-Identifier: Apache-2.0
 *
 * command.c: a preload that makes single calls of the slotprobe command fail: its own, those that its libraries make for it, and
 * the C library's for memory. What the command runs is left alone.
 *
 *	FAULT, FAULT_COUNT   see plan.h; NAME is a row of the tables below
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/faults/plan.h"

/* Memory: libc's own calls come this way too, for a stream or a copied text. */
#define MEMORY_CALLS(X)                                                                                                \
	X(malloc, 0, ERRNO, ENOMEM)                                                                                    \
	X(calloc, 0, ERRNO, ENOMEM)                                                                                    \
	X(realloc, 0, ERRNO, ENOMEM)

/* name, what it returns when it fails, how the error is told, which one */
#define LIBC_CALLS(X)                                                                                                  \
	X(access, FAILS, ERRNO, EACCES)                                                                                \
	X(aligned_alloc, 0, ERRNO, ENOMEM)                                                                             \
	X(close, FAILS, DONE_TOO, EIO)                                                                                 \
	X(closedir, FAILS, DONE_TOO, EIO)                                                                              \
	X(dlopen, 0, ERRNO, ENOMEM)                                                                                    \
	X(dup2, FAILS, ERRNO, EMFILE)                                                                                  \
	X(execl, FAILS, ERRNO, ENOMEM)                                                                                 \
	X(execv, FAILS, ERRNO, ENOMEM)                                                                                 \
	X(execvp, FAILS, ERRNO, ENOMEM)                                                                                \
	X(fclose, FAILS, DONE_TOO, EIO)                                                                                \
	X(fdopen, 0, ERRNO, ENOMEM)                                                                                    \
	X(fflush, FAILS, DONE_TOO, EIO)                                                                                \
	X(fgetxattr, FAILS, ERRNO, EIO)                                                                                \
	X(flock, FAILS, ERRNO, ENOLCK)                                                                                 \
	X(fopen, 0, ERRNO, EMFILE)                                                                                     \
	X(fork, FAILS, ERRNO, EAGAIN)                                                                                  \
	X(fstat, FAILS, ERRNO, EIO)                                                                                    \
	X(fstatvfs, FAILS, ERRNO, EIO)                                                                                 \
	X(fsync, FAILS, ERRNO, EIO)                                                                                    \
	X(getcwd, 0, ERRNO, ENOENT)                                                                                    \
	X(lseek, FAILS, ERRNO, EINVAL)                                                                                 \
	X(lstat, FAILS, ERRNO, EIO)                                                                                    \
	X(madvise, FAILS, ERRNO, EINVAL)                                                                               \
	X(mkdir, FAILS, ERRNO, EACCES)                                                                                 \
	X(mkdtemp, 0, ERRNO, EACCES)                                                                                   \
	X(mkostemp, FAILS, ERRNO, EACCES)                                                                              \
	X(mmap, FAILS, ERRNO, ENOMEM)                                                                                  \
	X(munmap, FAILS, DONE_TOO, EINVAL)                                                                             \
	X(nanosleep, FAILS, ERRNO, EINTR)                                                                              \
	X(nftw, FAILS, ERRNO, EIO)                                                                                     \
	X(open, FAILS, ERRNO, EMFILE)                                                                                  \
	X(opendir, 0, ERRNO, EMFILE)                                                                                   \
	X(open_memstream, 0, ERRNO, ENOMEM)                                                                            \
	X(pipe2, FAILS, ERRNO, EMFILE)                                                                                 \
	X(pread, FAILS, ERRNO, EIO)                                                                                    \
	X(pwritev, FAILS, ERRNO, ENOSPC)                                                                               \
	X(read, FAILS, ERRNO, EIO)                                                                                     \
	X(readdir, 0, ERRNO, EIO)                                                                                      \
	X(readlink, FAILS, ERRNO, EACCES)                                                                              \
	X(realpath, 0, ERRNO, EACCES)                                                                                  \
	X(remove, FAILS, ERRNO, EACCES)                                                                                \
	X(rename, FAILS, ERRNO, EACCES)                                                                                \
	X(rmdir, FAILS, ERRNO, EACCES)                                                                                 \
	X(setenv, FAILS, ERRNO, ENOMEM)                                                                                \
	X(sigwaitinfo, FAILS, ERRNO, EINTR)                                                                            \
	X(stat, FAILS, ERRNO, EIO)                                                                                     \
	X(statvfs, FAILS, ERRNO, EIO)                                                                                  \
	X(uname, FAILS, ERRNO, EFAULT)                                                                                 \
	X(unlink, FAILS, ERRNO, EACCES)                                                                                \
	X(unlinkat, FAILS, ERRNO, EACCES)                                                                              \
	X(unsetenv, FAILS, ERRNO, EINVAL)                                                                              \
	X(waitpid, FAILS, ERRNO, EINTR)                                                                                \
	X(write, FAILS, ERRNO, EIO)

/* Reads of a stream, whose file is taken away: what is in its buffer is still read. */
#define STREAM_CALLS(X) X(fgets) X(fgetc)

#define PATTERN_CALLS(X) X(regcomp, 0, CODE, REG_ESPACE)

/* What cannot fail, fails with memory alone, or writes to a stream: the tests fill the disk for that. The test compares all
 * lists with what the command imports. */
#define HARMLESS(X)                                                                                                    \
	X(__ctype_b_loc)                                                                                               \
	X(__ctype_tolower_loc)                                                                                         \
	X(__ctype_toupper_loc)                                                                                         \
	X(__cxa_finalize)                                                                                              \
	X(__errno_location)                                                                                            \
	X(__isoc99_sscanf)                                                                                             \
	X(__libc_start_main)                                                                                           \
	X(_exit)                                                                                                       \
	X(alarm)                                                                                                       \
	X(asprintf)                                                                                                    \
	X(clock_gettime)                                                                                               \
	X(dlclose)                                                                                                     \
	X(dlerror)                                                                                                     \
	X(dlsym)                                                                                                       \
	X(environ)                                                                                                     \
	X(exit)                                                                                                        \
	X(ferror)                                                                                                      \
	X(fmax)                                                                                                        \
	X(fnmatch)                                                                                                     \
	X(fprintf)                                                                                                     \
	X(fputc)                                                                                                       \
	X(fputs)                                                                                                       \
	X(free)                                                                                                        \
	X(fwrite)                                                                                                      \
	X(getegid)                                                                                                     \
	X(getenv)                                                                                                      \
	X(geteuid)                                                                                                     \
	X(getpid)                                                                                                      \
	X(gmtime_r)                                                                                                    \
	X(gnu_get_libc_version)                                                                                        \
	X(ilogb)                                                                                                       \
	X(isatty)                                                                                                      \
	X(kill)                                                                                                        \
	X(ldexp)                                                                                                       \
	X(LZ4_decompress_safe)                                                                                         \
	X(memchr)                                                                                                      \
	X(memcmp)                                                                                                      \
	X(memcpy)                                                                                                      \
	X(memmem)                                                                                                      \
	X(memmove)                                                                                                     \
	X(memset)                                                                                                      \
	X(printf)                                                                                                      \
	X(puts)                                                                                                        \
	X(qsort)                                                                                                       \
	X(qsort_r)                                                                                                     \
	X(raise)                                                                                                       \
	X(regexec)                                                                                                     \
	X(regfree)                                                                                                     \
	X(sigaction)                                                                                                   \
	X(sigdelset)                                                                                                   \
	X(sigfillset)                                                                                                  \
	X(signal)                                                                                                      \
	X(sigprocmask)                                                                                                 \
	X(sleep)                                                                                                       \
	X(snprintf)                                                                                                    \
	X(stderr)                                                                                                      \
	X(stdout)                                                                                                      \
	X(strchr)                                                                                                      \
	X(strcmp)                                                                                                      \
	X(strcspn)                                                                                                     \
	X(strdup)                                                                                                      \
	X(strerror)                                                                                                    \
	X(strftime)                                                                                                    \
	X(strlen)                                                                                                      \
	X(strncasecmp)                                                                                                 \
	X(strncmp)                                                                                                     \
	X(strncpy)                                                                                                     \
	X(strndup)                                                                                                     \
	X(strnlen)                                                                                                     \
	X(strpbrk)                                                                                                     \
	X(strrchr)                                                                                                     \
	X(strspn)                                                                                                      \
	X(strstr)                                                                                                      \
	X(strtod)                                                                                                      \
	X(strtok_r)                                                                                                    \
	X(strtoll)                                                                                                     \
	X(strtoul)                                                                                                     \
	X(strtoull)                                                                                                    \
	X(vsnprintf)

enum row {
#define ROW(name, ...) ROW_##name,
	MEMORY_CALLS(ROW) LIBC_CALLS(ROW) STREAM_CALLS(ROW) PATTERN_CALLS(ROW) ROWS
};

static const struct plan_row rows[ROWS] = {
#define IS(name, result, how, error) [ROW_##name] = { #name, result, how, error },
#define STREAM_IS(name)              [ROW_##name] = { #name, 0, ERRNO, EIO },
	MEMORY_CALLS(IS) LIBC_CALLS(IS) STREAM_CALLS(STREAM_IS) PATTERN_CALLS(IS)
};

static bool active; /* in the command itself, once it runs */

static bool due(enum row row, int *error)
{
	return active && plan_due(row, error);
}

/* The names are the C library's; in C they are others, so that no header has a say in how they are called. */
#define EXPORTED(name) __attribute__((visibility("default"))) uintptr_t our_##name(WORDS(PARAM)) __asm__(#name)

#define LIBC_THUNK(name, ...)                                                                                          \
	EXPORTED(name);                                                                                                \
	uintptr_t our_##name(WORDS(PARAM))                                                                             \
	{                                                                                                              \
		static word_fn *real;                                                                                  \
		int error = 0;                                                                                         \
		bool fails = due(ROW_##name, &error);                                                                  \
		if (!real)                                                                                             \
			real = (word_fn *)(uintptr_t)dlsym(RTLD_NEXT, #name);                                          \
		if (!fails)                                                                                            \
			return real(WORDS(ARG));                                                                       \
		return PLAN_FAIL_CALL(&rows[ROW_##name], error, real);                                                 \
	}
LIBC_CALLS(LIBC_THUNK)

/* ---- memory: asked for before anything can be looked up ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
	int error;

	return due(ROW_malloc, &error) ? (void *)plan_fail(&rows[ROW_malloc], error) : __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t bytes)
{
	int error;

	return due(ROW_calloc, &error) ? (void *)plan_fail(&rows[ROW_calloc], error) : __libc_calloc(n, bytes);
}

__attribute__((visibility("default"))) void *realloc(void *at, size_t bytes)
{
	int error;

	return due(ROW_realloc, &error) ? (void *)plan_fail(&rows[ROW_realloc], error) : __libc_realloc(at, bytes);
}

/* ---- patterns ---- */

/* As a whole: what glibc before 2.42 has no memory for in there it frees twice (CVE-2025-8058). */
__attribute__((visibility("default"))) int regcomp(regex_t *pattern, const char *text, int flags)
{
	int error, status;
	bool was;

	if (due(ROW_regcomp, &error))
		return error;
	was = active;
	active = false;
	status = ((int (*)(regex_t *, const char *, int))dlsym(RTLD_NEXT, "regcomp"))(pattern, text, flags);
	active = was;
	return status;
}

/* ---- streams ---- */

/* Address 0 of our own memory: whoever reads there is told EIO. */
static void take_away(FILE *f)
{
	int nothing = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	if (nothing < 0 || dup3(nothing, fileno(f), O_CLOEXEC) < 0)
		abort();
	close(nothing);
}

__attribute__((visibility("default"))) char *fgets(char *to, int n, FILE *f)
{
	int error;

	if (due(ROW_fgets, &error))
		take_away(f);
	return fgets_unlocked(to, n, f);
}

__attribute__((visibility("default"))) int fgetc(FILE *f)
{
	int error;

	if (due(ROW_fgetc, &error))
		take_away(f);
	return getc_unlocked(f);
}

/* What the command runs must not inherit this. */
__attribute__((constructor)) static void start(void)
{
	if (strcmp(program_invocation_short_name, "slotprobe") || !(getenv("FAULT") || getenv("FAULT_COUNT")))
		return;
	plan_read(rows, ROWS);
	unsetenv("FAULT");
	unsetenv("FAULT_COUNT");
	active = true;
}
