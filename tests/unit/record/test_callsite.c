/* SPDX-License-Identifier: Apache-2.0
 *
 * test_callsite.c: stacks are told apart, interned once, and named, with the recorder's own frames left out.
 */
#include "harness.h"
#include "reader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

typedef uint32_t call_fn(uint32_t (*take)(void));
typedef uint32_t chain_fn(uint32_t (*take)(void), unsigned bits, unsigned n);

static void *load_call(const char *name)
{
	char path[600];
	ssize_t n = readlink("/proc/self/exe", path, 400);
	void *library;

	CHECK(n > 0);
	path[n] = '\0';
	strcpy(strrchr(path, '/'), "/record-caller.so");
	library = dlopen(path, RTLD_NOW);
	CHECK(library);
	return dlsym(library, name);
}

static call_fn *first, *second;
static uint32_t id_first;

static uint32_t done;

/* What libunwind does at a thread's end is too late for the thread sanitizer: there the threads stay. */
static void *call_often(void *unused)
{
	for (int i = 0; i < 1000; i++)
		CHECK(first(record_callsite));
	__atomic_fetch_add(&done, 1, __ATOMIC_RELEASE);
#ifdef __SANITIZE_THREAD__
	for (;;)
		pause();
#endif
	return unused;
}

/* Exits 3 where there is no libunwind. */
static void wait_for_unwind(void)
{
	for (int i = 0; i < 1000; i++) {
		if (first(record_callsite))
			return;
		usleep(1000);
	}
	_exit(3);
}

static void scenario_calls(void)
{
	pthread_t thread[4];
	uint32_t id_second = 0;

	first = (call_fn *)(uintptr_t)load_call("caller_first");
	second = (call_fn *)(uintptr_t)load_call("caller_second");
	CHECK(first && second);
	CHECK(!first(record_callsite)); /* not started */
	CHECK(record_start() == 0);
	wait_for_unwind();
	for (int i = 0; i < 3; i++) {
		uint32_t id = first(record_callsite);
		CHECK(id && (!i || id == id_first));
		id_first = id;
	}
	for (int i = 0; i < 3; i++) {
		uint32_t id = second(record_callsite);
		CHECK(id && id != id_first && (!i || id == id_second));
		id_second = id;
	}
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, call_often, NULL));
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < 4)
		usleep(1000);
	journal[0].started = id_first;
	journal[0].taken = id_second;
}

static const struct log_callsite *find(const struct log *log, uint64_t id)
{
	const struct log_callsite *found = NULL;

	for (uint64_t i = 0; i < log->n_records; i++) {
		const struct log_callsite *c = (const void *)log->record[i];
		if (c->h.type == LOG_CALLSITE && c->callsite == id) {
			assert_null(found); /* once */
			found = c;
		}
	}
	assert_non_null(found);
	return found;
}

static void assert_symbols(const struct log_callsite *c, const char *const *names)
{
	const char *text = (const char *)&c->frame[c->n_frames];

	assert_int_equal(c->h.bytes, (sizeof *c + c->n_frames * sizeof c->frame[0] + c->text_bytes + 7) & ~7u);
	for (unsigned i = 0; names[i]; i++) {
		assert_true(i < c->n_frames && c->frame[i].module);
		assert_int_equal(c->frame[i].symbol, strlen(names[i]));
		assert_memory_equal(text, names[i], strlen(names[i]));
		text += c->frame[i].symbol;
	}
}

static const struct log_module *module(const struct log *log, uint32_t id)
{
	for (uint64_t i = 0; i < log->n_records; i++) {
		const struct log_module *m = (const void *)log->record[i];
		if (m->h.type == LOG_MODULE && m->module == id)
			return m;
	}
	return NULL;
}

static void test_calls(void **state)
{
	static const char *const one[] = { "caller_inner", "caller_first", NULL };
	static const char *const two[] = { "caller_inner", "caller_second", NULL };
	const struct log_callsite *c;
	const struct log_module *m;
	struct log *log;
	int status;

	(void)state;
	fresh_run();
	status = wait_for(spawn("calls", NULL));
	if (status == 3 && !dlopen("libunwind.so.8", RTLD_NOW))
		skip();
	assert_int_equal(status, 0);
	log = log_read(run_file(".log", 0));
	c = find(log, journal[0].started);
	assert_symbols(c, one);
	assert_symbols(find(log, journal[0].taken), two);
	m = module(log, c->frame[0].module);
	assert_non_null(m);
	assert_true(m->bytes_path > 17 && !memcmp(m->path + m->bytes_path - 17, "/record-caller.so", 17));
	assert_int_equal(c->frame[0].module, c->frame[1].module);
	assert_true(c->frame[0].offset < 1 << 20);
	log_free(log);
}

/* ---- more stacks than there is room for ---- */

#define CHAIN 13u

static uint32_t ids[2u << CHAIN];

static void scenario_many(void)
{
	chain_fn *chain = (chain_fn *)(uintptr_t)load_call("caller_odd");
	uint64_t lost = 0;

	first = (call_fn *)(uintptr_t)load_call("caller_first");
	CHECK(record_start() == 0);
	wait_for_unwind();
	/* Everything twice from one instruction: a branch on i here lets the compiler make two loops, and two callers, of it. */
	for (unsigned i = 0; i < 2u << CHAIN; i++)
		ids[i] = chain(record_callsite, i % (1u << CHAIN), CHAIN);
	for (unsigned i = 0; i < 2u << CHAIN; i++) {
		CHECK(ids[i] == ids[i % (1u << CHAIN)]);
		lost += !ids[i];
	}
	CHECK(lost > 8000 && lost < 12000 && lost % 2 == 0);
	CHECK(ctr_core(CTR_ROW_CALLSITES_LOST)->outcome[0] == lost);
	journal[0].refused = lost / 2;
}

static void test_many(void **state)
{
	static unsigned char told[4097];
	struct log *log;
	uint64_t n = 0;
	int status;

	(void)state;
	fresh_run();
	status = wait_for(spawn("many", NULL));
	if (status == 3 && !dlopen("libunwind.so.8", RTLD_NOW))
		skip();
	assert_int_equal(status, 0);
	log = log_read(run_file(".log", 0));
	for (uint64_t i = 0; i < log->n_records; i++) {
		const struct log_callsite *c = (const void *)log->record[i];
		if (c->h.type != LOG_CALLSITE)
			continue;
		assert_in_range(c->callsite, 1, 4096);
		assert_int_equal(told[c->callsite]++, 0);
		n++;
	}
	/* One more: the stack that was tried until libunwind was there. Emulated, the time that a process's end waits for the
	 * writer is too short for so many names. */
	if (!EMULATED)
		assert_int_equal(n, (1u << CHAIN) - journal[0].refused + 1);
	log_free(log);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = { { "calls", scenario_calls },
						     { "many", scenario_many },
						     { NULL, NULL } };
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_calls), cmocka_unit_test(test_many) };

	return harness_main(argc, argv, scenarios, tests, sizeof tests / sizeof tests[0]);
}
