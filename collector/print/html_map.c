/* SPDX-License-Identifier: Apache-2.0
 *
 * html_map.c: the map of slots x planes: which planes differ (diff), or how large the last donated state is in each plane
 * (check, report). One character a cell, so that a thousand slots of hundreds of planes fit.
 *
 * Cells: '-' not measured, '=' equal, 'x' differs, 'N' NaN or Inf, '0' all zero, 'a' to 'z' the order of magnitude of abs-max,
 * from 2^-13 or less to 2^12 or more. Where a pool has more than HTML_PLANES_MAX planes, a cell is the worst of those that follow
 * each other.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "print/html_map.h"

struct map_cells {
	const struct html_page *page;
	uint32_t columns;         /* the most that a pool asks for */
	uint32_t fold;            /* planes in one cell */
	char *cell;               /* [lane][column] */
	struct align_ref *last;   /* of each lane, where there is one run */
	struct map lane_of_print; /* of the process that is being read */
};

static const struct model_pool *layout_of(const struct html_page *page, uint32_t lane)
{
	const struct align_group *group = &page->al->group[page->al->row[page->lane[lane].row].group];

	return group->layout[0] ? group->layout[0] : group->layout[1];
}

static bool map_begin(struct map_cells *m)
{
	uint32_t planes = 1;

	for (uint32_t i = 0; i < m->page->n_lanes; i++) {
		const struct model_pool *pool = layout_of(m->page, i);

		if (pool && pool->n_planes > planes)
			planes = pool->n_planes;
	}
	m->fold = (planes + HTML_PLANES_MAX - 1) / HTML_PLANES_MAX;
	m->columns = (planes + m->fold - 1) / m->fold;
	m->cell = malloc((size_t)m->columns * m->page->n_lanes + 1);
	m->last = calloc((size_t)m->page->n_lanes + 1, sizeof *m->last);
	if (m->cell)
		memset(m->cell, '-', (size_t)m->columns * m->page->n_lanes);
	return m->cell && m->last;
}

static uint32_t columns_of(const struct map_cells *m, uint32_t lane)
{
	const struct model_pool *pool = layout_of(m->page, lane);

	return pool ? (pool->n_planes + m->fold - 1) / m->fold : 0;
}

/* ---- two runs: the verdict of each plane ---- */

static void map_differences(struct map_cells *m)
{
	for (uint32_t lane = 0; lane < m->page->n_lanes; lane++) {
		const struct diff_row *row = &m->page->diff->row[m->page->lane[lane].row];
		char *cell = m->cell + (size_t)lane * m->columns;

		if (row->verdict == ROW_EQUAL || (row->verdict == ROW_DIFFERS && row->n_planes))
			memset(cell, '=', columns_of(m, lane));
		for (uint32_t i = 0; i < row->n_planes; i++) {
			if (row->plane[i] / m->fold < m->columns)
				cell[row->plane[i] / m->fold] = 'x';
		}
	}
}

/* ---- one run: the size of what each plane held last ---- */

static int badness(char c)
{
	return c == 'N' ? 1000 : c == '0' ? 1 : c == '-' ? 0 : c;
}

static char size_of(const struct log_plane_print *p)
{
	int power;

	if (p->nan || p->inf || !isfinite(p->absmax))
		return 'N';
	if (p->absmax <= 0)
		return '0';
	power = ilogb(p->absmax);
	return (char)('a' + (power < -13 ? 0 : power > 12 ? 25 : power + 13));
}

static bool see_part(void *arg, const struct log_fingerprint *part, uint32_t number)
{
	struct map_cells *m = arg;
	uint64_t lane = map_get(&m->lane_of_print, number);

	if (lane == MAP_NONE)
		return true;
	for (uint32_t i = 0; i < part->n_planes; i++) {
		uint32_t column = (part->first_plane + i) / m->fold;
		char *cell = m->cell + lane * m->columns + column, size = size_of(&part->plane[i]);

		if (column < m->columns && badness(size) > badness(*cell))
			*cell = size;
	}
	return true;
}

/* Of each slot the last donation that was measured; process MODEL_NONE: none was. */
static void find_last(struct map_cells *m)
{
	const struct align_side *side = &m->page->al->side[0];

	for (uint32_t lane = 0; lane < m->page->n_lanes; lane++) {
		m->last[lane].process = MODEL_NONE;
		for (uint32_t o = m->page->al->row[m->page->lane[lane].row].side[0].first; o != ALIGN_NONE;
		     o = side->occurrence[o].next) {
			struct align_ref at = side->occurrence[o].at;
			const struct model_event *e = align_event(side, at);

			if (e && model_measured(align_process(side, at), e))
				m->last[lane] = at;
		}
	}
}

/* The prints of a process that are drawn. false: out of memory. */
static bool choose_prints(struct map_cells *m, uint32_t process)
{
	const struct model_process *p = &m->page->run[0]->process[process];

	for (uint32_t lane = 0; lane < m->page->n_lanes; lane++) {
		if (m->last[lane].process == process &&
		    !map_set(&m->lane_of_print, model_subject(p, &p->event[m->last[lane].event])->number, lane))
			return false;
	}
	return true;
}

static int map_sizes(struct map_cells *m, struct error *err)
{
	const struct model *model = m->page->run[0];

	find_last(m);
	for (uint32_t i = 0; i < model->n_processes; i++) {
		int status = 0;

		if (!choose_prints(m, i)) {
			error_set(err, "out of memory");
			status = -1;
		}
		if (status == 0 && m->lane_of_print.used)
			status = model_planes(&model->process[i], see_part, m, err);
		map_free(&m->lane_of_print);
		if (status != 0)
			return -1;
	}
	return 0;
}

/* ---- writing ---- */

static void plane_names(FILE *f, const struct map_cells *m, const struct model_pool *pool)
{
	char name[128];

	for (uint32_t i = 0; i < pool->n_planes; i += m->fold) {
		const struct model_plane *plane = i < pool->room ? &pool->plane[i] : NULL;

		if (plane && plane->known)
			snprintf(name, sizeof name, "%s, layer %" PRId32, safe(plane->tensor), plane->layer);
		else
			snprintf(name, sizeof name, "plane %" PRIu32, i);
		fputs(i ? "," : "", f);
		html_data_text(f, name);
	}
}

#define LAYOUTS_MAX 64u

/* Pools share their layouts' names: ranks of one server are alike. A slot of a layout beyond the limit has none. */
static void map_write(FILE *f, const struct map_cells *m)
{
	const struct model_pool *layout[LAYOUTS_MAX];
	uint32_t n = 0;

	fprintf(f, "\"map\":{\"fold\":%" PRIu32 ",\"rows\":[", m->fold);
	for (uint32_t lane = 0; lane < m->page->n_lanes; lane++) {
		fputs(lane ? ",\"" : "\"", f);
		fwrite(m->cell + (size_t)lane * m->columns, 1, columns_of(m, lane), f);
		fputc('"', f);
	}
	fputs("],\n\"layout\":[", f);
	for (uint32_t lane = 0; lane < m->page->n_lanes; lane++) {
		const struct model_pool *pool = layout_of(m->page, lane);
		uint32_t k = 0;

		while (k < n && layout[k] != pool && !(pool && model_same_layout(layout[k], pool)))
			k++;
		if (k == n && n < LAYOUTS_MAX && pool)
			layout[n++] = pool;
		fprintf(f, "%s%d", lane ? "," : "", k < n ? (int)k : -1);
	}
	fputs("],\n\"planes\":[", f);
	for (uint32_t k = 0; k < n; k++) {
		fputs(k ? ",[" : "[", f);
		plane_names(f, m, layout[k]);
		fputc(']', f);
	}
	fputs("]}", f);
}

int html_map_data(FILE *f, const struct html_page *page, struct error *err)
{
	struct map_cells m = { .page = page };
	int status = 0;

	if (!map_begin(&m)) {
		error_set(err, "out of memory");
		status = -1;
	} else if (page->diff) {
		map_differences(&m);
	} else {
		status = map_sizes(&m, err);
	}
	if (status == 0)
		map_write(f, &m);
	free(m.cell);
	free(m.last);
	return status;
}
