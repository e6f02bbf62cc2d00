/* SPDX-License-Identifier: Apache-2.0
 *
 * collect.c: the writer's side: sees results come, records them, gives the shots back. Polls memory only.
 *
 * The writer drains its queue and then polls, again and again. A shot is recorded no earlier than the second poll that
 * finds it armed: its event was queued before it was armed, so the drain between the two has taken the event, and the
 * log has the event before its fingerprint.
 */
#include "core.h"

#include <string.h>

#define PART_PLANES ((LOG_RECORD_MAX - sizeof(struct log_fingerprint)) / sizeof(struct log_plane_print))

/* Of the result at hand; the writer's thread alone. */
static struct fp_print prints[PROBE_PLANES];

_Static_assert(sizeof(struct fp_print) == sizeof(struct log_plane_print), "a print is logged as it is");
_Static_assert(offsetof(struct fp_print, sample) == offsetof(struct log_plane_print, sample), "likewise");

/* One record at a time, on the writer's thread alone. */
static union {
	struct log_fingerprint fingerprint;
	struct log_region_values values;
	unsigned char room[LOG_RECORD_MAX];
} out __attribute__((aligned(8)));

/* ---- records ---- */

static enum ctr_outcome outcome_of(uint32_t status)
{
	switch (status) {
	case FP_OK:
		return CTR_COMMITTED;
	case FP_PADDING:
		return CTR_FILTERED_PADDING;
	case FP_OUT_OF_RANGE:
		return CTR_ERROR_SLOT;
	default:
		return CTR_ERROR_DRIVER;
	}
}

static void read_prints(const struct probe_pool *p, const struct fp_entry *e)
{
	uint32_t record = 0;

	for (uint32_t i = 0; i < p->n_planes; i++) {
		fp_read_plane(e, record, p->plane[i].n_chunks, p->plane[i].bytes, &prints[i]);
		record += 1 + p->plane[i].n_chunks;
	}
}

static uint64_t rollup_of(const struct probe_pool *p)
{
	uint64_t rollup = LOG_ROLLUP_START;

	for (uint32_t i = 0; i < p->n_planes; i++)
		rollup = log_rollup_add(rollup, prints[p->order[i]].hash);
	return rollup;
}

static void fill_fingerprint(const struct probe_pool *p, const struct probe_shot *s, int64_t slot)
{
	struct log_fingerprint *r = &out.fingerprint;

	memset(r, 0, sizeof *r);
	record_fill(r, LOG_FINGERPRINT);
	r->event = s->event;
	r->t_ns = record_now_ns();
	r->slot = slot;
	r->pool = probe_pool_id(p);
	r->role = s->role;
}

/* A fingerprint without planes: why there are none. */
static void append_reason(const struct probe_pool *p, const struct probe_shot *s, int64_t slot, enum ctr_outcome why)
{
	fill_fingerprint(p, s, slot);
	out.fingerprint.outcome = why;
	record_append(&out, NULL);
	if (s->role == LOG_ROLE_SUBJECT)
		probe_keep(s->event, false, 0);
}

static void append_planes(const struct probe_pool *p, const struct probe_shot *s, int64_t slot, struct ctr_row *commit)
{
	struct log_fingerprint *r = &out.fingerprint;

	fill_fingerprint(p, s, slot);
	r->outcome = CTR_COMMITTED;
	r->total_planes = p->n_planes;
	r->rollup = rollup_of(p);
	for (uint32_t at = 0; at < p->n_planes; at += r->n_planes) {
		uint32_t left = p->n_planes - at;
		r->first_plane = at;
		r->n_planes = left < PART_PLANES ? left : (uint32_t)PART_PLANES;
		r->h.bytes = (uint32_t)(sizeof *r + r->n_planes * sizeof r->plane[0]);
		memcpy(r->plane, &prints[at], r->n_planes * sizeof r->plane[0]);
		record_append(r, left == r->n_planes ? commit : NULL);
	}
	if (s->role == LOG_ROLE_SUBJECT)
		probe_keep(s->event, true, r->rollup);
}

static void append_regions(const struct probe_shot *s, const struct fp_region *region, const struct fp_entry *e)
{
	struct log_region_values *r = &out.values;

	for (uint32_t i = 0; i < s->n_regions; i++) {
		uint32_t n = region[i].n_values < FP_REGION_VALUES ? region[i].n_values : FP_REGION_VALUES;
		memset(r, 0, sizeof *r);
		record_fill(r, LOG_REGION_VALUES);
		r->h.bytes = (uint32_t)(sizeof *r + n * sizeof r->value[0]);
		r->event = s->event;
		r->region = s->region[i];
		r->n_values = n;
		memcpy(r->value, e->region[i].value, n * sizeof r->value[0]);
		record_append(r, NULL);
	}
}

/* The result of one shot; `commit` rides on its last record. */
static enum ctr_outcome append_result(const struct probe_pool *p, uint32_t i, struct ctr_row *commit)
{
	const struct probe_shot *s = &p->ring.shot[i];
	const struct fp_entry *e = probe_entry(&p->ring, i);
	int64_t slot;
	enum ctr_outcome outcome = outcome_of(fp_read_status(e, p->ring.n_records, &slot));

	if (outcome != CTR_COMMITTED) {
		append_reason(p, s, slot, outcome);
		return outcome;
	}
	append_regions(s, probe_entry_regions(&p->ring, i), e);
	read_prints(p, e);
	append_planes(p, s, slot, commit);
	return outcome;
}

/* ---- shots ---- */

static bool shot_in(struct probe_pool *p, uint32_t i)
{
	return probe_ring_done(&p->ring, i, &p->ring.shot[i].seen);
}

static bool is_done(struct probe_pool *p, uint32_t i)
{
	const int32_t pair = p->ring.shot[i].pair;

	return shot_in(p, i) && (pair < 0 || shot_in(p, (uint32_t)pair));
}

static void release_all(struct probe_pool *p, uint32_t i)
{
	int32_t pair = p->ring.shot[i].pair;

	if (pair >= 0)
		probe_shot_release(p, (uint32_t)pair);
	probe_shot_release(p, i);
}

static void record_done(struct probe_pool *p, uint32_t i)
{
	const struct probe_shot *s = &p->ring.shot[i];
	enum ctr_outcome source = CTR_COMMITTED, outcome;

	if (s->pair >= 0)
		source = append_result(p, (uint32_t)s->pair, NULL);
	outcome = append_result(p, i, source == CTR_COMMITTED ? s->row : NULL);
	if (outcome == CTR_COMMITTED)
		outcome = source;
	if (outcome != CTR_COMMITTED)
		ctr_finish(s->row, outcome);
	release_all(p, i);
}

/* It will never come, or nobody waits for it any more: its buffer is not to be used again. */
static void record_lost(struct probe_pool *p, uint32_t i, enum ctr_outcome why)
{
	const struct probe_shot *s = &p->ring.shot[i];

	p->ring.poisoned = true;
	append_reason(p, s, LOG_NO_SLOT, why);
	ctr_finish(s->row, why);
	release_all(p, i);
}

static enum probe_shot_state state_of(const struct probe_pool *p, uint32_t i)
{
	return probe_ring_busy(&p->ring, i) ? __atomic_load_n(&p->ring.shot[i].state, __ATOMIC_ACQUIRE)
					    : PROBE_SHOT_FREE;
}

static void release_discarded(struct probe_pool *p, uint32_t i, bool lost)
{
	bool in = shot_in(p, i);

	if (!lost && !in)
		return;
	if (!in)
		p->ring.poisoned = true;
	probe_shot_release(p, i);
}

/* What is to be recorded now, in the order of events: shots of one pool on one stream finish in order, but lie in any
 * order. The writer's thread alone. */
struct due {
	uint64_t event;
	uint32_t role, shot;
};
static struct due due_list[2][PROBE_SHOTS];

static bool before(const struct due *a, const struct due *b)
{
	return a->event != b->event ? a->event < b->event : a->role < b->role;
}

/* End of the run in order that begins at `from`. */
static uint32_t run_end(const struct due *list, uint32_t n, uint32_t from)
{
	uint32_t at = from + 1;

	while (at < n && !before(&list[at], &list[at - 1]))
		at++;
	return at < n ? at : n;
}

/* Each two runs next to one another become one in `to`. */
static void merge_runs(const struct due *list, uint32_t n, struct due *to)
{
	uint32_t a = 0, k = 0;

	while (a < n) {
		const uint32_t a_end = run_end(list, n, a), b_end = a_end < n ? run_end(list, n, a_end) : n;
		uint32_t b = a_end;
		while (a < a_end || b < b_end)
			to[k++] = b == b_end || (a < a_end && !before(&list[b], &list[a])) ? list[a++] : list[b++];
		a = b_end;
	}
}

/* Few runs: shots that were taken one after another lie in order. */
static const struct due *in_order(uint32_t n)
{
	uint32_t at = 0;

	for (; run_end(due_list[at], n, 0) < n; at = !at)
		merge_runs(due_list[at], n, due_list[!at]);
	return due_list[at];
}

/* Counts in *awaited what is not to be recorded now. */
static uint32_t look_at(struct probe_pool *p, uint32_t i, uint32_t n, bool lost, unsigned *awaited)
{
	struct probe_shot *s = &p->ring.shot[i];
	enum probe_shot_state state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);

	if (state == PROBE_SHOT_DISCARD)
		release_discarded(p, i, lost);
	if (state != PROBE_SHOT_ARMED)
		return n;
	if (s->turns && (lost || is_done(p, i)))
		due_list[0][n++] = (struct due) { s->event, s->role, i };
	else
		++*awaited;
	s->turns = 1;
	return n;
}

static uint32_t gather(struct probe_pool *p, bool lost, unsigned *awaited)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w * 64 < p->ring.shots; w++) {
		uint64_t busy = probe_ring_busy_set(&p->ring, w);
		for (; busy; busy &= busy - 1)
			n = look_at(p, w * 64 + (uint32_t)__builtin_ctzll(busy), n, lost, awaited);
	}
	return n;
}

static unsigned poll_pool(struct probe_pool *p)
{
	/* Read before the results: what is not in by then, with the context gone, will not come. */
	bool lost = __atomic_load_n(&p->lost, __ATOMIC_ACQUIRE);
	unsigned awaited = 0;
	const uint32_t n = gather(p, lost, &awaited);
	const struct due *due = in_order(n);

	for (uint32_t k = 0; k < n; k++) {
		if (is_done(p, due[k].shot))
			record_done(p, due[k].shot);
		else
			record_lost(p, due[k].shot, CTR_DROPPED_CONTEXT);
	}
	return awaited;
}

unsigned probe_poll(void)
{
	unsigned awaited = 0;

	for (uint32_t i = 0; i < PROBE_POOLS; i++) {
		if (!probe_pool_hold(&probe_pools[i]))
			continue;
		awaited += poll_pool(&probe_pools[i]);
		probe_pool_let_go(&probe_pools[i]);
	}
	return awaited;
}

static void abandon_pool(struct probe_pool *p, enum ctr_outcome why)
{
	for (uint32_t i = 0; i < p->ring.shots; i++) {
		if (state_of(p, i) != PROBE_SHOT_ARMED)
			continue;
		if (is_done(p, i))
			record_done(p, i);
		else
			record_lost(p, i, why);
	}
}

void probe_abandon(enum ctr_outcome why)
{
	for (uint32_t i = 0; i < PROBE_POOLS; i++) {
		if (!probe_pool_hold(&probe_pools[i]))
			continue;
		abandon_pool(&probe_pools[i], why);
		probe_pool_let_go(&probe_pools[i]);
	}
}
