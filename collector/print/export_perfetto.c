/* SPDX-License-Identifier: Apache-2.0
 *
 * export_perfetto.c: a run as a trace that Perfetto opens: TrackEvents in its protocol buffer format.
 *
 * Under each process: a track of its steps, a counter of its graph launches, and of each slot a track, on which a span lasts
 * from allocation to free, donations and restores are instants with what was measured of them, and an arrow leads from a
 * donation to the restores that follow it; and a counter of the slot's abs-max. Times are wall-clock times, so that hosts line up.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "print/export.h"
#include "print/protobuf.h"
#include "read/map.h"
#include "read/model.h"
#include "trouble.h"

/* Of perfetto/trace: message and field numbers that never change. */
enum { TRACE_PACKET = 1 };
enum { PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11, PACKET_SEQUENCE_FLAGS = 13, PACKET_TRACK = 60 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { COUNTER_UNIT_NAME = 6 };
enum {
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_CATEGORY = 22,
	EVENT_NAME = 23,
	EVENT_COUNT = 30,
	EVENT_REAL = 44,
	EVENT_FLOW = 47
};
enum { ANNOTATION_UINT = 3, ANNOTATION_INT = 4, ANNOTATION_REAL = 5, ANNOTATION_TEXT = 6, ANNOTATION_NAME = 10 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { FLAG_CLEARED = 1 };

struct slot_state { /* one slot's track */
	uint32_t pool;
	int64_t slot;
	uint64_t donated; /* id of its last donation; 0: none */
	bool held;        /* a span is open */
	bool counted;     /* its counter has a track */
};

struct trace {
	FILE *f;
	const struct model_process *p;
	uint32_t sequence; /* number of the process, from 1 */
	bool pids_differ, begun;
	int64_t to_real; /* from CLOCK_MONOTONIC to CLOCK_REALTIME, on that host */
	struct slot_state *slot;
	size_t n_slots, room;
	struct map by_slot;
	struct pb packet, inner, part, whole;
	bool no_memory;
};

/* ---- tracks: a process's are numbered so that no other process has them ---- */

enum { TRACK_OF_PROCESS, TRACK_OF_STEPS, TRACK_OF_LAUNCHES, TRACKS_FIXED };

static uint64_t track(const struct trace *t, uint64_t number)
{
	return log_mix64((uint64_t)t->sequence << 32 ^ number) | 1;
}

static uint64_t slot_track(const struct trace *t, size_t i)
{
	return track(t, TRACKS_FIXED + 2 * i);
}

static uint64_t absmax_track(const struct trace *t, size_t i)
{
	return track(t, TRACKS_FIXED + 2 * i + 1);
}

/* Ends a packet whose body is in t->packet. */
static void packet_write(struct trace *t)
{
	pb_uint(&t->packet, PACKET_SEQUENCE, t->sequence);
	if (!t->begun)
		pb_uint(&t->packet, PACKET_SEQUENCE_FLAGS, FLAG_CLEARED);
	t->begun = true;
	pb_clear(&t->whole);
	pb_message(&t->whole, TRACE_PACKET, &t->packet);
	t->no_memory |= t->whole.no_memory;
	if (!t->whole.no_memory)
		fwrite(t->whole.at, 1, t->whole.n, t->f);
	pb_clear(&t->packet);
}

static void track_write(struct trace *t, uint64_t uuid, const char *name, const char *counter_unit)
{
	pb_clear(&t->inner);
	pb_uint(&t->inner, TRACK_UUID, uuid);
	pb_uint(&t->inner, TRACK_PARENT, track(t, TRACK_OF_PROCESS));
	pb_text(&t->inner, TRACK_NAME, name);
	if (counter_unit) {
		pb_clear(&t->part);
		pb_text(&t->part, COUNTER_UNIT_NAME, counter_unit);
		pb_message(&t->inner, TRACK_COUNTER, &t->part);
	}
	pb_message(&t->packet, PACKET_TRACK, &t->inner);
	packet_write(t);
}

/* A process of Perfetto has a pid that no other has: across hosts that need not be so, then it is a named track. */
static void process_track(struct trace *t)
{
	const struct run_process *from = t->p->from;
	char name[320];

	pb_clear(&t->inner);
	pb_uint(&t->inner, TRACK_UUID, track(t, TRACK_OF_PROCESS));
	/* Perfetto itself says the pid behind a process's name. */
	if (t->pids_differ) {
		snprintf(name, sizeof name, "%s %s on %s", safe(t->p->rank), safe(from->comm), safe(from->host));
		pb_clear(&t->part);
		pb_uint(&t->part, PROCESS_PID, from->pid);
		pb_text(&t->part, PROCESS_NAME, name);
		pb_message(&t->inner, TRACK_PROCESS, &t->part);
	} else {
		snprintf(name, sizeof name, "%s %s pid %" PRIu64 " on %s", safe(t->p->rank), safe(from->comm),
			 from->pid, safe(from->host));
		pb_text(&t->inner, TRACK_NAME, name);
	}
	pb_message(&t->packet, PACKET_TRACK, &t->inner);
	packet_write(t);
	track_write(t, track(t, TRACK_OF_STEPS), "steps", NULL);
	track_write(t, track(t, TRACK_OF_LAUNCHES), "graph launches", "launches");
}

/* The track of an event's slot, made when it is first met; SIZE_MAX: no memory, or no slot. */
static size_t slot_of(struct trace *t, const struct model_event *e)
{
	const struct model_pool *pool = e->pool == MODEL_NONE ? NULL : &t->p->pool[e->pool];
	uint64_t key = log_mix64(log_mix64((uint64_t)e->pool + 1) + (uint64_t)e->slot), i;
	char name[160];

	for (;; key = log_mix64(key + 1)) {
		i = map_get(&t->by_slot, key);
		if (i == MAP_NONE)
			break;
		if (t->slot[i].pool == e->pool && t->slot[i].slot == e->slot)
			return i;
	}
	i = t->n_slots;
	if (!array_room(&t->slot, &t->room, t->n_slots, sizeof *t->slot) || !map_set(&t->by_slot, key, i)) {
		t->no_memory = true;
		return SIZE_MAX;
	}
	t->slot[t->n_slots++] = (struct slot_state) { .pool = e->pool, .slot = e->slot };
	if (e->slot == LOG_NO_SLOT)
		snprintf(name, sizeof name, "%s, slot unknown", pool ? safe(pool->name) : "unknown pool");
	else
		snprintf(name, sizeof name, "%s, slot %" PRId64, pool ? safe(pool->name) : "unknown pool", e->slot);
	track_write(t, slot_track(t, i), name, NULL);
	return i;
}

/* ---- events ---- */

static void event_begin(struct trace *t, int type, uint64_t uuid)
{
	pb_clear(&t->inner);
	pb_int(&t->inner, EVENT_TYPE, type);
	pb_uint(&t->inner, EVENT_TRACK, uuid);
}

static void event_named(struct trace *t, int type, uint64_t uuid, const char *name)
{
	event_begin(t, type, uuid);
	pb_text(&t->inner, EVENT_CATEGORY, "slotprobe");
	pb_text(&t->inner, EVENT_NAME, name);
}

static void event_write(struct trace *t, uint64_t t_ns)
{
	pb_uint(&t->packet, PACKET_TIMESTAMP, t_ns + (uint64_t)t->to_real);
	pb_message(&t->packet, PACKET_EVENT, &t->inner);
	packet_write(t);
}

static void note_begin(struct trace *t, const char *name)
{
	pb_clear(&t->part);
	pb_text(&t->part, ANNOTATION_NAME, name);
}

static void note_text(struct trace *t, const char *name, const char *value)
{
	note_begin(t, name);
	pb_text(&t->part, ANNOTATION_TEXT, value);
	pb_message(&t->inner, EVENT_ANNOTATION, &t->part);
}

static void note_hex(struct trace *t, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "0x%016" PRIx64, value);
	note_text(t, name, text);
}

static void note_int(struct trace *t, const char *name, int64_t value)
{
	note_begin(t, name);
	pb_int(&t->part, ANNOTATION_INT, value);
	pb_message(&t->inner, EVENT_ANNOTATION, &t->part);
}

static void note_uint(struct trace *t, const char *name, uint64_t value)
{
	note_begin(t, name);
	pb_uint(&t->part, ANNOTATION_UINT, value);
	pb_message(&t->inner, EVENT_ANNOTATION, &t->part);
}

static void note_real(struct trace *t, const char *name, double value)
{
	note_begin(t, name);
	pb_double(&t->part, ANNOTATION_REAL, value);
	pb_message(&t->inner, EVENT_ANNOTATION, &t->part);
}

/* What was said and what was measured. */
static void notes(struct trace *t, const struct model_event *e)
{
	const struct model_print *print = model_measured(t->p, e) ? model_subject(t->p, e) : NULL;
	const struct model_callsite *site = model_callsite(t->p, e->callsite);

	note_uint(t, "event", e->id);
	note_int(t, "claimed_len", e->claimed_len);
	if (e->key)
		note_hex(t, "key", e->key);
	note_uint(t, "step", e->step);
	note_uint(t, "pool_launches", e->pool_launches);
	note_text(t, "outcome", e->outcome < CTR_OUTCOME_COUNT ? ctr_outcome_label(e->outcome) : "?");
	if (print) {
		note_hex(t, "rollup", print->rollup);
		note_real(t, "absmax", print->absmax);
		note_uint(t, "nan", print->nan);
		note_uint(t, "inf", print->inf);
	}
	if (site && site->n_frames && site->symbol[0])
		note_text(t, "reported_from", safe(site->symbol[0]));
}

static void absmax(struct trace *t, size_t i, const struct model_event *e)
{
	const struct model_print *print = model_measured(t->p, e) ? model_subject(t->p, e) : NULL;
	char name[160];

	if (!print || !isfinite(print->absmax))
		return;
	if (!t->slot[i].counted) {
		snprintf(name, sizeof name, "%s, slot %" PRId64 " abs-max", safe(t->p->pool[e->pool].name), e->slot);
		track_write(t, absmax_track(t, i), name, "abs-max");
		t->slot[i].counted = true;
	}
	event_begin(t, TYPE_COUNTER, absmax_track(t, i));
	pb_double(&t->inner, EVENT_REAL, print->absmax);
	event_write(t, e->t_ns);
}

static void span_end(struct trace *t, size_t i, uint64_t t_ns)
{
	if (!t->slot[i].held)
		return;
	event_begin(t, TYPE_END, slot_track(t, i));
	event_write(t, t_ns);
	t->slot[i].held = false;
}

static void slot_event(struct trace *t, const struct model_event *e)
{
	size_t i = slot_of(t, e);

	if (i == SIZE_MAX)
		return;
	/* A span that was never freed ends where the next begins. */
	if (e->kind == LOG_EV_ALLOC)
		span_end(t, i, e->t_ns);
	event_named(t, e->kind == LOG_EV_ALLOC ? TYPE_BEGIN : TYPE_INSTANT, slot_track(t, i),
		    e->kind == LOG_EV_ALLOC ? "held" : model_event_name(e->kind));
	notes(t, e);
	if (e->kind == LOG_EV_DONATE)
		t->slot[i].donated = e->id;
	if (t->slot[i].donated && (e->kind == LOG_EV_DONATE || e->kind == LOG_EV_RESTORE))
		pb_fixed64(&t->inner, EVENT_FLOW, log_mix64(track(t, TRACK_OF_PROCESS) + t->slot[i].donated));
	event_write(t, e->t_ns);
	t->slot[i].held |= e->kind == LOG_EV_ALLOC;
	if (e->kind == LOG_EV_FREE)
		span_end(t, i, e->t_ns);
	absmax(t, i, e);
}

static void steps(struct trace *t)
{
	for (size_t i = 0; i < t->p->n_steps && !t->no_memory; i++) {
		const struct model_step *step = &t->p->step[i];

		event_named(t, TYPE_INSTANT, track(t, TRACK_OF_STEPS), *step->name ? safe(step->name) : "step");
		note_uint(t, "number", step->number);
		note_int(t, "batch", step->batch);
		note_int(t, "padded", step->padded);
		note_text(t, "mode", step->mode == 1 ? "eager" : step->mode == 2 ? "graph" : "?");
		event_write(t, step->t_ns);
	}
}

/* Every event says how many launches came before it. */
static void launches(struct trace *t, const struct model_event *e, uint64_t *before)
{
	if (e->launches == *before || e->launches > INT64_MAX)
		return;
	*before = e->launches;
	event_begin(t, TYPE_COUNTER, track(t, TRACK_OF_LAUNCHES));
	pb_int(&t->inner, EVENT_COUNT, (int64_t)e->launches);
	event_write(t, e->t_ns);
}

/* ---- processes ---- */

/* The log's first record has both clocks. */
static int64_t clock_offset(const struct run_process *from)
{
	const struct log_record *rec;
	int64_t offset = 0;
	struct error error;
	struct log log;

	if (!from->log_path)
		return 0;
	if (log_open(&log, from->log_path, &error) != 0) /* it was read before */
		trouble_end("%s", error.text);
	if (log_next(&log, &rec) > 0 && rec->type == LOG_PROCESS) {
		const struct log_process *process = (const void *)rec;

		offset = (int64_t)(process->t_real_ns - process->t_ns);
	}
	log_close(&log);
	return offset;
}

static bool pids_differ(const struct model *model)
{
	struct map seen = { 0 };
	bool differ = true;

	for (size_t i = 0; differ && i < model->n_processes; i++) {
		uint64_t pid = model->process[i].from->pid;

		differ = pid && pid <= INT32_MAX && map_get(&seen, pid) == MAP_NONE;
		if (!map_set(&seen, pid, i))
			trouble_memory();
	}
	map_free(&seen);
	return differ;
}

static bool process_write(FILE *f, const struct model *model, size_t i, bool pids)
{
	struct trace t = { .f = f, .p = &model->process[i], .sequence = (uint32_t)i + 1, .pids_differ = pids };
	uint64_t launched = UINT64_MAX;

	t.to_real = clock_offset(t.p->from);
	process_track(&t);
	steps(&t);
	for (size_t k = 0; k < t.p->n_events && !t.no_memory; k++) {
		launches(&t, &t.p->event[k], &launched);
		slot_event(&t, &t.p->event[k]);
	}
	free(t.slot);
	map_free(&t.by_slot);
	pb_free(&t.packet);
	pb_free(&t.inner);
	pb_free(&t.part);
	pb_free(&t.whole);
	return !t.no_memory;
}

int export_perfetto(FILE *f, const struct run *run, size_t *damaged, struct error *err)
{
	struct model model;
	bool memory = true, pids;

	if (model_open(&model, run->path, err) != 0)
		return -1;
	pids = pids_differ(&model);
	for (size_t i = 0; i < model.n_processes && memory; i++) {
		const struct model_process *p = &model.process[i];

		*damaged += !p->has_log || log_is_damaged(&p->damage) ||
			    run_log_is_short(p->from, p->records + p->damage.records_missing);
		memory = process_write(f, &model, i, pids);
	}
	model_close(&model);
	if (!memory)
		error_set(err, "out of memory");
	return memory ? 0 : -1;
}
