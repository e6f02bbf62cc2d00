/* SPDX-License-Identifier: Apache-2.0
 *
 * test_counters.c: snapshots of a page that others write while it is read, and pages full of noise.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "read/counters.h"

static char path[64];
static struct ctr_page *page;

static void seal(void)
{
	page->crc = log_crc32c(0, page, offsetof(struct ctr_page, comm));
}

static int make_page(void **state)
{
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/slotprobe-counters.XXXXXX");
	fd = mkstemp(path);
	assert_int_equal(ftruncate(fd, sizeof(*page)), 0);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	close(fd);
	memcpy(page->magic, CTR_FILE_MAGIC, sizeof(page->magic));
	page->version = LOG_VERSION;
	page->byte_order = LOG_BYTE_ORDER;
	page->page_bytes = sizeof(*page);
	page->row_offset = offsetof(struct ctr_page, row);
	page->row_bytes = sizeof(struct ctr_row);
	page->max_rows = CTR_MAX_ROWS;
	page->state = CTR_RUNNING;
	page->n_rows = 1;
	strcpy(page->row[0].name, "core.donate");
	page->row[0].kind = CTR_PROBE;
	seal();
	return 0;
}

static int drop_page(void **state)
{
	(void)state;
	munmap(page, sizeof(*page));
	unlink(path);
	return 0;
}

/* ---- a live page ---- */

static bool stop;

/* As the preload counts: see shim/record/record.h. */
static void *count(void *argument)
{
	struct ctr_row *row = &page->row[0];
	unsigned turn = (unsigned)(uintptr_t)argument;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&row->begun, CTR_BEGIN_ONE, __ATOMIC_RELAXED);
		__atomic_fetch_add(&row->outcome[turn++ % CTR_OUTCOME_COUNT], 1, __ATOMIC_RELEASE);
		__atomic_fetch_sub(&row->begun, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void live_snapshots_reconcile(void **state)
{
	struct ctr_snapshot *s = malloc(sizeof(*s));
	pthread_t thread[3];
	uint64_t last = 0, still = 0;
	struct error error;

	(void)state;
	for (size_t i = 0; i < N(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count, (void *)i), 0);
	for (int turn = 0; turn < 3000; turn++) {
		uint64_t sum = 0;

		assert_int_equal(ctr_read(path, s, &error), CTR_READ_OK);
		/* A row that did not hold still in 64 readings is taken as it is, and says so. */
		if (!s->reconciled)
			continue;
		still++;
		for (int o = 0; o < CTR_OUTCOME_COUNT; o++)
			sum += s->row[0].outcome[o];
		assert_true(s->row[0].attempted == sum + s->row[0].in_flight);
		assert_true(s->row[0].in_flight <= N(thread));
		assert_true(s->row[0].attempted >= last);
		last = s->row[0].attempted;
	}
	assert_true(still > 1500);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (size_t i = 0; i < N(thread); i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(ctr_read(path, s, &error), CTR_READ_OK);
	assert_true(s->reconciled && s->row[0].in_flight == 0 && s->row[0].attempted > 0);
	free(s);
}

static void finds_rows_by_name(void **state)
{
	struct ctr_snapshot *s = calloc(1, sizeof(*s));
	struct error error;

	(void)state;
	assert_int_equal(ctr_read(path, s, &error), CTR_READ_OK);
	assert_ptr_equal(ctr_find(s, "core.donate"), &s->row[0]);
	assert_null(ctr_find(s, "core.don"));
	free(s);
}

/* ---- what a page must not hold ---- */

static void each_bad_field_is_found(void **state)
{
	struct ctr_snapshot *s = malloc(sizeof(*s));
	uint32_t *const field[] = { &page->page_bytes, &page->row_offset,  &page->row_bytes,
				    &page->max_rows,   &page->n_rows,      &page->state,
				    &page->level,      &page->row[0].kind, &page->row[0].reserved };
	struct error error;

	(void)state;
	for (size_t i = 0; i < N(field); i++) {
		uint32_t good = *field[i];

		*field[i] = CTR_MAX_ROWS + 1;
		seal();
		assert_int_equal(ctr_read(path, s, &error), CTR_READ_DAMAGED);
		*field[i] = good;
		seal();
		assert_int_equal(ctr_read(path, s, &error), CTR_READ_OK);
	}
	/* 64-bit words that must be 0, of a row that counts one word among them */
	page->row[0].kind = CTR_PLAIN;
	for (size_t i = 0; i < 5; i++) {
		uint64_t *const zero[] = { &page->reserved_shim[3], &page->reserved_ctl[0], &page->row[0].begun,
					   &page->row[0].own_begun, &page->row[0].outcome[CTR_OUTCOME_ROOM - 1] };

		page->row[0].begun = 0;
		memset(page->row[0].outcome, 0, sizeof(page->row[0].outcome));
		assert_int_equal(ctr_read(path, s, &error), CTR_READ_OK);
		*zero[i] = 1;
		assert_int_equal(ctr_read(path, s, &error), CTR_READ_DAMAGED);
		*zero[i] = 0;
	}
	page->row[0].kind = CTR_PROBE;
	page->pid++; /* under the checksum */
	assert_int_equal(ctr_read(path, s, &error), CTR_READ_DAMAGED);
	seal();
	page->comm[0]++; /* an exec changes it */
	assert_int_equal(ctr_read(path, s, &error), CTR_READ_OK);
	free(s);
}

/* ---- what one thread counts in words of its own ---- */

static void set_own(uint64_t begun, uint64_t first, uint64_t own_begun, uint64_t own_committed)
{
	page->row[0].begun = begun;
	memset(page->row[0].outcome, 0, sizeof(page->row[0].outcome));
	page->row[0].outcome[0] = first;
	page->row[0].own_begun = own_begun;
	page->row[0].own_committed = own_committed;
}

static void a_thread_s_own_words_add(void **state)
{
	struct ctr_snapshot *s = malloc(sizeof(*s));
	const struct ctr_values *v = &s->row[0];
	struct error error;

	(void)state;
	set_own(5ull << CTR_FLIGHT_BITS | 2, 3, 7ull << CTR_FLIGHT_BITS | 1, 6);
	page->row[0].kind = CTR_PROBE;
	assert_int_equal(ctr_read(path, s, &error), CTR_READ_OK);
	assert_true(s->reconciled && v->attempted == 12 && v->outcome[0] == 9 && v->in_flight == 3);
	/* killed between the outcome and the flight */
	set_own(0, 0, 7ull << CTR_FLIGHT_BITS | 1, 7);
	assert_int_equal(ctr_read(path, s, &error), CTR_READ_OK);
	assert_true(s->reconciled && v->attempted == 7 && v->outcome[0] == 7 && v->in_flight == 0);
	/* more than was begun, and more than a word holds */
	set_own(0, 0, 7ull << CTR_FLIGHT_BITS, 8);
	assert_int_equal(ctr_read(path, s, &error), CTR_READ_OK);
	assert_false(s->reconciled);
	set_own(0, UINT64_MAX, 7ull << CTR_FLIGHT_BITS, 8);
	assert_int_equal(ctr_read(path, s, &error), CTR_READ_OK);
	assert_false(s->reconciled);
	page->row[0].kind = CTR_PLAIN;
	set_own(0, 3, 0, 4);
	assert_int_equal(ctr_read(path, s, &error), CTR_READ_OK);
	assert_true(v->outcome[0] == 7);
	set_own(0, UINT64_MAX, 0, 1);
	assert_int_equal(ctr_read(path, s, &error), CTR_READ_DAMAGED);
	set_own(0, 0, 0, 0);
	page->row[0].kind = CTR_PROBE;
	free(s);
}

/* ---- noise ---- */

static void noise_never_crashes(void **state)
{
	struct ctr_snapshot *s = malloc(sizeof(*s));
	size_t seen[CTR_READ_REFUSED + 1] = { 0 };
	uint64_t random = 1;
	struct error error;

	(void)state;
	for (int turn = 0; turn < 4000; turn++) {
		unsigned char *bytes = (unsigned char *)page;

		for (int i = 0; i < 40; i++) {
			random = log_mix64(random + 0x9e3779b97f4a7c15ull);
			bytes[16 + (random >> 20) % (sizeof(*page) - 16)] = (unsigned char)random;
			bytes[16 + (random >> 40) % 500] = (unsigned char)(random >> 8);
		}
		if (turn % 2) { /* past the checks of the head, so that the rows are read too */
			page->page_bytes = sizeof(*page);
			page->row_offset = offsetof(struct ctr_page, row);
			page->row_bytes = sizeof(struct ctr_row);
			page->max_rows = CTR_MAX_ROWS;
			page->state %= CTR_ENDED + 1;
			page->level %= LOG_LEVEL_NODES + 1;
			page->n_rows %= CTR_MAX_ROWS + 1;
			for (unsigned r = 0; r < CTR_MAX_ROWS; r++) {
				page->row[r].kind = CTR_PROBE;
				page->row[r].reserved = 0;
				page->row[r].name[0] |= 1;
			}
			memset(page->reserved_shim, 0, sizeof(page->reserved_shim));
			memset(page->reserved_ctl, 0, sizeof(page->reserved_ctl));
			seal();
		}
		seen[ctr_read(path, s, &error)]++;
	}
	assert_true(seen[CTR_READ_OK] > 1000 && seen[CTR_READ_DAMAGED] > 1000);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(live_snapshots_reconcile, make_page, drop_page),
		cmocka_unit_test_setup_teardown(finds_rows_by_name, make_page, drop_page),
		cmocka_unit_test_setup_teardown(each_bad_field_is_found, make_page, drop_page),
		cmocka_unit_test_setup_teardown(a_thread_s_own_words_add, make_page, drop_page),
		cmocka_unit_test_setup_teardown(noise_never_crashes, make_page, drop_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
