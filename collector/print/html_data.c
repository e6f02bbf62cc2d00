/* SPDX-License-Identifier: Apache-2.0
 *
 * html_data.c: what the page's script draws, as one JSON object: slots, the timeline in bins, abs-max traces.
 *
 * Its size does not grow with the run: HTML_CELLS numbers of each kind are shared out among the slots that are drawn.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "print/html.h"
#include "print/html_map.h"

/* ---- the timeline ---- */

enum { BIN_DONATIONS, BIN_RESTORES, BIN_OTHERS, BIN_LAUNCHES, BIN_DIFFERING, BIN_KINDS };

struct timeline {
	uint32_t bins;
	uint32_t (*cell)[BIN_KINDS]; /* [lane][bin] */
	uint64_t *launches;          /* of the whole run, by bin */
	uint64_t *before;            /* launches on the pool before each lane's previous event */
	struct map lane_of;          /* (group, slot) to lane + 1 */
};

static uint64_t slot_key(uint32_t group, int64_t slot)
{
	return log_mix64(log_mix64(group + 1) + (uint64_t)slot);
}

static uint32_t lane_of(const struct html_page *page, const struct timeline *t, uint32_t group, int64_t slot)
{
	uint64_t lane = map_get(&t->lane_of, slot_key(group, slot));
	const struct align_row *row = lane == MAP_NONE ? NULL : &page->al->row[page->lane[lane].row];

	return row && row->group == group && row->slot == slot ? (uint32_t)lane : MODEL_NONE;
}

static bool timeline_begin(struct timeline *t, const struct html_page *page)
{
	uint32_t lanes = page->n_lanes ? page->n_lanes : 1;

	t->bins = HTML_CELLS / lanes;
	t->bins = t->bins > 600 ? 600 : t->bins;
	t->cell = calloc((size_t)lanes * t->bins, sizeof *t->cell);
	t->launches = calloc(t->bins, sizeof *t->launches);
	t->before = calloc(lanes, sizeof *t->before);
	for (uint32_t i = 0; t->cell && t->launches && t->before && i < page->n_lanes; i++) {
		const struct align_row *row = &page->al->row[page->lane[i].row];

		if (!map_set(&t->lane_of, slot_key(row->group, row->slot), i))
			return false;
	}
	return t->cell && t->launches && t->before;
}

static void timeline_end(struct timeline *t)
{
	free(t->cell);
	free(t->launches);
	free(t->before);
	map_free(&t->lane_of);
}

static uint32_t bin_of(const struct timeline *t, uint64_t at, uint64_t span)
{
	uint32_t bin = span ? (uint32_t)((double)at / (double)span * t->bins) : 0;

	return bin < t->bins ? bin : t->bins - 1;
}

static void count_event(const struct html_page *page, struct timeline *t, unsigned r, uint32_t process,
			const struct model_event *e, uint32_t bin)
{
	uint32_t group, lane;
	uint32_t *cell;

	if (e->pool == MODEL_NONE)
		return;
	group = page->al->side[r].group_of_pool[process][e->pool];
	lane = lane_of(page, t, group, e->slot);
	if (lane == MODEL_NONE)
		return;
	cell = t->cell[(size_t)lane * t->bins + bin];
	cell[e->kind == LOG_EV_DONATE ? BIN_DONATIONS : e->kind == LOG_EV_RESTORE ? BIN_RESTORES : BIN_OTHERS]++;
	if (e->pool_launches > t->before[lane] && e->pool_launches - t->before[lane] < UINT32_MAX)
		cell[BIN_LAUNCHES] += (uint32_t)(e->pool_launches - t->before[lane]);
	t->before[lane] = e->pool_launches;
}

static void timeline_count(const struct html_page *page, struct timeline *t, unsigned r)
{
	const struct model *model = page->run[r];

	for (uint32_t i = 0; i < model->n_processes; i++) {
		const struct model_process *p = &model->process[i];
		uint64_t launched = 0;

		for (size_t k = 0; k < p->n_events; k++) {
			const struct model_event *e = &p->event[k];
			uint32_t bin = bin_of(t, e->t_ns - page->zero[r][i], page->span[r]);

			count_event(page, t, r, i, e, bin);
			if (e->launches > launched)
				t->launches[bin] += e->launches - launched;
			launched = e->launches;
		}
	}
}

/* The donations that differ from their mates: which they are the comparison has noted. */
static void timeline_differing(const struct html_page *page, struct timeline *t, unsigned r)
{
	const struct align_side *side = &page->al->side[r];

	for (size_t i = 0; i < side->n_occurrences; i++) {
		const struct align_occurrence *o = &side->occurrence[i];
		const struct align_row *row = &page->al->row[o->row];
		const struct model_event *e = o->differs ? align_event(side, o->at) : NULL;
		uint32_t lane = e ? lane_of(page, t, row->group, row->slot) : MODEL_NONE;

		if (lane != MODEL_NONE)
			t->cell[(size_t)lane * t->bins +
				bin_of(t, e->t_ns - page->zero[r][o->at.process], page->span[r])][BIN_DIFFERING]++;
	}
}

/* Of each lane [bin, donations, restores, others, launches, differing, bin, ...]: empty bins are left out. */
static void timeline_write(FILE *f, const struct html_page *page, const struct timeline *t, unsigned r)
{
	fprintf(f, "{\"seconds\":%.9g,\"lanes\":[", (double)page->span[r] / 1e9);
	for (uint32_t lane = 0; lane < page->n_lanes; lane++) {
		const char *gap = "";

		fputs(lane ? ",[" : "[", f);
		for (uint32_t bin = 0; bin < t->bins; bin++) {
			const uint32_t *c = t->cell[(size_t)lane * t->bins + bin];

			if (!c[BIN_DONATIONS] && !c[BIN_RESTORES] && !c[BIN_OTHERS])
				continue;
			fprintf(f, "%s%u,%u,%u,%u,%u,%u", gap, bin, c[BIN_DONATIONS], c[BIN_RESTORES], c[BIN_OTHERS],
				c[BIN_LAUNCHES], c[BIN_DIFFERING]);
			gap = ",";
		}
		fputc(']', f);
	}
	fputs("],\"launches\":[", f);
	for (uint32_t bin = 0; bin < t->bins; bin++)
		fprintf(f, "%s%" PRIu64, bin ? "," : "", t->launches[bin]);
	fputs("]}", f);
}

static bool timelines(FILE *f, const struct html_page *page)
{
	for (unsigned r = 0; r < page->n_runs; r++) {
		struct timeline t = { 0 };
		bool memory = timeline_begin(&t, page);

		if (memory) {
			timeline_count(page, &t, r);
			timeline_differing(page, &t, r);
			if (!r)
				fprintf(f, "\"bins\":%u,\"timeline\":[", t.bins);
			fputs(r ? "," : "", f);
			timeline_write(f, page, &t, r);
		}
		timeline_end(&t);
		if (!memory)
			return false;
	}
	fputc(']', f);
	return true;
}

/* ---- abs-max traces ---- */

static void value(FILE *f, double v)
{
	if (isnan(v))
		fputs("\"nan\"", f);
	else if (isinf(v))
		fputs("\"inf\"", f);
	else
		fprintf(f, "%.5g", v);
}

/* [occurrence, abs-max, ...]: of `step` donations that follow each other the largest. */
static void trace(FILE *f, const struct html_page *page, unsigned r, uint32_t lane, uint32_t step)
{
	const struct align_side *side = &page->al->side[r];
	const char *gap = "";
	double largest = -1;
	uint32_t in_step = 0, at = 0;

	fputs("[", f);
	for (uint32_t o = page->al->row[page->lane[lane].row].side[r].first; o != ALIGN_NONE;
	     o = side->occurrence[o].next) {
		const struct model_event *e = align_event(side, side->occurrence[o].at);
		const struct model_process *p = e ? align_process(side, side->occurrence[o].at) : NULL;

		if (!e)
			continue;
		in_step++;
		if (model_measured(p, e)) {
			const struct model_print *print = model_subject(p, e);
			double v = print->nan ? (double)NAN : print->inf ? (double)INFINITY : print->absmax;

			if (largest < 0 || isnan(v) || v > largest) {
				largest = v;
				at = side->occurrence[o].number;
			}
		}
		if (in_step < step && side->occurrence[o].next != ALIGN_NONE)
			continue;
		if (at) {
			fprintf(f, "%s%" PRIu32 ",", gap, at);
			value(f, largest);
			gap = ",";
		}
		in_step = at = 0;
		largest = -1;
	}
	fputs("]", f);
}

static void traces(FILE *f, const struct html_page *page)
{
	uint32_t most = HTML_CELLS / (page->n_lanes ? page->n_lanes : 1), longest = 0;
	uint32_t step;

	for (uint32_t i = 0; i < page->n_lanes; i++) {
		for (unsigned r = 0; r < page->n_runs; r++) {
			uint32_t n = page->al->row[page->lane[i].row].side[r].donations;

			longest = n > longest ? n : longest;
		}
	}
	most = most > 1000 ? 1000 : most;
	step = (longest + most - 1) / most;
	fprintf(f, "\"trace_step\":%" PRIu32 ",\"traces\":[", step ? step : 1);
	for (unsigned r = 0; r < page->n_runs; r++) {
		fputs(r ? ",[" : "[", f);
		for (uint32_t i = 0; i < page->n_lanes; i++) {
			fputs(i ? "," : "", f);
			trace(f, page, r, i, step ? step : 1);
		}
		fputs("]", f);
	}
	fputs("]", f);
}

/* ---- the object ---- */

static void lanes(FILE *f, const struct html_page *page)
{
	char name[256];

	fprintf(f, "\"lanes_all\":%zu,\"lanes\":[", page->al->n_rows);
	for (uint32_t i = 0; i < page->n_lanes; i++) {
		html_lane_name(page, page->lane[i].row, name, sizeof name);
		fputs(i ? "," : "", f);
		html_data_text(f, name);
	}
	fputs("],\n\"verdicts\":[", f);
	for (uint32_t i = 0; i < page->n_lanes; i++) {
		fputs(i ? "," : "", f);
		html_data_text(f, page->diff ? row_verdict_name(page->diff->row[page->lane[i].row].verdict) : "");
	}
	fputc(']', f);
}

int html_data(FILE *f, const struct html_page *page, struct error *err)
{
	fprintf(f, "{\"verb\":\"%s\",\"runs\":%s,\n", page->verb, page->n_runs == 2 ? "[\"A\",\"B\"]" : "[\"run\"]");
	lanes(f, page);
	fputs(",\n", f);
	html_slots_data(f, page);
	fputs(",\n", f);
	if (!timelines(f, page)) {
		error_set(err, "out of memory");
		return -1;
	}
	fputs(",\n", f);
	traces(f, page);
	fputs(",\n", f);
	if (html_map_data(f, page, err) != 0)
		return -1;
	fputs("}\n", f);
	return 0;
}
