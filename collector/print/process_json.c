/* SPDX-License-Identifier: Apache-2.0
 *
 * process_json.c: the state of a run, and its processes as JSON.
 */
#include <time.h>

#include "print/print.h"
#include "print/process_json.h"

double heartbeat_age(const struct run_process *p)
{
	struct timespec now;

	if (!p->counters || p->state != PROCESS_RUNNING || !p->counters->heartbeat_ns ||
	    clock_gettime(CLOCK_MONOTONIC, &now))
		return -1;
	return (double)((int64_t)((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec -
				  p->counters->heartbeat_ns)) /
	       1e9;
}

const char *run_state(const struct run *run)
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

static json_t *group_json(const struct ctr_values *row, enum ctr_group group)
{
	json_t *object = json_object();

	for (int o = 0; o < CTR_OUTCOME_COUNT; o++)
		if (ctr_outcome_group(o) == group)
			json_object_set_new(object, ctr_outcome_label(o), json_count(row->outcome[o]));
	return object;
}

static json_t *probe_json(const struct ctr_values *row)
{
	json_t *object = json_object();

	json_object_set_new(object, "name", json_text(row->name));
	json_object_set_new(object, "attempted", json_count(row->attempted));
	json_object_set_new(object, "committed", json_count(row->group[CTR_IN_COMMITTED]));
	json_object_set_new(object, "filtered", json_count(row->group[CTR_IN_FILTERED]));
	json_object_set_new(object, "skipped", group_json(row, CTR_IN_SKIPPED));
	json_object_set_new(object, "dropped", group_json(row, CTR_IN_DROPPED));
	json_object_set_new(object, "errors", json_count(row->group[CTR_IN_ERRORS]));
	json_object_set_new(object, "in_flight", json_count(row->in_flight));
	json_object_set_new(object, "reconciled", json_boolean(row->reconciled));
	return object;
}

static json_t *text_or_null(const char *text)
{
	return text && *text ? json_text(text) : json_null();
}

/* What only a readable page tells is null without one. */
static void add_page(json_t *object, const struct run_process *p)
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
			json_array_append_new(probes, probe_json(&s->row[r]));
		else if (s->row[r].kind == CTR_PLAIN)
			json_object_set_new(counters, safe(s->row[r].name), json_count(s->row[r].outcome[0]));
	}
	json_object_set_new(object, "recording", json_boolean(s->recording));
	json_object_set_new(object, "level", json_text(ctr_level_name(s->level)));
	json_object_set_new(object, "label", text_or_null(s->label));
	json_object_set_new(object, "bytes", json_count(s->bytes_written));
	json_object_set_new(object, "disk_stop", json_boolean(s->state == CTR_DISK_STOP || s->disk_stop_real_ns));
	json_object_set_new(object, "probes", probes);
	json_object_set_new(object, "counters", counters);
}

json_t *process_json(const struct run_process *p, const char *rank)
{
	json_t *object = json_object();
	double age = heartbeat_age(p);

	json_object_set_new(object, "host", json_text(p->host));
	json_object_set_new(object, "pid", json_count(p->pid));
	json_object_set_new(object, "comm", text_or_null(p->comm));
	json_object_set_new(object, "rank", text_or_null(rank));
	json_object_set_new(object, "driver", text_or_null(p->driver));
	json_object_set_new(object, "state", json_string(process_state_name(p->state)));
	add_page(object, p);
	json_object_set_new(object, "heartbeat_age_s", age < 0 ? json_null() : json_real(age));
	json_object_set_new(object, "problem", json_text(p->counters_problem));
	return object;
}
