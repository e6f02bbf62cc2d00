/* SPDX-License-Identifier: Apache-2.0
 *
 * status.c: slotprobe status: the live counters of every process of a run.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "options.h"
#include "print/print.h"
#include "print/process_json.h"
#include "read/log.h"
#include "read/run.h"

#define STATUS_SCHEMA 1

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

/* ---- JSON ---- */

static void print_json(FILE *f, const struct run *run)
{
	json_t *processes = json_array(), *all = json_object();

	for (size_t i = 0; i < run->n_processes; i++)
		json_array_append_new(processes, process_json(&run->processes[i], run->processes[i].rank));
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

	fprintf(f, "\n%s.%" PRIu64 " %s: %s%s%s", safe(p->host), p->pid, *p->comm ? safe(p->comm) : "unknown",
		color_on(color, state), process_state_name(p->state), color_off(color));
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

/* A log that still grows may be too long to be read for a glance. */
#define LIVE_LOG_MAX (64ll << 20)

static bool is_long(const char *path)
{
	struct stat st;

	return stat(path, &st) || st.st_size > LIVE_LOG_MAX;
}

/* Counts the logs that are damaged or missing. -1: one is no log of ours. */
static int scan_logs(const struct run *run, size_t *lossy, struct error *error)
{
	for (size_t i = 0; i < run->n_processes; i++) {
		const struct run_process *p = &run->processes[i];
		bool running = p->state == PROCESS_RUNNING, ended;
		struct log_damage damage;
		uint64_t records;

		if (!p->log_path || (running && is_long(p->log_path))) {
			*lossy += !p->log_path && !running;
			continue;
		}
		if (log_scan(p->log_path, &damage, &ended, &records, error))
			return -1;
		/* The writer of a live process may be in the middle of a chunk. */
		if (running)
			*lossy += damage.bad_chunks || damage.seq_gaps || damage.bad_records || damage.unknown_records;
		else
			*lossy += log_is_damaged(&damage) || run_log_is_short(p, records);
	}
	return 0;
}

/* Readable with loss: said in one line, and no failure. */
static void warn(const struct run *run, size_t lossy)
{
	size_t damaged = 0, unreconciled = 0;

	for (size_t i = 0; i < run->n_processes; i++) {
		const struct run_process *p = &run->processes[i];

		damaged += !p->counters && p->state != PROCESS_RUNNING;
		unreconciled += p->counters && !p->counters->reconciled;
	}
	if (damaged || unreconciled || lossy)
		complain("status",
			 "'%s' is readable with loss: %s damaged or missing, %s missing or damaged, %zu unreconciled; "
			 "'slotprobe verify' says more",
			 run->path, amount_of(lossy, "log", "logs"),
			 amount_of(damaged, "counters page", "counters pages"), unreconciled);
}

/* *over: the run has ended, and will not change any more. */
static int show(const struct options *o, bool first, bool *over)
{
	struct output output;
	struct error error;
	struct run run;
	size_t lossy = 0;

	if (run_open(&run, o->operands[0], &error)) {
		complain("status", "%s", error.text);
		return EXIT_TROUBLE;
	}
	/* Once, however often the counters are printed. */
	if (first && scan_logs(&run, &lossy, &error)) {
		complain("status", "%s", error.text);
		run_close(&run);
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
		warn(&run, lossy);
	*over = !strcmp(run_state(&run), "ended") || !strcmp(run_state(&run), "killed");
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
	bool first = true, over = false;

	if (status >= 0)
		return status;
	if (options_given(&o, "watch")) {
		struct sigaction action = { .sa_handler = on_signal };

		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
	}
	do {
		status = show(&o, first, &over);
		first = false;
	} while (!status && options_given(&o, "watch") && !over && !stop && (sleep(1), !stop));
	options_free(&o);
	return status;
}
