/* SPDX-License-Identifier: Apache-2.0
 *
 * test_files.c: environment, run directory, manifest, and descriptors that others close.
 */
#include "harness.h"
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

/* ---- options ---- */

static void scenario_options(void)
{
	const struct record_options *o = record_options();

	CHECK(o->arm && !strcmp(o->arm, "graph-on"));
	CHECK(o->label && !strcmp(o->label, "L"));
	CHECK(o->probes && !strcmp(o->probes, "a.b,c.d"));
	CHECK(o->min_free == 3ull << 20 && o->max_size == 5ull << 40);
	CHECK(o->recording == 0 && o->level == 1 && o->debug && o->keep_keys);
	CHECK(o->n_watch == 3 && o->watch[0] == 7 && o->watch[1] == -1 && o->watch[2] == 900);
	setenv("SLOTPROBE_ARM", "changed", 1);
	CHECK(!strcmp(record_options()->arm, "graph-on"));
	CHECK(ctr_core(CTR_ROW_INTERNAL)->outcome[0] == 0);
}

static void test_options(void **state)
{
	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("options", "SLOTPROBE_ARM=graph-on", "SLOTPROBE_LABEL=L",
					"SLOTPROBE_PROBES=a.b,c.d", "SLOTPROBE_MIN_FREE=3M", "SLOTPROBE_MAX_SIZE=5t",
					"SLOTPROBE_RECORDING=0", "SLOTPROBE_LEVEL=1", "SLOTPROBE_DEBUG=1",
					"SLOTPROBE_KEEP_KEYS=1", "SLOTPROBE_WATCH=7,-1,900", NULL)),
			 0);
}

static void scenario_defaults(void)
{
	const struct record_options *o = record_options();

	CHECK(o->dir && !o->arm && !o->label && !o->probes);
	CHECK(o->min_free == 2ull << 30 && o->max_size == 8ull << 30);
	CHECK(o->recording == 1 && o->level == 0 && !o->debug && !o->keep_keys && !o->n_watch);
	CHECK(ctr_core(CTR_ROW_INTERNAL)->outcome[0] == strtoull(getenv("TEST_ERRORS"), NULL, 10));
}

static void test_bad_options(void **state)
{
	static const char *const bad[] = { "SLOTPROBE_MIN_FREE=2X",
					   "SLOTPROBE_MIN_FREE=G",
					   "SLOTPROBE_MIN_FREE=-1",
					   "SLOTPROBE_MAX_SIZE=99999999999999999999",
					   "SLOTPROBE_MAX_SIZE=18446744073709551615K",
					   "SLOTPROBE_MAX_SIZE=1GB",
					   "SLOTPROBE_LEVEL=nodes",
					   "SLOTPROBE_RECORDING=yes",
					   "SLOTPROBE_DEBUG=2",
					   "SLOTPROBE_WATCH=x" };

	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("defaults", "TEST_ERRORS=0", NULL)), 0);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(wait_for(spawn("defaults", "TEST_ERRORS=1", bad[i], NULL)), 0);
}

/* ---- directory and files ---- */

static void scenario_start(void)
{
	const char *expected = getenv("TEST_RC");
	int rc;

	errno = 1234;
	rc = record_start();
	CHECK(errno == 1234);
	CHECK(rc == (expected ? atoi(expected) : 0));
	CHECK(record_active() == !rc);
	if (!rc)
		CHECK(put_donation(1));
}

static unsigned mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void test_modes(void **state)
{
	(void)state;
	fresh_run();
	umask(0);
	assert_int_equal(wait_for(spawn("start", NULL)), 0);
	umask(022);
	assert_int_equal(mode_of(run_dir), 0700);
	assert_int_equal(mode_of(run_file(".log", 0)), 0600);
	assert_int_equal(mode_of(run_file(".ctr", 0)), 0600);
	assert_int_equal(mode_of(run_file("run.json", 0)), 0600);
	assert_int_equal(run_files(""), 5); /* and . and .. */
}

static void test_refused(void **state)
{
	char path[400], setting[32];

	(void)state;
	fresh_run(); /* a link to a directory */
	snprintf(path, sizeof path, "%s-real", run_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(symlink(path, run_dir), 0);
	snprintf(setting, sizeof setting, "TEST_RC=%d", -ENOTDIR);
	assert_int_equal(wait_for(spawn("start", setting, NULL)), 0);
	assert_int_equal(run_files(""), 2);

	fresh_run(); /* a file */
	fclose(fopen(run_dir, "w"));
	assert_int_equal(wait_for(spawn("start", setting, NULL)), 0);

	fresh_run(); /* parents are not created */
	strcat(run_dir, "/below");
	snprintf(setting, sizeof setting, "TEST_RC=%d", -ENOENT);
	assert_int_equal(wait_for(spawn("start", setting, NULL)), 0);

	if (geteuid())
		return;
	fresh_run(); /* somebody else's */
	assert_int_equal(mkdir(run_dir, 0777), 0);
	assert_int_equal(chown(run_dir, 12345, 12345), 0);
	snprintf(setting, sizeof setting, "TEST_RC=%d", -EPERM);
	assert_int_equal(wait_for(spawn("start", setting, NULL)), 0);
	assert_int_equal(run_files(""), 2);
}

static void scenario_inert(void)
{
	CHECK(!record_options()->dir);
	CHECK(record_start() == -ENOSYS);
	CHECK(!record_active() && !record_recording() && !put_donation(1) && !record_callsite());
	ctr_begin(ctr_core(CTR_ROW_DONATE));
	CHECK(access("run", F_OK));
}

static void test_inert(void **state)
{
	(void)state;
	fresh_run();
	assert_int_equal(wait_for(spawn("inert", "SLOTPROBE_DIR=", NULL)), 0);
	assert_int_equal(run_files(""), 0);
}

/* exec keeps pid and start time; the second life gets files of its own */
static void scenario_exec(void)
{
	char *args[] = { (char *)"/proc/self/exe", (char *)"--scenario", (char *)"start", test_dir, NULL };

	CHECK(record_start() == 0);
	CHECK(put_donation(1));
	record_wake(true);
	usleep(100000);
	execv(args[0], args);
	CHECK(false);
}

static void test_exec(void **state)
{
	(void)state;
	if (EMULATED)
		skip();
	fresh_run();
	assert_int_equal(wait_for(spawn("exec", NULL)), 0);
	assert_int_equal(run_files(".log"), 2);
	for (unsigned i = 0; i < 2; i++) {
		struct log *log = log_read(run_file(".log", i));
		struct ctr_page *page = page_read(run_file(".ctr", i));
		assert_reconciled(log, page, false);
		assert_int_equal(log_count(log, LOG_EVENT), 1);
		log_free(log);
		free(page);
	}
}

/* ---- a server that closes what it does not know, and gets our number for a file of its own ---- */

static void scenario_closed(void)
{
	const char *own = "the server's own file";
	char path[300], text[64] = "";
	int fd, found = 0;

	for (int i = 3; i < 2000; i++)
		close(i); /* whatever the test was started with */
	CHECK(record_start() == 0);
	CHECK(put_donation(1));
	record_wake(true);
	usleep(200000);
	snprintf(path, sizeof path, "%s/own", test_dir);
	for (int i = 3; i < 2000; i++)
		if (fcntl(i, F_GETFD) >= 0) {
			CHECK(i > 100); /* low numbers are the server's */
			close(i);
			fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
			CHECK(fd >= 0 && write(fd, own, strlen(own)) == (ssize_t)strlen(own));
			CHECK(dup2(fd, i) == i);
			close(fd);
			found++;
		}
	CHECK(found == 1);
	for (uint64_t i = 2; i <= 100; i++)
		CHECK(put_donation(i));
	record_wake(true);
	usleep(200000);
	fd = open(path, O_RDONLY);
	CHECK(read(fd, text, sizeof text - 1) == (ssize_t)strlen(own) && !strcmp(text, own));
}

static void test_closed(void **state)
{
	struct ctr_page *page;
	struct log *log;

	(void)state;
	if (SANITIZED)
		skip(); /* the sanitizer has descriptors of its own */
	fresh_run();
	assert_int_equal(wait_for(spawn("closed", NULL)), 0);
	log = log_read(run_file(".log", 0));
	page = page_read(run_file(".ctr", 0));
	assert_reconciled(log, page, true);
	assert_int_equal(log_count(log, LOG_EVENT), 100);
	log_free(log);
	free(page);
}

/* ---- run.json ---- */

static json_t *manifest(void)
{
	json_error_t error;
	json_t *json = json_load_file(run_file("run.json", 0), JSON_REJECT_DUPLICATES, &error);

	if (!json)
		print_error("%s line %d\n", error.text, error.line);
	assert_non_null(json);
	return json;
}

static const char *member(json_t *json, const char *name)
{
	const char *value = json_string_value(json_object_get(json, name));

	assert_non_null(value);
	return value;
}

static void test_manifest(void **state)
{
	struct ctr_page *page;
	char cwd[400];
	json_t *json, *env;

	(void)state;
	fresh_run();
	assert_int_equal(
		wait_for(spawn("start", "SLOTPROBE_ARM=A\"\\\n\x01\xff\xc3\xa9\xed\xa0\x80", "TORCH_API_KEY=abc",
			       "JAX_X=y", "TORCH_ARGS=--hf-token=abc", "OTHER=no", "CUDA_VISIBLE_DEVICES=0,1", NULL)),
		0);
	json = manifest();
	assert_int_equal(json_integer_value(json_object_get(json, "schema_version")), 1);
	assert_string_equal(member(json, "tool_version"), SLOTPROBE_VERSION);
	assert_string_equal(member(json, "arm"), "A\"\\\n\x01\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(member(json, "cwd"), getcwd(cwd, sizeof cwd));
	assert_int_equal(strlen(member(json, "started")), 20);
	assert_true(json_is_null(json_object_get(json, "ended")) && json_is_null(json_object_get(json, "exit")));
	assert_int_equal(json_array_size(json_object_get(json, "adapters")), 0);
	assert_int_equal(json_object_size(json_object_get(json, "options")), 0);
	assert_int_equal(json_array_size(json_object_get(json, "argv")), 4);
	assert_string_equal(json_string_value(json_array_get(json_object_get(json, "argv"), 2)), "start");
	env = json_object_get(json, "env");
	assert_string_equal(member(env, "TORCH_API_KEY"), "[redacted]");
	assert_string_equal(member(env, "TORCH_ARGS"), "--hf-token=[redacted]");
	assert_string_equal(member(env, "JAX_X"), "y");
	assert_string_equal(member(env, "CUDA_VISIBLE_DEVICES"), "0,1");
	assert_null(json_object_get(env, "OTHER"));
	page = page_read(run_file(".ctr", 0));
	assert_string_equal(page->host, member(json, "host"));
	free(page);
	json_decref(json);
}

static void test_manifest_stays(void **state)
{
	char path[400], text[16] = "";
	FILE *f;

	(void)state;
	fresh_run();
	assert_int_equal(mkdir(run_dir, 0700), 0);
	snprintf(path, sizeof path, "%s/run.json", run_dir);
	f = fopen(path, "w");
	fputs("mine", f);
	fclose(f);
	assert_int_equal(wait_for(spawn("start", NULL)), 0);
	f = fopen(path, "r");
	assert_non_null(fgets(text, sizeof text, f));
	fclose(f);
	assert_string_equal(text, "mine");
}

/* argv as a server would have it: this binary ignores what follows the scenario */
static void scenario_argv(void)
{
	char *args[] = { (char *)"server",
			 (char *)"--scenario",
			 (char *)"start",
			 test_dir,
			 (char *)"--api-key",
			 (char *)"s1",
			 (char *)"--api-key=s2",
			 (char *)"HF_TOKEN=s3",
			 (char *)"--env=DB_password=s4",
			 (char *)"--model",
			 (char *)"m",
			 (char *)"--skip-tokenizer-init",
			 (char *)"--port",
			 (char *)"1",
			 (char *)"--x=tokens",
			 (char *)"--my-secret",
			 (char *)"-s5",
			 (char *)"",
			 NULL };

	execv("/proc/self/exe", args);
	CHECK(false);
}

static void test_argv(void **state)
{
	static const char *const expected[] = { "--api-key",
						"[redacted]",
						"--api-key=[redacted]",
						"HF_TOKEN=[redacted]",
						"--env=DB_password=[redacted]",
						"--model",
						"m",
						"--skip-tokenizer-init",
						"--port",
						"1",
						"--x=tokens",
						"--my-secret",
						"[redacted]",
						"" };
	json_t *json, *argv;

	(void)state;
	if (EMULATED)
		skip();
	fresh_run();
	assert_int_equal(wait_for(spawn("argv", NULL)), 0);
	json = manifest();
	argv = json_object_get(json, "argv");
	assert_int_equal(json_array_size(argv), 4 + sizeof expected / sizeof expected[0]);
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
		assert_string_equal(json_string_value(json_array_get(argv, 4 + i)), expected[i]);
	json_decref(json);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = { { "options", scenario_options }, { "defaults", scenario_defaults },
						     { "start", scenario_start },     { "inert", scenario_inert },
						     { "exec", scenario_exec },       { "closed", scenario_closed },
						     { "argv", scenario_argv },       { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),        cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_modes),          cmocka_unit_test(test_refused),
		cmocka_unit_test(test_inert),          cmocka_unit_test(test_exec),
		cmocka_unit_test(test_closed),         cmocka_unit_test(test_manifest),
		cmocka_unit_test(test_manifest_stays), cmocka_unit_test(test_argv),
	};

	return harness_main(argc, argv, scenarios, tests, sizeof tests / sizeof tests[0]);
}
