/* SPDX-License-Identifier: Apache-2.0
 *
 * harness.c: starts scenarios, injects faults, and stands in for probes/core.
 */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char test_dir[128];
char run_dir[256];
struct journal *journal;

#define JOURNAL_BYTES (16 * sizeof(struct journal))

/* ---- source ---- */

static unsigned poll_nothing(void)
{
	return 0;
}
unsigned (*source_poll)(void) = poll_nothing;
unsigned source_abandoned, source_forked;

static unsigned poll(void)
{
	return __atomic_load_n(&source_poll, __ATOMIC_ACQUIRE)();
}

static void abandon(enum ctr_outcome why)
{
	source_abandoned += why == CTR_DROPPED_EXIT;
	if (getenv("TEST_ABANDONED"))
		ctr_add(ctr_named("test.abandoned", CTR_PLAIN), 1);
}

static void forked(void)
{
	source_forked++;
}
const struct record_source record_source = { poll, abandon, forked };

/* ---- faults ---- */

static int fault_at = -1, fault_count, fault_error, write_number;

void fault_writes(int nth, int count, int error)
{
	__atomic_store_n(&fault_error, error, __ATOMIC_RELAXED);
	__atomic_store_n(&fault_count, count, __ATOMIC_RELAXED);
	__atomic_store_n(&fault_at, __atomic_load_n(&write_number, __ATOMIC_RELAXED) + nth, __ATOMIC_RELEASE);
}

ssize_t __real_pwritev(int fd, const struct iovec *iov, int n, off_t offset);
ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset);

static ssize_t write_part(int fd, const struct iovec *iov, int n, off_t offset, size_t bytes)
{
	struct iovec part[4];

	for (int i = 0; i < n; i++) {
		part[i] = iov[i];
		if (part[i].iov_len > bytes)
			part[i].iov_len = bytes;
		bytes -= part[i].iov_len;
	}
	return __real_pwritev(fd, part, n, offset);
}

ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset)
{
	int at = __atomic_load_n(&fault_at, __ATOMIC_ACQUIRE),
	    now = __atomic_fetch_add(&write_number, 1, __ATOMIC_RELAXED);
	int error = __atomic_load_n(&fault_error, __ATOMIC_RELAXED);
	size_t total = 0;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	if (at < 0 || now < at || now >= at + __atomic_load_n(&fault_count, __ATOMIC_RELAXED))
		return __real_pwritev(fd, iov, n, offset);
	if (error == -3) {
		if (now & 1) {
			errno = EINTR;
			return -1;
		}
		return write_part(fd, iov, n, offset, 1);
	}
	if (error < 0) {
		write_part(fd, iov, n, offset, error == -1 ? total / 2 : total);
		kill(getpid(), SIGKILL);
	}
	write_part(fd, iov, n, offset, total / 2); /* what a failing write leaves behind */
	errno = error;
	return -1;
}

/* ---- donations ---- */

static void fill_donation(struct log_event *e, uint64_t id)
{
	*e = (struct log_event) {
		.id = id, .kind = LOG_EV_DONATE, .slot = (int64_t)(id % 97), .claimed_len = (int64_t)id
	};
	record_fill(e, LOG_EVENT);
	e->t_ns = record_now_ns();
	e->key = log_mix64(id);
}

bool put_donation(uint64_t id)
{
	struct ctr_row *row = ctr_core(CTR_ROW_DONATE);
	struct journal *j = &journal[(id >> 32) & 15];
	struct log_event e;
	bool taken;

	fill_donation(&e, id);
	__atomic_fetch_add(&j->started, 1, __ATOMIC_SEQ_CST);
	ctr_begin(row);
	taken = record_put(&e, row);
	if (!taken)
		ctr_finish(row, CTR_DROPPED_QUEUE);
	__atomic_fetch_add(taken ? &j->taken : &j->refused, 1, __ATOMIC_SEQ_CST);
	return taken;
}

void put_noise(uint64_t id)
{
	struct ctr_row *row = ctr_core(CTR_ROW_DONATE);
	struct log_event e;

	fill_donation(&e, id);
	for (uint64_t *p = &e.slot_ptr; p < (uint64_t *)&e.outcome; p++)
		*p = log_mix64(id * 0x9e3779b97f4a7c15ull + (uint64_t)(uintptr_t)(p - &e.slot_ptr));
	__atomic_fetch_add(&journal[0].started, 1, __ATOMIC_SEQ_CST);
	ctr_begin(row);
	while (!record_put(&e, row))
		usleep(100);
	__atomic_fetch_add(&journal[0].taken, 1, __ATOMIC_SEQ_CST);
}

/* ---- processes ---- */

static void map_journal(void)
{
	char path[300];
	int fd;

	snprintf(path, sizeof path, "%s/journal", test_dir);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, JOURNAL_BYTES))
		abort();
	journal = mmap(NULL, JOURNAL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
}

void fresh_run(void)
{
	static unsigned number;

	snprintf(run_dir, sizeof run_dir, "%s/run%u", test_dir, number++);
	memset(journal, 0, JOURNAL_BYTES);
}

/* This program again, under the same emulator if TEST_RUNNER says that it runs under one. */
static void scenario_args(char **args, unsigned room, const char *name)
{
	static char runner[512], self[512];
	unsigned n = 0;

	snprintf(runner, sizeof runner, "%s", getenv("TEST_RUNNER") ? getenv("TEST_RUNNER") : "");
	if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
		abort();
	for (char *word = strtok(runner, " "); word && n < room - 5; word = strtok(NULL, " "))
		args[n++] = word;
	args[n++] = self;
	args[n++] = (char *)"--scenario";
	args[n++] = (char *)name;
	args[n++] = (char *)test_dir;
	args[n] = NULL;
}

int spawn(const char *name, ...)
{
	char *args[16];
	char directory[300];
	va_list list;
	int pid;

	scenario_args(args, sizeof args / sizeof args[0], name);
	snprintf(directory, sizeof directory, "SLOTPROBE_DIR=%s", run_dir);
	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	putenv(directory);
	va_start(list, name);
	for (char *setting; (setting = va_arg(list, char *));)
		putenv(setting);
	va_end(list);
	execvp(args[0], args);
	_exit(98);
}

int wait_for(int pid)
{
	int status = 0;

	for (int i = 0; i < 60000; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		usleep(1000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1;
}

static int is_named(const char *name, const char *ending)
{
	size_t n = strlen(name), m = strlen(ending);

	return n >= m && !strcmp(name + n - m, ending);
}

unsigned run_files(const char *ending)
{
	struct dirent **list;
	int n = scandir(run_dir, &list, NULL, alphasort);
	unsigned found = 0;

	for (int i = 0; i < n; i++) {
		found += (unsigned)is_named(list[i]->d_name, ending);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return found;
}

const char *run_file(const char *ending, unsigned which)
{
	static char path[4][600];
	static unsigned next;
	char *to = path[next++ % 4];
	struct dirent **list;
	int n = scandir(run_dir, &list, NULL, alphasort);
	bool found = false;

	for (int i = 0; i < n; i++) {
		if (!found && is_named(list[i]->d_name, ending) && !which--) {
			snprintf(to, sizeof path[0], "%s/%s", run_dir, list[i]->d_name);
			found = true;
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return found ? to : NULL;
}

static void remove_all(void)
{
	char command[200];

	snprintf(command, sizeof command, "rm -rf '%s'", test_dir);
	if (system(command))
		fprintf(stderr, "%s stays behind\n", test_dir);
}

static int run_scenario(const struct scenario *scenarios, const char *name)
{
	map_journal();
	for (const struct scenario *s = scenarios; s->name; s++)
		if (!strcmp(s->name, name)) {
			s->run();
			return 0;
		}
	return 97;
}

int harness_main(int argc, char **argv, const struct scenario *scenarios, const struct CMUnitTest *tests, size_t n)
{
	int failed;

	if (argc >= 4 && !strcmp(argv[1], "--scenario")) {
		const char *dir = getenv("SLOTPROBE_DIR");
		snprintf(test_dir, sizeof test_dir, "%s", argv[3]);
		snprintf(run_dir, sizeof run_dir, "%s", dir ? dir : "");
		exit(run_scenario(scenarios, argv[2]));
	}
	snprintf(test_dir, sizeof test_dir, "/tmp/slotprobe-unit.XXXXXX");
	if (!mkdtemp(test_dir))
		return 1;
	map_journal();
	failed = _cmocka_run_group_tests(argv[0], tests, n, NULL, NULL);
	if (!failed)
		remove_all();
	else
		fprintf(stderr, "left for inspection: %s\n", test_dir);
	return failed ? 1 : 0;
}
