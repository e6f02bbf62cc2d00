/* SPDX-License-Identifier: Apache-2.0
 *
 * counters.c: the counters page and its rows.
 *
 * The page has one address for the whole life of the process: memory of our own until the recording starts, then the
 * file mapped over it, in the child of a fork memory again. So counting never branches, a row that somebody holds stays
 * a row, and what was counted before the start (entries that were resolved before cuInit, say) is copied into the file.
 * Only an attempt that runs in the microseconds in which record_start maps the page could be lost. None but an adapter's
 * own points (slotprobe_hit) are counted that early; such a hit is missing then, or stays in flight: never one too many.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

union record_area record_area __attribute__((aligned(RECORD_PAGE_ALIGN)));

void ctr_internal_error(void)
{
	ctr_add(ctr_core(CTR_ROW_INTERNAL), 1);
}

int ctr_index(const struct ctr_row *row)
{
	size_t offset = (size_t)((const char *)row - (const char *)record_area.page.row);

	if ((const char *)row < (const char *)record_area.page.row || offset >= sizeof record_area.page.row ||
	    offset % sizeof *row)
		return -1;
	return (int)(offset / sizeof *row);
}

/* The outcome first, then the flight, like ctr_finish: whoever dies between leaves n outcomes too many, which the
 * reader of a dead process takes off the flight. */
void ctr_finish_many(struct ctr_row *row, enum ctr_outcome outcome, uint64_t n)
{
	__atomic_fetch_add(&row->outcome[outcome], n, __ATOMIC_RELEASE);
	__atomic_fetch_sub(&row->begun, n, __ATOMIC_RELEASE);
}

/* ---- names ---- */

#define NAME_BYTES sizeof(((struct ctr_row *)0)->name)

/* One name is decided by one compare-and-swap of a pointer to the whole of it, in this table; copying it into the page
 * is then everybody's work, with everybody writing the same. So a thread that stops in the middle blocks nobody. The
 * table outlives a fork: the child's rows keep their places. */
struct name {
	union {
		char text[NAME_BYTES];
		uint64_t word[NAME_BYTES / 8];
	};
	uint32_t kind;
};

static const struct name core_names[CTR_CORE_ROW_COUNT] = {
#define CORE_NAME(id, name_text, name_kind, meaning) { .text = name_text, .kind = name_kind },
	CTR_CORE_ROWS(CORE_NAME)
#undef CORE_NAME
};

static struct name names[2 * CTR_MAX_ROWS]; /* twice: the loser of a race leaves its copy behind */
static uint32_t names_used;
static const struct name *claimed[CTR_MAX_ROWS];

static const struct name *copy_name(const char *text, uint32_t kind)
{
	uint32_t n = __atomic_fetch_add(&names_used, 1, __ATOMIC_RELAXED);

	if (n >= sizeof names / sizeof names[0]) {
		__atomic_fetch_sub(&names_used, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	record_text_copy(names[n].text, NAME_BYTES, text);
	names[n].kind = kind;
	return &names[n];
}

/* Rows below n_rows are named: a helper that comes late to row `index` finds n_rows past it and changes nothing. */
static void publish(uint32_t index, const struct name *name)
{
	struct ctr_row *row = &record_area.page.row[index];
	uint32_t expected = index;

	if (__atomic_load_n(&record_area.page.n_rows, __ATOMIC_ACQUIRE) > index)
		return;
	for (size_t i = 0; i < NAME_BYTES / 8; i++)
		__atomic_store_n((uint64_t *)(void *)row->name + i, name->word[i], __ATOMIC_RELAXED);
	__atomic_store_n(&row->kind, name->kind, __ATOMIC_RELAXED);
	__atomic_compare_exchange_n(&record_area.page.n_rows, &expected, index + 1, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

static const struct name *claim(uint32_t index, const struct name *wanted)
{
	const struct name *have = NULL;

	if (__atomic_compare_exchange_n(&claimed[index], &have, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		have = wanted;
	publish(index, have);
	return have;
}

static void claim_core_rows(void)
{
	for (uint32_t i = 0; i < CTR_CORE_ROW_COUNT; i++)
		claim(i, &core_names[i]);
}

struct ctr_row *ctr_named(const char *name, enum ctr_kind kind)
{
	const struct name *copy = NULL;

	claim_core_rows();
	for (uint32_t i = 0; i < CTR_MAX_ROWS; i++) {
		const struct name *have = __atomic_load_n(&claimed[i], __ATOMIC_ACQUIRE);
		if (!have && !copy && !(copy = copy_name(name, kind)))
			break;
		have = claim(i, have ? have : copy);
		if (!strncmp(have->text, name, NAME_BYTES - 1))
			return &record_area.page.row[i];
	}
	return NULL;
}

/* In a fresh page: what was named before is there again, in its place. */
static void publish_all(void)
{
	claim_core_rows();
	for (uint32_t i = 0; i < CTR_MAX_ROWS; i++) {
		const struct name *have = __atomic_load_n(&claimed[i], __ATOMIC_ACQUIRE);
		if (!have)
			break;
		publish(i, have);
	}
}

static void name_probes(const char *list)
{
	char name[NAME_BYTES];

	while (list && *list) {
		size_t n = strcspn(list, ",");
		if (n >= sizeof name) {
			ctr_internal_error();
		} else if (n) {
			memcpy(name, list, n);
			name[n] = '\0';
			if (!ctr_named(name, CTR_PROBE))
				ctr_internal_error();
		}
		list += n + (list[n] == ',');
	}
}

/* ---- the file ---- */

static void fill_header(struct ctr_page *page, const struct record_rundir *dir)
{
	const struct record_options *o = record_options();
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	memcpy(page->magic, CTR_FILE_MAGIC, sizeof page->magic);
	page->version = LOG_VERSION;
	page->byte_order = LOG_BYTE_ORDER;
	page->page_bytes = sizeof *page;
	page->row_offset = offsetof(struct ctr_page, row);
	page->row_bytes = sizeof page->row[0];
	page->max_rows = CTR_MAX_ROWS;
	page->pid = dir->pid;
	page->starttime = dir->starttime;
	page->started_real_ns = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
	page->crc = log_crc32c(0, page, offsetof(struct ctr_page, comm));
	record_text_copy(page->comm, sizeof page->comm, dir->comm);
	record_text_copy(page->host, sizeof page->host, dir->host);
	if (!page->rank[0])
		record_text_copy(page->rank, sizeof page->rank, "tp0.pp0.dp0");
	page->state = CTR_STARTING;
	page->recording = page->ctl_recording = o->recording;
	page->level = page->ctl_level = o->level;
	page->heartbeat_ns = record_now_ns();
	if (o->label) {
		record_text_copy(page->ctl_label, sizeof page->ctl_label, o->label);
		page->ctl_label_seq = 2;
	}
}

/* Words that other threads may be counting in: each is copied whole. */
static void copy_page(struct ctr_page *to, const struct ctr_page *from)
{
	for (size_t i = 0; i < sizeof *to / sizeof(uint64_t); i++)
		((uint64_t *)to)[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
}

/* posix_fallocate first: a store to a page that the file system cannot back is a SIGBUS in somebody's server. The file
 * is complete before it takes the place of the memory, and what is counted between the copy and the move is a matter of
 * microseconds. */
int ctr_attach(const struct record_rundir *dir)
{
	struct ctr_page *page;
	int rc;

	do
		rc = posix_fallocate(dir->ctr_fd, 0, sizeof record_area.page);
	while (rc == EINTR);
	if (rc)
		return -rc;
	page = mmap(NULL, sizeof record_area, PROT_READ | PROT_WRITE, MAP_SHARED, dir->ctr_fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	name_probes(record_options()->probes);
	claim_core_rows();
	copy_page(page, &record_area.page);
	fill_header(page, dir);
	if (mremap(page, sizeof record_area, sizeof record_area, MREMAP_MAYMOVE | MREMAP_FIXED, &record_area) ==
	    MAP_FAILED) {
		rc = -errno;
		munmap(page, sizeof record_area);
		return rc;
	}
	publish_all(); /* what was named since it was copied */
	return 0;
}

static void *fresh_memory(void *at, int flags)
{
	return mmap(at, sizeof record_area, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

void ctr_detach(bool keep_counts)
{
	struct ctr_page *copy = fresh_memory(keep_counts ? NULL : &record_area, keep_counts ? 0 : MAP_FIXED);

	if (copy == MAP_FAILED)
		return;
	if (keep_counts) {
		copy_page(copy, &record_area.page);
		if (mremap(copy, sizeof record_area, sizeof record_area, MREMAP_MAYMOVE | MREMAP_FIXED, &record_area) ==
		    MAP_FAILED)
			munmap(copy, sizeof record_area);
	}
	publish_all();
}

/* ---- words about the process ---- */

static void set_text(char *to, size_t bytes, const char *from)
{
	size_t n = strnlen(from, bytes - 1);

	for (size_t i = 0; i < bytes; i++)
		__atomic_store_n(to + i, i < n ? from[i] : '\0', __ATOMIC_RELAXED);
}

void record_set_rank(const char *rank)
{
	set_text(record_area.page.rank, sizeof record_area.page.rank, rank);
}

void record_set_driver(const char *driver)
{
	set_text(record_area.page.driver, sizeof record_area.page.driver, driver);
	__atomic_store_n(&record_area.page.driver_seen, 1, __ATOMIC_RELEASE);
}
