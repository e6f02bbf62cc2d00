/* SPDX-License-Identifier: Apache-2.0
 *
 * counters.c: takes a consistent snapshot of a counters page.
 *
 * The page is read with pread, not mapped: whoever truncates the file must not be able to kill the reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "print/print.h"
#include "read/counters.h"
#include "trouble.h"

#define ROW_READS 64 /* a row that never holds still in so many readings is taken as it is */

static const char *const outcome_label[] = {
#define LABEL(id, group, label, meaning) label,
	CTR_OUTCOMES(LABEL)
#undef LABEL
};
static const char *const outcome_meaning[] = {
#define MEANING(id, group, label, meaning) meaning,
	CTR_OUTCOMES(MEANING)
#undef MEANING
};
static const enum ctr_group outcome_group[] = {
#define GROUP(id, group, label, meaning) group,
	CTR_OUTCOMES(GROUP)
#undef GROUP
};

const char *ctr_outcome_label(enum ctr_outcome outcome)
{
	return outcome < CTR_OUTCOME_COUNT ? outcome_label[outcome] : "?";
}

const char *ctr_outcome_meaning(enum ctr_outcome outcome)
{
	return outcome < CTR_OUTCOME_COUNT ? outcome_meaning[outcome] : "?";
}

enum ctr_group ctr_outcome_group(enum ctr_outcome outcome)
{
	return outcome < CTR_OUTCOME_COUNT ? outcome_group[outcome] : CTR_IN_ERRORS;
}

const char *ctr_level_name(uint32_t level)
{
	static const char *const name[] = { "donations", "launches", "nodes" };

	return level < 3 ? name[level] : "?";
}

const struct ctr_values *ctr_find(const struct ctr_snapshot *snapshot, const char *name)
{
	for (uint32_t i = 0; i < snapshot->n_rows; i++)
		if (snapshot->row[i].kind != CTR_FREE && !strcmp(snapshot->row[i].name, name))
			return &snapshot->row[i];
	return NULL;
}

/* ---- reading ---- */

static ssize_t read_some(int fd, void *into, size_t bytes, uint64_t offset)
{
	ssize_t n = pread(fd, into, bytes, (off_t)offset);

	if (n < 0)
		trouble_end("cannot read a counters page: %s; look after the disk, then ask again", strerror(errno));
	return n;
}

static int read_at(int fd, void *into, size_t bytes, uint64_t offset)
{
	return read_some(fd, into, bytes, offset) == (ssize_t)bytes ? 0 : -1;
}

static enum ctr_read open_page(const char *path, int *fd, struct error *error)
{
	struct stat st;

	*fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (*fd < 0 && errno == ENOENT)
		return CTR_READ_ABSENT;
	if (*fd < 0 || fstat(*fd, &st)) {
		error_set(error, "cannot open the counters page '%s': %s", path,
			  errno == ELOOP ? "it is a symbolic link, which slotprobe never writes" : strerror(errno));
		return CTR_READ_REFUSED;
	}
	if (!S_ISREG(st.st_mode)) {
		error_set(error, "'%s' is no regular file: not a counters page", path);
		return CTR_READ_REFUSED;
	}
	if (st.st_size > (off_t)sizeof(struct ctr_page)) {
		error_set(error, "the counters page '%s' has %lld bytes, over the limit of %zu", path,
			  (long long)st.st_size, sizeof(struct ctr_page));
		return CTR_READ_REFUSED;
	}
	return CTR_READ_OK;
}

static bool is_zero(const void *data, size_t n)
{
	const char *p = data;

	while (n && !*p++)
		n--;
	return !n;
}

/* Everything before the rows, checked as far as it never changes. */
static enum ctr_read read_head(int fd, const char *path, struct ctr_page *head, struct error *error)
{
	static const char zeros[sizeof(head->magic)];
	size_t sealed = offsetof(struct ctr_page, comm); /* what follows may change */
	ssize_t n = read_some(fd, head, offsetof(struct ctr_page, row), 0);
	uint32_t crc;
	char last;

	if (n < (ssize_t)sizeof(head->magic) || !memcmp(head->magic, zeros, sizeof(zeros))) {
		error_set(error, "the counters page '%s' was never filled in", path);
		return CTR_READ_ABSENT;
	}
	if (memcmp(head->magic, CTR_FILE_MAGIC, sizeof(head->magic))) {
		error_set(error, "'%s' is not a counters page of slotprobe: foreign magic", path);
		return CTR_READ_REFUSED;
	}
	if (n >= (ssize_t)offsetof(struct ctr_page, page_bytes) &&
	    (head->version != LOG_VERSION || head->byte_order != LOG_BYTE_ORDER)) {
		error_set(
			error,
			"'%s' has format version %u, byte order %#x; this slotprobe reads version %u: use the one that "
			"recorded it",
			path, head->version, head->byte_order, LOG_VERSION);
		return CTR_READ_REFUSED;
	}
	if (n < (ssize_t)offsetof(struct ctr_page, row) || read_at(fd, &last, 1, sizeof(*head) - 1)) {
		error_set(error, "the counters page '%s' is cut off: it must have %zu bytes", path, sizeof(*head));
		return CTR_READ_DAMAGED;
	}
	crc = log_crc32c(0, head, sealed);
	if (crc != head->crc || head->page_bytes != sizeof(struct ctr_page) ||
	    head->row_offset != offsetof(struct ctr_page, row) || head->row_bytes != sizeof(struct ctr_row) ||
	    head->max_rows != CTR_MAX_ROWS || head->n_rows > CTR_MAX_ROWS || head->state > CTR_ENDED ||
	    head->level > LOG_LEVEL_NODES || !is_zero(head->reserved_shim, sizeof(head->reserved_shim)) ||
	    !is_zero(head->reserved_ctl, sizeof(head->reserved_ctl))) {
		error_set(error, "the counters page '%s' has a bad checksum or an impossible value in its head", path);
		return CTR_READ_DAMAGED;
	}
	return CTR_READ_OK;
}

/* Two readings that agree are one moment's values: attempted only grows, and while it and in_flight stand still no attempt
 * began or ended. */
static int read_row(int fd, uint32_t i, struct ctr_row *row)
{
	uint64_t offset = offsetof(struct ctr_page, row) + i * sizeof(*row);
	struct ctr_row before;

	if (read_at(fd, row, sizeof(*row), offset))
		return -1;
	for (int reads = 0; reads < ROW_READS; reads++) {
		before = *row;
		if (read_at(fd, row, sizeof(*row), offset))
			return -1;
		if (!memcmp(&before, row, sizeof(*row)))
			break;
	}
	return 0;
}

/* ---- taking values over ---- */

static void take_text(char *to, const char *from, size_t n)
{
	n = strnlen(from, n);
	memcpy(to, from, n);
	to[n] = 0;
}

/* A thread that stands, or was killed, between "outcome + 1" and "in_flight - 1" is counted in both: it belongs to the
 * outcome. */
static void reconcile(struct ctr_values *values, uint64_t outcomes)
{
	uint64_t sum, surplus;

	if (__builtin_add_overflow(outcomes, values->in_flight, &sum) || sum < values->attempted) {
		values->reconciled = false;
		return;
	}
	surplus = sum - values->attempted;
	values->reconciled = surplus <= values->in_flight;
	if (values->reconciled)
		values->in_flight -= surplus;
}

static int take_row(const struct ctr_row *row, struct ctr_values *values)
{
	uint64_t outcomes = 0;
	bool overflow = false;

	*values = (struct ctr_values) { .reconciled = true };
	take_text(values->name, row->name, sizeof(row->name));
	/* A row is named before it is counted among them. */
	if (row->kind == CTR_FREE || row->kind > CTR_PLAIN || !*row->name || row->reserved)
		return -1;
	/* A plain counter is one word, and perhaps one of a thread's own. */
	if (row->kind == CTR_PLAIN && (row->begun || row->own_begun ||
				       !is_zero(row->outcome + 1, sizeof(row->outcome) - sizeof(row->outcome[0]))))
		return -1;
	values->kind = row->kind;
	for (int o = 0; o < CTR_OUTCOME_ROOM; o++) {
		uint64_t n = row->outcome[o];
		overflow |= !o && __builtin_add_overflow(n, row->own_committed, &n);
		overflow |= __builtin_add_overflow(outcomes, n, &outcomes);
		if (o >= CTR_OUTCOME_COUNT)
			continue;
		values->outcome[o] = n;
		overflow |=
			__builtin_add_overflow(values->group[outcome_group[o]], n, &values->group[outcome_group[o]]);
	}
	if (row->kind == CTR_PLAIN)
		return overflow ? -1 : 0;
	values->attempted = CTR_ATTEMPTED(row->begun) + CTR_ATTEMPTED(row->own_begun);
	values->in_flight = CTR_IN_FLIGHT(row->begun) + CTR_IN_FLIGHT(row->own_begun);
	if (overflow)
		values->reconciled = false;
	else
		reconcile(values, outcomes);
	return 0;
}

static void take_head(const struct ctr_page *head, struct ctr_snapshot *s)
{
	s->pid = head->pid;
	s->starttime = head->starttime;
	s->started_real_ns = head->started_real_ns;
	take_text(s->comm, head->comm, sizeof(head->comm));
	take_text(s->host, head->host, sizeof(head->host));
	take_text(s->driver, head->driver, sizeof(head->driver));
	take_text(s->rank, head->rank, sizeof(head->rank));
	take_text(s->label, head->ctl_label, sizeof(head->ctl_label));
	s->state = head->state;
	s->recording = head->recording != 0;
	s->driver_seen = head->driver_seen != 0;
	s->level = head->level;
	s->heartbeat_ns = head->heartbeat_ns;
	s->bytes_written = head->bytes_written;
	s->chunks_written = head->chunks_written;
	s->records_written = head->records_written;
	s->disk_stop_real_ns = head->disk_stop_real_ns;
	s->flush_done = head->flush_done;
	s->label_done = head->label_done;
	s->ctl_flush = head->ctl_flush;
	s->ctl_label_seq = head->ctl_label_seq;
	s->ctl_recording = head->ctl_recording;
	s->ctl_level = head->ctl_level;
	s->n_rows = head->n_rows;
}

static enum ctr_read read_page(int fd, const char *path, struct ctr_snapshot *snapshot, struct error *error)
{
	struct ctr_page *head = malloc(sizeof(*head));
	enum ctr_read result;
	struct ctr_row row;

	if (!head) {
		error_set(error, "out of memory");
		return CTR_READ_REFUSED;
	}
	result = read_head(fd, path, head, error);
	if (result == CTR_READ_OK)
		take_head(head, snapshot);
	free(head);
	if (result != CTR_READ_OK)
		return result;
	snapshot->reconciled = true;
	for (uint32_t i = 0; i < snapshot->n_rows; i++) {
		if (read_row(fd, i, &row)) {
			error_set(error, "the counters page '%s' is cut off in row %u", path, i);
			return CTR_READ_DAMAGED;
		}
		if (take_row(&row, &snapshot->row[i])) {
			error_set(error, "the counters page '%s' has a row %u that makes no sense", path, i);
			return CTR_READ_DAMAGED;
		}
		snapshot->reconciled &= snapshot->row[i].reconciled;
	}
	return CTR_READ_OK;
}

enum ctr_read ctr_read(const char *path, struct ctr_snapshot *snapshot, struct error *error)
{
	enum ctr_read result;
	int fd;

	memset(snapshot, 0, sizeof(*snapshot));
	result = open_page(path, &fd, error);
	if (result == CTR_READ_OK)
		result = read_page(fd, path, snapshot, error);
	if (fd >= 0)
		close(fd);
	return result;
}
