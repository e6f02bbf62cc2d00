/* SPDX-License-Identifier: Apache-2.0
 *
 * test_log.c: what is put comes out: records of many threads, big and small, ordered, compressed, steered.
 */
#include "harness.h"
#include "reader.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define THREADS    8
#define PER_THREAD 20000

/* ---- many threads ---- */

static void *put_many(void *thread)
{
	for (uint64_t i = 1; i <= PER_THREAD; i++)
		while (!put_donation((uint64_t)(uintptr_t)thread << 32 | i))
			usleep(200);
	return NULL;
}

static void scenario_threads(void)
{
	pthread_t thread[THREADS];

	CHECK(record_start() == 0);
	CHECK(record_start() == 0);
	CHECK(record_active() && record_recording());
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, put_many, (void *)i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void test_threads(void **state)
{
	uint64_t next[THREADS] = { 0 }, refused = 0;
	struct ctr_page *page;
	struct log *log;

	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("threads", NULL)), 0);
	assert_int_equal(run_files(".log"), 1);
	log = log_read(run_file(".log", 0));
	page = page_read(run_file(".ctr", 0));
	assert_reconciled(log, page, true);
	for (uint64_t i = 0; i < log->n_records; i++) {
		const struct log_event *e = (const void *)log->record[i];
		assert_int_equal(log->number[i], i);
		if (e->h.type != LOG_EVENT)
			continue;
		assert_in_range(e->id >> 32, 0, THREADS - 1);
		assert_int_equal(e->id & 0xffffffff, ++next[e->id >> 32]);
		assert_int_equal(e->key, log_mix64(e->id));
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(next[i], PER_THREAD);
		refused += journal[i].refused;
	}
	assert_int_equal(page->row[CTR_ROW_DONATE].outcome[CTR_COMMITTED], THREADS * PER_THREAD);
	assert_int_equal(page->row[CTR_ROW_DONATE].outcome[CTR_DROPPED_QUEUE], refused);
	assert_int_equal(page->row[CTR_ROW_INTERNAL].outcome[0], 0);
	assert_true(log->n_lz4 > 10);
	assert_int_equal(log->record[log->n_records - 1]->type, LOG_END);
	assert_int_equal(((const struct log_end *)log->record[log->n_records - 1])->records, log->n_records - 1);
	log_free(log);
	free(page);
}

/* ---- a full queue ---- */

static uint32_t hold, held;

static unsigned poll_held(void)
{
	__atomic_store_n(&held, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&hold, __ATOMIC_ACQUIRE))
		usleep(1000);
	return 0;
}

static void hold_writer(void)
{
	__atomic_store_n(&hold, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&source_poll, poll_held, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static void *release_soon(void *unused)
{
	usleep(50000);
	__atomic_store_n(&hold, 0, __ATOMIC_RELEASE);
	return unused;
}

static void scenario_full(void)
{
	struct log_rank rank = { .index = 7, .count = 8, .axis = "tp" };
	uint64_t id = 1, before;
	pthread_t helper;

	record_fill(&rank, LOG_RANK);
	CHECK(record_start() == 0);
	hold_writer();
	while (put_donation(id))
		id++;
	CHECK(id == 16385);
	CHECK(!put_donation(id));
	before = record_now_ns();
	CHECK(!record_put_meta(&rank)); /* waits for room, in vain */
	CHECK(record_now_ns() - before >= 190000000);
	CHECK(!pthread_create(&helper, NULL, release_soon, NULL));
	CHECK(record_put_meta(&rank)); /* waits for room, and gets it */
	pthread_join(helper, NULL);
	while (!put_donation(id + 1))
		usleep(1000);
}

static void test_full(void **state)
{
	struct ctr_page *page;
	struct log *log;

	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("full", NULL)), 0);
	log = log_read(run_file(".log", 0));
	page = page_read(run_file(".ctr", 0));
	assert_reconciled(log, page, true);
	assert_int_equal(log_count(log, LOG_EVENT), 16385);
	assert_int_equal(journal[0].refused, page->row[CTR_ROW_DONATE].outcome[CTR_DROPPED_QUEUE]);
	assert_true(journal[0].refused >= 2);
	assert_int_equal(page->row[CTR_ROW_META_LOST].outcome[0], 1);
	assert_int_equal(log_count(log, LOG_RANK), 1);
	log_free(log);
	free(page);
}

/* ---- sizes, codecs, what is refused ---- */

#define BIG 4096

static unsigned poll_big(void)
{
	static uint64_t bytes[BIG / 8];
	static unsigned done;
	struct log_fingerprint *f = (void *)bytes;

	if (done++)
		return 0;
	f->h = (struct log_record) { LOG_FINGERPRINT, 0, BIG };
	for (unsigned n = 0; n < 100; n++) {
		for (unsigned i = 1; i < BIG / 8; i++)
			bytes[i] = log_mix64(n * 1000 + i);
		ctr_begin(ctr_core(CTR_ROW_COPY));
		record_append(f, ctr_core(CTR_ROW_COPY));
	}
	f->h.bytes = BIG + 8; /* too long, odd: refused and counted */
	ctr_begin(ctr_core(CTR_ROW_COPY));
	record_append(f, ctr_core(CTR_ROW_COPY));
	f->h.bytes = 41;
	record_append(f, NULL);
	return 0;
}

static void scenario_sizes(void)
{
	struct log_record wrong = { LOG_STEP, 0, RECORD_ITEM_MAX + 8 };

	source_poll = poll_big;
	CHECK(!record_put(&wrong, NULL)); /* not started */
	CHECK(record_start() == 0);
	CHECK(!record_put(&wrong, NULL));
	wrong.bytes = 4;
	CHECK(!record_put(&wrong, NULL));
	CHECK(put_donation(1));
}

static void test_sizes(void **state)
{
	struct ctr_page *page;
	struct log *log;

	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("sizes", NULL)), 0);
	log = log_read(run_file(".log", 0));
	page = page_read(run_file(".ctr", 0));
	assert_reconciled(log, page, true);
	assert_int_equal(log_count(log, LOG_FINGERPRINT), 100);
	assert_true(log->n_stored >= 5); /* noise does not compress */
	for (uint64_t i = 0, n = 0; i < log->n_records; i++)
		if (log->record[i]->type == LOG_FINGERPRINT) {
			const uint64_t *words = (const void *)log->record[i];
			assert_int_equal(words[BIG / 8 - 1], log_mix64(n++ * 1000 + BIG / 8 - 1));
		}
	assert_int_equal(page->row[CTR_ROW_COPY].outcome[CTR_COMMITTED], 100);
	assert_int_equal(page->row[CTR_ROW_COPY].outcome[CTR_DROPPED_WRITE], 1);
	assert_int_equal(page->row[CTR_ROW_INTERNAL].outcome[0], 4);
	log_free(log);
	free(page);
}

/* ---- order: what a thread put is in the log before what the writer appends later ---- */

static uint32_t appended;

static unsigned poll_order(void)
{
	struct log_step step = { .number = 1 };

	if (!__atomic_load_n(&hold, __ATOMIC_ACQUIRE) || __atomic_load_n(&appended, __ATOMIC_RELAXED))
		return 0;
	put_donation(2); /* as if a thread had put it right now, after the writer's drain */
	record_fill(&step, LOG_STEP);
	record_append(&step, NULL);
	__atomic_store_n(&appended, 1, __ATOMIC_RELEASE);
	return 0;
}

static void scenario_order(void)
{
	source_poll = poll_order;
	CHECK(record_start() == 0);
	CHECK(put_donation(1));
	__atomic_store_n(&hold, 1, __ATOMIC_RELEASE);
	record_wake(false);
	while (!__atomic_load_n(&appended, __ATOMIC_ACQUIRE))
		usleep(100);
}

static void test_order(void **state)
{
	uint64_t seen = 0;
	struct log *log;

	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("order", NULL)), 0);
	log = log_read(run_file(".log", 0));
	for (uint64_t i = 0; i < log->n_records; i++)
		if (log->record[i]->type == LOG_EVENT)
			seen++;
		else if (log->record[i]->type == LOG_STEP)
			assert_int_equal(seen, 2);
	log_free(log);
}

/* ---- control words ---- */

#define UNTIL(condition)                                                                                               \
	do                                                                                                             \
		for (int tries_ = 0; !(condition); tries_++) {                                                         \
			CHECK(tries_ < 5000);                                                                          \
			usleep(1000);                                                                                  \
		}                                                                                                      \
	while (0)
#define PEEK(field)        __atomic_load_n(&page->field, __ATOMIC_ACQUIRE)
#define POKE(field, value) __atomic_store_n(&page->field, value, __ATOMIC_RELEASE)

static void label(struct ctr_page *page, const char *text)
{
	POKE(ctl_label_seq, page->ctl_label_seq + 1);
	for (size_t i = 0; i < sizeof page->ctl_label; i++)
		POKE(ctl_label[i], i < strlen(text) ? text[i] : '\0');
	POKE(ctl_label_seq, page->ctl_label_seq + 1);
	UNTIL(PEEK(label_done) == page->ctl_label_seq);
}

static void scenario_control(void)
{
	struct ctr_page *page = record_page();
	uint64_t before;

	CHECK(record_start() == 0);
	CHECK(record_active() && !record_recording() && record_level() == 1);
	UNTIL(PEEK(label_done) == 2);
	POKE(ctl_recording, 1);
	UNTIL(PEEK(recording) == 1);
	CHECK(record_recording());
	POKE(ctl_level, 0);
	UNTIL(PEEK(level) == 0);
	CHECK(record_level() == 0);
	CHECK(put_donation(1));
	before = PEEK(records_written);
	POKE(ctl_flush, 1);
	UNTIL(PEEK(flush_done) == 1);
	CHECK(PEEK(records_written) > before && PEEK(row[CTR_ROW_DONATE].outcome[CTR_COMMITTED]) == 1);
	POKE(ctl_level, 2); /* nodes: not built, refused */
	POKE(ctl_recording, 17);
	POKE(ctl_label_seq, page->ctl_label_seq + 1); /* being written: left alone */
	usleep(50000);
	CHECK(PEEK(level) == 0 && record_level() == 0 && PEEK(recording) == 1 && PEEK(label_done) == 2);
	POKE(ctl_label_seq, page->ctl_label_seq - 1);
	label(page, "second label");
	POKE(ctl_recording, 0);
	UNTIL(PEEK(recording) == 0);
	CHECK(!record_recording());
	CHECK(PEEK(heartbeat_ns) + 2000000000 > record_now_ns());
}

static void test_control(void **state)
{
	static const struct {
		uint32_t what, value;
		const char *label;
	} expected[] = { { LOG_CONTROL_LABEL, 0, "first \"label\"" },
			 { LOG_CONTROL_RECORDING, 1, "" },
			 { LOG_CONTROL_LEVEL, 0, "" },
			 { LOG_CONTROL_LABEL, 0, "second label" },
			 { LOG_CONTROL_RECORDING, 0, "" } };
	struct ctr_page *page;
	struct log *log;
	unsigned n = 0;

	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("control", "SLOTPROBE_RECORDING=0", "SLOTPROBE_LEVEL=launches",
					"SLOTPROBE_LABEL=first \"label\"", NULL)),
			 0);
	log = log_read(run_file(".log", 0));
	page = page_read(run_file(".ctr", 0));
	assert_reconciled(log, page, true);
	for (uint64_t i = 0; i < log->n_records; i++) {
		const struct log_control *c = (const void *)log->record[i];
		if (c->h.type != LOG_CONTROL)
			continue;
		assert_true(n < sizeof expected / sizeof expected[0]);
		assert_int_equal(c->what, expected[n].what);
		assert_int_equal(c->value, expected[n].value);
		assert_string_equal(c->label, expected[n].label);
		n++;
	}
	assert_int_equal(n, sizeof expected / sizeof expected[0]);
	assert_int_equal(page->row[CTR_ROW_INTERNAL].outcome[0], 0);
	log_free(log);
	free(page);
}

/* ---- a chunk does not stay in memory for longer than a second ---- */

static void scenario_second(void)
{
	struct ctr_row *row = ctr_core(CTR_ROW_DONATE);

	CHECK(record_start() == 0);
	CHECK(put_donation(1));
	usleep(300000);
	CHECK(__atomic_load_n(&row->outcome[CTR_COMMITTED], __ATOMIC_ACQUIRE) == 0);
	CHECK(CTR_IN_FLIGHT(__atomic_load_n(&row->begun, __ATOMIC_ACQUIRE)) == 1);
	usleep(1200000);
	CHECK(__atomic_load_n(&row->outcome[CTR_COMMITTED], __ATOMIC_ACQUIRE) == 1);
	CHECK(CTR_IN_FLIGHT(__atomic_load_n(&row->begun, __ATOMIC_ACQUIRE)) == 0);
	CHECK(put_donation(2));
	record_wake(true);
	usleep(200000);
	CHECK(__atomic_load_n(&row->outcome[CTR_COMMITTED], __ATOMIC_ACQUIRE) == 2);
}

static void test_second(void **state)
{
	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("second", NULL)), 0);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = { { "threads", scenario_threads },
						     { "full", scenario_full },
						     { "sizes", scenario_sizes },
						     { "order", scenario_order },
						     { "control", scenario_control },
						     { "second", scenario_second },
						     { NULL, NULL } };
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads), cmocka_unit_test(test_full),
					    cmocka_unit_test(test_sizes),   cmocka_unit_test(test_order),
					    cmocka_unit_test(test_control), cmocka_unit_test(test_second) };

	return harness_main(argc, argv, scenarios, tests, sizeof tests / sizeof tests[0]);
}
