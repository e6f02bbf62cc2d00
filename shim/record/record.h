/* SPDX-License-Identifier: Apache-2.0
 *
 * record.h: how the rest of the preload records: counters, the queue to the writer thread, and what the writer asks of
 * others.
 *
 * The parts: environment (what was asked for), run directory, counters page, queue (many threads in, the writer out, no
 * lock), writer (chunks, LZ4, CRC, disk guard, control words), call sites. A process starts recording at the first
 * cuInit or pool; until then there is no file and no thread, and every call here is a no-op that returns false.
 */
#ifndef SHIM_RECORD_H
#define SHIM_RECORD_H

#include <stdbool.h>

#include "log_format.h"

/* What the environment asks for; read once, before main. dir == NULL: not recorded (AT_SECURE too). */
struct record_options {
	const char *dir, *arm, *label, *probes; /* probes: names of adapter points, comma-separated */
	uint64_t min_free, max_size;
	uint32_t recording, level;
	bool keep_keys, debug;
	int64_t watch[64]; /* slots watched in every pool */
	uint32_t n_watch;
};
const struct record_options *record_options(void);

/* Starts recording in this process: directory, files, counters page, writer thread. Idempotent and cheap once started.
 * Returns 0, or -errno when the process cannot record (then everything stays off; the server never notices). */
int record_start(void);
bool record_active(void); /* started, not ended, and this is not a fork of the process that started it */
/* This is the child of a process that recorded, and has not begun to record itself: it may hold ids of its parent's. */
bool record_inherited(void);
bool record_recording(void); /* active, and neither paused nor stopped by the disk guard: relaxed load, for hot paths */
bool record_disk_stopped(void);
uint32_t record_level(void);

/* ---- counters ---- */

/* The page; before record_start a page of zeros in memory, so that counting never needs a branch. */
struct ctr_page *record_page(void);

static inline struct ctr_row *ctr_core(enum ctr_core_row row)
{
	return &record_page()->row[row];
}

/* Row of this name, made at 0 if it is not there; NULL: no room. Lock-free; not for hot paths. */
struct ctr_row *ctr_named(const char *name, enum ctr_kind kind);

static inline void ctr_begin(struct ctr_row *row)
{
	__atomic_fetch_add(&row->begun, CTR_BEGIN_ONE, __ATOMIC_RELAXED);
}

/* The outcome first, then the flight: see struct ctr_row. */
static inline void ctr_finish(struct ctr_row *row, enum ctr_outcome outcome)
{
	__atomic_fetch_add(&row->outcome[outcome], 1, __ATOMIC_RELEASE);
	__atomic_fetch_sub(&row->begun, 1, __ATOMIC_RELEASE);
}

static inline void ctr_add(struct ctr_row *row, uint64_t n)
{
	__atomic_fetch_add(&row->outcome[0], n, __ATOMIC_RELAXED);
}

/* What `status` and `report` print of this process. Cut to the fields; may be called before record_start and again. */
void record_set_rank(const char *rank);     /* "tp0.pp0.dp0" is what stands there until then */
void record_set_driver(const char *driver); /* "CUDA 13.0, NVIDIA H200"; says that the driver was seen, too */

/* ---- the queue: any thread, lock-free, no allocation ---- */

#define RECORD_ITEM_MAX 232u

/* Copies one whole record (struct log_*, header filled in by record_fill) to the writer. `commit` (may be NULL): a row
 * whose attempt is in flight and ends with this record: CTR_COMMITTED once it is in the file, CTR_DROPPED_WRITE or
 * CTR_SKIPPED_DISK if it never gets there. False: the queue is full; nothing was taken, `commit` is still in flight. */
bool record_put(const void *record, struct ctr_row *commit);

/* As record_put, but waits up to 200 ms for room: for pools, planes, graphs. Counts metadata_lost when it gives up. */
bool record_put_meta(const void *record);

#define record_fill(r, log_type_value)                                                                                 \
	((r)->h.type = (log_type_value), (r)->h.reserved = 0, (r)->h.bytes = (sizeof *(r) + 7) & ~7u)

/* ---- the writer's side, for those who produce records on its thread ---- */

/* Appends one record to the log, from the writer's thread only. Same meaning of `commit`. */
void record_append(const void *record, struct ctr_row *commit);

/* probes/core gives one of these; the writer calls it on its own thread on every turn. */
struct record_source {
	/* Appends what has come. Returns how many results are still awaited. */
	unsigned (*poll)(void);
	/* The process ends or the recording is torn down: results that have not come are lost; count them. */
	void (*abandon)(enum ctr_outcome why);
	/* The process has forked: this is the child; forget every handle, nothing of it is ours. */
	void (*forked)(void);
};
extern const struct record_source record_source; /* defined by probes/core */

/* Asks the writer to take a turn now, and to write the chunk out (flush). No wait. */
void record_wake(bool flush);

/* ---- call sites ---- */

/* Id of the calling stack, innermost frames of our own left out; 0: none could be taken. No lock shared with the
 * writer, no allocation once this thread is warm. The first sight of a stack is queued as LOG_CALLSITE by the writer.
 */
uint32_t record_callsite(void);

/* ---- small things ---- */
uint64_t record_now_ns(void); /* CLOCK_MONOTONIC */
uint32_t record_tid(void);    /* cached per thread */

#endif
