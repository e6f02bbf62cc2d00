/* SPDX-License-Identifier: Apache-2.0
 *
 * harness.h: a test of the recording code is two processes: a scenario that records (this binary again, with its own
 * environment, since that is read before main), and a cmocka test that reads what the scenario left behind.
 */
#ifndef TEST_RECORD_HARNESS_H
#define TEST_RECORD_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shim/record/record.h"

struct scenario {
	const char *name;
	void (*run)(void);
};

int harness_main(int argc, char **argv, const struct scenario *scenarios, const struct CMUnitTest *tests, size_t n);

/* ---- the test's side ---- */

extern char test_dir[]; /* a directory of this test binary's own */
extern char run_dir[];  /* RUN of the current test: fresh_run names a new one, which does not exist yet */
void fresh_run(void);
/* Starts the scenario with these NAME=value strings (NULL at the end) besides SLOTPROBE_DIR. */
int spawn(const char *name, ...) __attribute__((sentinel));
int wait_for(int pid); /* exit status, 128 + n for a signal, -1 when it had to be killed after a while */
/* Path of the one file of RUN that ends so; NULL when there is none. `which`: the n-th in name order. */
const char *run_file(const char *ending, unsigned which);
unsigned run_files(const char *ending);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Under an emulator exec reaches the machine's kernel, which cannot run us, and the memory in use is the emulator's. */
#define EMULATED (getenv("TEST_RUNNER") != NULL)

/* ---- the scenario's side ---- */

#define CHECK(condition)                                                                                               \
	do                                                                                                             \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			_exit(99);                                                                                     \
		}                                                                                                      \
	while (0)

/* What the source does on the writer's thread. */
extern unsigned (*source_poll)(void);
extern unsigned source_abandoned, source_forked;

/* Fails writes to the log from the n-th on (0: the next), `count` of them, with `error`; -1: writes half of the bytes
 * and kills the process, -2: writes all of them and kills it, -3: interrupts them and writes them byte by byte. */
void fault_writes(int nth, int count, int error);

/* One donation event, the way that probes/core does it: begin, put, or give up. Returns whether it was taken. */
bool put_donation(uint64_t id);
void put_noise(uint64_t id); /* the same, of a full record that does not compress */

/* Shared with the test: counted before and after each donation, whoever is killed. */
struct journal {
	uint64_t started, taken, refused;
	uint64_t pad[5];
};
extern struct journal *journal; /* of 16 threads */

#endif
