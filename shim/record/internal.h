/* SPDX-License-Identifier: Apache-2.0
 *
 * internal.h: what the files of shim/record know of one another. Nothing outside of this folder includes it.
 *
 * Who runs what: the log file, chunks, the disk guard, the control words and the queue's way out belong to the writer
 * thread (and to record_start before there is one). The rest says where it may be called.
 */
#ifndef RECORD_INTERNAL_H
#define RECORD_INTERNAL_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

#define NS_PER_S 1000000000ull

/* ---- time.c ---- */
void record_tid_forget(void);

/* ---- options.c ---- */

/* The allow-listed part of the environment as it was before main: NAME=value, NUL, ..., NUL. */
const char *record_options_env(void);
bool record_options_sensitive(const char *name, size_t bytes); /* KEY, TOKEN, SECRET, PASSWORD, in any case */

/* ---- text.c: bounded strings without stdio ---- */

struct record_text {
	char *at, *end; /* end: last byte, kept for the NUL */
};
struct record_text record_text_start(char *buffer, size_t bytes);
void record_text_add(struct record_text *text, const char *s);
void record_text_add_n(struct record_text *text, const char *s, size_t n);
void record_text_add_u64(struct record_text *text, uint64_t value, unsigned min_digits);
void record_text_copy(char *to, size_t bytes, const char *from); /* cut, NUL-terminated, the rest zero */
size_t record_text_read_file(const char *path, char *to, size_t bytes);

/* What getdents64 fills in: opendir would allocate. */
struct dirent64_head {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

/* ---- rundir.c ---- */

struct record_rundir {
	char path[PATH_MAX]; /* of the run directory, absolute */
	char log[PATH_MAX];
	char ctr[PATH_MAX];
	char host[64], comm[16];
	uint64_t pid, starttime;
	int fd, log_fd, ctr_fd; /* open during record_start only, but for log_fd, which logfile.c takes over */
	bool log_made, ctr_made;
};
int record_rundir_open(struct record_rundir *dir, const char *path);
void record_rundir_close(struct record_rundir *dir, bool remove_files);
bool record_fd_identity(int fd, uint64_t *dev, uint64_t *ino, uint64_t *uid);

/* ---- manifest.c ---- */
void record_manifest_write(
	const struct record_rundir *dir); /* unless there is one; failing is no reason not to record */

/* ---- counters.c ---- */
int ctr_attach(const struct record_rundir *dir);
void ctr_detach(bool keep_counts); /* back to memory: of a failed start, or of a fork */
void ctr_finish_many(struct ctr_row *row, enum ctr_outcome outcome, uint64_t n);
int ctr_index(const struct ctr_row *row); /* -1: not a row of the page */
void ctr_internal_error(void);

/* ---- queue.c ---- */
int record_queue_make(void);
void record_queue_forget(void);                /* after a fork */
void record_queue_drain(void);                 /* hands everything that is published to record_chunk_add */
void record_queue_close(uint64_t deadline_ns); /* refuses new items for good and drains the rest */

/* ---- disk.c ---- */
void record_disk_start(const struct record_rundir *dir);
bool record_disk_due(uint64_t now_ns); /* a second has passed since the last look */
/* 0: a whole chunk may be written; else the `why` of struct log_disk_stop. */
unsigned record_disk_full(uint64_t now_ns);
void record_disk_wrote(uint64_t bytes);
void record_disk_fill(struct log_disk_stop *stop);
void record_disk_set_stopped(bool stopped);

/* ---- logfile.c ---- */
int record_logfile_start(const struct record_rundir *dir);                            /* takes dir->log_fd */
int record_logfile_write(const struct log_chunk_header *header, const void *payload); /* 0 or -errno, all or nothing */
int record_logfile_fd(void);
void record_logfile_close(void);

/* ---- chunk.c ---- */
void record_chunk_start(void);
void record_chunk_add(const void *record, struct ctr_row *commit); /* a record of anyone's: the guard may refuse it */
void record_chunk_put(const void *record); /* one of the log's own: written whatever the guard says */
int record_chunk_write(void);
void record_chunk_tick(uint64_t now_ns); /* writes a chunk that is a second old, stops when the disk says so */
uint64_t record_chunk_next_record(void);

/* ---- control.c ---- */
void record_control_obey(void);
bool record_control_flush_wanted(uint64_t *token);
void record_control_flush_done(uint64_t token);

/* ---- callsite.c ---- */
void record_callsite_load(void); /* finds libunwind; on the writer thread */
void record_callsite_emit(void); /* appends the stacks that are new */
void record_callsite_forget(void);

/* ---- writer.c ---- */
int record_writer_start(void);
void record_writer_end(void); /* of the process: any thread, bounded; a no-op where there is no writer of ours */
void record_writer_forget(void);
bool record_writer_is_this_thread(void);

/* ---- lastthread.c ---- */
bool record_threads_all_gone(void); /* but for the calling one, which is not the main thread */

/* ---- signal.c ---- */

/* Between the two a write of ours that goes over RLIMIT_FSIZE, or into a pipe that nobody reads, fails, and does no more. */
#define RECORD_PROVOKED 2
struct record_signals {
	sigset_t before;
	bool blocked;                  /* by us: `before` is what was */
	bool pending[RECORD_PROVOKED]; /* it was not ours */
};
void record_signals_hold(struct record_signals *held);
void record_signals_release(const struct record_signals *held);
void record_signals_restore(const sigset_t *mask); /* of the server's thread: tried again where it fails */
void record_signal_swallow(int number);            /* one that is blocked and pending */

/* ---- start.c ---- */
void record_set_recording(bool on); /* as the control word wants it */
void record_refresh(void);          /* recomputes what record_recording answers */
void record_set_level(uint32_t level);

#endif
