/* SPDX-License-Identifier: Apache-2.0
 *
 * log.c: the log reader: chunks, checksums, resynchronisation, and the shape of every record.
 */
#include <errno.h>
#include <fcntl.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/log.h"
#include "read/pread.h"
#include "error.h"
#include "trouble.h"

#define STORED_MAX ((uint32_t)LZ4_COMPRESSBOUND(LOG_CHUNK_RAW_MAX))
#define SCAN_BYTES LOG_CHUNK_RAW_MAX

/* What not every record needs: within log_next each record would save and restore registers for it. */
#define APART __attribute__((noinline))

/* ---- the shape of records ---- */

/* Bytes that the variable part must have at least, from the record's own counts; UINT64_MAX: the counts make no sense.
 * Called when the fixed part is known to be there. */
static uint64_t fingerprint_tail(const struct log_record *rec)
{
	const struct log_fingerprint *f = (const void *)rec;

	if (f->n_planes > LOG_RECORD_MAX / sizeof f->plane[0] || f->total_planes > INT32_MAX ||
	    (uint64_t)f->first_plane + f->n_planes > f->total_planes)
		return UINT64_MAX;
	return f->n_planes * sizeof f->plane[0];
}

static uint64_t region_values_tail(const struct log_record *rec)
{
	return (uint64_t)((const struct log_region_values *)rec)->n_values * sizeof(int64_t);
}

static uint64_t module_tail(const struct log_record *rec)
{
	return ((const struct log_module *)rec)->bytes_path;
}

static uint64_t callsite_tail(const struct log_record *rec)
{
	const struct log_callsite *c = (const void *)rec;
	uint64_t names = 0;

	if (c->n_frames > LOG_FRAMES_MAX)
		return UINT64_MAX;
	if (rec->bytes < sizeof *c + c->n_frames * sizeof c->frame[0])
		return UINT64_MAX;
	for (uint32_t i = 0; i < c->n_frames; i++)
		names += c->frame[i].symbol;
	if (names > c->text_bytes)
		return UINT64_MAX;
	return c->n_frames * sizeof c->frame[0] + (uint64_t)c->text_bytes;
}

static uint64_t key_text_tail(const struct log_record *rec)
{
	const struct log_key_text *k = (const void *)rec;

	return k->bytes <= sizeof k->text ? 0 : UINT64_MAX;
}

/* One row a type: name, fixed bytes, text fields that must end (offset, room), the rule of the variable part, and where a
 * reserved word must be 0. */
struct text_field {
	uint16_t offset, room;
};

struct shape {
	const char *name;
	uint32_t fixed;
	struct text_field text[3];
	uint64_t (*tail)(const struct log_record *);
	uint32_t reserved;
};

#define TEXT(s, f)                                                                                                     \
	{                                                                                                              \
		offsetof(struct s, f), sizeof((struct s *)0)->f                                                        \
	}

static const struct shape shapes[LOG_TYPE_COUNT] = {
	[LOG_PROCESS] = { "process",
			  sizeof(struct log_process),
			  { TEXT(log_process, tool_version), TEXT(log_process, comm), TEXT(log_process, host) },
			  NULL,
			  offsetof(struct log_process, reserved) },
	[LOG_DEVICE] = { "device", sizeof(struct log_device), { TEXT(log_device, name) }, NULL },
	[LOG_POOL] = { "pool",
		       sizeof(struct log_pool),
		       { TEXT(log_pool, name) },
		       NULL,
		       offsetof(struct log_pool, reserved) },
	[LOG_PLANE] = { "plane", sizeof(struct log_plane), { TEXT(log_plane, tensor) }, NULL },
	[LOG_POOL_REMOVE] = { "pool_remove", sizeof(struct log_pool_remove), { { 0, 0 } }, NULL },
	[LOG_EVENT] = { "event", sizeof(struct log_event), { { 0, 0 } }, NULL },
	[LOG_KEY_TEXT] = { "key_text", sizeof(struct log_key_text), { { 0, 0 } }, key_text_tail },
	[LOG_FINGERPRINT] = { "fingerprint", sizeof(struct log_fingerprint), { { 0, 0 } }, fingerprint_tail },
	[LOG_STEP] = { "step",
		       sizeof(struct log_step),
		       { TEXT(log_step, name) },
		       NULL,
		       offsetof(struct log_step, reserved) },
	[LOG_RANK] = { "rank", sizeof(struct log_rank), { TEXT(log_rank, axis) }, NULL },
	[LOG_REGION] = { "region", sizeof(struct log_region), { TEXT(log_region, name) }, NULL },
	[LOG_REGION_VALUES] = { "region_values", sizeof(struct log_region_values), { { 0, 0 } }, region_values_tail },
	[LOG_GRAPH] = { "graph", sizeof(struct log_graph), { { 0, 0 } }, NULL },
	[LOG_GRAPH_TOUCH] = { "graph_touch",
			      sizeof(struct log_graph_touch),
			      { TEXT(log_graph_touch, kernel) },
			      NULL,
			      offsetof(struct log_graph_touch, reserved) },
	[LOG_GRAPH_DESTROY] = { "graph_destroy", sizeof(struct log_graph_destroy), { { 0, 0 } }, NULL },
	[LOG_LAUNCH] = { "launch", sizeof(struct log_launch), { { 0, 0 } }, NULL },
	[LOG_MODULE] = { "module", sizeof(struct log_module), { { 0, 0 } }, module_tail },
	[LOG_CALLSITE] = { "callsite",
			   sizeof(struct log_callsite),
			   { { 0, 0 } },
			   callsite_tail,
			   offsetof(struct log_callsite, reserved) },
	[LOG_CONTROL] = { "control", sizeof(struct log_control), { TEXT(log_control, label) }, NULL },
	[LOG_DISK_STOP] = { "disk_stop", sizeof(struct log_disk_stop), { { 0, 0 } }, NULL },
	[LOG_UNROUTED] = { "unrouted",
			   sizeof(struct log_unrouted),
			   { TEXT(log_unrouted, name) },
			   NULL,
			   offsetof(struct log_unrouted, reserved) },
	[LOG_BYPASSED] = { "bypassed",
			   sizeof(struct log_bypassed),
			   { TEXT(log_bypassed, symbol), TEXT(log_bypassed, object) },
			   NULL },
	[LOG_END] = { "end", sizeof(struct log_end), { { 0, 0 } }, NULL },
};

const char *log_type_name(unsigned type)
{
	return type < LOG_TYPE_COUNT ? shapes[type].name : NULL;
}

static APART bool texts_end(const struct log_record *rec, const struct shape *shape)
{
	for (unsigned i = 0; i < 3 && shape->text[i].room; i++) {
		if (!memchr((const char *)rec + shape->text[i].offset, 0, shape->text[i].room))
			return false;
	}
	return true;
}

static bool record_is_sound(const struct log_record *rec)
{
	const struct shape *shape = &shapes[rec->type];
	uint64_t tail = 0;

	if (rec->bytes < shape->fixed || rec->reserved)
		return false;
	if (shape->reserved && *(const uint32_t *)((const char *)rec + shape->reserved))
		return false;
	if (shape->text[0].room && !texts_end(rec, shape))
		return false;
	if (shape->tail)
		tail = shape->tail(rec);
	if (tail > LOG_RECORD_MAX)
		return false;
	/* The padding to 8 bytes is all that may follow: a longer record is one that we would misread. */
	return rec->bytes == ((shape->fixed + tail + 7) & ~7ull);
}

/* ---- the file ---- */

/* False: the file ends before. */
static bool read_at(const struct log *log, void *to, size_t bytes, uint64_t offset)
{
	ssize_t got = pread_whole(log->fd, to, bytes, offset);

	if (got < 0)
		trouble_end("cannot read '%s': %s; look after the disk, then ask again", log->path, strerror(errno));
	return (size_t)got == bytes;
}

/* A header cut short or with a wrong checksum is loss, and the chunks prove themselves: only what claims to be
 * something else is refused. */
static int check_file_header(struct log *log, const char *path, struct error *err)
{
	struct log_file_header *h = &log->header, copy;
	size_t got = log->bytes < sizeof *h ? (size_t)log->bytes : sizeof *h;

	if (!read_at(log, h, got, 0)) {
		error_set(err, "%s: cannot read: %s", path, strerror(errno));
		return -1;
	}
	if (memcmp(h->magic, LOG_FILE_MAGIC, got < sizeof h->magic ? got : sizeof h->magic) != 0) {
		error_set(err, "%s: not a slotprobe log (foreign magic); move it out of the run", path);
		return -1;
	}
	if (got < sizeof *h) {
		log->damage.torn_bytes = log->damage.bytes_skipped = got;
		log->damage.bad_header = true;
		log->offset = log->bytes;
		return 0;
	}
	if (h->version != LOG_VERSION) {
		error_set(err, "%s: log version %u, this slotprobe reads %u; use the one that recorded it", path,
			  h->version, LOG_VERSION);
		return -1;
	}
	copy = *h;
	copy.crc = 0;
	log->offset = sizeof *h;
	log->damage.bad_header = log_crc32c(0, &copy, sizeof copy) != h->crc || h->header_bytes != sizeof *h ||
				 h->byte_order != LOG_BYTE_ORDER || h->reserved[0] || h->reserved[1] ||
				 h->reserved[2] || h->reserved[3];
	return 0;
}

int log_open(struct log *log, const char *path, struct error *err)
{
	struct stat st;

	memset(log, 0, sizeof *log);
	log->path = path;
	log->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (log->fd < 0) {
		error_set(err, "%s: cannot open: %s", path, strerror(errno));
		return -1;
	}
	if (fstat(log->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		error_set(err, "%s: not a regular file; move it out of the run", path);
		goto fail;
	}
	log->bytes = (uint64_t)st.st_size;
	if (check_file_header(log, path, err) != 0)
		goto fail;
	log->raw = malloc(LOG_CHUNK_RAW_MAX);
	log->stored = malloc(STORED_MAX);
	if (!log->raw || !log->stored) {
		error_set(err, "%s: out of memory", path);
		goto fail;
	}
	return 0;
fail:
	log_close(log);
	return -1;
}

void log_expect(struct log *log, uint64_t pid, uint64_t starttime)
{
	log->damage.other_process =
		!log->damage.bad_header && (log->header.pid != pid || log->header.starttime != starttime);
}

void log_close(struct log *log)
{
	if (log->fd >= 0)
		close(log->fd);
	free(log->raw);
	free(log->stored);
	log->fd = -1;
	log->raw = log->stored = NULL;
	log->left = 0;
}

/* ---- chunks ---- */

static bool chunk_header_is_sound(const struct log_chunk_header *h)
{
	struct log_chunk_header copy = *h;

	copy.header_crc = 0;
	if (h->magic != LOG_CHUNK_MAGIC || h->reserved || log_crc32c(0, &copy, sizeof copy) != h->header_crc)
		return false;
	/* A sound checksum over senseless sizes is a forger's: refuse it here, where the sizes are about to be used. */
	if (!h->raw_bytes || h->raw_bytes > LOG_CHUNK_RAW_MAX || h->stored_bytes > STORED_MAX)
		return false;
	if (h->codec == LOG_CODEC_STORED)
		return h->stored_bytes == h->raw_bytes;
	return h->codec == LOG_CODEC_LZ4;
}

/* A hole holds no chunk, and may be larger than anybody can read: the next offset that has data. */
static uint64_t skip_hole(const struct log *log, uint64_t from)
{
	off_t data = lseek(log->fd, (off_t)from, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? log->bytes : from;
	return (uint64_t)data;
}

/* Offset of the next place at or after `from` where a sound chunk header lies; log->bytes when there is none. */
static uint64_t find_chunk(struct log *log, uint64_t from)
{
	static const unsigned char magic[4] = { 'C', 'H', 'N', 'K' };
	struct log_chunk_header h;

	while ((from = skip_hole(log, from)) + sizeof h <= log->bytes) {
		uint64_t room = log->bytes - from;
		size_t want = room < SCAN_BYTES ? (size_t)room : SCAN_BYTES;
		unsigned char *hit = log->stored, *end = log->stored + want;

		if (!read_at(log, log->stored, want, from))
			return log->bytes;
		while ((hit = memmem(hit, (size_t)(end - hit), magic, sizeof magic))) {
			uint64_t at = from + (uint64_t)(hit - log->stored);
			if (at + sizeof h <= log->bytes && read_at(log, &h, sizeof h, at) && chunk_header_is_sound(&h))
				return at;
			hit++;
		}
		if (want < SCAN_BYTES)
			break;
		from += want - (sizeof magic - 1);
	}
	return log->bytes;
}

static bool decode(struct log *log, const struct log_chunk_header *h)
{
	if (!read_at(log, log->stored, h->stored_bytes, log->offset + sizeof *h) ||
	    log_crc32c(0, log->stored, h->stored_bytes) != h->payload_crc)
		return false;
	if (h->codec == LOG_CODEC_STORED) {
		memcpy(log->raw, log->stored, h->raw_bytes);
		return true;
	}
	return LZ4_decompress_safe((const char *)log->stored, (char *)log->raw, (int)h->stored_bytes,
				   (int)h->raw_bytes) == (int)h->raw_bytes;
}

/* The header lied or is gone: whatever lies between here and the next sound header is lost. */
static void resynchronise(struct log *log)
{
	uint64_t next = find_chunk(log, log->offset + 1);

	log->damage.bytes_skipped += next - log->offset;
	if (next == log->bytes)
		log->damage.torn_bytes = next - log->offset;
	else
		log->damage.bad_chunks++;
	log->offset = next;
}

static void note_gap(struct log *log, const struct log_chunk_header *h)
{
	if (h->seq == log->next_seq && h->first_record == log->next_record)
		return;
	log->damage.seq_gaps++;
	if (h->first_record > log->next_record)
		log->damage.records_missing += h->first_record - log->next_record;
}

/* Loads the next readable chunk into raw. */
static APART bool next_chunk(struct log *log)
{
	struct log_chunk_header h;

	while (log->offset < log->bytes) {
		if (log->bytes - log->offset < sizeof h || !read_at(log, &h, sizeof h, log->offset) ||
		    !chunk_header_is_sound(&h)) {
			resynchronise(log);
			continue;
		}
		if (h.stored_bytes > log->bytes - log->offset - sizeof h) {
			resynchronise(log);
			continue;
		}
		if (!decode(log, &h)) {
			/* The header's length is under its checksum, so the next chunk is where it says. */
			log->damage.bad_chunks++;
			log->damage.bytes_skipped += sizeof h + h.stored_bytes;
			log->offset += sizeof h + h.stored_bytes;
			continue;
		}
		note_gap(log, &h);
		log->next_seq = h.seq + 1;
		log->next_record = h.first_record + h.record_count;
		log->chunk_offset = log->offset;
		log->offset += sizeof h + h.stored_bytes;
		log->chunks++;
		log->raw_bytes = h.raw_bytes;
		log->raw_at = 0;
		log->left = h.record_count;
		return true;
	}
	return false;
}

/* The chunk's bytes do not divide into its records: what is left of it is lost. */
static void abandon_chunk(struct log *log)
{
	log->damage.bad_records += log->left ? log->left : 1;
	log->damage.bytes_skipped += log->raw_bytes - log->raw_at;
	log->raw_at = log->raw_bytes;
	log->left = 0;
}

/* The end says how many records there are before it. */
static void see_end(struct log *log, const struct log_end *end)
{
	log->ended = true;
	if (end->records != log->next_record - log->left - 1)
		log->damage.bad_records++;
}

int log_next(struct log *log, const struct log_record **out)
{
	for (;;) {
		const struct log_record *rec;

		if (!log->left) {
			if (log->raw_at < log->raw_bytes)
				abandon_chunk(log);
			if (!next_chunk(log))
				return 0;
			continue;
		}
		rec = (const void *)(log->raw + log->raw_at);
		if (log->raw_bytes - log->raw_at < sizeof *rec || rec->bytes < sizeof *rec ||
		    rec->bytes > LOG_RECORD_MAX || rec->bytes % 8 || rec->bytes > log->raw_bytes - log->raw_at) {
			abandon_chunk(log);
			continue;
		}
		log->raw_at += rec->bytes;
		log->left--;
		log->records++;
		if (!rec->type || rec->type >= LOG_TYPE_COUNT) {
			log->damage.unknown_records++;
			continue;
		}
		if (!record_is_sound(rec)) {
			log->damage.bad_records++;
			continue;
		}
		if (rec->type == LOG_END)
			see_end(log, (const void *)rec);
		*out = rec;
		return 1;
	}
}

bool log_is_damaged(const struct log_damage *d)
{
	return d->bad_header || d->other_process || d->torn_bytes || d->bad_chunks || d->seq_gaps ||
	       d->records_missing || d->unknown_records || d->bad_records || d->bytes_skipped;
}

int log_scan(const char *path, struct log_damage *damage, bool *ended, uint64_t *records, struct error *err)
{
	const struct log_record *rec;
	struct log log;

	if (log_open(&log, path, err) != 0)
		return -1;
	while (log_next(&log, &rec) > 0)
		;
	*damage = log.damage;
	*ended = log.ended;
	if (records)
		*records = log.records + log.damage.records_missing;
	log_close(&log);
	return 0;
}
