/* SPDX-License-Identifier: Apache-2.0
 *
 * counters.h: reads a counters page, of a live process or of a dead one, and never trusts it.
 */
#ifndef COLLECTOR_COUNTERS_H
#define COLLECTOR_COUNTERS_H

#include <stdbool.h>

#include "error.h"
#include "shim/record/log_format.h"

struct ctr_values {
	char name[sizeof(((struct ctr_row *)0)->name) + 1];
	enum ctr_kind kind;
	uint64_t attempted, in_flight;
	uint64_t outcome[CTR_OUTCOME_COUNT]; /* a plain counter's value is outcome[0] */
	uint64_t group[CTR_IN_ERRORS + 1];   /* sums of outcome by enum ctr_group */
	bool reconciled;                     /* attempted == all outcomes + in_flight (plain counters: true) */
};

struct ctr_snapshot {
	uint64_t pid, starttime, started_real_ns;
	char comm[17], host[65], driver[65], rank[65]; /* as written: escape before printing */
	enum ctr_state state;
	bool recording, driver_seen;
	uint32_t level;
	uint64_t heartbeat_ns, bytes_written, chunks_written, records_written, disk_stop_real_ns;
	uint64_t flush_done, label_done, ctl_flush, ctl_label_seq;
	uint32_t ctl_recording, ctl_level;
	char label[65];
	bool reconciled; /* every row is */
	uint32_t n_rows;
	struct ctr_values row[CTR_MAX_ROWS]; /* as in the page; ask ctr_find for one by name */
};

enum ctr_read {
	CTR_READ_OK,
	CTR_READ_ABSENT,  /* no such file, or its process has not filled it in yet */
	CTR_READ_DAMAGED, /* short, a bad checksum, an impossible value: readable with loss */
	CTR_READ_REFUSED  /* foreign magic, unknown version, not a regular file, over the limit: not a run's */
};

/* Takes a consistent snapshot, of a live page too: a row is read again until it holds still, bounded. Whoever stood, or was
 * killed, between "outcome + 1" and "in_flight - 1" is taken off in_flight (see struct ctr_row). */
enum ctr_read ctr_read(const char *path, struct ctr_snapshot *snapshot, struct error *error);

/* Row of this name; NULL: the process never registered it. */
const struct ctr_values *ctr_find(const struct ctr_snapshot *snapshot, const char *name);

/* Labels of the format's tables. */
const char *ctr_outcome_label(enum ctr_outcome outcome);
const char *ctr_outcome_meaning(enum ctr_outcome outcome);
enum ctr_group ctr_outcome_group(enum ctr_outcome outcome);
const char *ctr_level_name(uint32_t level); /* "donations", ..., or "?" */

#endif
