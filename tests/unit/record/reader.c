/* SPDX-License-Identifier: Apache-2.0
 *
 * reader.c: an independent reader of logs and counters pages, strict where a collector would be lenient.
 */
#include "harness.h"
#include "reader.h"

#include <string.h>

#include <lz4.h>

static unsigned char *slurp(const char *path, uint64_t *bytes)
{
	FILE *f = fopen(path, "rb");
	unsigned char *data;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*bytes = (uint64_t)ftell(f);
	rewind(f);
	data = malloc(*bytes + 1);
	assert_int_equal(fread(data, 1, *bytes, f), *bytes);
	fclose(f);
	return data;
}

static void check_file_header(struct log_file_header h)
{
	uint32_t crc = h.crc;

	assert_memory_equal(h.magic, LOG_FILE_MAGIC, 8);
	assert_int_equal(h.version, LOG_VERSION);
	assert_int_equal(h.byte_order, LOG_BYTE_ORDER);
	assert_int_equal(h.header_bytes, sizeof h);
	h.crc = 0;
	assert_int_equal(crc, log_crc32c(0, &h, sizeof h));
	for (int i = 0; i < 4; i++)
		assert_int_equal(h.reserved[i], 0);
}

/* False: this is where the good part ends. */
static bool chunk_at(const unsigned char *p, uint64_t room, struct log_chunk_header *h)
{
	uint32_t crc;

	if (room < sizeof *h)
		return false;
	memcpy(h, p, sizeof *h);
	crc = h->header_crc;
	h->header_crc = 0;
	if (h->magic != LOG_CHUNK_MAGIC || crc != log_crc32c(0, h, sizeof *h) || h->stored_bytes > room - sizeof *h)
		return false;
	return h->payload_crc == log_crc32c(0, p + sizeof *h, h->stored_bytes);
}

static void unpack(struct log *log, const struct log_chunk_header *h, const unsigned char *payload, uint64_t *used)
{
	unsigned char *to = log->raw + *used;

	assert_in_range(h->raw_bytes, 1, LOG_CHUNK_RAW_MAX);
	assert_int_equal(h->reserved, 0);
	if (h->codec == LOG_CODEC_LZ4) {
		assert_true(h->stored_bytes < h->raw_bytes);
		assert_int_equal(
			LZ4_decompress_safe((const char *)payload, (char *)to, (int)h->stored_bytes, (int)h->raw_bytes),
			h->raw_bytes);
		log->n_lz4++;
	} else {
		assert_int_equal(h->codec, LOG_CODEC_STORED);
		assert_int_equal(h->stored_bytes, h->raw_bytes);
		memcpy(to, payload, h->raw_bytes);
		log->n_stored++;
	}
	*used += h->raw_bytes;
}

static void list_records(struct log *log, const struct log_chunk_header *h, uint64_t start)
{
	uint64_t at = start, end = start + h->raw_bytes;

	for (uint32_t i = 0; i < h->record_count; i++) {
		const struct log_record *r = (const void *)(log->raw + at);
		assert_true(at + sizeof *r <= end);
		assert_in_range(r->bytes, sizeof *r, LOG_RECORD_MAX);
		assert_int_equal(r->bytes % 8, 0);
		assert_int_equal(r->reserved, 0);
		assert_in_range(r->type, 1, LOG_TYPE_COUNT - 1);
		log->record[log->n_records] = r;
		log->number[log->n_records++] = h->first_record + i;
		at += r->bytes;
	}
	assert_int_equal(at, end);
}

static void make_room(struct log *log, const unsigned char *file, uint64_t bytes)
{
	uint64_t raw = 0, records = 0;
	struct log_chunk_header h;

	for (uint64_t at = sizeof log->header; chunk_at(file + at, bytes - at, &h); at += sizeof h + h.stored_bytes) {
		raw += h.raw_bytes;
		records += h.record_count;
	}
	log->raw = malloc(raw + 1);
	log->record = malloc((records + 1) * sizeof *log->record);
	log->number = malloc((records + 1) * sizeof *log->number);
}

struct log *log_read(const char *path)
{
	struct log *log = calloc(1, sizeof *log);
	uint64_t bytes, at = sizeof log->header, seq = 0, next = 0, used = 0;
	unsigned char *file;
	struct log_chunk_header h;

	assert_non_null(path);
	file = slurp(path, &bytes);
	assert_true(bytes >= sizeof log->header);
	memcpy(&log->header, file, sizeof log->header);
	check_file_header(log->header);
	make_room(log, file, bytes);
	for (; chunk_at(file + at, bytes - at, &h); at += sizeof h + h.stored_bytes) {
		uint64_t start = used;
		assert_true(h.seq >= seq && h.first_record >= next);
		assert_int_equal(h.seq > seq, h.first_record > next);
		log->gaps += h.seq - seq;
		log->lost_records += h.first_record - next;
		unpack(log, &h, file + at + sizeof h, &used);
		list_records(log, &h, start);
		log->n_chunks++;
		seq = h.seq + 1;
		next = h.first_record + h.record_count;
	}
	log->good_bytes = at;
	log->torn_bytes = bytes - at;
	free(file);
	assert_true(log->n_records > 0);
	assert_int_equal(log->record[0]->type, LOG_PROCESS);
	return log;
}

void log_free(struct log *log)
{
	free(log->raw);
	free(log->record);
	free(log->number);
	free(log);
}

uint64_t log_count(const struct log *log, unsigned type)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < log->n_records; i++)
		n += log->record[i]->type == type;
	return n;
}

const void *log_first(const struct log *log, unsigned type)
{
	for (uint64_t i = 0; i < log->n_records; i++)
		if (log->record[i]->type == type)
			return log->record[i];
	return NULL;
}

struct ctr_page *page_read(const char *path)
{
	uint64_t bytes;
	struct ctr_page *page;

	assert_non_null(path);
	page = (void *)slurp(path, &bytes);
	assert_int_equal(bytes, sizeof *page);
	assert_memory_equal(page->magic, CTR_FILE_MAGIC, 8);
	assert_int_equal(page->version, LOG_VERSION);
	assert_int_equal(page->byte_order, LOG_BYTE_ORDER);
	assert_int_equal(page->page_bytes, sizeof *page);
	assert_int_equal(page->row_offset, offsetof(struct ctr_page, row));
	assert_int_equal(page->row_bytes, sizeof page->row[0]);
	assert_int_equal(page->max_rows, CTR_MAX_ROWS);
	assert_int_equal(page->crc, log_crc32c(0, page, offsetof(struct ctr_page, comm)));
	assert_in_range(page->n_rows, CTR_CORE_ROW_COUNT, CTR_MAX_ROWS);
	for (uint32_t i = 0; i < CTR_MAX_ROWS; i++)
		assert_int_equal(i < page->n_rows, page->row[i].kind != CTR_FREE);
	return page;
}

struct ctr_row *page_row(struct ctr_page *page, const char *name)
{
	for (uint32_t i = 0; i < page->n_rows; i++)
		if (!strcmp(page->row[i].name, name))
			return &page->row[i];
	return NULL;
}

uint64_t row_outcomes(const struct ctr_row *row)
{
	uint64_t sum = 0;

	for (int i = 0; i < CTR_OUTCOME_ROOM; i++)
		sum += row->outcome[i];
	return sum + row->own_committed;
}

uint64_t row_in_flight(const struct ctr_row *row)
{
	uint64_t attempted = CTR_ATTEMPTED(row->begun) + CTR_ATTEMPTED(row->own_begun), sum = row_outcomes(row);

	assert_true(sum <= attempted);
	assert_true(attempted - sum <= CTR_IN_FLIGHT(row->begun) + CTR_IN_FLIGHT(row->own_begun));
	return attempted - sum;
}

void assert_reconciled(const struct log *log, struct ctr_page *page, bool ended)
{
	struct ctr_row *row = &page->row[CTR_ROW_DONATE];
	uint64_t events = log_count(log, LOG_EVENT), in_flight = row_in_flight(row);

	assert_int_equal(log->header.pid, page->pid);
	assert_int_equal(log->header.starttime, page->starttime);
	assert_true(events >= row->outcome[CTR_COMMITTED]);
	assert_true(events <= row->outcome[CTR_COMMITTED] + in_flight);
	if (!ended)
		return;
	assert_int_equal(in_flight, 0);
	assert_int_equal(CTR_IN_FLIGHT(row->begun), 0);
	assert_int_equal(log->torn_bytes, 0);
	assert_int_equal(page->state, CTR_ENDED);
	assert_int_equal(page->bytes_written + sizeof log->header, log->good_bytes);
	assert_int_equal(page->chunks_written, log->n_chunks);
	assert_int_equal(page->records_written, log->n_records);
}
