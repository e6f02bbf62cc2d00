/* SPDX-License-Identifier: Apache-2.0
 *
 * log.h: reads one log file of a run, record by record.
 *
 * The file is hostile input: every size is bounded before it is used, every record that log_next returns has the size
 * that its type asks for and text that ends. Damage never stops the reader: it is counted in log->damage, and reading
 * goes on at the next chunk whose header proves itself.
 */
#ifndef READ_LOG_H
#define READ_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/record/log_format.h"

struct error;

/* What is wrong with the file. All zero: whole, apart from a missing END, which log->ended tells. */
struct log_damage {
	bool bad_header;          /* the file header is cut short or its checksum is wrong */
	bool other_process;       /* the file header is sound, and not of the process that log_expect named */
	uint64_t torn_bytes;      /* bytes at the end that are no whole chunk: the writer was killed in a write */
	uint64_t bad_chunks;      /* chunks with a wrong checksum or an undecodable payload */
	uint64_t seq_gaps;        /* places where the chunks' sequence jumps */
	uint64_t records_missing; /* records that those jumps lost, by the chunks' own numbering */
	uint64_t unknown_records; /* types of a later version: skipped */
	uint64_t bad_records;     /* records whose size or text is not that of their type: skipped */
	uint64_t bytes_skipped;   /* file bytes that no record was read from, the torn ones included */
};

struct log {
	/* for the caller to read */
	struct log_file_header header;
	struct log_damage damage;
	uint64_t bytes;        /* of the file, when it was opened */
	uint64_t chunks;       /* read whole */
	uint64_t records;      /* returned or skipped */
	uint64_t chunk_offset; /* file offset of the chunk that holds the record last returned */
	bool ended;            /* the END record was read */

	/* the reader's own */
	int fd;
	const char *path;
	uint64_t offset;   /* of the next chunk */
	uint64_t next_seq; /* sequence number expected there */
	uint64_t next_record;
	uint32_t raw_bytes, raw_at, left; /* of the chunk in raw: bytes, position, records still in it */
	unsigned char *raw, *stored;
};

/* Opens the file and reads its header. 0, or -1 with *err set: not a log of ours (exit status 2). A damaged header is
 * counted, not refused. */
int log_open(struct log *log, const char *path, struct error *err);

/* Whose log the file's name says that it is. */
void log_expect(struct log *log, uint64_t pid, uint64_t starttime);

/* 1: *rec is the next record, valid until the next call. 0: the end. */
int log_next(struct log *log, const struct log_record **rec);

void log_close(struct log *log);

/* Reads the whole file. 0, and what is wrong with it, whether it has its END and how many records it held or says it lost (NULL: not
 * asked); -1 with *err set, as log_open. */
int log_scan(const char *path, struct log_damage *damage, bool *ended, uint64_t *records, struct error *err);

/* True when anything in the file could not be read. */
bool log_is_damaged(const struct log_damage *damage);

/* Name of a record type, for print: "event"; NULL when it is unknown. */
const char *log_type_name(unsigned type);

#endif
