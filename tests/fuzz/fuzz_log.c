/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_log.c: fuzz target: a log file, through the reader and what prints each record.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "print/record_json.h"
#include "read/log.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	return mutate_log(data, size, room, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct log_record *rec;
	uint64_t records = 0;
	char path[128];
	struct log log;

	snprintf(path, sizeof path, "%s/log", run_path(0));
	if (!folder() || !put_file(path, data, size, false))
		abort();
	if (!log_open(&log, path, NULL)) {
		while (log_next(&log, &rec)) {
			json_decref(record_json(rec));
			records++;
		}
		/* What was not returned is accounted for, and the file was walked to its end once. */
		if (records + log.damage.unknown_records + log.damage.bad_records < log.records ||
		    log.offset != log.bytes || log.damage.bytes_skipped > log.bytes + LOG_CHUNK_RAW_MAX * log.chunks)
			abort();
		log_close(&log);
	}
	remove(path);
	return 0;
}
