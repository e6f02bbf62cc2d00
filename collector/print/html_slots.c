/* SPDX-License-Identifier: Apache-2.0
 *
 * html_slots.c: the table of slots, as rows of texts: the first of them in the page itself, all that fit as data for its filter.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "print/compare.h"
#include "print/html.h"

#define COLUMNS_MAX 13
#define CELL_MAX    224

struct cells {
	char text[COLUMNS_MAX][CELL_MAX];
	unsigned n;
};

static const char *const heads_diff[] = { "slot",      "verdict",   "donations",   "restores", "length",
					  "abs-max A", "abs-max B", "NaN",         "Inf",      "hash A",
					  "hash B",    "planes",    "explained as" };
static const char *const heads_one[] = { "slot", "donations", "measured", "restores",      "last length", "abs-max",
					 "NaN",  "Inf",       "hash",     "first seconds", "last seconds" };

static char *next_cell(struct cells *c)
{
	return c->text[c->n++];
}

#define CELL(c, ...) snprintf(next_cell(c), CELL_MAX, __VA_ARGS__)

/* ---- two runs ---- */

static uint64_t restores_of(const struct align_side *side, uint32_t first)
{
	uint64_t n = 0;

	for (uint32_t o = first; o != ALIGN_NONE; o = side->occurrence[o].next)
		n += side->occurrence[o].n_restores;
	return n;
}

/* "64", or "64 / 40" where the sides are not alike; "-" where one is not measured. */
static void pair(struct cells *c, const bool has[2], uint64_t a, uint64_t b)
{
	if (has[0] && has[1] && a == b)
		CELL(c, "%" PRIu64, a);
	else if (has[0] && has[1])
		CELL(c, "%" PRIu64 " / %" PRIu64, a, b);
	else if (has[0])
		CELL(c, "%" PRIu64 " / -", a);
	else if (has[1])
		CELL(c, "- / %" PRIu64, b);
	else
		CELL(c, "-");
}

static void explained(struct cells *c, const struct diff_row *row)
{
	char *out = next_cell(c);
	size_t n = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < row->n_explain && n + 20 < CELL_MAX; i++)
		n += (size_t)snprintf(out + n, CELL_MAX - n, "%s%s", i ? ", " : "",
				      explain_kind_name(row->explain[i].kind));
}

static void cells_of_two(const struct html_page *page, uint32_t index, struct cells *c)
{
	static const struct model_print none;
	const struct align_row *r = &page->al->row[index];
	const struct diff_row *row = &page->diff->row[index];
	const struct model_pool *layout = page->al->group[r->group].layout[0];
	const struct model_print *print[2] = { &none, &none };
	uint64_t length[2] = { 0, 0 };
	static const bool both[2] = { true, true };
	bool has[2];

	for (unsigned s = 0; s < 2; s++) {
		const struct align_side *side = &page->al->side[s];
		const struct model_event *e = row->has[s] ? align_event(side, row->shown[s]) : NULL;

		has[s] = e && model_measured(align_process(side, row->shown[s]), e);
		if (has[s])
			print[s] = model_subject(align_process(side, row->shown[s]), e);
		if (e && e->claimed_len > 0)
			length[s] = (uint64_t)e->claimed_len;
	}
	CELL(c, "%s", row_verdict_name(row->verdict));
	pair(c, both, r->side[0].donations, r->side[1].donations);
	pair(c, both, restores_of(&page->al->side[0], r->side[0].first),
	     restores_of(&page->al->side[1], r->side[1].first));
	pair(c, row->has, length[0], length[1]);
	for (unsigned s = 0; s < 2; s++)
		has[s] ? CELL(c, "%.6g", print[s]->absmax) : CELL(c, "-");
	pair(c, has, print[0]->nan, print[1]->nan);
	pair(c, has, print[0]->inf, print[1]->inf);
	for (unsigned s = 0; s < 2; s++)
		has[s] ? CELL(c, "0x%016" PRIx64, print[s]->rollup) : CELL(c, "-");
	row->n_planes ? CELL(c, "%" PRIu32 " of %" PRIu32, row->n_planes, layout ? layout->n_planes : 0)
		      : CELL(c, "%s", "");
	explained(c, row);
}

/* ---- one run ---- */

struct history { /* of a slot's donations */
	const struct model_event *last;
	const struct model_print *print;
	uint64_t measured;
	double first_s, last_s;
};

static struct history history_of(const struct html_page *page, uint32_t index)
{
	const struct align_side *side = &page->al->side[0];
	struct history h = { .first_s = -1 };

	for (uint32_t o = page->al->row[index].side[0].first; o != ALIGN_NONE; o = side->occurrence[o].next) {
		struct align_ref at = side->occurrence[o].at;
		const struct model_event *e = align_event(side, at);
		const struct model_process *p;
		uint64_t zero;

		if (!e)
			continue;
		p = align_process(side, at);
		zero = page->zero[0][at.process];
		h.last = e;
		h.print = model_measured(p, e) ? model_subject(p, e) : NULL;
		h.measured += h.print != NULL;
		h.last_s = (double)(e->t_ns - zero) / 1e9;
		if (h.first_s < 0)
			h.first_s = h.last_s;
	}
	return h;
}

static void cells_of_one(const struct html_page *page, uint32_t index, struct cells *c)
{
	const struct align_row *r = &page->al->row[index];
	struct history h = history_of(page, index);

	CELL(c, "%" PRIu32, r->side[0].donations);
	CELL(c, "%" PRIu64, h.measured);
	CELL(c, "%" PRIu64, restores_of(&page->al->side[0], r->side[0].first));
	h.last ? CELL(c, "%" PRId64, h.last->claimed_len) : CELL(c, "-");
	h.print ? CELL(c, "%.6g", h.print->absmax) : CELL(c, "-");
	h.print ? CELL(c, "%" PRIu64, h.print->nan) : CELL(c, "-");
	h.print ? CELL(c, "%" PRIu64, h.print->inf) : CELL(c, "-");
	h.print ? CELL(c, "0x%016" PRIx64, h.print->rollup) : CELL(c, "-");
	h.last ? CELL(c, "%.6f", h.first_s) : CELL(c, "-");
	h.last ? CELL(c, "%.6f", h.last_s) : CELL(c, "-");
}

/* ---- rows: those that are not equal first ---- */

typedef void row_writer(FILE *f, const struct cells *cells, uint64_t number);

static void write_row(FILE *f, const struct html_page *page, uint32_t index, row_writer *write, uint64_t number)
{
	struct cells cells = { .n = 0 };

	html_lane_name(page, index, next_cell(&cells), CELL_MAX);
	page->diff ? cells_of_two(page, index, &cells) : cells_of_one(page, index, &cells);
	write(f, &cells, number);
}

/* At most `most` rows; how many there are in all. */
static uint64_t write_rows(FILE *f, const struct html_page *page, row_writer *write, uint64_t most)
{
	uint64_t n = 0;

	for (unsigned equal = 0; equal < 2; equal++) {
		for (uint32_t i = 0; i < page->al->n_rows; i++) {
			if (!html_row_is_told(page, i) || html_row_is_equal(page, i) != equal)
				continue;
			if (n < most)
				write_row(f, page, i, write, n);
			n++;
		}
	}
	return n;
}

static void row_html(FILE *f, const struct cells *cells, uint64_t number)
{
	(void)number;
	fputs("<tr><th scope=\"row\">", f);
	for (unsigned i = 0; i < cells->n; i++) {
		fputs(i ? "<td>" : "", f);
		html_text(f, cells->text[i]);
		fputs(i ? "</td>" : "</th>", f);
	}
	fputs("</tr>\n", f);
}

static void row_data(FILE *f, const struct cells *cells, uint64_t number)
{
	fputs(number ? ",\n[" : "[", f);
	for (unsigned i = 0; i < cells->n; i++) {
		fputs(i ? "," : "", f);
		html_data_text(f, cells->text[i]);
	}
	fputc(']', f);
}

void html_slots(FILE *f, const struct html_page *page)
{
	const char *const *heads = page->diff ? heads_diff : heads_one;
	size_t n_heads = page->diff ? sizeof heads_diff / sizeof heads_diff[0] : sizeof heads_one / sizeof heads_one[0];
	uint64_t n;

	fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of slots\"><table "
	      "id=\"slots-table\"><thead><tr>",
	      f);
	for (size_t i = 0; i < n_heads; i++) {
		fputs("<th scope=\"col\">", f);
		html_text(f, heads[i]);
		fputs("</th>", f);
	}
	fputs("</tr></thead><tbody>\n", f);
	n = write_rows(f, page, row_html, HTML_STATIC_MAX);
	fprintf(f,
		"</tbody></table></div>\n<p id=\"slots-shown\" role=\"status\">%" PRIu64 " of %" PRIu64
		" slots shown%s.</p>\n",
		n < HTML_STATIC_MAX ? n : HTML_STATIC_MAX, n,
		page->diff ? ": those that are not equal come first" : "");
	if (n > HTML_SLOTS_MAX)
		fprintf(f,
			"<p>The page holds the first %u slots; <code>slotprobe %s --json</code> has all of them.</p>\n",
			HTML_SLOTS_MAX, page->verb);
}

void html_slots_data(FILE *f, const struct html_page *page)
{
	uint64_t n;

	fputs("\"slots\":[", f);
	n = write_rows(f, page, row_data, HTML_SLOTS_MAX);
	fprintf(f, "],\"slots_all\":%" PRIu64, n);
}
