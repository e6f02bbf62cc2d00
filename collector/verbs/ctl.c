/* SPDX-License-Identifier: Apache-2.0
 *
 * ctl.c: slotprobe ctl: writes the control words of every live process and waits until it has obeyed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "options.h"
#include "print/print.h"
#include "read/run.h"

#define CTL_SCHEMA  1
#define CTL_WAIT_MS 2000
#define CTL_TURN_MS 5

enum ctl_what { CTL_START, CTL_STOP, CTL_LABEL, CTL_LEVEL, CTL_FLUSH, CTL_COUNT };

struct ctl {
	enum ctl_what what;
	const char *label;
	uint32_t level;
	bool json;
};

struct target {
	const struct run_process *process;
	struct ctr_page *page; /* NULL: it could not be mapped */
	uint64_t awaited;      /* flush and label: the number that stands for ours */
	bool obeyed;
};

/* ---- what is asked for ---- */

static const struct {
	const char *name;
	int operands;
	const char *value;
} ctl_words[CTL_COUNT] = { { "start", 0, "" },
			   { "stop", 0, "" },
			   { "label", 1, " TEXT" },
			   { "level", 1, " donations|launches" },
			   { "flush", 0, "" } };

static int parse_level(const char *text, struct ctl *ctl)
{
	for (ctl->level = LOG_LEVEL_DONATIONS; ctl->level <= LOG_LEVEL_NODES; ctl->level++)
		if (!strcmp(text, ctr_level_name(ctl->level)))
			break;
	if (ctl->level == LOG_LEVEL_NODES)
		return options_usage(VERB_ctl, "level nodes is not built yet: use donations or launches");
	if (ctl->level > LOG_LEVEL_NODES)
		return options_usage(VERB_ctl, "unknown level '%s': it is donations or launches", text);
	return -1;
}

static int parse_label(const char *text, struct ctl *ctl)
{
	size_t most = sizeof(((struct ctr_page *)0)->ctl_label) - 1;

	ctl->label = text;
	if (strlen(text) > most)
		return options_usage(VERB_ctl, "the label has %zu bytes: at most %zu", strlen(text), most);
	return -1;
}

/* -1: go on. */
static int parse(const struct options *o, struct ctl *ctl)
{
	const char *word = o->operands[1];
	int what = 0;

	while (what < CTL_COUNT && strcmp(word, ctl_words[what].name))
		what++;
	if (what == CTL_COUNT)
		return options_usage(VERB_ctl, "unknown word '%s': it is start, stop, label TEXT, level L or flush",
				     word);
	if (o->n_operands - 2 != ctl_words[what].operands)
		return options_usage(VERB_ctl, "%s: slotprobe ctl RUN %s%s",
				     ctl_words[what].operands ? "a value is missing" : "one operand too many", word,
				     ctl_words[what].value);
	ctl->what = what;
	ctl->json = o->json;
	if (what == CTL_LEVEL)
		return parse_level(o->operands[2], ctl);
	return what == CTL_LABEL ? parse_label(o->operands[2], ctl) : -1;
}

/* ---- the pages ---- */

static void pause_turn(void)
{
	nanosleep(&(struct timespec) { .tv_nsec = CTL_TURN_MS * 1000000 }, NULL);
}

/* Two who steer at once must not tear each other's label: held until the words are written. */
static int lock_page(int fd)
{
	for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited += CTL_TURN_MS) {
		if (errno != EWOULDBLOCK || waited >= CTL_WAIT_MS)
			return -1;
		pause_turn();
	}
	return 0;
}

/* Maps target->page, or leaves it NULL. The file, whose closing gives the lock back, or -1. */
static int map_page(struct target *target, struct error *error)
{
	int fd = open(target->process->ctr_path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct ctr_page *page = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == sizeof(*page) && !lock_page(fd))
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		error_set(error, "cannot write the counters page '%s': %s", target->process->ctr_path, strerror(errno));
	else
		target->page = page;
	return fd;
}

static void write_label(struct target *target, const char *label)
{
	struct ctr_page *page = target->page;
	uint64_t seq = __atomic_load_n(&page->ctl_label_seq, __ATOMIC_ACQUIRE) | 1;
	char text[sizeof(page->ctl_label)] = "";

	strncpy(text, label, sizeof(text) - 1);
	/* odd before the first byte of the new text: the acquire half keeps the bytes behind it */
	__atomic_exchange_n(&page->ctl_label_seq, seq, __ATOMIC_ACQ_REL);
	memcpy(page->ctl_label, text, sizeof(text));
	target->awaited = seq + 1;
	__atomic_store_n(&page->ctl_label_seq, seq + 1, __ATOMIC_RELEASE);
}

static void write_words(struct target *target, const struct ctl *ctl)
{
	struct ctr_page *page = target->page;

	switch (ctl->what) {
	case CTL_START:
	case CTL_STOP:
		__atomic_store_n(&page->ctl_recording, ctl->what == CTL_START, __ATOMIC_RELEASE);
		break;
	case CTL_LEVEL:
		__atomic_store_n(&page->ctl_level, ctl->level, __ATOMIC_RELEASE);
		break;
	case CTL_LABEL:
		write_label(target, ctl->label);
		break;
	case CTL_FLUSH:
		target->awaited = __atomic_add_fetch(&page->ctl_flush, 1, __ATOMIC_RELEASE);
		break;
	case CTL_COUNT:
		break;
	}
}

static bool has_obeyed(const struct target *target, const struct ctl *ctl)
{
	const struct ctr_page *page = target->page;

	switch (ctl->what) {
	case CTL_START:
	case CTL_STOP:
		return __atomic_load_n(&page->recording, __ATOMIC_ACQUIRE) == (ctl->what == CTL_START);
	case CTL_LEVEL:
		return __atomic_load_n(&page->level, __ATOMIC_ACQUIRE) == ctl->level;
	case CTL_LABEL:
		return __atomic_load_n(&page->label_done, __ATOMIC_ACQUIRE) >= target->awaited;
	case CTL_FLUSH:
		return __atomic_load_n(&page->flush_done, __ATOMIC_ACQUIRE) >= target->awaited;
	case CTL_COUNT:
		break;
	}
	return false;
}

static void steer(struct target *target, const struct ctl *ctl)
{
	struct error error;
	int fd = map_page(target, &error);

	if (target->page)
		write_words(target, ctl);
	else
		complain("ctl", "%s", error.text);
	if (fd >= 0)
		close(fd); /* gives the lock back */
}

static void await(struct target *targets, size_t n, const struct ctl *ctl)
{
	for (int waited = 0; waited <= CTL_WAIT_MS; waited += CTL_TURN_MS) {
		size_t left = 0;

		for (size_t i = 0; i < n; i++) {
			if (targets[i].page && !targets[i].obeyed)
				targets[i].obeyed = has_obeyed(&targets[i], ctl);
			left += targets[i].page && !targets[i].obeyed;
		}
		if (!left)
			return;
		pause_turn();
	}
}

/* ---- the verb ---- */

static void print_text(FILE *f, const struct target *targets, size_t n, const struct ctl *ctl)
{
	for (size_t i = 0; i < n; i++) {
		const struct run_process *p = targets[i].process;

		fprintf(f, "%s.%" PRIu64 " %s: %s %s\n", safe(p->host), p->pid, *p->comm ? safe(p->comm) : "unknown",
			ctl_words[ctl->what].name,
			targets[i].obeyed ? "obeyed"
			: targets[i].page ? "not obeyed within 2 s"
					  : "not writable");
	}
}

static void print_json(FILE *f, const struct run *run, const struct target *targets, size_t n, int status)
{
	json_t *processes = json_array(), *all;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(processes,
				      json_pack("{s:o, s:o, s:b}", "host", json_text(targets[i].process->host), "pid",
						json_count(targets[i].process->pid), "obeyed", targets[i].obeyed));
	all = json_pack("{s:i, s:o, s:o, s:i}", "schema_version", CTL_SCHEMA, "run", json_text(run->path), "processes",
			processes, "exit_status", status);
	json_print(f, all);
	json_decref(all);
}

static int tell(const struct run *run, const struct target *targets, size_t n, const struct ctl *ctl)
{
	struct output output;
	struct error error;
	size_t obeyed = 0;

	for (size_t i = 0; i < n; i++)
		obeyed += targets[i].obeyed;
	output_open(&output, NULL, NULL);
	if (ctl->json)
		print_json(output.f, run, targets, n, obeyed == n ? EXIT_HOLDS : EXIT_TROUBLE);
	else
		print_text(output.f, targets, n, ctl);
	if (output_close(&output, &error)) {
		complain("ctl", "%s", error.text);
		return EXIT_TROUBLE;
	}
	if (obeyed == n)
		return 0;
	complain("ctl", "%zu of %zu live processes obeyed; 'slotprobe status' shows whether the others still write",
		 obeyed, n);
	return EXIT_TROUBLE;
}

static int steer_all(const struct run *run, const struct ctl *ctl)
{
	struct target *targets = calloc(run->n_processes + 1, sizeof(*targets));
	size_t n = 0;
	int status;

	for (size_t i = 0; targets && i < run->n_processes; i++)
		if (run->processes[i].state == PROCESS_RUNNING && run->processes[i].counters)
			targets[n++].process = &run->processes[i];
	if (!n) {
		complain("ctl",
			 "no live process on this host records into '%s': nothing to steer; 'slotprobe status' shows "
			 "the run",
			 run->path);
		free(targets);
		return EXIT_TROUBLE;
	}
	for (size_t i = 0; i < n; i++)
		steer(&targets[i], ctl);
	await(targets, n, ctl);
	status = tell(run, targets, n, ctl);
	for (size_t i = 0; i < n; i++)
		if (targets[i].page)
			munmap(targets[i].page, sizeof(*targets[i].page));
	free(targets);
	return status;
}

/* Only one's own run: somebody else's directory may be swapped under us while we write. */
static int check_owner(const char *path)
{
	struct stat st;

	if (stat(path, &st) || st.st_uid == geteuid())
		return 0;
	complain("ctl", "'%s' belongs to user %u, not to you: run ctl as that user", path, (unsigned)st.st_uid);
	return -1;
}

int cmd_ctl(int argc, char **argv)
{
	struct options o;
	struct error error;
	struct run run;
	struct ctl ctl = { 0 };
	int status = options_parse(VERB_ctl, argc, argv, &o);

	if (status >= 0)
		return status;
	status = parse(&o, &ctl);
	if (status < 0 && check_owner(o.operands[0]))
		status = EXIT_TROUBLE;
	if (status < 0 && run_open(&run, o.operands[0], &error)) {
		complain("ctl", "%s", error.text);
		status = EXIT_TROUBLE;
	}
	if (status < 0) {
		status = steer_all(&run, &ctl);
		run_close(&run);
	}
	options_free(&o);
	return status;
}
