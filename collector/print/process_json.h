/* SPDX-License-Identifier: Apache-2.0
 *
 * process_json.h: what status and report say alike of a run's state and of each of its processes.
 */
#ifndef PRINT_PROCESS_JSON_H
#define PRINT_PROCESS_JSON_H

#include <jansson.h>

#include "read/run.h"

/* "running" while a process or the recorder lives; "ended" when the command ended; else what became of the processes. */
const char *run_state(const struct run *run);

/* Seconds since the writer's last turn; < 0: not measurable. */
double heartbeat_age(const struct run_process *process);

/* One of processes[]; what only a readable page tells is null without one. `rank` may be NULL or "": null. */
json_t *process_json(const struct run_process *process, const char *rank);

#endif
