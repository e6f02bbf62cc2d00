/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c: opens a RUN directory and finds its processes.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "print/print.h"
#include "read/log.h"
#include "read/run.h"
#include "trouble.h"

/* ---- is a process alive ---- */

/* Field 22 of /proc/PID/stat, if the process is there and no zombie. The name in field 2 may hold anything. */
static bool process_is_alive(uint64_t pid, uint64_t starttime)
{
	char path[64], text[1024];
	const char *p;
	unsigned long long value = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	p = strrchr(text, ')');
	if (!p || !p[1] || strchr("ZX", p[2]))
		return false;
	for (int field = 3; p && field <= 22; field++)
		p = strchr(p + 1, ' ');
	return p && sscanf(p, " %llu", &value) == 1 && value == starttime;
}

/* As the preload writes it into file names. */
static void file_host(char *out, const char *host)
{
	size_t n = strnlen(host, 63);

	for (size_t i = 0; i < n; i++)
		out[i] = isalnum((unsigned char)host[i]) || strchr("._-", host[i]) ? host[i] : '_';
	out[n] = 0;
	if (out[0] == '.')
		out[0] = '_';
}

enum process_state process_state_of(const char *host, uint64_t pid, uint64_t starttime, bool ended)
{
	struct utsname self;
	char ours[64], theirs[64];

	if (ended)
		return PROCESS_ENDED;
	if (uname(&self))
		return PROCESS_UNKNOWN;
	file_host(ours, self.nodename);
	file_host(theirs, host);
	if (strcmp(ours, theirs))
		return PROCESS_UNKNOWN;
	return process_is_alive(pid, starttime) ? PROCESS_RUNNING : PROCESS_KILLED;
}

bool run_log_is_short(const struct run_process *process, uint64_t records)
{
	return process->counters && records < process->counters->records_written;
}

const char *process_state_name(enum process_state state)
{
	static const char *const name[] = { "running", "ended", "killed", "unknown" };

	return name[state];
}

/* ---- the directory ---- */

/* The number that ends at *end and has a dot before it; *end then points to that dot. */
static bool number_before(const char *name, const char **end, uint64_t *number)
{
	const char *p = *end;

	while (p > name && isdigit((unsigned char)p[-1]))
		p--;
	if (p == *end || *end - p > 20 || p == name || p[-1] != '.')
		return false;
	errno = 0;
	*number = strtoull(p, NULL, 10);
	*end = p - 1;
	return !errno;
}

/* A number of at most three digits behind a minus; where there is none, `end` comes back as it is. */
static const char *life_before(const char *name, const char *end, unsigned *life)
{
	const char *p = end;

	while (p > name && end - p < 3 && isdigit((unsigned char)p[-1]))
		p--;
	if (p == end || p - name < 2 || p[-1] != '-')
		return end;
	*life = (unsigned)strtoul(p, NULL, 10);
	return p - 1;
}

/* Takes <host>.<pid>.<starttime>[-life].log or .ctr apart; the host may hold dots. */
static bool parse_name(const char *name, struct run_process *process, bool *is_log)
{
	const char *end = strrchr(name, '.');

	if (!end || (strcmp(end, ".log") && strcmp(end, ".ctr")))
		return false;
	*is_log = !strcmp(end, ".log");
	end = life_before(name, end, &process->life);
	if (!number_before(name, &end, &process->starttime) || !number_before(name, &end, &process->pid))
		return false;
	if (end == name || (size_t)(end - name) >= sizeof(process->host))
		return false;
	memcpy(process->host, name, (size_t)(end - name));
	process->host[end - name] = 0;
	return true;
}

static bool same_process(const struct run_process *a, const struct run_process *b)
{
	return a->pid == b->pid && a->starttime == b->starttime && !strcmp(a->host, b->host);
}

static struct run_process *process_of(struct run *run, const struct run_process *like, struct error *error)
{
	struct run_process *grown;

	/* Few processes, or a hostile directory, which the limit bounds. Names of one process tend to be neighbours. */
	for (size_t i = run->n_processes; i-- > 0;) {
		struct run_process *p = &run->processes[i];

		if (same_process(p, like) && p->life == like->life)
			return p;
	}
	if (run->n_processes == RUN_PROCESSES_MAX) {
		error_set(error, "'%s' has more than %u processes, over the limit", run->path, RUN_PROCESSES_MAX);
		return NULL;
	}
	grown = realloc(run->processes, (run->n_processes + 1) * sizeof(*grown));
	if (!grown) {
		error_set(error, "out of memory");
		return NULL;
	}
	run->processes = grown;
	grown[run->n_processes] = *like;
	return &grown[run->n_processes++];
}

/* 007 and 7 are one number, and would be two files of one process. */
static bool is_plain_name(const char *name, const struct run_process *p, bool is_log)
{
	char plain[160], life[16] = "";

	if (p->life)
		snprintf(life, sizeof(life), "-%u", p->life);
	snprintf(plain, sizeof(plain), "%s.%llu.%llu%s%s", p->host, (unsigned long long)p->pid,
		 (unsigned long long)p->starttime, life, is_log ? ".log" : ".ctr");
	return strcmp(name, plain) == 0;
}

static int add_file(struct run *run, const char *name, struct error *error)
{
	struct run_process like = { .comm = "", .rank = "", .driver = "" }, *process;
	bool is_log;
	char **path;

	if (!parse_name(name, &like, &is_log))
		return 0;
	if (!is_plain_name(name, &like, is_log)) {
		error_set(error, "'%s/%s' is not named as slotprobe names files (007 for 7): move it out of the run",
			  run->path, name);
		return -1;
	}
	process = process_of(run, &like, error);
	if (!process)
		return -1;
	path = is_log ? &process->log_path : &process->ctr_path;
	if (*path) {
		error_set(error, "'%s/%s' and '%s' are files of one process; slotprobe writes one: move the other out",
			  run->path, name, *path);
		return -1;
	}
	if (asprintf(path, "%s/%s", run->path, name) < 0) {
		*path = NULL;
		error_set(error, "out of memory");
		return -1;
	}
	return 0;
}

static int list_files(struct run *run, struct error *error)
{
	DIR *directory = opendir(run->path);
	const struct dirent *entry;
	int failed = 0;

	if (!directory) {
		error_set(error, "cannot list '%s': %s", run->path, strerror(errno));
		return -1;
	}
	while (!failed && (errno = 0, entry = readdir(directory)))
		failed = add_file(run, entry->d_name, error);
	if (!failed && errno) {
		error_set(error, "cannot list '%s' to its end: %s", run->path, strerror(errno));
		failed = -1;
	}
	closedir(directory);
	return failed;
}

static int compare_processes(const void *a, const void *b)
{
	const struct run_process *x = a, *y = b;
	int hosts = strcmp(x->host, y->host);

	if (hosts)
		return hosts;
	if (x->starttime != y->starttime)
		return x->starttime < y->starttime ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->life < y->life ? -1 : x->life > y->life;
}

/* ---- counters ---- */

static int keep_problem(struct run_process *process, const char *text)
{
	free(process->counters);
	process->counters = NULL;
	process->counters_problem = trouble_need(strdup(text));
	return 0;
}

/* Without a page the log may still tell that its process ended. A log that is none is whoever's to say who reads it. */
static void ask_the_log(struct run_process *process)
{
	struct log_damage damage;
	bool ended;

	if (process->counters || !process->log_path || process->state == PROCESS_RUNNING)
		return;
	if (!log_scan(process->log_path, &damage, &ended, NULL, NULL) && ended)
		process->state = PROCESS_ENDED;
}

static int read_counters(struct run_process *process, struct error *error)
{
	struct ctr_snapshot *s;

	process->state = process_state_of(process->host, process->pid, process->starttime, false);
	if (!process->ctr_path)
		return 0;
	process->counters = s = malloc(sizeof(*s));
	if (!s) {
		error_set(error, "out of memory");
		return -1;
	}
	switch (ctr_read(process->ctr_path, s, error)) {
	case CTR_READ_REFUSED:
		return -1;
	case CTR_READ_ABSENT:
		return keep_problem(process, "the page was never filled in");
	case CTR_READ_DAMAGED:
		return keep_problem(process, error->text);
	case CTR_READ_OK:
		break;
	}
	if (s->pid != process->pid || s->starttime != process->starttime)
		return keep_problem(process, "the page is that of another process");
	process->state = process_state_of(process->host, process->pid, process->starttime, s->state == CTR_ENDED);
	process->comm = s->comm;
	process->rank = s->rank;
	process->driver = s->driver;
	return 0;
}

/* Of a process's lives only the last can still be running: the others were replaced by exec. */
static void end_earlier_lives(struct run *run)
{
	for (size_t i = 1; i < run->n_processes; i++)
		if (same_process(&run->processes[i - 1], &run->processes[i]) &&
		    run->processes[i - 1].state == PROCESS_RUNNING)
			run->processes[i - 1].state = PROCESS_KILLED;
}

/* ---- the run ---- */

static int check_directory(const char *path, struct error *error)
{
	struct stat st;

	if (stat(path, &st)) {
		error_set(error, "cannot open the run '%s': %s; give the directory that 'slotprobe record' made", path,
			  strerror(errno));
		return -1;
	}
	if (!S_ISDIR(st.st_mode)) {
		error_set(error, "'%s' is not a directory: give the directory that 'slotprobe record' made", path);
		return -1;
	}
	return 0;
}

static int open_parts(struct run *run, struct error *error)
{
	if (check_directory(run->path, error) || manifest_read(&run->manifest, run->path, error) ||
	    list_files(run, error))
		return -1;
	if (run->n_processes)
		qsort(run->processes, run->n_processes, sizeof(*run->processes), compare_processes);
	for (size_t i = 0; i < run->n_processes; i++)
		if (read_counters(&run->processes[i], error))
			return -1;
	end_earlier_lives(run);
	for (size_t i = 0; i < run->n_processes; i++)
		ask_the_log(&run->processes[i]);
	return 0;
}

enum run_status run_open(struct run *run, const char *path, struct error *error)
{
	struct error local;

	*run = (struct run) { .path = strdup(path) };
	if (run->path && !open_parts(run, error ? error : &local))
		return RUN_OK;
	if (!run->path)
		error_set(error, "out of memory");
	run_close(run);
	return RUN_TROUBLE;
}

void run_close(struct run *run)
{
	for (size_t i = 0; i < run->n_processes; i++) {
		free(run->processes[i].log_path);
		free(run->processes[i].ctr_path);
		free(run->processes[i].counters);
		free(run->processes[i].counters_problem);
	}
	free(run->processes);
	free(run->path);
	manifest_free(&run->manifest);
	*run = (struct run) { 0 };
}

uint64_t run_counter(const struct run *run, const char *name, size_t *processes)
{
	uint64_t sum = 0;
	size_t n = 0;

	for (size_t p = 0; p < run->n_processes; p++) {
		const struct ctr_snapshot *s = run->processes[p].counters;
		bool has = false;

		for (uint32_t r = 0; s && r < s->n_rows; r++) {
			const struct ctr_values *row = &s->row[r];

			if (row->kind == CTR_FREE || fnmatch(name, row->name, 0))
				continue;
			has = true;
			if (__builtin_add_overflow(sum, row->kind == CTR_PROBE ? row->attempted : row->outcome[0],
						   &sum))
				sum = UINT64_MAX;
		}
		n += has;
	}
	if (processes)
		*processes = n;
	return sum;
}
