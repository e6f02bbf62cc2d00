/* SPDX-License-Identifier: Apache-2.0
 *
 * html.c: puts a page together from the template, for diff, check and report.
 */
#include <stdlib.h>
#include <string.h>

#include "print/compare.h"
#include "print/html.h"

/* html_assets.S */
extern const char html_template[], html_style[], html_script[], html_style_digest[], html_script_digest[];

struct filling {
	struct html_page *page;
	struct error *err;
	int status;
};

static void title(FILE *f, const struct html_page *page)
{
	fprintf(f, "slotprobe %s: ", page->verb);
	html_text(f, safe(page->run[0]->run.path));
	if (page->n_runs == 2) {
		fputs(" and ", f);
		html_text(f, safe(page->run[1]->run.path));
	}
}

/* What the drawings leave out. */
static void thinned(FILE *f, const struct html_page *page)
{
	if (page->n_lanes < page->al->n_rows)
		fprintf(f,
			"<p>Drawn are %u of %zu slots: those that are not equal come first. The table of slots lists "
			"more.</p>\n",
			page->n_lanes, page->al->n_rows);
}

static void put(FILE *f, const char *name, void *arg)
{
	struct filling *filling = arg;
	struct html_page *page = filling->page;

	if (strcmp(name, "TITLE") == 0)
		title(f, page);
	else if (strcmp(name, "STYLE") == 0)
		fputs(html_style, f);
	else if (strcmp(name, "SCRIPT") == 0)
		fputs(html_script, f);
	else if (strcmp(name, "STYLE_DIGEST") == 0)
		fputs(html_style_digest, f);
	else if (strcmp(name, "SCRIPT_DIGEST") == 0)
		fputs(html_script_digest, f);
	else if (strcmp(name, "TOOL") == 0)
		fputs("slotprobe " SLOTPROBE_VERSION, f);
	else if (strcmp(name, "COVERAGE") == 0)
		html_coverage(f, page);
	else if (strcmp(name, "VERDICT") == 0)
		html_verdict(f, page);
	else if (strcmp(name, "FINDINGS") == 0)
		html_findings(f, page);
	else if (strcmp(name, "THINNED") == 0)
		thinned(f, page);
	else if (strcmp(name, "OVERVIEW") == 0)
		html_overview(f, page);
	else if (strcmp(name, "SLOTS") == 0)
		html_slots(f, page);
	else if (strcmp(name, "EVENTS") == 0)
		html_events(f, page);
	else if (strcmp(name, "CALLSITES") == 0)
		html_callsites(f, page);
	else if (strcmp(name, "DATA") == 0)
		filling->status = html_data(f, page, filling->err);
}

static int html_print(FILE *f, struct html_page *page, struct error *err)
{
	struct filling filling = { .page = page, .err = err };

	if (!page->result || !html_lanes_choose(page) || !html_times(page)) {
		error_set(err, "out of memory");
		filling.status = -1;
	} else {
		html_fill(f, html_template, put, &filling);
	}
	free(page->lane);
	free(page->ref);
	for (unsigned r = 0; r < 2; r++)
		free(page->zero[r]);
	json_decref(page->result);
	return filling.status;
}

int diff_print_html(FILE *f, const struct diff *diff, struct error *err)
{
	struct html_page page = { .verb = "diff",
				  .result = diff_json(diff),
				  .al = &diff->al,
				  .diff = diff,
				  .run = { &diff->run[0], &diff->run[1] },
				  .n_runs = 2 };

	return html_print(f, &page, err);
}

int report_print_html(FILE *f, const struct report *report, struct error *err)
{
	struct html_page page = { .verb = "report",
				  .result = report_json(report),
				  .al = &report->al,
				  .run = { &report->model },
				  .n_runs = 1 };

	return html_print(f, &page, err);
}

int check_print_html(FILE *f, const struct check *check, struct error *err)
{
	static const struct model no_other;
	struct alignment al;
	struct html_page page = {
		.verb = "check", .result = check_json(check), .al = &al, .run = { &check->model }, .n_runs = 1
	};
	int status = -1;

	if (align_runs(&al, &check->model, &no_other, ALIGN_SLOT) == 0)
		status = html_print(f, &page, err);
	else
		error_set(err, "out of memory");
	align_free(&al);
	return status;
}
