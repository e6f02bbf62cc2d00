/* SPDX-License-Identifier: Apache-2.0
 *
 * run.h: opens a RUN directory: its manifest and its processes, each with a log, a counters page, or both.
 */
#ifndef COLLECTOR_RUN_H
#define COLLECTOR_RUN_H

#include "error.h"
#include "read/counters.h"
#include "read/manifest.h"

#define RUN_PROCESSES_MAX 4096u

enum process_state {
	PROCESS_RUNNING, /* alive on this host */
	PROCESS_ENDED,   /* its page says that it ended; where there is none, its log's END does */
	PROCESS_KILLED,  /* it is gone, or became another program by exec, and neither says so */
	PROCESS_UNKNOWN  /* it ran on another host */
};

struct run_process {
	char host[65]; /* host, pid and starttime are those of the file name */
	uint64_t pid, starttime;
	unsigned life;                 /* a process that execs keeps pid and start time: 0, 1, 2, ... */
	char *log_path;                /* NULL: no log; open it with log_open */
	char *ctr_path;                /* NULL: no counters page */
	struct ctr_snapshot *counters; /* NULL: absent or damaged */
	char *counters_problem;        /* why counters is NULL though a page is there; NULL: none */
	enum process_state state;
	const char *comm, *rank, *driver; /* from the counters page; "" if unknown. Escape before printing. */
};

struct run {
	char *path;
	struct manifest manifest;
	struct run_process *processes; /* in the order of host, starttime, pid, life */
	size_t n_processes;
};

enum run_status { RUN_OK = 0, RUN_TROUBLE = 2 };

/* RUN_TROUBLE: not readable as a run, `error` says why; nothing is left open. A damaged page is RUN_OK: see
 * counters_problem. */
enum run_status run_open(struct run *run, const char *path, struct error *error);
void run_close(struct run *run);

/* True when the page counted more records than the log holds or says it lost: a log that was cut at the end of a chunk looks
 * whole by itself. */
bool run_log_is_short(const struct run_process *process, uint64_t records);

const char *process_state_name(enum process_state state); /* "running", ... */

/* A plain counter summed over processes whose pages could be read, and attempted of a probe; `name` may be a glob.
 * *processes (may be NULL): how many have such a row. */
uint64_t run_counter(const struct run *run, const char *name, size_t *processes);

/* State of process (pid, starttime) on this host; `ended`: its page says so. */
enum process_state process_state_of(const char *host, uint64_t pid, uint64_t starttime, bool ended);

#endif
