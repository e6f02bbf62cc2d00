/* SPDX-License-Identifier: Apache-2.0
 *
 * reader.h: reads a log and a counters page by log_format.h and docs/log-format.md alone, and asserts all that must hold
 * of every one.
 */
#ifndef TEST_RECORD_READER_H
#define TEST_RECORD_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/record/log_format.h"

struct log {
	struct log_file_header header;
	unsigned char *raw; /* the records of all chunks, one after the other */
	const struct log_record **record;
	uint64_t *number; /* of each record, counting those of lost chunks */
	uint64_t n_records, n_chunks, n_lz4, n_stored;
	uint64_t gaps, lost_records; /* chunks and records that are missing between those that are there */
	uint64_t good_bytes, torn_bytes;
};

struct log *log_read(const char *path);
void log_free(struct log *log);
uint64_t log_count(const struct log *log, unsigned type);
const void *log_first(const struct log *log, unsigned type);

struct ctr_page *page_read(const char *path);
struct ctr_row *page_row(struct ctr_page *page, const char *name);
uint64_t row_outcomes(const struct ctr_row *row);
/* Of a process that lives no more: what is really in flight. Asserts that the row adds up. */
uint64_t row_in_flight(const struct ctr_row *row);
/* log and page of an ended process agree, record by record */
void assert_reconciled(const struct log *log, struct ctr_page *page, bool ended);

#endif
