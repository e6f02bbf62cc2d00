/* SPDX-License-Identifier: Apache-2.0
 *
 * chunk.c: records become chunks: gathered, compressed, checked, written; and the attempts that end with them become
 * committed once, and only once, their chunk is in the file.
 *
 * Numbers are used up by a chunk that could not be written, so that a reader sees the gap. What the disk guard turns
 * away never had a number: the DISK_STOP record that comes in its place says so.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define LZ4_STATIC_LINKING_ONLY /* for a state that needs no allocation */
#include <lz4.h>

static struct {
	uint32_t bytes, records;
	uint32_t meta, launches; /* of the records */
	uint64_t since_ns;       /* of the first record */
	uint64_t seq, first_record;
	uint32_t pending[CTR_MAX_ROWS]; /* attempts of each row that end with this chunk */
	unsigned char raw[LOG_CHUNK_RAW_MAX];
} chunk;

static unsigned char packed[LZ4_COMPRESSBOUND(LOG_CHUNK_RAW_MAX)];
static LZ4_stream_t lz4_state;

void record_chunk_start(void)
{
	memset(&chunk, 0, offsetof(__typeof__(chunk), raw));
}

uint64_t record_chunk_next_record(void)
{
	return chunk.first_record + chunk.records;
}

/* Without them a reader understands less than the counters of attempts tell. */
static bool is_meta(uint16_t type)
{
	switch (type) {
	case LOG_DEVICE:
	case LOG_POOL:
	case LOG_PLANE:
	case LOG_POOL_REMOVE:
	case LOG_RANK:
	case LOG_REGION:
	case LOG_GRAPH:
	case LOG_GRAPH_TOUCH:
	case LOG_GRAPH_DESTROY:
		return true;
	default:
		return false;
	}
}

static void count_lost(uint32_t meta, uint32_t launches)
{
	if (meta)
		ctr_add(ctr_core(CTR_ROW_META_LOST), meta);
	if (launches)
		ctr_add(ctr_core(CTR_ROW_LAUNCH_LOST), launches);
}

static void finish(struct ctr_row *commit, enum ctr_outcome outcome)
{
	if (commit && ctr_index(commit) >= 0)
		ctr_finish(commit, outcome);
	else if (commit)
		ctr_internal_error();
}

static void lose(const struct log_record *h, struct ctr_row *commit, enum ctr_outcome outcome)
{
	finish(commit, outcome);
	count_lost(is_meta(h->type), h->type == LOG_LAUNCH && !commit);
}

static void add_u64(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* The written chunk counts before its attempts do: a reader of a killed process finds at least as many records in the
 * file as are committed, never fewer. */
static void close_chunk(enum ctr_outcome outcome, uint64_t file_bytes)
{
	struct ctr_page *page = record_page();

	if (outcome == CTR_COMMITTED) {
		add_u64(&page->bytes_written, file_bytes);
		add_u64(&page->chunks_written, 1);
		add_u64(&page->records_written, chunk.records);
		record_disk_wrote(file_bytes);
	} else {
		count_lost(chunk.meta, chunk.launches);
	}
	for (unsigned i = 0; i < CTR_MAX_ROWS; i++)
		if (chunk.pending[i])
			ctr_finish_many(&page->row[i], outcome, chunk.pending[i]);
	memset(chunk.pending, 0, sizeof chunk.pending);
	chunk.seq++;
	chunk.first_record += chunk.records;
	chunk.bytes = chunk.records = chunk.meta = chunk.launches = 0;
}

static const void *pack(struct log_chunk_header *header)
{
	int n = LZ4_compress_fast_extState(&lz4_state, (const char *)chunk.raw, (char *)packed, (int)chunk.bytes,
					   (int)sizeof packed, 1);
	bool smaller = n > 0 && (uint32_t)n < chunk.bytes;
	const void *payload = smaller ? packed : chunk.raw;

	*header = (struct log_chunk_header) { .magic = LOG_CHUNK_MAGIC,
					      .seq = chunk.seq,
					      .first_record = chunk.first_record,
					      .record_count = chunk.records,
					      .raw_bytes = chunk.bytes,
					      .stored_bytes = smaller ? (uint32_t)n : chunk.bytes,
					      .codec = smaller ? LOG_CODEC_LZ4 : LOG_CODEC_STORED };
	header->payload_crc = log_crc32c(0, payload, header->stored_bytes);
	header->header_crc = log_crc32c(0, header, sizeof *header);
	return payload;
}

static void set_state(enum ctr_state state)
{
	__atomic_store_n(&record_page()->state, state, __ATOMIC_RELAXED);
}

static void put(const struct log_record *h, struct ctr_row *commit)
{
	int index = commit ? ctr_index(commit) : -1;

	if (!chunk.bytes)
		chunk.since_ns = record_now_ns();
	memcpy(chunk.raw + chunk.bytes, h, h->bytes);
	chunk.bytes += h->bytes;
	chunk.records++;
	chunk.meta += is_meta(h->type);
	chunk.launches += h->type == LOG_LAUNCH && !commit;
	if (index >= 0)
		chunk.pending[index]++;
	else if (commit)
		ctr_internal_error();
}

/* From here on the payload is missing, and counted. The record that says so is small: where the guard stopped there is
 * room for it, and on a disk that is full to the last byte trying costs nothing. */
static void stop(unsigned why, int error)
{
	struct log_disk_stop record = { .t_ns = record_now_ns(), .why = why, .error = error };
	struct timespec t;

	if (record_disk_stopped())
		return;
	clock_gettime(CLOCK_REALTIME, &t);
	record_disk_set_stopped(true);
	record_refresh();
	record_page()->disk_stop_real_ns = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
	set_state(CTR_DISK_STOP);
	record_fill(&record, LOG_DISK_STOP);
	record_disk_fill(&record);
	record_chunk_put(&record);
	record_chunk_write();
}

int record_chunk_write(void)
{
	struct log_chunk_header header;
	const void *payload;
	int rc;

	if (!chunk.bytes)
		return 0;
	payload = pack(&header);
	rc = record_logfile_write(&header, payload);
	close_chunk(rc ? CTR_DROPPED_WRITE : CTR_COMMITTED, sizeof header + header.stored_bytes);
	if (rc)
		ctr_add(ctr_core(CTR_ROW_WRITE_ERRORS), 1);
	if (rc == -ENOSPC || rc == -EDQUOT)
		stop(3, -rc);
	else if (!record_disk_stopped())
		set_state(rc ? CTR_WRITE_ERROR : CTR_RUNNING);
	return rc;
}

void record_chunk_add(const void *record, struct ctr_row *commit)
{
	const struct log_record *h = record;
	unsigned why;

	if (h->bytes < sizeof *h || h->bytes > LOG_RECORD_MAX || h->bytes % 8) {
		ctr_internal_error();
		finish(commit, CTR_DROPPED_WRITE);
		return;
	}
	if (chunk.bytes + h->bytes > sizeof chunk.raw)
		record_chunk_write();
	if (!chunk.bytes && !record_disk_stopped() && (why = record_disk_full(record_now_ns())))
		stop(why, 0);
	if (record_disk_stopped())
		lose(h, commit, CTR_SKIPPED_DISK);
	else
		put(h, commit);
}

void record_chunk_put(const void *record)
{
	const struct log_record *h = record;

	if (chunk.bytes + h->bytes > sizeof chunk.raw)
		record_chunk_write();
	put(h, NULL);
}

/* A chunk that was begun had all its room then, so it may still go out when the guard stops. */
void record_chunk_tick(uint64_t now_ns)
{
	unsigned why = 0;

	if (chunk.bytes && now_ns - chunk.since_ns >= NS_PER_S)
		record_chunk_write();
	if (!record_disk_stopped() && record_disk_due(now_ns) && (why = record_disk_full(now_ns))) {
		record_chunk_write();
		stop(why, 0);
	}
}

/* What waits in the queue was said before: it goes first. */
void record_append(const void *record, struct ctr_row *commit)
{
	record_queue_drain();
	record_chunk_add(record, commit);
}
