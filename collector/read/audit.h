/* SPDX-License-Identifier: Apache-2.0
 *
 * audit.h: holds one process's log against its counters page.
 */
#ifndef COLLECTOR_AUDIT_H
#define COLLECTOR_AUDIT_H

#include "read/log.h"
#include "read/map.h"
#include "read/run.h"
#include "reasons.h"

/* Core rows whose committed attempts are records of the log: event rows, steps, watched slots. */
#define AUDIT_ROWS(X) X(DONATE) X(RESTORE) X(ALLOC) X(CLEAR) X(COPY) X(DISCARD) X(FREE) X(STEP) X(WATCH)

struct audit {
	bool has_log;
	struct log_damage damage;
	bool ended;
	uint64_t bytes, chunks, records, disk_stops;
	uint64_t in_log[CTR_CORE_ROW_COUNT]; /* committed attempts that the log holds; only AUDIT_ROWS are counted */
};

/* While somebody reads a log: each record once, then the end. audit_take: false: out of memory. */
struct audit_walk {
	struct audit *audit;
	struct map events;
	bool events_apart; /* whoever reads ties events and fingerprints together, and counts each with audit_count_event */
};
void audit_begin(struct audit_walk *walk, struct audit *audit);
bool audit_take(struct audit_walk *walk, const struct log_record *rec);
void audit_count_event(struct audit *audit, uint32_t kind);
void audit_end(struct audit_walk *walk, const struct log *log);

/* Reads the whole log. -1: not a log of ours (exit status 2). */
int audit_read(struct audit *audit, const struct run_process *process, struct error *error);
/* What does not fit together, as reasons. */
/* Of that, only what log and page say of each other, and the totals: for whoever judges damage and losses itself. `who`
 * names the process. Without a log or a page nothing is said. */
void audit_judge_agreement(const struct audit *audit, const struct run_process *process, const char *who,
			   struct reasons *reasons);
void audit_judge(const struct audit *audit, const struct run_process *process, struct reasons *reasons);

#endif
