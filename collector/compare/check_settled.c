/* SPDX-License-Identifier: Apache-2.0
 *
 * check_settled.c: the invariants of a run of which nothing is kept, as long as they hold.
 *
 * What a slot was allocated with, and what was donated last there, is kept a slot. Which donation had a hash and which state a claim
 * had first are questions to a table, put off until all are known (deferred.h). What would take more memory than it may waits in a
 * file; where there is no disk for that, the logs are read several times, each time for a part of the hashes. Where something was
 * restored that is not what the slot got last, what came before is asked of the table too, in a new reading. Where something is
 * broken, or is not told by this, the run is loaded whole, which finds the events to show.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/check_keys.h"
#include "compare/check_settled.h"
#include "compare/deferred.h"
#include "compare/slot_states.h"
#include "options.h"
#include "read/counters.h"
#include "read/settle.h"

/* Of questions: with a file for the others, which costs no more than fresh memory does, and without. */
#define MEMORY_BESIDE_FILE (128ull << 20)
#define MEMORY             (1ull << 30)
#define PARTS_MAX          1024u
/* Of the disk: more than a recording wants, which would stop otherwise. */
#define LEAVE_FREE (3ull << 30)

/* What a table is asked. */
enum question_kind {
	ASK_HOLDER, /* a hash belongs to one key */
	ASK_FIRST,  /* a claim's state is that of its first donation, or noise */
	ASK_PUT,    /* what was donated last in a slot for a claim */
	ASK_RESTORE /* what was restored is that */
};

struct judge {
	struct check *check; /* its results are ours while all holds */
	struct slot_states slots;
	struct deferred questions;
	const struct model_process *process;
	uint32_t part, parts;
	bool file;     /* for questions that find no room */
	bool no_disk;  /* for it */
	bool restores; /* there are some: what was donated last must be known */
	bool older;    /* and what was donated before */
	bool asked_older;
	uint64_t seen; /* donations of this reading, filtered ones too */
	struct model_event sample;
};

static struct slot_state *slot_of(struct judge *j, const struct model_event *e)
{
	return slot_states_at(&j->slots, j->process, e->pool, e->slot);
}

static uint64_t *checked(struct judge *j, enum invariant which)
{
	return &j->check->result[which].checked;
}

/* ---- questions ---- */

static bool answer(void *arg, struct bigmap *map, struct bigmap_cell *cell, const struct question *q)
{
	struct judge *j = arg;
	bool held = cell->hash;

	if (question_kind(q) == ASK_RESTORE) {
		*checked(j, INVARIANT_restore_differs) += held;
		return !held || cell->value == q->value;
	}
	if (!held) {
		bigmap_fill(map, cell, question_entry(q), q->value);
		return true;
	}
	if (question_kind(q) == ASK_HOLDER)
		return cell->value == q->value;
	if (question_kind(q) == ASK_FIRST)
		j->check->noise += cell->value != q->value;
	else
		cell->value = q->value;
	return true;
}

static bool ask(struct judge *j, enum question_kind kind, uint64_t hash, uint64_t value)
{
	/* The middle bits choose the reading, the low ones the part, the high ones the place. */
	return ((hash >> 16 & UINT32_MAX) * j->parts >> 32) != j->part ||
	       deferred_ask(&j->questions, kind, hash, value);
}

/* ---- events ---- */

static bool take_allocation(struct judge *j, const struct settled *t)
{
	struct slot_state *slot;

	if (t->event.slot == LOG_NO_SLOT || !settle_measured(t))
		return true;
	slot = slot_of(j, &t->event);
	if (!slot || t->subject.rollup == MAP_NONE)
		return false;
	slot->allocated = t->subject.rollup;
	return true;
}

/* What needs no table is judged at the first reading alone. */
static bool judge_alone(struct judge *j, const struct settled *t, const struct slot_state *slot)
{
	const struct model_event *e = &t->event;

	j->check->donations++;
	if (e->key_len > 0) {
		++*checked(j, INVARIANT_length_disagrees);
		if (e->claimed_len != e->key_len)
			return false;
	}
	if (!settle_measured(t))
		return true;
	j->check->measured++;
	if (slot->allocated != MAP_NONE && e->claimed_len > 0) {
		++*checked(j, INVARIANT_never_written);
		/* It may have held this very state rightly: that only all donations tell. */
		if (slot->allocated == t->subject.rollup)
			return false;
	}
	++*checked(j, INVARIANT_non_finite);
	return !t->subject.nan && !t->subject.inf;
}

static uint64_t state(uint64_t claim, uint64_t rollup)
{
	return check_fold(claim, rollup) >> 1; /* never MAP_NONE */
}

static bool note_donated(struct judge *j, const struct model_event *e, struct slot_state *slot, uint64_t claim,
			 uint64_t rollup)
{
	if (j->older)
		return ask(j, ASK_PUT, check_fold(check_slot_key(e), claim), rollup);
	slot->donated = state(claim, rollup);
	return true;
}

static bool take_donation(struct judge *j, const struct settled *t)
{
	const struct model_event *e = &t->event;
	uint64_t claim, rollup = t->subject.rollup;
	struct slot_state *slot;
	bool fine = true;

	if (!j->seen++)
		j->sample = *e;
	if (ctr_outcome_group(e->outcome) == CTR_IN_FILTERED)
		return true;
	slot = slot_of(j, e);
	if (!slot || (!j->part && !judge_alone(j, t, slot)))
		return false;
	if (!settle_measured(t))
		return true;
	claim = check_claim_key(e);
	if (e->key && e->claimed_len > 0 && e->key_len == e->claimed_len) {
		*checked(j, INVARIANT_same_hash_other_key) += !j->part;
		fine = ask(j, ASK_HOLDER, check_fold(check_fold(3, e->pool), rollup), e->key);
	}
	if (e->key)
		fine = fine && ask(j, ASK_FIRST, claim, rollup);
	if (j->restores && !e->discarded)
		fine = fine && note_donated(j, e, slot, claim, rollup);
	return fine;
}

/* Mostly a slot is restored from what it was given last. */
static bool judge_last(struct judge *j, const struct slot_state *slot, uint64_t claim, uint64_t rollup)
{
	if (!slot)
		return false;
	/* What was donated before the recording began cannot be judged. */
	if (slot->donated == MAP_NONE)
		return true;
	++*checked(j, INVARIANT_restore_differs);
	j->asked_older = slot->donated != state(claim, rollup);
	return !j->asked_older;
}

static bool take_restore(struct judge *j, const struct settled *t)
{
	const struct model_event *e = &t->event;
	uint64_t claim = check_claim_key(e), rollup = t->subject.rollup;

	if (ctr_outcome_group(e->outcome) == CTR_IN_FILTERED)
		return true;
	j->check->restores += !j->part;
	/* The page told of none. */
	if (!j->restores)
		return false;
	if (!settle_measured(t))
		return true;
	if (j->older)
		return ask(j, ASK_RESTORE, check_fold(check_slot_key(e), claim), rollup);
	return j->part || judge_last(j, slot_of(j, e), claim, rollup);
}

static bool take_copy(struct judge *j, const struct settled *t)
{
	if (j->part || !settle_measured(t) || !t->has_source || !t->source.complete)
		return true;
	++*checked(j, INVARIANT_copy_differs);
	return t->source.rollup == t->subject.rollup && t->source.digest == t->subject.digest;
}

static bool begin_process(struct judge *j, const struct model_process *p)
{
	j->process = p;
	slot_states_free(&j->slots);
	return deferred_perform(&j->questions, answer, j);
}

static bool take(void *arg, const struct model_process *p, const struct settled *t)
{
	struct judge *j = arg;

	if (p != j->process && !begin_process(j, p))
		return false;
	switch (t->event.kind) {
	case LOG_EV_ALLOC:
	case LOG_EV_CLEAR:
		return take_allocation(j, t);
	case LOG_EV_DONATE:
		return take_donation(j, t);
	case LOG_EV_RESTORE:
		return take_restore(j, t);
	case LOG_EV_COPY:
		return take_copy(j, t);
	default:
		return true;
	}
}

/* ---- the readings ---- */

static uint64_t size_from(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);
	uint64_t size;

	return text && size_parse(text, &size) == 0 ? size : otherwise;
}

static uint64_t memory_allowed(bool file)
{
	uint64_t asked = size_from("SLOTPROBE_CHECK_MEMORY", 0);

	return asked ? asked : file ? MEMORY_BESIDE_FILE : MEMORY;
}

/* Of the process that has most to ask: a hash's holder, a claim's first state and perhaps the last one of each donation, and
 * what was restored; 0 where no page tells. And whether anything was, or may have been, restored. */
static uint64_t most_questions(struct judge *j, const struct run *run)
{
	uint64_t most = 0;

	for (size_t i = 0; i < run->n_processes; i++) {
		const struct ctr_snapshot *page = run->processes[i].counters;
		const struct ctr_values *donate = page ? ctr_find(page, "core.donate") : NULL;
		const struct ctr_values *restore = page ? ctr_find(page, "core.restore") : NULL;
		uint64_t donated = donate ? donate->outcome[CTR_COMMITTED] : 0;
		uint64_t restored = restore ? restore->outcome[CTR_COMMITTED] : 0;
		uint64_t n;

		j->restores |= !restore || restore->attempted;
		donated = donated > UINT32_MAX ? UINT32_MAX : donated;
		restored = restored > UINT32_MAX ? UINT32_MAX : restored;
		n = 2 * donated + (j->older && restored ? donated + restored : 0);
		most = n > most ? n : most;
	}
	return most;
}

static bool read_part(struct judge *j, struct model *model, const char *path)
{
	const struct settle_sink sink = { .take = take, .arg = j, .digests_of_copies = true };
	struct error err;
	bool regular = false;

	j->seen = 0;
	j->process = NULL;
	return model_open_settled(model, path, &sink, &regular, &err) == 0 && regular &&
	       deferred_perform(&j->questions, answer, j);
}

/* Something was donated: whoever judges the coverage looks for that among the events. */
static bool keep_sample(struct model *model, const struct model_event *sample)
{
	struct model_process *p = &model->process[0];

	if (!array_room(&p->event, &p->room_events, 0, sizeof *p->event))
		return false;
	p->event[p->n_events++] = *sample;
	return true;
}

/* One reading with a file, or as many without as memory asks for; some room for what does not come out even. */
static uint32_t readings(const struct judge *j, uint64_t questions, uint64_t memory)
{
	uint64_t parts = j->file ? 1 : questions * sizeof(struct question) / (memory - memory / 8) + 1;

	return parts > PARTS_MAX ? 0 : (uint32_t)parts;
}

static bool read_parts(struct judge *j, const char *path, uint64_t questions)
{
	uint64_t seen, memory = memory_allowed(j->file);
	bool fine;

	j->parts = readings(j, questions, memory);
	/* A page may tell anything: no more memory is taken than is allowed. */
	fine = j->parts &&
	       deferred_begin(&j->questions, questions / j->parts, memory,
			      j->file ? size_from("SLOTPROBE_MIN_FREE", LEAVE_FREE) : DEFERRED_NO_FILE) &&
	       read_part(j, &j->check->model, path);
	seen = j->seen;
	for (j->part = 1; fine && j->part < j->parts; j->part++) {
		struct model again;

		/* A log that grew meanwhile tells other things each time. */
		fine = read_part(j, &again, path) && j->seen == seen;
		model_close(&again);
	}
	return fine && (!seen || keep_sample(&j->check->model, &j->sample));
}

static bool judge_run(struct judge *j, const char *path)
{
	struct check *check = j->check;
	struct run run;
	struct error err;
	uint64_t most;
	bool fine;

	if (run_open(&run, path, &err) != RUN_OK)
		return false;
	most = most_questions(j, &run);
	run_close(&run);
	fine = read_parts(j, path, most);
	slot_states_free(&j->slots);
	j->no_disk = j->questions.no_disk;
	deferred_free(&j->questions);
	if (!fine) {
		model_close(&check->model);
		memset(check, 0, sizeof *check);
	}
	return fine;
}

bool check_settled(struct check *check, const char *path)
{
	struct judge next = { .check = check, .file = true };

	for (;;) {
		struct judge j = next;

		if (judge_run(&j, path))
			return true;
		/* At most once each. */
		if (j.no_disk && next.file)
			next.file = false;
		else if (j.asked_older && !next.older)
			next.older = true;
		else
			return false;
	}
}
