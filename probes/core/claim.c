/* SPDX-License-Identifier: Apache-2.0
 *
 * claim.c: donations, restores and slot events: from what the server says to an event in the queue and a fingerprint on
 * its way. Every call is one attempt and ends exactly once.
 *
 * The event is queued after the launch, so that it can say whether there was one, and the shots are armed after the
 * event, so that the writer meets the event first. If the queue has no room, the shots are set aside and their results
 * thrown away when they come.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

#define WATCH_MAX (sizeof(((struct record_options *)0)->watch) / sizeof(int64_t))

struct attempt {
	struct ctr_row *row;
	struct probe_pool *pool;
	const struct slotprobe_claim *claim;
	struct log_event event;
	bool known; /* the event says enough to be recorded */
	uint32_t shot, source, watch[WATCH_MAX], n_watch;
	bool has_source;
};

static const struct {
	enum ctr_core_row row;
	bool measured;
} kinds[LOG_EV_KIND_COUNT] = {
	[LOG_EV_DONATE] = { CTR_ROW_DONATE, true }, [LOG_EV_RESTORE] = { CTR_ROW_RESTORE, true },
	[LOG_EV_ALLOC] = { CTR_ROW_ALLOC, true },   [LOG_EV_CLEAR] = { CTR_ROW_CLEAR, true },
	[LOG_EV_COPY] = { CTR_ROW_COPY, true },     [LOG_EV_DISCARD] = { CTR_ROW_DISCARD, false },
	[LOG_EV_FREE] = { CTR_ROW_FREE, false },
};

/* ---- what was said ---- */

static enum ctr_outcome check_slot(const struct probe_pool *p, int64_t slot)
{
	if (slot < 0)
		return CTR_FILTERED_PADDING;
	return slot < p->first_slot || slot - p->first_slot >= p->n_slots ? CTR_ERROR_SLOT : CTR_COMMITTED;
}

static bool id_ptr_sound(const struct probe_pool *pool, uint64_t at, uint32_t bytes)
{
	if (pool->device < 0 || (bytes != 4 && bytes != 8))
		return false;
	return at % bytes == 0; /* a misaligned load would fault */
}

/* Callers that were built before a field existed do not have it. */
static uint64_t src_ptr_of(const struct slotprobe_claim *c)
{
	const size_t reach = offsetof(struct slotprobe_claim, src_ptr_bytes) + sizeof c->src_ptr_bytes;

	return c->size >= reach ? c->src_ptr : 0;
}

static uint64_t state_of(const struct slotprobe_claim *c)
{
	return c->size >= offsetof(struct slotprobe_claim, state) + sizeof c->state ? c->state : 0;
}

/* What is measured in a floating pool lies where the claim says, and nowhere else anything does. */
static bool state_sound(const struct attempt *a)
{
	const bool measured = kinds[a->event.kind].measured;

	if (!a->pool->floating)
		return !state_of(a->claim);
	return !measured || (state_of(a->claim) && a->event.kind != LOG_EV_COPY);
}

static uint64_t key_of(const struct slotprobe_claim *c)
{
	return c->key_text ? log_key_hash(c->key_text, strnlen(c->key_text, PROBE_KEY_TEXT_MAX)) : c->key;
}

static void fill_event(struct attempt *a, enum log_event_kind kind, int64_t src)
{
	const struct slotprobe_claim *c = a->claim;
	struct log_event *e = &a->event;

	record_fill(e, LOG_EVENT);
	e->id = __atomic_add_fetch(&probe_counts.events, 1, __ATOMIC_RELAXED);
	e->t_ns = record_now_ns();
	e->kind = kind;
	e->pool = c->pool;
	e->slot = c->slot_ptr ? LOG_NO_SLOT : c->slot;
	e->slot_ptr = c->slot_ptr;
	e->claimed_len = c->claimed_len;
	e->key_len = c->key_len;
	e->key = key_of(c);
	e->src = kind == LOG_EV_COPY && src_ptr_of(c) ? LOG_NO_SLOT : src;
	e->stream = c->stream;
	e->step = __atomic_load_n(&probe_counts.steps, __ATOMIC_RELAXED);
	e->launches = probe_launches(&probe_counts.launches);
	e->tid = record_tid();
}

static enum ctr_outcome check_source(const struct attempt *a)
{
	const struct slotprobe_claim *c = a->claim;

	if (src_ptr_of(c))
		return id_ptr_sound(a->pool, c->src_ptr, c->src_ptr_bytes) ? CTR_COMMITTED : CTR_ERROR_ARGUMENT;
	return check_slot(a->pool, a->event.src) == CTR_COMMITTED ? CTR_COMMITTED : CTR_ERROR_SLOT;
}

static enum ctr_outcome check_claim(struct attempt *a)
{
	const struct slotprobe_claim *c = a->claim;
	enum ctr_outcome outcome = CTR_COMMITTED;

	a->pool = probe_pool_get(c->pool, &outcome);
	if (!a->pool)
		return outcome;
	a->event.pool_launches = probe_pool_launches(a->pool);
	if (c->flags || !state_sound(a))
		return CTR_ERROR_ARGUMENT;
	if (c->slot_ptr)
		outcome = id_ptr_sound(a->pool, c->slot_ptr, c->slot_ptr_bytes) ? CTR_COMMITTED : CTR_ERROR_ARGUMENT;
	else
		outcome = check_slot(a->pool, c->slot);
	if (outcome != CTR_COMMITTED)
		return outcome;
	if (a->event.kind == LOG_EV_COPY)
		return check_source(a);
	if (a->event.kind == LOG_EV_DISCARD && a->event.src <= 0)
		return CTR_ERROR_ARGUMENT;
	return CTR_COMMITTED;
}

static enum ctr_outcome check_recording(void)
{
	if (record_recording())
		return CTR_COMMITTED;
	return record_disk_stopped() ? CTR_SKIPPED_DISK : CTR_FILTERED_PAUSED;
}

/* ---- launches ---- */

static enum ctr_outcome fire_source(struct attempt *a, struct probe_stay *stay)
{
	const uint64_t at = src_ptr_of(a->claim);
	const struct probe_aim aim = { .slot = a->event.src,
				       .slot_ptr = at,
				       .slot_ptr_bytes = at ? a->claim->src_ptr_bytes : 0,
				       .role = LOG_ROLE_SOURCE };
	enum ctr_outcome outcome;

	if (a->event.kind != LOG_EV_COPY)
		return CTR_COMMITTED;
	outcome = probe_fire(stay, &aim, &a->source);
	a->has_source = outcome == CTR_COMMITTED;
	return outcome;
}

static enum ctr_outcome fire_subject(struct attempt *a, struct probe_stay *stay)
{
	const struct slotprobe_claim *c = a->claim;
	const struct probe_aim aim = { c->slot, c->slot_ptr, c->slot_ptr_bytes, LOG_ROLE_SUBJECT, state_of(c) };

	return probe_fire(stay, &aim, &a->shot);
}

static void fire_watched(struct attempt *a, struct probe_stay *stay)
{
	const struct record_options *o = record_hot.options;
	struct ctr_row *row = ctr_core(CTR_ROW_WATCH);

	if (a->event.kind != LOG_EV_DONATE || a->pool->floating)
		return;
	for (uint32_t i = 0; i < o->n_watch && i < WATCH_MAX; i++) {
		const struct probe_aim aim = { .slot = o->watch[i], .role = LOG_ROLE_WATCHED };
		enum ctr_outcome outcome;
		if (check_slot(a->pool, o->watch[i]) != CTR_COMMITTED)
			continue;
		ctr_begin(row);
		outcome = probe_fire(stay, &aim, &a->watch[a->n_watch]);
		if (outcome == CTR_COMMITTED)
			a->n_watch++;
		else
			ctr_finish(row, outcome);
	}
}

static enum ctr_outcome fire(struct attempt *a)
{
	enum ctr_outcome outcome;
	struct probe_stay stay;

	outcome = probe_stay_begin(&stay, a->pool, a->claim->stream);
	a->event.context = (uintptr_t)stay.ctx;
	if (outcome == CTR_COMMITTED)
		outcome = fire_source(a, &stay);
	if (outcome == CTR_COMMITTED)
		outcome = fire_subject(a, &stay);
	if (outcome == CTR_COMMITTED)
		fire_watched(a, &stay);
	probe_stay_end(&stay);
	if (outcome != CTR_COMMITTED && a->has_source)
		probe_shot_set(a->pool, a->source, PROBE_SHOT_DISCARD);
	return outcome;
}

/* ---- handing over to the writer ---- */

static void arm(struct attempt *a, uint32_t shot, struct ctr_row *row)
{
	struct probe_shot *s = &a->pool->ring.shot[shot];

	s->event = a->event.id;
	s->row = row;
	probe_shot_set(a->pool, shot, row ? PROBE_SHOT_ARMED : PROBE_SHOT_PAIRED);
}

static void arm_all(struct attempt *a)
{
	if (a->has_source) {
		arm(a, a->source, NULL);
		a->pool->ring.shot[a->shot].pair = (int32_t)a->source;
	}
	arm(a, a->shot, a->row);
	for (uint32_t i = 0; i < a->n_watch; i++)
		arm(a, a->watch[i], ctr_core(CTR_ROW_WATCH));
}

static void discard_all(struct attempt *a)
{
	if (a->has_source)
		probe_shot_set(a->pool, a->source, PROBE_SHOT_DISCARD);
	probe_shot_set(a->pool, a->shot, PROBE_SHOT_DISCARD);
	for (uint32_t i = 0; i < a->n_watch; i++) {
		probe_shot_set(a->pool, a->watch[i], PROBE_SHOT_DISCARD);
		ctr_finish(ctr_core(CTR_ROW_WATCH), CTR_DROPPED_QUEUE);
	}
}

/* Best effort: the hash stands in the event. */
__attribute__((noinline)) static void put_key_text(const struct attempt *a)
{
	const char *text = a->claim->key_text;
	struct log_key_text r;
	size_t bytes;

	bytes = strnlen(text, PROBE_KEY_TEXT_MAX);
	for (size_t at = 0; at < bytes; at += r.bytes) {
		memset(&r, 0, sizeof r);
		record_fill(&r, LOG_KEY_TEXT);
		r.key = a->event.key;
		r.offset = (uint32_t)at;
		r.bytes = bytes - at < sizeof r.text ? (uint32_t)(bytes - at) : (uint32_t)sizeof r.text;
		memcpy(r.text, text + at, r.bytes);
		if (!record_put(&r, NULL))
			return;
	}
}

static inline enum ctr_outcome put_event(struct attempt *a, struct ctr_row *commit)
{
	a->event.outcome = CTR_COMMITTED;
	if (!record_put(&a->event, commit))
		return CTR_DROPPED_QUEUE;
	if (a->claim->key_text && record_hot.options->keep_keys)
		put_key_text(a);
	return CTR_COMMITTED;
}

/* CTR_COMMITTED: the attempt is on its way and ends elsewhere. */
static enum ctr_outcome measure(struct attempt *a)
{
	enum ctr_outcome outcome = fire(a);

	if (outcome != CTR_COMMITTED)
		return outcome;
	a->event.has_fingerprint = 1;
	outcome = put_event(a, NULL);
	if (outcome == CTR_COMMITTED)
		arm_all(a);
	else
		discard_all(a);
	return outcome;
}

static void put_unmeasured(struct attempt *a, enum ctr_outcome outcome)
{
	if (outcome == CTR_DROPPED_QUEUE)
		return;
	a->event.outcome = outcome;
	record_put(&a->event, NULL);
}

static int64_t answer(enum ctr_outcome outcome, uint64_t id)
{
	switch (outcome) {
	case CTR_COMMITTED:
		return (int64_t)id;
	case CTR_FILTERED_PAUSED:
	case CTR_FILTERED_PADDING:
		return 0;
	case CTR_SKIPPED_CAPTURING:
	case CTR_SKIPPED_LEGACY:
		return -EBUSY;
	case CTR_ERROR_ARGUMENT:
	case CTR_ERROR_SLOT:
	case CTR_SKIPPED_POOL_GONE:
	case CTR_SKIPPED_NO_CONTEXT:
		return -EINVAL;
	default:
		return -EAGAIN;
	}
}

static enum ctr_outcome attempt(struct attempt *a, enum log_event_kind kind, int64_t src)
{
	enum ctr_outcome outcome, recording = check_recording();

	fill_event(a, kind, src);
	outcome = check_claim(a);
	if (recording == CTR_COMMITTED) {
		a->event.callsite = record_callsite();
		a->known = true;
	}
	if (outcome == CTR_COMMITTED)
		outcome = recording;
	if (outcome == CTR_COMMITTED)
		outcome = kinds[kind].measured ? measure(a) : put_event(a, a->row);
	return outcome;
}

int64_t probe_claim(enum log_event_kind kind, const struct slotprobe_claim *claim, int64_t src)
{
	enum ctr_outcome outcome = CTR_ERROR_ARGUMENT;
	struct attempt a;

	if (!probe_on_or_inherits())
		return -ENOSYS;
	memset(&a, 0, offsetof(struct attempt, watch));
	a.n_watch = 0;
	a.has_source = false;
	a.claim = claim;
	a.row = ctr_core(kinds[kind].row);
	ctr_begin(a.row);
	if (claim && claim->size >= offsetof(struct slotprobe_claim, key_len) + sizeof claim->key_len)
		outcome = attempt(&a, kind, src);
	if (outcome != CTR_COMMITTED) {
		if (a.known)
			put_unmeasured(&a, outcome);
		ctr_finish(a.row, outcome);
	}
	if (a.pool)
		probe_pool_put(a.pool);
	return answer(outcome, a.event.id);
}
