/* SPDX-License-Identifier: Apache-2.0
 *
 * test_log.c: the log reader on whole, cut, flipped and forged files.
 */
#include <lz4.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "error.h"
#include "read/log.h"

#define CHUNKS    6
#define IN_CHUNK  3
#define FILE_ROOM (1u << 20)

/* A file in memory, and where its chunks begin. */
struct made {
	unsigned char bytes[FILE_ROOM];
	size_t n, chunk[CHUNKS + 1];
};

static struct made whole;
static char path[64];

static void add(struct made *m, const void *bytes, size_t n)
{
	assert_true(m->n + n <= sizeof m->bytes);
	memcpy(m->bytes + m->n, bytes, n);
	m->n += n;
}

static void add_file_header(struct made *m)
{
	struct log_file_header h = {
		.version = LOG_VERSION, .byte_order = LOG_BYTE_ORDER, .header_bytes = sizeof h, .pid = 1
	};

	memcpy(h.magic, LOG_FILE_MAGIC, sizeof h.magic);
	h.crc = log_crc32c(0, &h, sizeof h);
	add(m, &h, sizeof h);
}

static void add_chunk_of(struct made *m, const void *raw, uint32_t raw_bytes, uint32_t records, uint64_t seq,
			 uint64_t first, enum log_codec codec)
{
	static char stored[LZ4_COMPRESSBOUND(LOG_CHUNK_RAW_MAX)];
	struct log_chunk_header h = { .magic = LOG_CHUNK_MAGIC,
				      .seq = seq,
				      .first_record = first,
				      .record_count = records,
				      .raw_bytes = raw_bytes,
				      .codec = codec };

	if (codec == LOG_CODEC_LZ4) {
		h.stored_bytes = (uint32_t)LZ4_compress_default(raw, stored, (int)raw_bytes, sizeof stored);
	} else {
		memcpy(stored, raw, raw_bytes);
		h.stored_bytes = raw_bytes;
	}
	h.payload_crc = log_crc32c(0, stored, h.stored_bytes);
	h.header_crc = log_crc32c(0, &h, sizeof h);
	add(m, &h, sizeof h);
	add(m, stored, h.stored_bytes);
}

static void fill_step(struct log_step *step, uint64_t number)
{
	memset(step, 0, sizeof *step);
	step->h.type = LOG_STEP;
	step->h.bytes = sizeof *step;
	step->number = number;
	strcpy(step->name, "decode");
}

static void make_whole(void)
{
	uint64_t number = 0;

	add_file_header(&whole);
	for (uint64_t c = 0; c < CHUNKS; c++) {
		struct log_step step[IN_CHUNK];

		whole.chunk[c] = whole.n;
		for (unsigned i = 0; i < IN_CHUNK; i++)
			fill_step(&step[i], ++number);
		add_chunk_of(&whole, step, sizeof step, IN_CHUNK, c, c * IN_CHUNK,
			     c % 2 ? LOG_CODEC_LZ4 : LOG_CODEC_STORED);
	}
	whole.chunk[CHUNKS] = whole.n;
}

static void write_file(const unsigned char *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_true(fwrite(bytes, 1, n, f) == n);
	assert_true(fclose(f) == 0);
}

/* Reads the file to its end. Every step that comes must be one that was written, in order. -1: refused. */
static int read_all(struct log *log)
{
	const struct log_record *rec;
	struct error err;
	uint64_t last = 0;
	int n = 0;

	if (log_open(log, path, &err) != 0) {
		assert_true(err.text[0]);
		return -1;
	}
	while (log_next(log, &rec)) {
		const struct log_step *step = (const void *)rec;

		assert_int_equal(rec->type, LOG_STEP);
		assert_true(step->number > last && step->number <= CHUNKS * IN_CHUNK);
		last = step->number;
		n++;
	}
	log_close(log);
	return n;
}

static void test_whole(void **state)
{
	struct log log;

	(void)state;
	write_file(whole.bytes, whole.n);
	assert_int_equal(read_all(&log), CHUNKS * IN_CHUNK);
	assert_false(log_is_damaged(&log.damage));
	assert_false(log.ended);
	assert_int_equal(log.chunks, CHUNKS);
}

/* Cut anywhere: what was complete is read, and the cut is seen unless it lies between two chunks. */
static void test_cut(void **state)
{
	struct log log;

	(void)state;
	for (size_t n = 0; n < whole.n; n++) {
		unsigned complete = 0;
		bool between = n == sizeof(struct log_file_header);

		while (complete < CHUNKS && whole.chunk[complete + 1] <= n)
			complete++;
		between |= complete && whole.chunk[complete] == n;
		write_file(whole.bytes, n);
		assert_int_equal(read_all(&log), complete * IN_CHUNK);
		assert_true(log_is_damaged(&log.damage) == !between);
		assert_true((log.damage.torn_bytes != 0 || n == 0) == !between);
	}
}

/* One bit anywhere: refused or seen, and at most the one chunk is lost. */
static void test_flipped(void **state)
{
	struct log log;

	(void)state;
	for (size_t at = 0; at < whole.n; at++) {
		int n;

		whole.bytes[at] ^= 0x10;
		write_file(whole.bytes, whole.n);
		whole.bytes[at] ^= 0x10;
		n = read_all(&log);
		if (n < 0) {
			assert_true(at < offsetof(struct log_file_header, byte_order));
			continue;
		}
		assert_true(log_is_damaged(&log.damage));
		assert_true(n >= (CHUNKS - 1) * IN_CHUNK);
	}
}

static void test_missing_chunk(void **state)
{
	static unsigned char without[FILE_ROOM];
	size_t head = whole.chunk[2], tail = whole.n - whole.chunk[3];
	struct log log;

	(void)state;
	memcpy(without, whole.bytes, head);
	memcpy(without + head, whole.bytes + whole.chunk[3], tail);
	write_file(without, head + tail);
	assert_int_equal(read_all(&log), (CHUNKS - 1) * IN_CHUNK);
	assert_int_equal(log.damage.seq_gaps, 1);
	assert_int_equal(log.damage.records_missing, IN_CHUNK);
}

static void test_garbage_between(void **state)
{
	static unsigned char with[FILE_ROOM];
	size_t at = whole.chunk[3], garbage = 3000;
	struct log log;

	(void)state;
	memcpy(with, whole.bytes, at);
	for (size_t i = 0; i < garbage; i++)
		with[at + i] = "CHNKCHN"[i % 7];
	memcpy(with + at + garbage, whole.bytes + at, whole.n - at);
	write_file(with, whole.n + garbage);
	assert_int_equal(read_all(&log), CHUNKS * IN_CHUNK);
	assert_int_equal(log.damage.bytes_skipped, garbage);
	assert_int_equal(log.damage.bad_chunks, 1);
}

/* ---- chunks with sound checksums and senseless records ---- */

static struct made forged;

static int read_forged(const void *raw, uint32_t bytes, uint32_t records, struct log *log)
{
	const struct log_record *rec;
	struct error err;
	int n = 0;

	forged.n = 0;
	add_file_header(&forged);
	add_chunk_of(&forged, raw, bytes, records, 0, 0, LOG_CODEC_STORED);
	write_file(forged.bytes, forged.n);
	assert_int_equal(log_open(log, path, &err), 0);
	while (log_next(log, &rec))
		n++;
	log_close(log);
	return n;
}

static void test_sizes(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 4, 7, 8, 64, 1 << 20, UINT32_MAX, UINT32_MAX - 7 };
	struct log_step step[2];
	struct log log;

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		fill_step(&step[0], 1);
		fill_step(&step[1], 2);
		step[0].h.bytes = sizes[i];
		assert_true(read_forged(step, sizeof step, 2, &log) <= 1);
		assert_true(log.damage.bad_records > 0);
	}
}

static void test_counts(void **state)
{
	struct log_step step[2];
	struct log log;

	(void)state;
	fill_step(&step[0], 1);
	fill_step(&step[1], 2);
	assert_int_equal(read_forged(step, sizeof step, 1, &log), 1);
	assert_true(log.damage.bad_records > 0);
	assert_int_equal(read_forged(step, sizeof step, UINT32_MAX, &log), 2);
	assert_true(log.damage.bad_records > 0);
	assert_int_equal(read_forged(step, sizeof step, 0, &log), 0);
	assert_true(log.damage.bad_records > 0);
}

static void test_text_that_does_not_end(void **state)
{
	struct log_step step;
	struct log log;

	(void)state;
	fill_step(&step, 1);
	memset(step.name, 'x', sizeof step.name);
	assert_int_equal(read_forged(&step, sizeof step, 1, &log), 0);
	assert_int_equal(log.damage.bad_records, 1);
}

static void test_unknown_type(void **state)
{
	struct log_step step[2];
	struct log log;

	(void)state;
	fill_step(&step[0], 1);
	fill_step(&step[1], 2);
	step[0].h.type = LOG_TYPE_COUNT;
	assert_int_equal(read_forged(step, sizeof step, 2, &log), 1);
	assert_int_equal(log.damage.unknown_records, 1);
}

static void test_fingerprint_counts(void **state)
{
	static const uint32_t counts[][3] = {
		{ 0, 2, 1 }, { UINT32_MAX, 1, 1 }, { 0, 3, 3 }, { 0, 1, UINT32_MAX }, { 0, UINT32_MAX, UINT32_MAX }
	};
	struct {
		struct log_fingerprint f;
		struct log_plane_print plane[1];
	} r;
	struct log log;

	(void)state;
	memset(&r, 0, sizeof r);
	r.f.h.type = LOG_FINGERPRINT;
	r.f.h.bytes = sizeof r;
	r.f.n_planes = r.f.total_planes = 1;
	assert_int_equal(read_forged(&r, sizeof r, 1, &log), 1);
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		r.f.first_plane = counts[i][0];
		r.f.n_planes = counts[i][1];
		r.f.total_planes = counts[i][2];
		assert_int_equal(read_forged(&r, sizeof r, 1, &log), 0);
		assert_int_equal(log.damage.bad_records, 1);
	}
}

static void test_callsite_names(void **state)
{
	struct {
		struct log_callsite c;
		struct log_frame frame[1];
		char text[8];
	} r;
	struct log log;

	(void)state;
	memset(&r, 0, sizeof r);
	r.c.h.type = LOG_CALLSITE;
	r.c.h.bytes = sizeof r;
	r.c.n_frames = 1;
	r.c.text_bytes = 8;
	r.frame[0].symbol = 8;
	assert_int_equal(read_forged(&r, sizeof r, 1, &log), 1);
	r.frame[0].symbol = 9;
	assert_int_equal(read_forged(&r, sizeof r, 1, &log), 0);
	r.frame[0].symbol = 8;
	r.c.n_frames = UINT32_MAX;
	assert_int_equal(read_forged(&r, sizeof r, 1, &log), 0);
}

static void test_refused(void **state)
{
	struct error err;
	struct log log;

	(void)state;
	assert_int_equal(log_open(&log, "/nonexistent/x.log", &err), -1);
	assert_int_equal(log_open(&log, "/dev/zero", &err), -1);
	assert_int_equal(log_open(&log, "/tmp", &err), -1);
	write_file((const unsigned char *)"GIF89a and so on", 16);
	assert_int_equal(log_open(&log, path, &err), -1);
	unlink(path);
	assert_int_equal(symlink("/etc/hostname", path), 0);
	assert_int_equal(log_open(&log, path, &err), -1);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),           cmocka_unit_test(test_cut),
		cmocka_unit_test(test_flipped),         cmocka_unit_test(test_missing_chunk),
		cmocka_unit_test(test_garbage_between), cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_counts),          cmocka_unit_test(test_text_that_does_not_end),
		cmocka_unit_test(test_unknown_type),    cmocka_unit_test(test_fingerprint_counts),
		cmocka_unit_test(test_callsite_names),  cmocka_unit_test(test_refused),
	};
	int failed;

	snprintf(path, sizeof path, "/tmp/slotprobe-test-log.%d", (int)getpid());
	make_whole();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
