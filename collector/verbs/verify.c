/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.c: slotprobe verify: are the log and the counters whole and reconciled, did the probes fire.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "print/print.h"
#include "read/audit.h"

#define VERIFY_SCHEMA 1

struct verify {
	struct options o;
	struct run run;
	struct audit *audits; /* one a process */
	struct reasons reasons;
};

/* ---- did the probes fire ---- */

static void judge_expectations(struct verify *v)
{
	for (size_t i = 0; i < options_count(&v->o, "expect"); i++) {
		struct expect expect;
		uint64_t attempted;
		size_t processes;

		if (expect_parse(options_nth(&v->o, "expect", i), &expect))
			continue;
		attempted = run_counter(&v->run, expect.probe, &processes);
		if (attempted >= expect.at_least)
			continue;
		if (!attempted)
			reasons_add(&v->reasons, REASON_probe_never_fired, "%s: %s, %" PRIu64 " expected", expect.probe,
				    processes ? "attempted 0 times" : "no process knows it", expect.at_least);
		else
			reasons_add(&v->reasons, REASON_below_expected, "%s: %" PRIu64 " of %" PRIu64, expect.probe,
				    attempted, expect.at_least);
	}
}

/* An adapter of which nothing fired was not loaded, or does not fit the server. One silent point of several is listed by
 * `status` and is no reason. */
static void judge_adapters(struct verify *v)
{
	for (size_t a = 0; a < v->run.manifest.n_adapters; a++) {
		const struct manifest_adapter *adapter = &v->run.manifest.adapters[a];
		uint64_t attempted = 0;

		for (size_t p = 0; p < adapter->n_points; p++)
			attempted |= run_counter(&v->run, adapter->points[p], NULL);
		if (adapter->n_points && !attempted)
			reasons_add(&v->reasons, REASON_probe_never_fired, "adapter %s: %s%s", adapter->name,
				    adapter->points[0], adapter->n_points > 1 ? " and its other probes" : "");
	}
}

static void judge(struct verify *v)
{
	if (!v->run.n_processes)
		reasons_add(&v->reasons, REASON_never_loaded, "%s", v->run.path);
	for (size_t i = 0; i < v->run.n_processes; i++)
		audit_judge(&v->audits[i], &v->run.processes[i], &v->reasons);
	judge_expectations(v);
	judge_adapters(v);
}

/* ---- printing ---- */

static uint64_t in_flight_of(const struct run_process *p)
{
	uint64_t sum = 0;

	for (uint32_t r = 0; p->counters && r < p->counters->n_rows; r++)
		sum += p->counters->row[r].in_flight;
	return sum;
}

/* Probes whose last attempts nobody will ever hear of. Exactly counted, they leave log and counters whole; a living process
 * has lost nothing. */
static const struct ctr_values *next_lost(const struct run_process *p, uint32_t *r)
{
	for (; p->counters && p->state != PROCESS_RUNNING && *r < p->counters->n_rows; ++*r)
		if (p->counters->row[*r].kind == CTR_PROBE && p->counters->row[*r].in_flight)
			return &p->counters->row[(*r)++];
	return NULL;
}

static json_t *lost_json(const struct run_process *p)
{
	const struct ctr_values *row;
	json_t *object;
	uint32_t r = 0;

	if (!p->counters)
		return json_null();
	object = json_object();
	while ((row = next_lost(p, &r)))
		json_object_set_new(object, safe(row->name), json_count(row->in_flight));
	return object;
}

static void print_lost(FILE *f, const struct run_process *p, bool color)
{
	const struct ctr_values *row;
	uint32_t r = 0;

	while ((row = next_lost(p, &r)))
		fprintf(f,
			"  %slost in flight%s  %s.%" PRIu64
			": %s: %s when it went; check and diff judge what that means\n",
			color_on(color, COLOR_YELLOW), color_off(color), safe(p->host), p->pid, safe(row->name),
			amount_of(row->in_flight, "attempt", "attempts"));
}

static json_t *json_process(const struct run_process *p, const struct audit *a)
{
	const struct log_damage *d = &a->damage;
	json_t *log = json_null();

	if (a->has_log)
		log = json_pack("{s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "bytes", json_count(a->bytes),
				"chunks", json_count(a->chunks), "records", json_count(a->records), "ended", a->ended,
				"torn_bytes", json_count(d->torn_bytes), "bad_chunks", json_count(d->bad_chunks),
				"gaps", json_count(d->seq_gaps), "records_missing", json_count(d->records_missing),
				"bad_records", json_count(d->bad_records), "unknown_records",
				json_count(d->unknown_records));
	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "host", json_text(p->host), "pid", json_count(p->pid),
			 "state", process_state_name(p->state), "reconciled",
			 p->counters ? json_boolean(p->counters->reconciled) : json_null(), "in_flight",
			 p->counters ? json_count(in_flight_of(p)) : json_null(), "lost_in_flight", lost_json(p), "log",
			 log);
}

static void print_json(FILE *f, const struct verify *v, int status)
{
	json_t *processes = json_array(), *all;

	for (size_t i = 0; i < v->run.n_processes; i++)
		json_array_append_new(processes, json_process(&v->run.processes[i], &v->audits[i]));
	all = json_pack("{s:i, s:s, s:o, s:s, s:i, s:o, s:o}", "schema_version", VERIFY_SCHEMA, "tool",
			"slotprobe " SLOTPROBE_VERSION, "run", json_text(v->run.path), "verdict",
			status ? "not_proven" : "whole", "exit_status", status, "reasons", reasons_json(&v->reasons),
			"processes", processes);
	json_print(f, all);
	json_decref(all);
}

static void print_text(FILE *f, const struct verify *v, int status, bool color)
{
	struct table *table = table_new("process|state|>records|>chunks|>bytes|end|>in flight");

	fprintf(f, "%s%s%s: %s\n", color_on(color, status ? COLOR_YELLOW : COLOR_GREEN),
		status ? "NOT PROVEN" : "WHOLE", color_off(color), safe(v->run.path));
	reasons_print(f, &v->reasons, color);
	for (size_t i = 0; i < v->run.n_processes; i++) {
		const struct run_process *p = &v->run.processes[i];
		const struct audit *a = &v->audits[i];

		table_row(table, "%s.%" PRIu64 "|%s|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%s|%" PRIu64, safe(p->host),
			  p->pid, process_state_name(p->state), a->records, a->chunks, a->bytes,
			  a->ended ? "yes" : "no", in_flight_of(p));
	}
	if (v->run.n_processes)
		table_print(f, table, "  ", color);
	table_free(table);
	for (size_t i = 0; i < v->run.n_processes; i++)
		print_lost(f, &v->run.processes[i], color);
}

/* ---- the verb ---- */

static int read_all(struct verify *v, struct error *error)
{
	v->audits = calloc(v->run.n_processes + 1, sizeof(*v->audits));
	if (!v->audits) {
		error_set(error, "out of memory");
		return -1;
	}
	for (size_t i = 0; i < v->run.n_processes; i++)
		if (audit_read(&v->audits[i], &v->run.processes[i], error))
			return -1;
	return 0;
}

static int print_all(const struct verify *v, struct error *error)
{
	int status = reasons_exit_status(&v->reasons);
	struct output output;

	if (output_open(&output, options_text(&v->o, "output"), error))
		return EXIT_TROUBLE;
	if (v->o.json)
		print_json(output.f, v, status);
	else
		print_text(output.f, v, status, v->o.color);
	return output_close(&output, error) ? EXIT_TROUBLE : status;
}

int cmd_verify(int argc, char **argv)
{
	struct verify v = { 0 };
	struct error error;
	int status = options_parse(VERB_verify, argc, argv, &v.o);

	if (status >= 0)
		return status;
	status = EXIT_TROUBLE;
	if (!run_open(&v.run, v.o.operands[0], &error)) {
		if (!read_all(&v, &error)) {
			judge(&v);
			status = print_all(&v, &error);
		}
		run_close(&v.run);
	}
	if (status == EXIT_TROUBLE)
		complain("verify", "%s", error.text);
	free(v.audits);
	reasons_free(&v.reasons);
	options_free(&v.o);
	return status;
}
