/* SPDX-License-Identifier: Apache-2.0
 *
 * mutate_log.c: mutates a log: the records inside of its chunks, the fields of its headers, or its bytes.
 */
#include <lz4.h>
#include <stdbool.h>
#include <string.h>

#include "shim/record/log_format.h"
#include "tests/fuzz/mutate.h"

#define CHUNKS_MAX 24u

struct chunk {
	struct log_chunk_header h;
	uint32_t n;
	uint8_t raw[LOG_CHUNK_RAW_MAX];
};

/* A log taken apart; what is no chunk at its end stays as it is. */
struct parts {
	struct log_file_header h;
	bool has_header;
	struct chunk chunk[CHUNKS_MAX];
	unsigned n;
	uint8_t tail[4096];
	size_t n_tail;
};

static struct parts parts;

/* ---- apart and together ---- */

static bool take_chunk(const uint8_t *data, size_t size, size_t *used)
{
	struct chunk *c = &parts.chunk[parts.n];
	int n = -1;

	if (parts.n == CHUNKS_MAX || size < sizeof c->h)
		return false;
	memcpy(&c->h, data, sizeof c->h);
	if (c->h.magic != LOG_CHUNK_MAGIC || c->h.stored_bytes > size - sizeof c->h)
		return false;
	if (c->h.codec == LOG_CODEC_LZ4)
		n = LZ4_decompress_safe((const char *)data + sizeof c->h, (char *)c->raw, (int)c->h.stored_bytes,
					sizeof c->raw);
	if (n < 0) {
		if (c->h.stored_bytes > sizeof c->raw)
			return false;
		memcpy(c->raw, data + sizeof c->h, c->h.stored_bytes);
		n = (int)c->h.stored_bytes;
	}
	c->n = (uint32_t)n;
	*used = sizeof c->h + c->h.stored_bytes;
	parts.n++;
	return true;
}

static void take_apart(const uint8_t *data, size_t size)
{
	size_t used;

	parts.n = 0;
	parts.has_header = size >= sizeof parts.h && !memcmp(data, LOG_FILE_MAGIC, 8);
	if (parts.has_header) {
		memcpy(&parts.h, data, sizeof parts.h);
		data += sizeof parts.h;
		size -= sizeof parts.h;
	}
	while (take_chunk(data, size, &used)) {
		data += used;
		size -= used;
	}
	parts.n_tail = size < sizeof parts.tail ? size : sizeof parts.tail;
	memcpy(parts.tail, data, parts.n_tail);
}

static size_t put_chunk(struct chunk *c, uint8_t *to, size_t room, bool lz4)
{
	static uint8_t stored[LZ4_COMPRESSBOUND(LOG_CHUNK_RAW_MAX)];
	const uint8_t *payload = c->raw;
	uint32_t n = c->n;

	if (lz4) {
		n = (uint32_t)LZ4_compress_default((const char *)c->raw, (char *)stored, (int)c->n, sizeof stored);
		payload = stored;
	}
	if (room < sizeof c->h || room - sizeof c->h < n)
		return 0;
	c->h.codec = lz4 ? LOG_CODEC_LZ4 : LOG_CODEC_STORED;
	c->h.stored_bytes = n;
	c->h.payload_crc = log_crc32c(0, payload, n);
	c->h.header_crc = 0;
	c->h.header_crc = log_crc32c(0, &c->h, sizeof c->h);
	memcpy(to, &c->h, sizeof c->h);
	memcpy(to + sizeof c->h, payload, n);
	return sizeof c->h + n;
}

static size_t put_together(uint8_t *to, size_t room, struct dice *dice)
{
	size_t at = 0;

	if (parts.has_header && room >= sizeof parts.h) {
		parts.h.crc = 0;
		parts.h.crc = log_crc32c(0, &parts.h, sizeof parts.h);
		memcpy(to, &parts.h, sizeof parts.h);
		at = sizeof parts.h;
	}
	for (unsigned i = 0; i < parts.n; i++)
		at += put_chunk(&parts.chunk[i], to + at, room - at, !dice_below(dice, 12));
	if (parts.n_tail > room - at)
		parts.n_tail = room - at;
	memcpy(to + at, parts.tail, parts.n_tail);
	return at + parts.n_tail;
}

/* ---- records ---- */

/* Offset of the i-th record, and its size as it says; the end when there is none. */
static uint32_t record_at(const struct chunk *c, uint32_t i, uint32_t *bytes)
{
	uint32_t at = 0;

	for (;; i--) {
		struct log_record r;

		*bytes = c->n - at;
		if (c->n - at < sizeof r)
			return at;
		memcpy(&r, c->raw + at, sizeof r);
		if (r.bytes < sizeof r || r.bytes > c->n - at)
			return at;
		*bytes = r.bytes;
		if (!i)
			return at;
		at += r.bytes;
	}
}

static uint32_t count_records(const struct chunk *c)
{
	uint32_t n = 0, at = 0;
	struct log_record r;

	for (; c->n - at >= sizeof r; n++) {
		memcpy(&r, c->raw + at, sizeof r);
		if (r.bytes < sizeof r || r.bytes > c->n - at)
			break;
		at += r.bytes;
	}
	return n;
}

/* Makes the hole at `at` in raw `now` bytes wide where it was `was`. */
static bool resize(struct chunk *c, uint32_t at, uint32_t was, uint32_t now)
{
	if (c->n - was + (uint64_t)now > sizeof c->raw)
		return false;
	memmove(c->raw + at + now, c->raw + at + was, c->n - at - was);
	c->n = c->n - was + now;
	return true;
}

static void mutate_body(struct chunk *c, struct dice *dice)
{
	static uint8_t copy[LOG_CHUNK_RAW_MAX];
	uint32_t bytes, at = record_at(c, dice_below(dice, count_records(c)), &bytes);
	bool may_grow = !dice_below(dice, 4);
	struct log_record r;
	size_t n;

	if (bytes <= sizeof r)
		return;
	memcpy(&r, c->raw + at, sizeof r);
	memcpy(copy, c->raw + at + sizeof r, bytes - sizeof r);
	n = LLVMFuzzerMutate(copy, bytes - sizeof r, may_grow ? 16384 : bytes - sizeof r);
	if (!may_grow) /* the size is that of its type: shorter would only be refused */
		n = bytes - sizeof r;
	n = (n + 7) & ~(size_t)7;
	r.bytes = (uint32_t)(n + sizeof r);
	if (!resize(c, at, bytes, r.bytes))
		return;
	memcpy(c->raw + at, &r, sizeof r);
	memcpy(c->raw + at + sizeof r, copy, n);
}

/* A word of the body becomes one of the values that break things. */
static void mutate_word(struct chunk *c, struct dice *dice)
{
	static const uint64_t odd[] = { 0,
					1,
					2,
					255,
					4096,
					65535,
					65536,
					INT32_MAX,
					UINT32_MAX,
					INT64_MAX,
					UINT64_MAX,
					1ull << 63,
					0x7ff8000000000000,
					0x7ff0000000000000,
					1ull << 40 };
	uint32_t bytes, at = record_at(c, dice_below(dice, count_records(c)), &bytes);
	unsigned width = 4u << dice_below(dice, 2);
	uint64_t value = odd[dice_below(dice, sizeof odd / sizeof odd[0])];

	if (bytes < 16)
		return;
	at += 8 + dice_below(dice, (bytes - 8) / width) * width;
	if (at + width <= c->n)
		memcpy(c->raw + at, &value, width);
}

static void copy_record(struct chunk *from, struct chunk *to, struct dice *dice)
{
	static uint8_t copy[LOG_CHUNK_RAW_MAX];
	uint32_t bytes, none, at = record_at(from, dice_below(dice, count_records(from)), &bytes), into;

	memcpy(copy, from->raw + at, bytes);
	into = record_at(to, dice_below(dice, count_records(to) + 1), &none);
	if (resize(to, into, 0, bytes))
		memcpy(to->raw + into, copy, bytes);
}

static void drop_record(struct chunk *c, struct dice *dice)
{
	uint32_t bytes, at = record_at(c, dice_below(dice, count_records(c)), &bytes);

	resize(c, at, bytes, 0);
}

static void change_type(struct chunk *c, struct dice *dice)
{
	uint32_t bytes, at = record_at(c, dice_below(dice, count_records(c)), &bytes);
	uint16_t type = (uint16_t)dice_below(dice, LOG_TYPE_COUNT + 1);

	if (bytes >= sizeof(struct log_record))
		memcpy(c->raw + at, &type, sizeof type);
}

/* ---- what is around the records ---- */

static void drop_chunk(unsigned i)
{
	memmove(&parts.chunk[i], &parts.chunk[i + 1], (parts.n - i - 1) * sizeof parts.chunk[0]);
	parts.n--;
}

static void copy_chunk(unsigned i)
{
	if (parts.n < CHUNKS_MAX)
		parts.chunk[parts.n++] = parts.chunk[i];
}

/* Numbers and sizes as a writer would have given them. */
static void renumber(void)
{
	uint64_t record = 0;

	for (unsigned i = 0; i < parts.n; i++) {
		struct chunk *c = &parts.chunk[i];

		c->h.seq = i;
		c->h.first_record = record;
		c->h.record_count = count_records(c);
		c->h.raw_bytes = c->n;
		record += c->h.record_count;
	}
}

static void mutate_chunks(struct dice *dice)
{
	unsigned i = dice_below(dice, parts.n);
	struct chunk *c = &parts.chunk[i];

	switch (dice_below(dice, 16)) {
	case 0 ... 4:
		mutate_body(c, dice);
		break;
	case 5 ... 7:
		mutate_word(c, dice);
		break;
	case 8 ... 9:
		copy_record(&parts.chunk[dice_below(dice, parts.n)], c, dice);
		break;
	case 10 ... 11:
		drop_record(c, dice);
		break;
	case 12:
		change_type(c, dice);
		break;
	case 13:
		drop_chunk(i);
		break;
	case 14:
		copy_chunk(i);
		break;
	default:
		c->n = (uint32_t)LLVMFuzzerMutate(c->raw, c->n, sizeof c->raw / 4);
	}
}

size_t mutate_log(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	struct dice dice;
	uint32_t what;

	dice_seed(&dice, seed);
	what = dice_below(&dice, 32);
	take_apart(data, size);
	if (what == 0 || !parts.n) /* no checksum is put right */
		return LLVMFuzzerMutate(data, size, room);
	if (what == 1)
		return dice_below(&dice, (uint32_t)size);
	if (what == 2 && parts.has_header)
		LLVMFuzzerMutate((uint8_t *)&parts.h, sizeof parts.h, sizeof parts.h);
	else if (what == 3)
		LLVMFuzzerMutate((uint8_t *)&parts.chunk[dice_below(&dice, parts.n)].h, sizeof(struct log_chunk_header),
				 sizeof(struct log_chunk_header));
	else
		for (uint32_t turns = 1 + dice_below(&dice, 3); turns && parts.n; turns--)
			mutate_chunks(&dice);
	if (what > 6)
		renumber();
	return put_together(data, room, &dice);
}
