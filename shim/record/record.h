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

#define RECORD_HIDDEN __attribute__((visibility("hidden"))) /* reached without a table of addresses */

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

/* What hot paths ask: words that only shim/record writes. */
enum record_state { RECORD_IDLE, RECORD_STARTING, RECORD_ACTIVE, RECORD_FAILED, RECORD_ENDED };
struct record_hot {
	uint32_t state, inherited, recording, level, disk_stopped;
	uint32_t forks; /* that this process has been the child of: what a thread remembers of its parent is not true */
	const struct record_options *options; /* there where the state is RECORD_ACTIVE */
};
extern struct record_hot record_hot RECORD_HIDDEN;

/* Started, not ended, and this is not a fork of the process that started it. */
static inline bool record_active(void)
{
	return __atomic_load_n(&record_hot.state, __ATOMIC_ACQUIRE) == RECORD_ACTIVE;
}

/* This is the child of a process that recorded, and has not begun to record itself: it may hold ids of its parent's. */
static inline bool record_inherited(void)
{
	return __atomic_load_n(&record_hot.inherited, __ATOMIC_RELAXED);
}

/* Active, and neither paused nor stopped by the disk guard. */
static inline bool record_recording(void)
{
	return __atomic_load_n(&record_hot.recording, __ATOMIC_RELAXED);
}

static inline bool record_disk_stopped(void)
{
	return __atomic_load_n(&record_hot.disk_stopped, __ATOMIC_RELAXED);
}

static inline uint32_t record_level(void)
{
	return __atomic_load_n(&record_hot.level, __ATOMIC_RELAXED);
}

/* ---- counters ---- */

#if defined(__x86_64__)
#define RECORD_PAGE_ALIGN 4096u
#else
#define RECORD_PAGE_ALIGN 65536u /* arm64 kernels come with pages up to this */
#endif

/* Whole pages: see counters.c. */
union record_area {
	struct ctr_page page;
	unsigned char room[(sizeof(struct ctr_page) + RECORD_PAGE_ALIGN - 1) / RECORD_PAGE_ALIGN * RECORD_PAGE_ALIGN];
};
extern union record_area record_area RECORD_HIDDEN;

/* The page; before record_start a page of zeros in memory, so that counting never needs a branch. */
static inline struct ctr_page *record_page(void)
{
	return &record_area.page;
}

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

/* A producer's way in, for those who write their record in its place: record_queue_take, fill `record`, set `commit`,
 * record_queue_give. */
#define RECORD_QUEUE_ITEMS 16384u
#define RECORD_WAKE_EVERY  2048u /* a busy producer must not wait for the writer's nap to end */

struct record_item {
	uint64_t turn; /* minus the slot's index, so that fresh zero pages are a fresh queue: position p may be
			* written at p, read at p + 1 */
	struct ctr_row *commit;
	uint64_t reserved;
	unsigned char record[RECORD_ITEM_MAX];
};

struct record_queue {
	struct record_item *items;
	uint64_t tail; /* from 2^63 on: closed */
};
extern struct record_queue record_queue RECORD_HIDDEN;

/* False: no room, or somebody else was quicker; record_put has more patience. */
static inline bool record_queue_take(struct record_item **item, uint64_t *position)
{
	uint64_t at = __atomic_load_n(&record_queue.tail, __ATOMIC_RELAXED), slot = at % RECORD_QUEUE_ITEMS;

	*position = at;
	*item = &record_queue.items[slot];
	return !(at >> 63) && __atomic_load_n(&(*item)->turn, __ATOMIC_ACQUIRE) + slot == at &&
	       __atomic_compare_exchange_n(&record_queue.tail, &at, at + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void record_wake(bool flush);

static inline void record_queue_give(struct record_item *item, uint64_t position)
{
	__atomic_store_n(&item->turn, position + 1 - position % RECORD_QUEUE_ITEMS, __ATOMIC_RELEASE);
	if (__builtin_expect(position % RECORD_WAKE_EVERY == 0, 0))
		record_wake(false);
}

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

struct record_thread {
	uint32_t tid, forks;
};
extern __thread struct record_thread record_thread RECORD_HIDDEN __attribute__((tls_model("initial-exec")));
uint32_t record_tid_ask(void);

/* Cached, but not before the recording starts: no fork handler watches over it then. */
static inline uint32_t record_tid(void)
{
	if (__builtin_expect(record_thread.tid &&
				     record_thread.forks == __atomic_load_n(&record_hot.forks, __ATOMIC_RELAXED),
			     1))
		return record_thread.tid;
	return record_tid_ask();
}

#endif
