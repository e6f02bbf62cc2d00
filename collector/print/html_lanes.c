/* SPDX-License-Identifier: Apache-2.0
 *
 * html_lanes.c: which slots the page draws, where a run has more than can be drawn: those that differ come first.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "print/html.h"

void html_lane_name(const struct html_page *page, uint32_t row, char *out, size_t size)
{
	const struct align_row *r = &page->al->row[row];
	const struct align_group *group = &page->al->group[r->group];

	if (r->slot == LOG_NO_SLOT)
		snprintf(out, size, "%s/%s/?", safe(group->rank), safe(group->pool));
	else
		snprintf(out, size, "%s/%s/%" PRId64, safe(group->rank), safe(group->pool), r->slot);
}

bool html_row_is_told(const struct html_page *page, uint32_t row)
{
	return !page->diff || diff_row_speaks(page->diff, row);
}

bool html_row_is_equal(const struct html_page *page, uint32_t row)
{
	return !page->diff || page->diff->row[row].verdict == ROW_EQUAL;
}

bool html_lanes_choose(struct html_page *page)
{
	uint32_t n_rows = (uint32_t)page->al->n_rows, left = HTML_LANES_MAX;
	bool *chosen = calloc((size_t)n_rows + 1, sizeof *chosen);

	page->lane = calloc(HTML_LANES_MAX, sizeof *page->lane);
	for (unsigned equal = 0; chosen && page->lane && equal < 2; equal++) {
		for (uint32_t i = 0; i < n_rows && left; i++) {
			if (html_row_is_told(page, i) && html_row_is_equal(page, i) == equal) {
				chosen[i] = true;
				left--;
			}
		}
	}
	/* In the order of the rows, whichever were chosen. */
	for (uint32_t i = 0; chosen && page->lane && i < n_rows; i++) {
		if (chosen[i])
			page->lane[page->n_lanes++].row = i;
	}
	if (!chosen)
		return false;
	free(chosen);
	return page->lane != NULL;
}

/* Processes come in the order of their hosts. */
static size_t host_end(const struct model *model, size_t from)
{
	size_t end = from;

	while (end < model->n_processes && strcmp(model->process[end].from->host, model->process[from].from->host) == 0)
		end++;
	return end;
}

static uint64_t host_zero(const struct model *model, size_t from, size_t end)
{
	uint64_t zero = UINT64_MAX;

	for (size_t i = from; i < end; i++) {
		for (size_t k = 0; k < model->process[i].n_events; k++) {
			if (model->process[i].event[k].t_ns < zero)
				zero = model->process[i].event[k].t_ns;
		}
	}
	return zero;
}

bool html_times(struct html_page *page)
{
	for (unsigned r = 0; r < page->n_runs; r++) {
		const struct model *model = page->run[r];

		page->zero[r] = calloc(model->n_processes + 1, sizeof *page->zero[r]);
		if (!page->zero[r])
			return false;
		for (size_t from = 0, end; from < model->n_processes; from = end) {
			uint64_t zero;

			end = host_end(model, from);
			zero = host_zero(model, from, end);
			for (size_t i = from; i < end; i++) {
				const struct model_process *p = &model->process[i];

				page->zero[r][i] = zero;
				for (size_t k = 0; k < p->n_events; k++) {
					if (p->event[k].t_ns - zero > page->span[r])
						page->span[r] = p->event[k].t_ns - zero;
				}
			}
		}
	}
	return true;
}
