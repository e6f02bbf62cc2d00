/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.c: see writer.h. A state that was not written where it was handed over has a writer that took another index: the graphs'
 * bound parameters say which kernels are given both the planes and a region, and the region's recorded integers what they found
 * there.
 */
#include "compare/writer.h"

#include <string.h>

#include "compare/diff.h"
#include "trouble.h"

#define REGIONS_MAX 8 /* that are read with one event */
#define TOLD_MAX    16
#define ROWS_TRIED  4 /* each reads a log again */

struct values {
	uint32_t region, n;
	int64_t value[LOG_RECORD_MAX / sizeof(int64_t)];
};

/* What the regions held when the slot of one event was read. */
struct told {
	uint64_t event;
	unsigned n;
	bool holds; /* some region holds the number of the slot that is sought */
	struct values of[REGIONS_MAX];
};

/* By the time that a slot is read its number may be gone from the regions: then an earlier event may have met it there. Of those
 * the last ones are kept. */
struct search {
	const struct model_process *p;
	const struct model_event *event;
	const struct diff_row *row;
	const struct told *now; /* that is looked at */
	struct told told[TOLD_MAX];
	uint64_t n_told; /* ever; the last one is still being read */
};

static struct told *last_told(struct search *s)
{
	return &s->told[(s->n_told - 1) % TOLD_MAX];
}

static bool take_values(void *arg, const struct log_region_values *v)
{
	struct search *s = arg;
	struct told *t = s->n_told ? last_told(s) : NULL;
	struct values *to;

	if (!t || t->event != v->event) {
		if (!t || t->holds)
			s->n_told++;
		t = last_told(s);
		t->event = v->event;
		t->n = 0;
		t->holds = false;
	}
	if (t->n == REGIONS_MAX || v->n_values > sizeof t->of[0].value / sizeof t->of[0].value[0])
		return true;
	to = &t->of[t->n++];
	to->region = v->region;
	to->n = v->n_values;
	memcpy(to->value, v->value, to->n * sizeof to->value[0]);
	for (uint32_t i = 0; i < to->n; i++)
		t->holds |= to->value[i] == s->event->slot;
	return true;
}

/* Bytes of one integer of a region, by its dtype, as the preload reads them: docs/known-gaps.md. */
static uint32_t width_of(const struct model_region *r)
{
	static const uint8_t width[] = { 8, 4, 1, 1, 1, 1, 1, 4, 8 };

	return r->dtype < sizeof width ? width[r->dtype] : 1;
}

static const struct values *values_of(const struct search *s, const struct model_region *region)
{
	for (unsigned i = 0; i < s->now->n; i++) {
		if (s->now->of[i].region == region->id)
			return &s->now->of[i];
	}
	return NULL;
}

/* From index `from` on, `n` of them. */
static bool stands_among(const struct values *v, uint64_t from, uint64_t n, int64_t slot, uint64_t *index)
{
	for (uint64_t i = from; i < v->n && i - from < n; i++) {
		if (v->value[i] == slot) {
			*index = i;
			return true;
		}
	}
	return false;
}

/* How many rows the kernel had: an index each. Not told: all that is left of the region. */
static uint64_t rows_of(const struct search *s)
{
	const struct model_event *e = model_event(s->p, s->now->event);
	const struct model_step *step = e ? model_step(s->p, e->step) : NULL;
	int32_t rows = step ? (step->padded > step->batch ? step->padded : step->batch) : 0;

	return rows > 0 ? (uint64_t)rows : UINT64_MAX;
}

/* Among the rows of the batch at the region's front: behind them stands what larger batches left. */
static bool stands_in_front(const struct search *s, const struct values *v, uint64_t *index)
{
	return stands_among(v, 0, rows_of(s), s->event->slot, index);
}

/* ---- one node ---- */

static bool writes_here(const struct search *s, const struct model_graph *g, uint32_t node)
{
	const struct model_pool *pool = &s->p->pool[s->event->pool];

	for (size_t i = 0; i < g->n_touch; i++) {
		const struct model_touch *t = &g->touch[i];

		if (t->node != node || t->target != 0 || t->id != pool->id)
			continue;
		for (uint32_t k = 0; k < s->row->n_planes; k++) {
			if (s->row->plane[k] == t->plane)
				return true;
		}
	}
	return false;
}

/* "indices" and "indices_buf": what was meant, and the buffer that it was to be copied to. */
static bool is_of_one_name(const struct model_region *a, const struct model_region *b)
{
	size_t x = strlen(a->name), y = strlen(b->name);

	return x && y && strncmp(a->name, b->name, x < y ? x : y) == 0;
}

/* What the kernel found where it looks; false where it found the slot, or nobody knows. */
static bool look(const struct search *s, const struct model_graph *g, const struct model_touch *t,
		 struct finding_writer *w)
{
	const struct model_region *region = model_region(s->p, t->id);
	const struct values *v = region ? values_of(s, region) : NULL;
	const uint64_t width = region ? width_of(region) : 1;
	uint64_t index = t->offset / width, other;

	if (!v || t->offset % width || index >= v->n || stands_among(v, index, rows_of(s), s->event->slot, &other))
		return false;
	*w = (struct finding_writer) { .graph = g,
				       .node = t->node,
				       .kernel = t->kernel,
				       .region = region,
				       .offset = t->offset,
				       .slot = s->event->slot,
				       .event = s->now->event,
				       .of = s->event->id,
				       .value = v->value[index] };
	w->has_at = stands_in_front(s, v, &other);
	w->at = w->has_at ? other * width : 0;
	for (unsigned i = 0; i < s->now->n && !w->meant; i++) {
		const struct model_region *meant = model_region(s->p, s->now->of[i].region);

		if (meant && meant != region && is_of_one_name(meant, region) &&
		    stands_in_front(s, &s->now->of[i], &other))
			w->meant = meant;
	}
	return w->has_at || w->meant;
}

/* The slot's number elsewhere in the same region says more than in another one. */
static bool is_better(const struct finding_writer *w, const struct finding_writer *than)
{
	return !than->kernel || (w->has_at && !than->has_at);
}

static void look_at_graph(const struct search *s, const struct model_graph *g, struct finding_writer *best)
{
	struct finding_writer w;

	for (size_t i = 0; i < g->n_touch; i++) {
		const struct model_touch *t = &g->touch[i];

		if (t->target == 1 && t->kernel[0] && writes_here(s, g, t->node) && look(s, g, t, &w) &&
		    is_better(&w, best))
			*best = w;
	}
}

static bool does_so(const struct search *s, const struct model_graph *g, const struct finding_writer *best)
{
	struct finding_writer w;

	for (size_t i = 0; i < g->n_touch; i++) {
		const struct model_touch *t = &g->touch[i];

		if (t->target == 1 && strcmp(t->kernel, best->kernel) == 0 && t->id == (int32_t)best->region->id &&
		    writes_here(s, g, t->node) && look(s, g, t, &w))
			return true;
	}
	return false;
}

static bool find_of_row(const struct diff *diff, const struct finding *finding, const struct diff_row *row,
			struct finding_writer *writer)
{
	static struct search s; /* the collector has one thread, and this is large */
	struct align_ref at = row->shown[finding->side];
	struct error err;

	memset(&s, 0, sizeof s);
	s.p = align_process(&diff->al.side[finding->side], at);
	s.event = align_event(&diff->al.side[finding->side], at);
	s.row = row;
	/* Without graphs and regions there is nothing to find, and the log need not be read again. */
	if (!s.p->n_graphs || !s.p->n_regions || s.event->pool == MODEL_NONE || s.event->slot == LOG_NO_SLOT)
		return false;
	if (model_values(s.p, s.event->id, take_values, &s, &err) != 0)
		trouble_end("%s", err.text);
	for (uint64_t back = 0; back < s.n_told && back < TOLD_MAX && !writer->kernel; back++) {
		s.now = &s.told[(s.n_told - 1 - back) % TOLD_MAX];
		for (size_t i = 0; s.now->holds && i < s.p->n_graphs; i++)
			look_at_graph(&s, &s.p->graph[i], writer);
		for (size_t i = 0; writer->kernel && i < s.p->n_graphs; i++)
			writer->n_graphs += does_so(&s, &s.p->graph[i], writer);
	}
	return writer->kernel != NULL;
}

bool find_writer(const struct diff *diff, const struct finding *finding, struct finding_writer *writer)
{
	unsigned tried = 0;

	if (finding->cause != CAUSE_NOT_WRITTEN && finding->cause != CAUSE_MISPLACED)
		return false;
	if (find_of_row(diff, finding, &diff->row[finding->first_row], writer))
		return true;
	for (uint32_t i = 0; i < diff->al.n_rows && tried < ROWS_TRIED; i++) {
		const struct diff_row *row = &diff->row[i];

		if (i == finding->first_row || row->finding == ALIGN_NONE || &diff->finding[row->finding] != finding)
			continue;
		if (find_of_row(diff, finding, row, writer))
			return true;
		tried++;
	}
	return false;
}
