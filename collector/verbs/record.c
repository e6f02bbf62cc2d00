/* SPDX-License-Identifier: Apache-2.0
 *
 * record.c: slotprobe record: runs a command with the preload and its adapters, recording into a new directory.
 *
 * Exit status: the command's own, 128+n when signal n ended it; 125 for a failure of ours, 126 when the command cannot be
 * run, 127 when there is none, as env(1).
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare/arm.h"
#include "compare/coverage.h"
#include "launch/adapter.h"
#include "launch/child.h"
#include "launch/install.h"
#include "launch/launcher.h"
#include "launch/manifest_write.h"
#include "launch/program.h"
#include "options.h"
#include "print/print.h"
#include "read/run.h"
#include "trouble.h"

enum { RECORD_FAILED = 125, RECORD_CANNOT_RUN = 126, RECORD_NOT_FOUND = 127 };

/* What the preload has room for. */
enum { ARM_MAX = 127, LABEL_MAX = 63, PROBES_MAX = 8191, WATCH_MAX = 64 };

struct record {
	struct options o;
	char library[PATH_MAX];
	char audit[PATH_MAX]; /* empty: not asked for */
	struct adapter *adapters;
	size_t n_adapters;
	char *run;     /* absolute */
	int directory; /* open, so that no other one gets its number while the command runs */
	json_t *manifest;
};

static int fail(const char *text)
{
	complain("record", "%s", text);
	return -1;
}

/* ---- what was asked for ---- */

static int check_text(const struct options *o, const char *name, size_t most)
{
	const char *text = options_text(o, name);

	if (!text)
		return 0;
	if (strlen(text) > most) {
		complain("record", "--%s has %zu bytes: at most %zu", name, strlen(text), most);
		return -1;
	}
	for (const char *p = text; *p; p++) {
		if (iscntrl((unsigned char)*p)) {
			complain("record", "--%s holds a control character: leave it out", name);
			return -1;
		}
	}
	return 0;
}

static int check_options(const struct options *o)
{
	if (!strcmp(options_text(o, "level"), "nodes"))
		return fail("--level nodes is not built yet: use donations or launches");
	if (check_text(o, "arm", ARM_MAX) || check_text(o, "label", LABEL_MAX))
		return -1;
	if (options_count(o, "watch-slot") > WATCH_MAX) {
		complain("record", "--watch-slot is given %zu times: at most %d slots can be watched",
			 options_count(o, "watch-slot"), WATCH_MAX);
		return -1;
	}
	return 0;
}

/* LD_PRELOAD is a list that spaces and colons separate, and the loader knows no way to quote them. */
static int check_preload_path(const char *path)
{
	if (!strpbrk(path, " :\t\n"))
		return 0;
	complain("record",
		 "LD_PRELOAD cannot carry '%s': its path holds a space or a colon; put slotprobe and its probes "
		 "elsewhere",
		 path);
	return -1;
}

/* PYTHONPATH is separated by colons only. */
static int check_package_path(const char *path)
{
	if (!strchr(path, ':'))
		return 0;
	complain("record", "PYTHONPATH cannot carry '%s': its path holds a colon; put the adapter elsewhere", path);
	return -1;
}

static int find_parts(struct record *r)
{
	size_t n = options_count(&r->o, "probe");
	struct error error;

	if (install_library(r->library, sizeof(r->library), &error))
		return fail(error.text);
	if (check_preload_path(r->library))
		return -1;
	if (options_given(&r->o, "audit") && install_audit(r->audit, sizeof(r->audit), &error))
		return fail(error.text);
	r->adapters = calloc(n + 1, sizeof(*r->adapters));
	for (size_t i = 0; r->adapters && i < n; i++) {
		struct adapter *adapter = &r->adapters[i];

		if (adapter_resolve(adapter, options_nth(&r->o, "probe", i), &error))
			return fail(error.text);
		r->n_adapters++;
		if ((adapter->library && check_preload_path(adapter->library)) ||
		    (adapter->package && check_package_path(adapter->package)))
			return -1;
	}
	return r->adapters ? 0 : fail("out of memory");
}

/* ---- the environment ---- */

/* A list under construction: "a,b,c". */
static char *list_add(char *list, const char *item, const char *separator)
{
	char *grown = NULL;

	if (!item || !*item)
		return list;
	if (asprintf(&grown, "%s%s%s", list ? list : "", list ? separator : "", item) < 0)
		trouble_memory();
	free(list);
	return grown;
}

/* Sets or removes; takes the value. Half an environment would record something else than what was asked for. */
static void env_list(const char *name, char *value)
{
	if (value ? setenv(name, value, 1) : unsetenv(name))
		trouble_memory();
	free(value);
}

/* Adds what that variable held, without `ours`, which stands in the list already. */
static char *list_add_rest(char *list, const char *before, const char *between, const char *ours)
{
	for (before = before ? before : ""; *(before += strspn(before, between)); before += strcspn(before, between)) {
		char *entry = trouble_need(strndup(before, strcspn(before, between)));

		if (strcmp(entry, ours) != 0)
			list = list_add(list, entry, ":");
		free(entry);
	}
	return list;
}

/* Ours first, so that our interposed names win; then the adapters, which need them; what was there keeps its order. */
static char *preload_list(const struct record *r)
{
	char *list = list_add(NULL, r->library, ":");

	for (size_t i = 0; i < r->n_adapters; i++)
		list = list_add(list, r->adapters[i].library, ":");
	return list_add_rest(list, getenv("LD_PRELOAD"), ": \t\n", r->library);
}

static char *audit_list(const struct record *r)
{
	return list_add_rest(list_add(NULL, r->audit, ":"), getenv("LD_AUDIT"), ":", r->audit);
}

static char *package_list(const struct record *r)
{
	char *list = NULL;

	for (size_t i = 0; i < r->n_adapters; i++)
		list = list_add(list, r->adapters[i].package, ":");
	return list_add(list, getenv("PYTHONPATH"), ":");
}

static char *points_list(const struct record *r)
{
	char *list = NULL;

	for (size_t i = 0; i < r->n_adapters; i++)
		for (size_t p = 0; p < r->adapters[i].n_points; p++)
			list = list_add(list, r->adapters[i].points[p], ",");
	return list;
}

/* What the user names, else what the adapters know to be worth watching. */
static char *watch_list(const struct record *r)
{
	char *list = NULL, number[24];

	for (size_t i = 0; i < options_count(&r->o, "watch-slot"); i++)
		list = list_add(list, options_nth(&r->o, "watch-slot", i), ",");
	for (size_t a = 0; !options_given(&r->o, "watch-slot") && a < r->n_adapters; a++) {
		for (size_t i = 0; i < r->adapters[a].n_watch; i++) {
			snprintf(number, sizeof(number), "%" PRId64, r->adapters[a].watch[i]);
			list = list_add(list, number, ",");
		}
	}
	return list;
}

static char *text_of(const char *text)
{
	return list_add(NULL, text, "");
}

static char *number_of(uint64_t number)
{
	char *text = NULL;

	if (asprintf(&text, "%" PRIu64, number) < 0)
		trouble_memory();
	return text;
}

static int set_environment(const struct record *r)
{
	char *points = points_list(r);

	if (points && strlen(points) > PROBES_MAX) {
		free(points);
		return fail("the adapters declare too many probes: load fewer adapters");
	}
	env_list("LD_PRELOAD", preload_list(r));
	env_list("LD_AUDIT", audit_list(r));
	env_list("PYTHONPATH", package_list(r));
	env_list("SLOTPROBE_PROBES", points);
	env_list("SLOTPROBE_WATCH", watch_list(r));
	env_list("SLOTPROBE_DIR", text_of(r->run));
	env_list("SLOTPROBE_ARM", text_of(options_text(&r->o, "arm")));
	env_list("SLOTPROBE_LABEL", text_of(options_text(&r->o, "label")));
	env_list("SLOTPROBE_LEVEL", text_of(options_text(&r->o, "level")));
	env_list("SLOTPROBE_RECORDING", text_of(options_given(&r->o, "paused") ? "0" : "1"));
	env_list("SLOTPROBE_KEEP_KEYS", text_of(options_given(&r->o, "keep-keys") ? "1" : NULL));
	env_list("SLOTPROBE_MIN_FREE", number_of(options_size(&r->o, "min-free")));
	env_list("SLOTPROBE_MAX_SIZE", number_of(options_size(&r->o, "max-size")));
	return 0;
}

/* ---- the run directory ---- */

/* mkdir decides: whoever finds a directory there never records into it. */
static int make_run(struct record *r)
{
	const char *given = options_text(&r->o, "output");
	char name[64];

	for (unsigned n = 1; !given && n; n++) {
		snprintf(name, sizeof(name), "slotprobe-run.%u", n);
		if (!mkdir(name, 0700))
			given = name;
		else if (errno != EEXIST)
			break;
	}
	if (given != name && (!given || mkdir(given, 0700))) {
		complain("record",
			 errno == EEXIST ? "'%s' is there already: record never adds to it; give -o another name"
					 : "cannot make the run directory '%s': %m; give -o a name in a folder that "
					   "you can write",
			 given ? given : name);
		return -1;
	}
	r->run = realpath(given, NULL);
	r->directory = r->run ? open(r->run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (r->run && strlen(r->run) + 128 < PATH_MAX && r->directory >= 0) {
		if (given == name)
			complain("record", "recording into '%s'", name);
		return 0;
	}
	rmdir(given);
	return fail("the path of the run directory is too long: give -o a shorter one");
}

/* Only what we made: a command that never ran leaves no run behind. There may be no memory for a name. */
static void remove_run(const struct record *r)
{
	unlinkat(r->directory, MANIFEST_TEMPORARY, 0);
	unlinkat(r->directory, MANIFEST_NAME, 0);
	rmdir(r->run);
}

static struct record *begun; /* for where no argument reaches */

static void remove_begun(void)
{
	remove_run(begun);
}

static json_t *options_json(const struct record *r)
{
	const struct options *o = &r->o;
	json_t *watch = json_array(), *probes = json_array();
	char *list = watch_list(r), *save = NULL;

	for (char *p = list ? strtok_r(list, ",", &save) : NULL; p; p = strtok_r(NULL, ",", &save))
		json_array_append_new(watch, json_integer(strtoll(p, NULL, 10)));
	free(list);
	for (size_t i = 0; i < options_count(o, "probe"); i++)
		json_array_append_new(probes, json_text(options_nth(o, "probe", i)));
	return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "level", options_text(o, "level"), "paused",
			 options_given(o, "paused"), "label", json_text(options_text(o, "label")), "probes", probes,
			 "watch_slots", watch, "min_free", json_count(options_size(o, "min-free")), "max_size",
			 json_count(options_size(o, "max-size")), "keep_keys", options_given(o, "keep-keys"), "audit",
			 options_given(o, "audit"));
}

/* ---- after the command ---- */

/* How a command that failed went, behind what it did not record: that alone may be why. */
static void put_end(char *text, size_t size, int wait_status)
{
	if (WIFSIGNALED(wait_status))
		snprintf(text, size, "; the command itself was ended by signal %d", WTERMSIG(wait_status));
	else if (WEXITSTATUS(wait_status))
		snprintf(text, size, "; the command itself failed with status %d", WEXITSTATUS(wait_status));
}

/* Donations and restores that were attempted while recording, and were lost to a disk, a queue or an end that came first; and to which
 * most often. What was refused the caller has been told. */
static void say_lost(const struct run *run, const char *path)
{
	struct coverage_sum donate = coverage_sum(run, "core.donate"), restore = coverage_sum(run, "core.restore");
	uint64_t attempted = 0, lost = 0, most = 0;
	const char *why = "";

	for (int k = 0; k < CTR_OUTCOME_COUNT; k++) {
		uint64_t n = donate.outcome[k] + restore.outcome[k];
		enum ctr_group group = ctr_outcome_group((enum ctr_outcome)k);

		attempted += group == CTR_IN_FILTERED ? 0 : n;
		if (k != CTR_SKIPPED_DISK && group != CTR_IN_DROPPED)
			continue;
		lost += n;
		if (n <= most)
			continue;
		most = n;
		why = ctr_outcome_meaning((enum ctr_outcome)k);
	}
	if (lost)
		complain("record",
			 "%llu of %llu donations and restores were not measured (%s): 'slotprobe status %s' shows all "
			 "counters",
			 (unsigned long long)lost, (unsigned long long)attempted, why, path);
}

/* A run in which nothing recorded must say so, and why, before anybody takes it for a measurement. */
static void say_never_loaded(const struct record *r, int wait_status)
{
	struct launcher launcher = launcher_look(r->o.n_operands, r->o.operands);
	const char *command = r->o.operands[0], *problem = NULL;
	char path[PATH_MAX], through[PATH_MAX] = "", end[64] = "";

	put_end(end, sizeof(end), wait_status);
	if (!program_find(command, path, sizeof(path)))
		problem = program_problem(program_inspect(path, through, sizeof(through)));
	if (launcher.loss == LAUNCHER_LOSES_ALL)
		complain("record", "never_loaded: no process recorded anything: '%s' %s; %s%s", command, launcher.text,
			 launcher.remedy, end);
	else if (problem)
		complain("record", "never_loaded: no process recorded anything: '%s' %s%s", through, problem, end);
	else
		complain("record",
			 "never_loaded: no process recorded anything: none initialised CUDA or registered a pool, or a "
			 "launcher "
			 "dropped the environment; 'slotprobe doctor -- %s' checks%s",
			 command, end);
}

static void look_back(const struct record *r, int wait_status)
{
	struct run run;
	size_t pages = 0;

	if (!run_open(&run, r->run, NULL)) {
		for (size_t i = 0; i < run.n_processes; i++)
			pages += run.processes[i].ctr_path != NULL;
		say_lost(&run, r->run);
		run_close(&run);
	}
	if (!pages)
		say_never_loaded(r, wait_status);
}

/* The command may have put something else in its place, a link to anywhere too. */
static bool is_still_there(const struct record *r)
{
	struct stat made, now;

	return !fstat(r->directory, &made) && !lstat(r->run, &now) && S_ISDIR(now.st_mode) &&
	       now.st_dev == made.st_dev && now.st_ino == made.st_ino;
}

static int end_run(struct record *r, int wait_status)
{
	int status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
	struct error error;

	trouble_ends_with(status, NULL);
	manifest_end(r->manifest, status);
	if (!is_still_there(r))
		complain("record", "'%s' is not the directory that was made any more: its manifest was not finished",
			 r->run);
	else if (manifest_write(r->manifest, r->run, &error))
		complain("record", "%s; the recording itself is there", error.text);
	look_back(r, wait_status);
	return status;
}

static int run_command(struct record *r)
{
	int why, status = child_run(r->o.operands, &why, NULL);

	if (status >= 0)
		return end_run(r, status);
	remove_run(r);
	complain("record", "cannot run '%s': %s", r->o.operands[0], strerror(why));
	if (why == EAGAIN || why == ENOMEM)
		return RECORD_FAILED;
	return why == ENOENT ? RECORD_NOT_FOUND : RECORD_CANNOT_RUN;
}

/* ---- the verb ---- */

/* Said before the recording rather than after it: diff takes such an arm for unknown. */
static void warn_of_arm(const char *arm)
{
	const char *like = arm ? arm_near_miss(arm) : NULL;

	if (like)
		complain("record", "the arm '%s' is nearly %s and is not: diff will not know it", arm, like);
}

static int record(struct record *r)
{
	struct error error;

	warn_of_arm(options_text(&r->o, "arm"));
	if (check_options(&r->o) || find_parts(r) || make_run(r))
		return RECORD_FAILED;
	begun = r;
	trouble_ends_with(RECORD_FAILED, remove_begun);
	if (set_environment(r)) {
		rmdir(r->run);
		return RECORD_FAILED;
	}
	r->manifest =
		manifest_new(options_text(&r->o, "arm"), r->o.operands, r->adapters, r->n_adapters, options_json(r));
	if (manifest_write(r->manifest, r->run, &error)) {
		complain("record", "%s", error.text);
		rmdir(r->run);
		return RECORD_FAILED;
	}
	return run_command(r);
}

int cmd_record(int argc, char **argv)
{
	struct record r = { .directory = -1 };
	int status;

	trouble_ends_with(RECORD_FAILED, NULL);
	status = options_parse(VERB_record, argc, argv, &r.o);
	if (status >= 0)
		return status;
	status = record(&r);
	for (size_t i = 0; i < r.n_adapters; i++)
		adapter_free(&r.adapters[i]);
	free(r.adapters);
	if (r.directory >= 0)
		close(r.directory);
	free(r.run);
	json_decref(r.manifest);
	options_free(&r.o);
	return status;
}
