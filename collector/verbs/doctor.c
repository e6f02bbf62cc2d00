/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor.c: slotprobe doctor: can this machine, driver and command be probed; a remedy for each problem.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/driver.h"
#include "launch/install.h"
#include "launch/launcher.h"
#include "launch/program.h"
#include "options.h"
#include "print/print.h"
#include "verbs/doctor_url.h"

#define DOCTOR_SCHEMA 1

/* A warning does not keep anything from being probed. */
enum state { STATE_OK, STATE_WARNING, STATE_PROBLEM };

struct finding {
	enum state state;
	char text[512];
	const char *remedy;
};

static void found(struct finding *f, enum state state, const char *remedy, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void found(struct finding *f, enum state state, const char *remedy, const char *format, ...)
{
	char raw[sizeof(f->text)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(raw, sizeof(raw), format, arguments);
	va_end(arguments);
	text_safe(f->text, sizeof(f->text), raw, sizeof(raw));
	f->state = state;
	f->remedy = remedy;
}

/* ---- the checks ---- */

/* Asked once: a context on a GPU takes its time. */
static const struct driver_report *the_driver(void)
{
	static struct driver_report report;
	static bool asked;

	if (!asked)
		driver_probe(&report, NULL);
	asked = true;
	return &report;
}

static void check_driver(struct finding *f, const struct options *o)
{
	const struct driver_report *r = the_driver();

	(void)o;
	if (r->state == DRIVER_ABSENT)
		found(f, STATE_PROBLEM,
		      "install an NVIDIA driver; without one 'slotprobe selftest --driver cpu' still works",
		      "there is no libcuda.so.1");
	else if (r->state == DRIVER_FAILS)
		found(f, STATE_PROBLEM,
		      "make the driver work first: see that nvidia-smi does, and that the devices are visible here",
		      "libcuda.so.1 is there and does not work: %s", r->problem);
	else if (r->stand_in)
		found(f, STATE_PROBLEM, "remove it from LD_LIBRARY_PATH: it is for tests, and reaches no GPU",
		      "libcuda.so.1 is slotprobe's own CPU stand-in (%s), no CUDA driver", r->device);
	else
		found(f, STATE_OK, NULL, "%s, %d device%s, the first is %s", r->driver, r->devices,
		      r->devices == 1 ? "" : "s", r->device);
}

static void check_ptx(struct finding *f, const struct options *o)
{
	const struct driver_report *r = the_driver();

	(void)o;
	if (r->state != DRIVER_WORKS || r->stand_in)
		found(f, STATE_WARNING, "make a CUDA driver work first", "not checked: no CUDA driver works");
	else if (r->ptx)
		found(f, STATE_PROBLEM,
		      "use a GPU of compute capability 7.0 or newer and a driver of CUDA 11.0 or newer",
		      "the driver does not take PTX of ISA 7.0 for compute_70: error %d", r->ptx);
	else
		found(f, STATE_OK, NULL, "the driver takes PTX of ISA 7.0 for compute_70");
}

/* What the loader says to a program that is started with `value` in `variable`; NULL: nothing, and it ran. */
static const char *try_loader(const char *variable, const char *value)
{
	static char said[256];
	ssize_t n = 0;
	int ends[2], status = -1;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return "pipe failed";
	fflush(NULL);
	child = fork();
	if (!child) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null, STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		unsetenv("SLOTPROBE_DIR");
		setenv(variable, value, 1);
		execl("/proc/self/exe", "slotprobe", "--version", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	if (child > 0) {
		n = read(ends[0], said, sizeof(said) - 1);
		waitpid(child, &status, 0);
	}
	close(ends[0]);
	said[n > 0 ? n : 0] = 0;
	said[strcspn(said, "\n")] = 0;
	return !status && !*said ? NULL : *said ? said : "the program did not run";
}

static void check_library(struct finding *f, const struct options *o)
{
	char path[PATH_MAX];
	struct error error;
	const char *said;

	(void)o;
	if (install_library(path, sizeof(path), &error)) {
		found(f, STATE_PROBLEM, "build or install slotprobe again", "%s", error.text);
		return;
	}
	if (strpbrk(path, " :\t\n")) {
		found(f, STATE_PROBLEM, "put slotprobe into a folder without spaces and colons",
		      "LD_PRELOAD cannot carry '%s'", path);
		return;
	}
	said = try_loader("LD_PRELOAD", path);
	if (said)
		found(f, STATE_PROBLEM, "build slotprobe on this machine, or on one with an older C library",
		      "%s cannot be preloaded: %s", path, said);
	else
		found(f, STATE_OK, NULL, "%s can be preloaded", path);
}

/* Together with slotprobe, as record would set it. */
static const char *try_together(const char *before)
{
	char library[PATH_MAX], *both = NULL;
	const char *said;

	if (install_library(library, sizeof(library), NULL) || asprintf(&both, "%s:%s", library, before) < 0)
		return NULL;
	said = try_loader("LD_PRELOAD", both);
	free(both);
	return said;
}

static void check_preload(struct finding *f, const struct options *o)
{
	const char *before = getenv("LD_PRELOAD"), *said;
	char *list = strdup(before ? before : ""), *save = NULL;
	int n = 0;

	(void)o;
	found(f, STATE_OK, NULL, "nothing else is preloaded");
	for (char *p = list ? strtok_r(list, ": \t\n", &save) : NULL; p; p = strtok_r(NULL, ": \t\n", &save)) {
		n++;
		if (!strchr(p, '/') || !access(p, R_OK))
			continue;
		found(f, STATE_PROBLEM, "take it out of LD_PRELOAD", "LD_PRELOAD names '%s', which is not there", p);
		free(list);
		return;
	}
	free(list);
	said = n ? try_together(before) : NULL;
	if (said)
		found(f, STATE_PROBLEM, "take it out of LD_PRELOAD, or make its libraries findable",
		      "what LD_PRELOAD holds cannot be loaded beside slotprobe: %s", said);
	else if (n)
		found(f, STATE_WARNING, "if the server misbehaves, record it without them first",
		      "LD_PRELOAD holds %d other librar%s: slotprobe goes before them ('%s')", n, n == 1 ? "y" : "ies",
		      before);
	else if (!access("/etc/ld.so.preload", F_OK))
		found(f, STATE_WARNING, "if the server misbehaves, look at what it loads",
		      "/etc/ld.so.preload is there: it comes into every process, after slotprobe");
}

static void check_command(struct finding *f, const struct options *o)
{
	char path[PATH_MAX], through[PATH_MAX] = "";
	enum program_kind kind;
	const char *problem;

	if (!o->n_operands) {
		found(f, STATE_OK, NULL, "none was given; 'slotprobe doctor -- CMD' checks one");
		return;
	}
	if (program_find(o->operands[0], path, sizeof(path))) {
		found(f, STATE_PROBLEM, "give a command that can be run", "cannot run '%s': %s", o->operands[0],
		      strerror(errno));
		return;
	}
	kind = program_inspect(path, through, sizeof(through));
	problem = program_problem(kind);
	if (problem)
		found(f, STATE_PROBLEM,
		      kind == PROGRAM_STATIC ? "use a dynamically linked build of it; if it only starts the server and "
					       "keeps the environment, the server is recorded all the same"
		      : kind == PROGRAM_SECURE
			      ? "run it without setuid and file capabilities, as the user who shall own the run"
			      : "use a build for this machine",
		      "'%s' %s", through, problem);
	else
		found(f, STATE_OK, NULL, "'%s' can be preloaded into%s%s", path, strcmp(path, through) ? ", as " : "",
		      strcmp(path, through) ? through : "");
}

static void check_launcher(struct finding *f, const struct options *o)
{
	struct launcher launcher = launcher_look(o->n_operands, o->operands);

	if (launcher.loss == LAUNCHER_LOSES_NOTHING)
		found(f, STATE_OK, NULL,
		      o->n_operands ? "hands on what record gives, as far as its name tells" : "no command was given");
	else
		found(f, launcher.loss == LAUNCHER_LOSES_ALL ? STATE_PROBLEM : STATE_WARNING, launcher.remedy,
		      "'%s' %s", o->operands[0], launcher.text);
}

/* Since glibc 2.35 an auditor sees bindings that are made at once, too. */
static bool audits_all(void)
{
	int major = 0, minor = 0;

	return sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 &&
	       (major > 2 || (major == 2 && minor >= 35));
}

static void check_audit(struct finding *f, const struct options *o)
{
	const char *said = NULL;
	char path[PATH_MAX];
	struct error error;

	(void)o;
	if (install_audit(path, sizeof(path), &error))
		found(f, STATE_PROBLEM, "build or install slotprobe again", "%s", error.text);
	else if ((said = try_loader("LD_AUDIT", path)))
		found(f, STATE_WARNING, "libraries opened with RTLD_DEEPBIND stay unseen, and the verdict says so",
		      "record --audit does not work here: %s", said);
	else if (!audits_all())
		found(f, STATE_WARNING,
		      "libraries opened with RTLD_DEEPBIND and RTLD_NOW stay unseen, and the verdict says so",
		      "the C library is %s: before 2.35, record --audit reaches lazy bindings only",
		      gnu_get_libc_version());
	else
		found(f, STATE_OK, NULL, "record --audit works: it reaches libraries opened with RTLD_DEEPBIND");
}

static void check_libunwind(struct finding *f, const struct options *o)
{
	void *handle = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);

	(void)o;
	if (handle) {
		dlclose(handle);
		found(f, STATE_OK, NULL, "libunwind.so.8 is there");
		return;
	}
	found(f, STATE_WARNING, "install it (Debian: apt-get install libunwind8)",
	      "there is no libunwind.so.8: call sites will be missing, nothing else");
}

static void check_disk(struct finding *f, const struct options *o)
{
	const uint64_t wanted = 2ull << 30; /* the default of record --min-free */
	struct statvfs fs;
	uint64_t room;

	(void)o;
	if (statvfs(".", &fs)) {
		found(f, STATE_PROBLEM, "go to a folder on a disk", "cannot ask for free space: %s", strerror(errno));
		return;
	}
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (room < wanted)
		found(f, STATE_PROBLEM, "free some, record elsewhere with -o, or lower --min-free",
		      "%s free here: below --min-free, which is 2G by default, no payload is recorded",
		      amount_bytes(room));
	else
		found(f, STATE_OK, NULL, "%s free here", amount_bytes(room));
}

static void check_permissions(struct finding *f, const struct options *o)
{
	(void)o;
	if (access(".", W_OK | X_OK))
		found(f, STATE_PROBLEM, "give record -o a name in a folder that you can write",
		      "cannot make a run here: %s", strerror(errno));
	else
		found(f, STATE_OK, NULL, "a run can be made here");
}

static const struct {
	const char *name;
	void (*check)(struct finding *f, const struct options *o);
} checks[] = {
	{ "driver", check_driver },   { "ptx", check_ptx },
	{ "library", check_library }, { "preload", check_preload },
	{ "command", check_command }, { "launcher", check_launcher },
	{ "audit", check_audit },     { "libunwind", check_libunwind },
	{ "disk", check_disk },       { "permissions", check_permissions },
};

#define N_CHECKS (sizeof(checks) / sizeof(checks[0]))

/* ---- printing ---- */

static const char *const state_name[] = { "ok", "warning", "problem" };

static void print_json(FILE *f, const struct finding *findings, int status)
{
	json_t *array = json_array(), *all;

	for (size_t i = 0; i < N_CHECKS; i++)
		json_array_append_new(array, json_pack("{s:s, s:s, s:o, s:s?}", "name", checks[i].name, "state",
						       state_name[findings[i].state], "text",
						       json_text(findings[i].text), "remedy", findings[i].remedy));
	all = json_pack("{s:i, s:s, s:i, s:o}", "schema_version", DOCTOR_SCHEMA, "tool", "slotprobe " SLOTPROBE_VERSION,
			"exit_status", status, "checks", array);
	json_print(f, all);
	json_decref(all);
}

static void print_text(FILE *f, const struct finding *findings, bool color)
{
	static const enum color which[] = { COLOR_GREEN, COLOR_YELLOW, COLOR_RED };

	for (size_t i = 0; i < N_CHECKS; i++) {
		const struct finding *finding = &findings[i];

		fprintf(f, "%-12s %s%-8s%s %s\n", checks[i].name, color_on(color, which[finding->state]),
			state_name[finding->state], color_off(color), finding->text);
		if (finding->remedy)
			fprintf(f, "%-12s          -> %s\n", "", finding->remedy);
	}
}

int cmd_doctor(int argc, char **argv)
{
	struct finding findings[N_CHECKS];
	struct output output;
	struct options o;
	struct error error;
	int status = options_parse(VERB_doctor, argc, argv, &o);

	if (status >= 0)
		return status;
	if (doctor_url_asked(&o)) {
		status = doctor_url(&o);
		options_free(&o);
		return status;
	}
	status = 0;
	for (size_t i = 0; i < N_CHECKS; i++) {
		checks[i].check(&findings[i], &o);
		if (findings[i].state == STATE_PROBLEM)
			status = 1;
	}
	output_open(&output, NULL, NULL);
	if (o.json)
		print_json(output.f, findings, status);
	else
		print_text(output.f, findings, o.color);
	if (output_close(&output, &error)) {
		complain("doctor", "%s", error.text);
		status = EXIT_TROUBLE;
	}
	options_free(&o);
	return status;
}
