/* SPDX-License-Identifier: Apache-2.0
 *
 * audit.c: counts what a log holds and compares it with what the counters page says that it holds.
 *
 * The bound: committed is counted after the record reached the file, so committed <= records in the log, and whoever was
 * killed in between is still in flight, so records in the log <= committed + in_flight. The counters were read first: a log
 * that still grows can only hold more.
 */
#include <inttypes.h>
#include <string.h>

#include "print/print.h"
#include "print/progress.h"
#include "read/audit.h"
#include "read/map.h"

/* What is known of an event, under its id: its kind, and whether its slot's fingerprint is whole. */
enum { EVENT_KIND = 0xff, EVENT_AWAITS = 0x100, EVENT_PRINTED = 0x200 };

static const char *const row_name[] = {
#define NAME(id, name, kind, meaning) name,
	CTR_CORE_ROWS(NAME)
#undef NAME
};

static int row_of_kind(uint64_t kind)
{
	static const int row[LOG_EV_KIND_COUNT] = {
		[LOG_EV_DONATE] = CTR_ROW_DONATE,   [LOG_EV_RESTORE] = CTR_ROW_RESTORE, [LOG_EV_ALLOC] = CTR_ROW_ALLOC,
		[LOG_EV_CLEAR] = CTR_ROW_CLEAR,     [LOG_EV_COPY] = CTR_ROW_COPY,       [LOG_EV_FREE] = CTR_ROW_FREE,
		[LOG_EV_DISCARD] = CTR_ROW_DISCARD,
	};

	return kind && kind < LOG_EV_KIND_COUNT ? row[kind] : -1;
}

void audit_count_event(struct audit *audit, uint32_t kind)
{
	int row = row_of_kind(kind);

	if (row >= 0)
		audit->in_log[row]++;
}

/* Event and fingerprint may come in either order: the later of the two counts. */
static bool event_and_print(struct audit *audit, struct map *events, uint64_t id, uint64_t flags)
{
	uint64_t before = map_get(events, id), now = flags | (before == MAP_NONE ? 0 : before);
	int row = row_of_kind(now & EVENT_KIND);

	if (before != MAP_NONE && (before & flags & (EVENT_AWAITS | EVENT_PRINTED)))
		return true; /* said twice: the log is damaged, and its first word stands */
	if ((now & EVENT_AWAITS) && (now & EVENT_PRINTED) && row >= 0)
		audit->in_log[row]++;
	return map_set(events, id, now);
}

static bool take_event(struct audit *audit, struct map *events, const struct log_event *e)
{
	int row = row_of_kind(e->kind);

	if (row < 0 || e->outcome != CTR_COMMITTED)
		return true;
	if (e->has_fingerprint)
		return event_and_print(audit, events, e->id, e->kind | EVENT_AWAITS);
	audit->in_log[row]++;
	return true;
}

/* A slot with many planes comes in parts; the last one makes it whole. */
static bool take_fingerprint(struct audit *audit, struct map *events, const struct log_fingerprint *f)
{
	if (f->outcome != CTR_COMMITTED || (uint64_t)f->first_plane + f->n_planes != f->total_planes)
		return true;
	if (f->role == LOG_ROLE_WATCHED)
		audit->in_log[CTR_ROW_WATCH]++;
	if (f->role == LOG_ROLE_SUBJECT && events)
		return event_and_print(audit, events, f->event, EVENT_PRINTED);
	return true;
}

static bool take_record(struct audit *audit, struct map *events, const struct log_record *rec)
{
	switch (rec->type) {
	case LOG_EVENT:
		return !events || take_event(audit, events, (const void *)rec);
	case LOG_FINGERPRINT:
		return take_fingerprint(audit, events, (const void *)rec);
	case LOG_STEP:
		audit->in_log[CTR_ROW_STEP]++;
		return true;
	case LOG_DISK_STOP:
		audit->disk_stops++;
		return true;
	default:
		return true;
	}
}

void audit_begin(struct audit_walk *walk, struct audit *audit)
{
	*audit = (struct audit) { 0 };
	*walk = (struct audit_walk) { .audit = audit };
}

bool audit_take(struct audit_walk *walk, const struct log_record *rec)
{
	return take_record(walk->audit, walk->events_apart ? NULL : &walk->events, rec);
}

void audit_end(struct audit_walk *walk, const struct log *log)
{
	struct audit *audit = walk->audit;

	audit->has_log = true;
	audit->damage = log->damage;
	audit->ended = log->ended;
	audit->bytes = log->bytes;
	audit->chunks = log->chunks;
	audit->records = log->records;
	map_free(&walk->events);
}

int audit_read(struct audit *audit, const struct run_process *process, struct error *error)
{
	const struct log_record *rec;
	struct audit_walk walk;
	bool memory = true;
	struct log log;

	*audit = (struct audit) { 0 };
	if (!process->log_path)
		return 0;
	if (log_open(&log, process->log_path, error))
		return -1;
	log_expect(&log, process->pid, process->starttime);
	audit_begin(&walk, audit);
	while (memory && log_next(&log, &rec) > 0) {
		memory = audit_take(&walk, rec);
		progress("reading", log.chunk_offset, log.bytes);
	}
	progress_end();
	audit_end(&walk, &log);
	log_close(&log);
	if (!memory)
		error_set(error, "out of memory while reading '%s'", process->log_path);
	return memory ? 0 : -1;
}

/* ---- judging ---- */

static void judge_damage(const struct audit *audit, const struct run_process *p, const char *who,
			 struct reasons *reasons)
{
	const struct log_damage *d = &audit->damage;

	/* The writer of a live process may be in the middle of a chunk. */
	if (d->torn_bytes && p->state != PROCESS_RUNNING)
		reasons_add(reasons, REASON_log_truncated, "%s: its last %" PRIu64 " bytes are no whole chunk", who,
			    d->torn_bytes);
	if (d->other_process)
		reasons_add(reasons, REASON_log_damaged, "%s: the log's header is that of another process", who);
	if (d->bad_header || d->bad_chunks || d->seq_gaps || d->bad_records || d->unknown_records)
		reasons_add(reasons, REASON_log_damaged,
			    "%s: %s%" PRIu64 " bad chunks, %" PRIu64 " gaps (%" PRIu64 " records), %" PRIu64
			    " bad and %" PRIu64 " unknown records",
			    who, d->bad_header ? "bad file header, " : "", d->bad_chunks, d->seq_gaps,
			    d->records_missing, d->bad_records, d->unknown_records);
}

static void judge_rows(const struct audit *audit, const struct run_process *p, const char *who, struct reasons *reasons)
{
	static const int rows[] = {
#define ROW(id) CTR_ROW_##id,
		AUDIT_ROWS(ROW)
#undef ROW
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct ctr_values *v = ctr_find(p->counters, row_name[rows[i]]);
		uint64_t committed = v ? v->outcome[CTR_COMMITTED] : 0, in_flight = v ? v->in_flight : 0;
		uint64_t in_log = audit->in_log[rows[i]];

		if (in_log < committed || (p->state != PROCESS_RUNNING && in_log - committed > in_flight))
			reasons_add(reasons, REASON_log_counters_disagree,
				    "%s: %s: %" PRIu64 " in the log, %" PRIu64 " committed, %" PRIu64 " in flight", who,
				    row_name[rows[i]], in_log, committed, in_flight);
	}
}

static void judge_counters(const struct run_process *p, const char *who, struct reasons *reasons)
{
	const struct ctr_snapshot *s = p->counters;

	for (uint32_t r = 0; r < s->n_rows; r++) {
		const struct ctr_values *v = &s->row[r];
		uint64_t lost = v->group[CTR_IN_DROPPED] + v->outcome[CTR_SKIPPED_DISK];

		if (v->kind != CTR_PROBE)
			continue;
		if (!v->reconciled)
			reasons_add(reasons, REASON_counters_unreconciled, "%s: %s", who, v->name);
		if (lost)
			reasons_add(reasons, REASON_records_dropped, "%s: %s: %" PRIu64, who, v->name, lost);
		if (r >= CTR_CORE_ROW_COUNT && v->group[CTR_IN_ERRORS])
			reasons_add(reasons, REASON_adapter_error, "%s: %s: %" PRIu64 " of %" PRIu64, who, v->name,
				    v->group[CTR_IN_ERRORS], v->attempted);
	}
}

static void judge_totals(const struct audit *audit, const struct run_process *p, const char *who,
			 struct reasons *reasons)
{
	const struct ctr_snapshot *s = p->counters;
	const struct ctr_values *meta = ctr_find(s, "metadata_lost");
	static const struct {
		enum ctr_core_row row;
		enum reason_code code;
	} trouble[] = { { CTR_ROW_WRITE_ERRORS, REASON_records_dropped }, { CTR_ROW_INTERNAL, REASON_internal_error } };

	if (meta && meta->outcome[0])
		reasons_add(reasons, REASON_records_dropped, "%s: %" PRIu64 " records about pools, graphs or regions",
			    who, meta->outcome[0]);
	for (unsigned i = 0; i < sizeof trouble / sizeof trouble[0]; i++) {
		const struct ctr_values *row = ctr_find(s, row_name[trouble[i].row]);

		if (row && row->outcome[0])
			reasons_add(reasons, trouble[i].code, "%s: %s %" PRIu64, who, row->name, row->outcome[0]);
	}
	if (audit->disk_stops || s->disk_stop_real_ns)
		reasons_add(reasons, REASON_records_dropped, "%s: the disk guard stopped the payload", who);
	if (run_log_is_short(p, audit->records + audit->damage.records_missing))
		reasons_add(reasons, REASON_log_truncated,
			    "%s: %" PRIu64 " records were written, %" PRIu64 " are there", who, s->records_written,
			    audit->records);
}

void audit_judge_agreement(const struct audit *audit, const struct run_process *p, const char *who,
			   struct reasons *reasons)
{
	if (!audit->has_log || !p->counters)
		return;
	judge_rows(audit, p, who, reasons);
	judge_totals(audit, p, who, reasons);
}

void audit_judge(const struct audit *audit, const struct run_process *p, struct reasons *reasons)
{
	char who[128], host[65 * 4];

	snprintf(who, sizeof(who), "%.64s.%" PRIu64, text_safe(host, sizeof(host), p->host, sizeof(p->host)), p->pid);
	if (!audit->has_log)
		reasons_add(reasons, REASON_log_truncated, "%s: there is no log", who);
	else
		judge_damage(audit, p, who, reasons);
	if (!p->counters) {
		reasons_add(reasons, REASON_counters_damaged, "%s: %s", who,
			    p->counters_problem ? p->counters_problem : "there is no page");
		return;
	}
	judge_counters(p, who, reasons);
	audit_judge_agreement(audit, p, who, reasons);
}
