/* SPDX-License-Identifier: Apache-2.0
 *
 * export_jsonl.c: a run as JSON lines: the run, the counters of each process, the records of each log.
 *
 * A name means one type in every line, so that a reader that unites the lines' columns finds each with one type.
 */
#include <inttypes.h>

#include "print/export.h"
#include "print/progress.h"
#include "print/record_json.h"
#include "read/log.h"

#define EXPORT_SCHEMA 1

const char *export_process_name(const struct run_process *process)
{
	static char name[4][192];
	static unsigned turn;
	char life[16] = "";

	turn = (turn + 1) % 4;
	if (process->life)
		snprintf(life, sizeof life, "-%u", process->life);
	snprintf(name[turn], sizeof name[turn], "%s.%" PRIu64 ".%" PRIu64 "%s", safe(process->host), process->pid,
		 process->starttime, life);
	return name[turn];
}

static void line(FILE *f, json_t *object)
{
	json_dumpf(object, f, JSON_COMPACT);
	fputc('\n', f);
	json_decref(object);
}

static void head(FILE *f, const struct run *run)
{
	const char *arm = run->manifest.arm;

	line(f, json_pack("{s:s, s:i, s:s, s:o, s:o, s:o}", "type", "run", "schema_version", EXPORT_SCHEMA, "tool",
			  "slotprobe " SLOTPROBE_VERSION, "path", json_text(run->path), "arm",
			  json_text(arm && *arm ? arm : NULL), "manifest", json_escaped(run->manifest.root)));
}

/* What the page counted: of each probe the outcomes by group, of each plain counter its value. */
static void counters(FILE *f, const struct run_process *p)
{
	for (uint32_t i = 0; p->counters && i < p->counters->n_rows; i++) {
		const struct ctr_values *c = &p->counters->row[i];
		json_t *object =
			json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "type", c->kind == CTR_PROBE ? "probe" : "counter",
				  "process", export_process_name(p), "host", json_text(p->host), "pid",
				  json_count(p->pid), "rank", json_text(p->rank), "name", json_text(c->name));

		if (c->kind == CTR_PROBE)
			json_object_update_new(object, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "attempted",
								 json_count(c->attempted), "committed",
								 json_count(c->group[CTR_IN_COMMITTED]), "filtered",
								 json_count(c->group[CTR_IN_FILTERED]), "skipped",
								 json_count(c->group[CTR_IN_SKIPPED]), "dropped",
								 json_count(c->group[CTR_IN_DROPPED]), "errors",
								 json_count(c->group[CTR_IN_ERRORS]), "in_flight",
								 json_count(c->in_flight)));
		else
			json_object_set_new(object, "count", json_count(c->outcome[0]));
		line(f, object);
	}
}

static void records(FILE *f, const struct run_process *process, struct log *log)
{
	const struct log_record *rec;

	while (log_next(log, &rec) > 0) {
		json_t *object = record_json(rec);

		json_object_set_new(object, "process", json_string(export_process_name(process)));
		line(f, object);
		progress("exporting", log->chunk_offset, log->bytes);
	}
	progress_end();
}

int export_jsonl(FILE *f, const struct run *run, size_t *damaged, struct error *err)
{
	head(f, run);
	for (size_t i = 0; i < run->n_processes; i++) {
		struct log log;

		counters(f, &run->processes[i]);
		*damaged += !run->processes[i].counters && run->processes[i].state != PROCESS_RUNNING;
		if (!run->processes[i].log_path) {
			++*damaged;
			continue;
		}
		if (log_open(&log, run->processes[i].log_path, err))
			return -1;
		records(f, &run->processes[i], &log);
		*damaged += log_is_damaged(&log.damage) ||
			    run_log_is_short(&run->processes[i], log.records + log.damage.records_missing);
		log_close(&log);
	}
	return 0;
}
