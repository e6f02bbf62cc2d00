/* SPDX-License-Identifier: Apache-2.0
 *
 * status.c: slotprobe status: the live counters of every process of a run.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "options.h"
#include "print/print.h"
#include "read/run.h"

#define STATUS_SCHEMA 1

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

/* Seconds since the writer's last turn; < 0: not measurable. */
static double heartbeat_age(const struct run_process *p)
{
	struct timespec now;

	if (!p->counters || p->state != PROCESS_RUNNING || !p->counters->heartbeat_ns ||
	    clock_gettime(CLOCK_MONOTONIC, &now))
		return -1;
	return (double)((int64_t)((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec -
				  p->counters->heartbeat_ns)) /
	       1e9;
}

/* "running" while a process or the recorder lives; "ended" when the command ended; else what became of the processes. */
static const char *run_state(const struct run *run)
{
	const json_t *recorder = json_object_get(run->manifest.root, "recorder");
	const char *host = run->manifest.host ? run->manifest.host : "";
	bool killed = false, unknown = false;
	json_int_t pid = 0, starttime = 0;

	for (size_t i = 0; i < run->n_processes; i++) {
		if (run->processes[i].state == PROCESS_RUNNING)
			return "running";
		killed |= run->processes[i].state == PROCESS_KILLED;
		unknown |= run->processes[i].state == PROCESS_UNKNOWN;
	}
	if (run->manifest.ended)
		return "ended";
	if (!json_unpack((json_t *)recorder, "{s:I, s:I}", "pid", &pid, "starttime", &starttime) &&
	    process_state_of(host, (uint64_t)pid, (uint64_t)starttime, false) == PROCESS_RUNNING)
		return "running";
	if (killed)
		return "killed";
	return unknown || !run->n_processes ? "unknown" : "ended";
}

/* ---- JSON ---- */

static json_t *json_group(const struct ctr_values *row, enum ctr_group group)
{
	json_t *object = json_object();

	for (int o = 0; o < CTR_OUTCOME_COUNT; o++)
		if (ctr_outcome_group(o) == group)
			json_object_set_new(object, ctr_outcome_label(o), json_count(row->outcome[o]));
	return object;
}

static json_t *json_probe(const struct ctr_values *row)
{
	json_t *object = json_object();

	json_object_set_new(object, "name", json_text(row->name));
	json_object_set_new(object, "attempted", json_count(row->attempted));
	json_object_set_new(object, "committed", json_count(row->group[CTR_IN_COMMITTED]));
	json_object_set_new(object, "filtered", json_count(row->group[CTR_IN_FILTERED]));
	json_object_set_new(object, "skipped", json_group(row, CTR_IN_SKIPPED));
	json_object_set_new(object, "dropped", json_group(row, CTR_IN_DROPPED));
	json_object_set_new(object, "errors", json_count(row->group[CTR_IN_ERRORS]));
	json_object_set_new(object, "in_flight", json_count(row->in_flight));
	json_object_set_new(object, "reconciled", json_boolean(row->reconciled));
	return object;
}

static json_t *json_or_null(const char *text)
{
	return *text ? json_text(text) : json_null();
}

/* What only a readable page tells is null without one. */
static void json_page(json_t *object, const struct run_process *p)
{
	static const char *const known[] = {
		"recording", "level", "label", "bytes", "disk_stop", "probes", "counters"
	};
	const struct ctr_snapshot *s = p->counters;
	json_t *probes, *counters;

	if (!s) {
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			json_object_set_new(object, known[i], json_null());
		return;
	}
	probes = json_array();
	counters = json_object();
	for (uint32_t r = 0; r < s->n_rows; r++) {
		if (s->row[r].kind == CTR_PROBE)
			json_array_append_new(probes, json_probe(&s->row[r]));
		else if (s->row[r].kind == CTR_PLAIN)
			json_object_set_new(counters, safe(s->row[r].name), json_count(s->row[r].outcome[0]));
	}
	json_object_set_new(object, "recording", json_boolean(s->recording));
	json_object_set_new(object, "level", json_text(ctr_level_name(s->level)));
	json_object_set_new(object, "label", json_or_null(s->label));
	json_object_set_new(object, "bytes", json_count(s->bytes_written));
	json_object_set_new(object, "disk_stop", json_boolean(s->state == CTR_DISK_STOP || s->disk_stop_real_ns));
	json_object_set_new(object, "probes", probes);
	json_object_set_new(object, "counters", counters);
}

static json_t *json_process(const struct run_process *p)
{
	json_t *object = json_object();
	double age = heartbeat_age(p);

	json_object_set_new(object, "host", json_text(p->host));
	json_object_set_new(object, "pid", json_count(p->pid));
	json_object_set_new(object, "comm", json_or_null(p->comm));
	json_object_set_new(object, "rank", json_or_null(p->rank));
	json_object_set_new(object, "driver", json_or_null(p->driver));
	json_object_set_new(object, "state", json_string(process_state_name(p->state)));
	json_page(object, p);
	json_object_set_new(object, "heartbeat_age_s", age < 0 ? json_null() : json_real(age));
	json_object_set_new(object, "problem", json_text(p->counters_problem));
	return object;
}

static void print_json(FILE *f, const struct run *run)
{
	json_t *processes = json_array(), *all = json_object();

	for (size_t i = 0; i < run->n_processes; i++)
		json_array_append_new(processes, json_process(&run->processes[i]));
	json_object_set_new(all, "schema_version", json_integer(STATUS_SCHEMA));
	json_object_set_new(all, "run", json_text(run->path));
	json_object_set_new(all, "arm", json_text(run->manifest.arm));
	json_object_set_new(all, "state", json_string(run_state(run)));
	json_object_set_new(all, "processes", processes);
	json_print(f, all);
	json_decref(all);
}

/* ---- text ---- */

static void print_rows(FILE *f, const struct ctr_snapshot *s, bool color)
{
	struct table *table =
		table_new("probe|>attempted|>committed|>filtered|>skipped|>dropped|>errors|>in flight|why not");
	char why[512];

	for (uint32_t r = 0; r < s->n_rows; r++) {
		const struct ctr_values *row = &s->row[r];
		size_t at = 0;

		if (row->kind != CTR_PROBE)
			continue;
		why[0] = 0;
		for (int o = CTR_COMMITTED + 1; o < CTR_OUTCOME_COUNT && at < sizeof(why); o++)
			if (row->outcome[o])
				at += (size_t)snprintf(why + at, sizeof(why) - at, "%s%s %" PRIu64, at ? ", " : "",
						       ctr_outcome_label(o), row->outcome[o]);
		table_row(table,
			  "%s|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%s%s",
			  safe(row->name), row->attempted, row->group[CTR_IN_COMMITTED], row->group[CTR_IN_FILTERED],
			  row->group[CTR_IN_SKIPPED], row->group[CTR_IN_DROPPED], row->group[CTR_IN_ERRORS],
			  row->in_flight, row->reconciled ? "" : "UNRECONCILED ", why);
	}
	table_print(f, table, "  ", color);
	table_free(table);
	for (uint32_t r = 0; r < s->n_rows; r++)
		if (s->row[r].kind == CTR_PLAIN && s->row[r].outcome[0])
			fprintf(f, "  %s %" PRIu64 "\n", safe(s->row[r].name), s->row[r].outcome[0]);
}

static const char *recording_text(const struct ctr_snapshot *s)
{
	if (s->state == CTR_WRITE_ERROR)
		return "stopped by a write error";
	if (s->state == CTR_DISK_STOP || s->disk_stop_real_ns)
		return "payload stopped by the disk guard";
	return s->recording ? "recording" : "paused";
}

static void print_process(FILE *f, const struct run_process *p, bool color)
{
	enum color state = p->state == PROCESS_RUNNING  ? COLOR_GREEN
			   : p->state == PROCESS_KILLED ? COLOR_RED
							: COLOR_NONE;
	const struct ctr_snapshot *s = p->counters;
	double age = heartbeat_age(p);

	fprintf(f, "\n%s.%" PRIu64 " %s: %s%s%s", safe(p->host), p->pid, safe(p->comm), color_on(color, state),
		process_state_name(p->state), color_off(color));
	if (*p->rank)
		fprintf(f, ", rank %s", safe(p->rank));
	if (*p->driver)
		fprintf(f, ", %s", safe(p->driver));
	if (!s) {
		fprintf(f, "\n  no counters: %s\n",
			p->counters_problem ? safe(p->counters_problem) : "there is no page");
		return;
	}
	fprintf(f, "\n  %s, level %s, %s written", recording_text(s), ctr_level_name(s->level),
		amount_bytes(s->bytes_written));
	if (s->label[0])
		fprintf(f, ", label '%s'", safe(s->label));
	if (age >= 0)
		fprintf(f, ", heartbeat %.1f s ago", age);
	fputc('\n', f);
	print_rows(f, s, color);
}

static void print_text(FILE *f, const struct run *run, bool color)
{
	fprintf(f, "%srun %s%s: %s, arm %s, %zu process%s\n", color_on(color, COLOR_BOLD), safe(run->path),
		color_off(color), run_state(run), run->manifest.arm ? safe(run->manifest.arm) : "unknown",
		run->n_processes, run->n_processes == 1 ? "" : "es");
	if (!run->n_processes)
		fprintf(f, "  no process has recorded anything: it has not reached CUDA, or never will (slotprobe "
			   "doctor -- CMD)\n");
	for (size_t i = 0; i < run->n_processes; i++)
		print_process(f, &run->processes[i], color);
}

/* ---- the verb ---- */

/* Readable with loss: said in one line, and no failure. */
static void warn(const struct run *run)
{
	size_t damaged = 0, unreconciled = 0;

	for (size_t i = 0; i < run->n_processes; i++) {
		const struct run_process *p = &run->processes[i];

		damaged += !p->counters && p->state != PROCESS_RUNNING;
		unreconciled += p->counters && !p->counters->reconciled;
	}
	if (damaged || unreconciled)
		complain("status",
			 "'%s' is readable with loss: %zu counters pages missing or damaged, %zu unreconciled; "
			 "'slotprobe "
			 "verify' says more",
			 run->path, damaged, unreconciled);
}

static int show(const struct options *o, bool first)
{
	struct output output;
	struct error error;
	struct run run;

	if (run_open(&run, o->operands[0], &error)) {
		complain("status", "%s", error.text);
		return EXIT_TROUBLE;
	}
	output_open(&output, NULL, NULL);
	if (!first && isatty(STDOUT_FILENO) && !o->json)
		fputs("\033[H\033[2J", output.f);
	if (o->json)
		print_json(output.f, &run);
	else
		print_text(output.f, &run, o->color);
	if (first)
		warn(&run);
	run_close(&run);
	if (!output_close(&output, &error))
		return 0;
	complain("status", "%s", error.text);
	return EXIT_TROUBLE;
}

int cmd_status(int argc, char **argv)
{
	struct options o;
	int status = options_parse(VERB_status, argc, argv, &o);
	bool first = true;

	if (status >= 0)
		return status;
	if (options_given(&o, "watch")) {
		struct sigaction action = { .sa_handler = on_signal };

		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
	}
	do {
		status = show(&o, first);
		first = false;
	} while (!status && options_given(&o, "watch") && !stop && (sleep(1), !stop));
	options_free(&o);
	return status;
}
