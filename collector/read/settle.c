/* SPDX-License-Identifier: Apache-2.0
 *
 * settle.c: the window over the ids: events and fingerprints meet in it, and leave it in order.
 */
#include <stdlib.h>
#include <string.h>

#include "read/settle.h"

/* Ids apart from the newest that has its fingerprint at which an event leaves: what is said of it later, a watched slot, a
 * copy's source or that it was discarded, comes within that. Few enough to stay in the nearest cache. */
#define SETTLE_LAG 64u
/* And where so many have gathered, it leaves as soon as it is whole. */
#define SETTLE_FULL 8192u
/* An id that has not come when this many newer ones have never will: its attempt was filtered, skipped or dropped. */
#define SETTLE_PATIENCE 1024u
#define SETTLE_ROOM_MIN 128u
#define SETTLE_ROOM_MAX 65536u

struct settle_entry {
	struct settled settled;
	uint32_t watched_pool; /* 1 + the pool of the watched slots' fingerprints; 0: none came */
	bool used, has_event, discarded;
};

bool settle_asked(const char *reading)
{
	const char *text = getenv("SLOTPROBE_READING");

	return text && strcmp(text, reading) == 0;
}

static struct settle_entry *entry_at(struct settle *s, uint64_t id)
{
	return &s->ring[id & (s->room - 1)];
}

/* ---- leaving ---- */

static bool awaits(const struct settle_entry *x)
{
	return x->settled.event.wants_print && x->settled.event.said == CTR_COMMITTED && !x->settled.has_subject;
}

/* What the fingerprint says of the event that it belongs to, as model_link ties them. */
static void resolve(struct settle *s, struct settled *t)
{
	struct model_event *e = &t->event;

	if (!t->has_subject)
		return;
	e->outcome = t->subject.outcome;
	if (e->outcome != CTR_COMMITTED)
		return;
	audit_count_event(s->audit, e->kind);
	if (e->slot == LOG_NO_SLOT)
		e->slot = t->subject.slot;
	else if (e->slot != t->subject.slot)
		s->irregular = true;
}

static void leave(struct settle *s, struct settle_entry *x)
{
	struct settled *t = &x->settled;
	bool has_print = t->has_subject || t->has_source || x->watched_pool;

	/* Of one that nothing is measured of no fingerprint may speak, nor of another pool. */
	if (has_print && (!t->event.wants_print || t->event.said != CTR_COMMITTED))
		s->irregular = true;
	if ((t->has_subject && t->subject.pool != t->event.pool) ||
	    (t->has_source && t->source.pool != t->event.pool) ||
	    (x->watched_pool && x->watched_pool != t->event.pool + 1))
		s->irregular = true;
	t->event.discarded = x->discarded && t->event.kind == LOG_EV_DONATE;
	if (!s->irregular)
		resolve(s, t);
	if (!s->irregular && !s->sink->take(s->sink->arg, s->process, t))
		s->irregular = true;
	x->used = false;
	s->held--;
	s->base++;
}

static bool is_due(const struct settle *s, bool force)
{
	return force || s->printed >= s->base + SETTLE_LAG || s->newest - s->base >= SETTLE_FULL;
}

/* Lets go of what is due; of what is still open only where `force` is set. */
static void advance(struct settle *s, bool force)
{
	while (s->held && !s->irregular && is_due(s, force)) {
		struct settle_entry *x = entry_at(s, s->base);

		if (!x->used) {
			if (!force && s->newest - s->base < SETTLE_PATIENCE)
				return;
			s->base++;
			continue;
		}
		if (!force && (!x->has_event || awaits(x)))
			return;
		if (!x->has_event)
			s->irregular = true;
		else
			leave(s, x);
	}
}

/* ---- coming ---- */

static bool make_room(struct settle *s, uint64_t span)
{
	struct settle old = *s;

	s->room = s->room ? s->room : SETTLE_ROOM_MIN;
	while (s->room <= span && s->room < SETTLE_ROOM_MAX)
		s->room *= 2;
	s->ring = s->room <= span ? NULL : calloc(s->room, sizeof *s->ring);
	if (!s->ring) {
		s->irregular = true;
		s->ring = old.ring;
		s->room = old.room;
		return false;
	}
	for (uint64_t i = 0; i < old.room; i++) {
		struct settle_entry *x = entry_at(&old, s->base + i);

		if (x->used)
			*entry_at(s, s->base + i) = *x;
	}
	free(old.ring);
	return true;
}

/* Apart from place, which each event and fingerprint goes through. */
static __attribute__((noinline)) struct settle_entry *new_place(struct settle *s, uint64_t id)
{
	struct settle_entry *x;

	if (!s->begun || (!s->held && id > s->base && id - s->base > SETTLE_PATIENCE)) {
		s->base = id > SETTLE_PATIENCE ? id - SETTLE_PATIENCE : 1;
		s->begun = true;
	}
	/* Too late, or an id that was handed out before; or one so high that the window would wrap. */
	if (id < s->base || id > UINT64_MAX - 2 * SETTLE_ROOM_MAX) {
		s->irregular = true;
		return NULL;
	}
	if (id - s->base >= s->room && !make_room(s, id - s->base))
		return NULL;
	s->newest = id > s->newest ? id : s->newest;
	x = entry_at(s, id);
	x->settled.has_subject = x->settled.has_source = x->has_event = x->discarded = false;
	x->watched_pool = 0;
	x->used = true;
	s->held++;
	return x;
}

/* The entry of an id; NULL: the log is irregular. */
static inline struct settle_entry *place(struct settle *s, uint64_t id)
{
	/* Of an id before the window it is more than any room. */
	struct settle_entry *x = id - s->base < s->room ? entry_at(s, id) : NULL;

	return x && x->used ? x : new_place(s, id);
}

struct model_event *settle_room(struct settle *s, uint64_t id)
{
	struct settle_entry *x = place(s, id);

	if (!x || x->has_event) {
		s->irregular = true;
		return NULL;
	}
	x->has_event = true;
	return &x->settled.event;
}

/* The donation of that id was not taken. One that left already may have been handed out as taken. */
static void discard(struct settle *s, uint64_t id)
{
	struct settle_entry *x = place(s, id);

	if (x)
		x->discarded = true;
}

void settle_event(struct settle *s, const struct model_event *e)
{
	if (e->pool == MODEL_NONE) {
		s->irregular = true;
		return;
	}
	if (!e->wants_print && e->said == CTR_COMMITTED)
		audit_count_event(s->audit, e->kind);
	/* Last: it may move the window, and the event with it. */
	if (e->kind == LOG_EV_DISCARD && e->src > 0)
		discard(s, (uint64_t)e->src);
	advance(s, false);
}

static bool wants_digest(const struct settle *s, const struct settle_entry *x)
{
	return !s->sink->digests_of_copies || !x->has_event || x->settled.event.kind == LOG_EV_COPY;
}

bool settle_wants_digest(struct settle *s, uint64_t id)
{
	struct settle_entry *x = place(s, id);

	return x && wants_digest(s, x);
}

struct model_print *settle_subject_room(struct settle *s, uint64_t id, bool *digested)
{
	struct settle_entry *x = place(s, id);

	if (!x)
		return NULL;
	s->irregular |= x->settled.has_subject;
	x->settled.has_subject = true;
	s->printed = id > s->printed ? id : s->printed;
	*digested = wants_digest(s, x);
	return &x->settled.subject;
}

void settle_print(struct settle *s, const struct model_print *print)
{
	struct model_print *subject;
	struct settle_entry *x;
	bool digested;

	if (print->role == LOG_ROLE_SUBJECT) {
		subject = settle_subject_room(s, print->event, &digested);
		if (subject)
			*subject = *print;
		return;
	}
	x = place(s, print->event);
	if (!x)
		return;
	if (print->role == LOG_ROLE_WATCHED) {
		if (x->watched_pool && x->watched_pool != print->pool + 1)
			s->irregular = true;
		x->watched_pool = print->pool + 1;
	} else {
		s->irregular |= x->settled.has_source;
		x->settled.source =
			(struct settled_source) { print->rollup, print->digest, print->pool, print->complete };
		x->settled.has_source = true;
	}
}

void settle_end(struct settle *s)
{
	if (s->open.n_planes < s->open.total_planes)
		s->irregular = true;
	advance(s, true);
}

void settle_free(struct settle *s)
{
	free(s->ring);
	s->ring = NULL;
}
