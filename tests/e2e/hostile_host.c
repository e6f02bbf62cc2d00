/* SPDX-License-Identifier: Apache-2.0
 *
 * hostile_host.c: a server with host pools that does to its process what a preload must survive. One word says what; the
 * answers of slotprobe's calls go to stdout.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probes/core/slotprobe.h"

#define PAGE  4096u
#define SLOTS 4

static size_t row_bytes = 2 * PAGE;

static char *fresh_at(void *place)
{
	char *p = mmap(place, SLOTS * row_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(90);
	memset(p, 1, SLOTS * row_bytes);
	return p;
}

static char *fresh(void)
{
	return fresh_at(NULL);
}

static int add(const char *name, uint64_t base, uint64_t flags)
{
	struct slotprobe_plane plane = { "state", 0, SLOTPROBE_RAW, base, (int64_t)row_bytes, row_bytes - 64 };
	struct slotprobe_pool pool = { sizeof pool, name, -1, 0, SLOTS, &plane, 1, flags };

	return slotprobe_pool_add(&pool);
}

static int64_t donate(int pool, int64_t slot, const void *state)
{
	struct slotprobe_claim claim = { .size = sizeof claim, .pool = pool, .slot = slot, .claimed_len = 1, .key = 9 };

	claim.key_len = 1;
	claim.state = (uintptr_t)state;
	return slotprobe_donate(&claim);
}

static void say(const char *what, int64_t answer)
{
	printf("%s %lld\n", what, (long long)(answer > 0 ? 1 : answer));
	fflush(stdout);
}

static void good(void)
{
	say("good", donate(add("good", (uintptr_t)fresh(), 0), 1, NULL));
}

/* ---- memory that goes ---- */

/* Far from where the kernel puts what nobody placed: no other mapping is to fill the hole. */
#ifdef __SANITIZE_ADDRESS__
#define FAR ((void *)0x200000000000) /* above its shadow, which is where the other would be */
#else
#define FAR ((void *)0x10000000000)
#endif

static void vanish(const char *how)
{
	char *p = fresh_at(FAR), *row = p + row_bytes;
	int bad = add("bad", (uintptr_t)p, 0), floats = add("floats", 0, SLOTPROBE_POOL_FLOATING);
	int nowhere = add("nowhere", 0x10, 0), fd;

	if (!strcmp(how, "unmapped"))
		munmap(p, SLOTS * row_bytes);
	else if (!strcmp(how, "tail"))
		mprotect(row + row_bytes - PAGE, PAGE, PROT_NONE);
	if (!strcmp(how, "protected"))
		mprotect(p, SLOTS * row_bytes, PROT_NONE);
	if (!strcmp(how, "truncated")) {
		fd = open(".", O_TMPFILE | O_RDWR, 0600);
		if (fd < 0 || ftruncate(fd, SLOTS * row_bytes) ||
		    mmap(p, SLOTS * row_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != p ||
		    ftruncate(fd, (off_t)(2 * row_bytes - PAGE)))
			exit(91);
	}
	say("bad", donate(bad, 1, NULL));
	say("floating", donate(floats, 1, row));
	say("nowhere", donate(nowhere, 0, NULL));
}

/* ---- threads that end ---- */

static void *stays(void *status)
{
	const struct timespec t = { 2, 500000000 };
	int code = (int)(intptr_t)status;

	nanosleep(&t, NULL);
	good();
	if (code)
		exit(code);
	return NULL;
}

static void leave(const char *how)
{
	pthread_t thread;

	if (!strcmp(how, "staying") && pthread_create(&thread, NULL, stays, NULL))
		exit(92);
	if (!strcmp(how, "exiting") && pthread_create(&thread, NULL, stays, (void *)(intptr_t)7))
		exit(92);
	pthread_exit(NULL);
}

/* ---- limits ---- */

static void limit(rlim_t bytes)
{
	const struct rlimit limit = { bytes, bytes };

	if (setrlimit(RLIMIT_FSIZE, &limit))
		exit(93);
}

static int sigxfsz_is(int (*ask)(sigset_t *set))
{
	sigset_t set;

	return !ask(&set) && sigismember(&set, SIGXFSZ) == 1;
}

static int blocked(sigset_t *set)
{
	return pthread_sigmask(SIG_BLOCK, NULL, set);
}

static void block_sigxfsz(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void small_files(int pending)
{
	limit(1000);
	if (pending) {
		block_sigxfsz();
		raise(SIGXFSZ);
	}
	say("refused", add("good", (uintptr_t)fresh(), 0) < 0);
	say("pending", sigxfsz_is(sigpending));
	say("blocked", sigxfsz_is(blocked));
}

/* The page has room and the log has not: the writer meets the limit, and is the last thread then. */
static void small_log(void)
{
	const struct timespec t = { 1, 500000000 };
	int pool;

	limit(70000);
	pool = add("good", (uintptr_t)fresh(), 0);
	for (int i = 0; i < 3000; i++) {
		donate(pool, i % SLOTS, NULL);
		usleep(50);
	}
	nanosleep(&t, NULL);
	pthread_exit(NULL);
}

/* ---- children ---- */

static void child(const char *what, int pool)
{
	struct slotprobe_step step = { sizeof step, "child", 1, 1, 1, SLOTPROBE_MODE_EAGER };

	if (!strcmp(what, "donates"))
		say("child", donate(pool, 2, NULL));
	if (!strcmp(what, "steps"))
		say("child", slotprobe_step(&step));
	if (!strcmp(what, "owns")) {
		good();
		say("child", donate(pool, 2, NULL));
	}
	exit(0);
}

static void family(const char *what)
{
	int pool = add("good", (uintptr_t)fresh(), 0), status;
	pid_t pid;

	say("parent", donate(pool, 1, NULL));
	pid = fork();
	if (!pid)
		child(what, pool);
	if (waitpid(pid, &status, 0) != pid || status)
		exit(94);
	say("parent", donate(pool, 1, NULL));
}

static void lives(char **argv)
{
	int left = atoi(argv[2]);
	char text[16];

	good();
	if (!left)
		return;
	snprintf(text, sizeof text, "%d", left - 1);
	execl("/proc/self/exe", argv[0], argv[1], text, (char *)NULL);
	exit(95);
}

/* ---- cost ---- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Milliseconds of the best of three donations of so many MiB. */
static void cost(size_t mib)
{
	size_t bytes = mib << 20;
	char *p = malloc(bytes);
	struct slotprobe_plane plane = { "state", 0, SLOTPROBE_F32, (uintptr_t)p, (int64_t)bytes, bytes / 4 };
	struct slotprobe_pool pool = { sizeof pool, "big", -1, 0, 1, &plane, 1, 0 };
	double best = 1e9, t;
	int id;

	memset(p, 1, bytes);
	id = slotprobe_pool_add(&pool);
	for (int i = 0; i < 3; i++) {
		t = seconds();
		donate(id, 0, NULL);
		t = seconds() - t;
		best = t < best ? t : best;
	}
	printf("%.3f ms\n", best * 1e3);
	free(p);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";

	if (argc < 2)
		return 96;
	if (argc > 3)
		row_bytes = (size_t)atoi(argv[3]) * PAGE;
	if (!strcmp(argv[1], "vanish"))
		vanish(what);
	if (!strcmp(argv[1], "small-files"))
		return small_files(!strcmp(what, "pending")), 0;
	if (!strcmp(argv[1], "small-log"))
		small_log();
	if (!strcmp(argv[1], "family"))
		return family(what), 0;
	if (!strcmp(argv[1], "lives"))
		return lives(argv), 0;
	if (!strcmp(argv[1], "cost"))
		return cost((size_t)atoi(what)), 0;
	good();
	if (!strcmp(argv[1], "leave"))
		leave(what);
	return 0;
}
