/* SPDX-License-Identifier: Apache-2.0
 *
 * html_coverage.c: the first section of the page: which runs, and what of each probe was attempted, recorded, left out and lost.
 */
#include <string.h>

#include "print/compare.h"
#include "print/html.h"

static void run_row(FILE *f, const struct html_page *page, unsigned r)
{
	static const char *const names[] = {
		"path",      "arm",     "driver", "device", "processes", "graph_launches", "pool_graph_launches",
		"donations", "restores"
	};
	json_t *run = run_json(page->run[r]);

	fprintf(f, "<tr><th scope=\"row\">%s</th>", page->n_runs == 1 ? "run" : r ? "B" : "A");
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		fputs(i < 4 ? "<td>" : "<td class=\"n\">", f);
		html_value(f, json_object_get(run, names[i]));
		fputs("</td>", f);
	}
	fputs("</tr>\n", f);
	json_decref(run);
}

static void runs_table(FILE *f, const struct html_page *page)
{
	fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
	      "aria-label=\"Runs\"><table><caption>Runs</caption><thead><tr>"
	      "<td></td><th scope=\"col\">directory</th><th scope=\"col\">arm</th><th scope=\"col\">driver</th>"
	      "<th scope=\"col\">device</th><th scope=\"col\">processes</th><th scope=\"col\">graph launches</th>"
	      "<th scope=\"col\">of graphs that touch a pool</th><th scope=\"col\">donations</th>"
	      "<th scope=\"col\">restores</th></tr></thead><tbody>\n",
	      f);
	for (unsigned r = 0; r < page->n_runs; r++)
		run_row(f, page, r);
	fputs("</tbody></table></div>\n", f);
}

/* Sum of the causes of one group, whose names go to `why` as well. */
static int64_t causes(const json_t *counters, const char *group, char *why, size_t size)
{
	const char *name;
	json_t *value;
	int64_t sum = 0;

	json_object_foreach(json_object_get(counters, group), name, value)
	{
		size_t n = strlen(why);

		if (!json_integer_value(value))
			continue;
		if (__builtin_add_overflow(sum, json_integer_value(value), &sum))
			sum = INT64_MAX;
		snprintf(why + n, size - n, "%s%s %" JSON_INTEGER_FORMAT, n ? ", " : "", name,
			 json_integer_value(value));
	}
	return sum;
}

static void counters_row(FILE *f, const char *probe, const char *run, const struct model *model, const json_t *c)
{
	char why[512] = "", silent[256];
	int64_t skipped, dropped;

	fputs("<tr><th scope=\"row\">", f);
	html_text(f, probe);
	fprintf(f, "</th><td>%s</td>", run);
	if (!json_is_object(c)) {
		fputs("<td colspan=\"8\"><span class=\"none\">no process has this probe</span></td></tr>\n", f);
		return;
	}
	skipped = causes(c, "skipped", why, sizeof why);
	dropped = causes(c, "dropped", why, sizeof why);
	fprintf(f, "<td class=\"n\">%lld</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td>",
		(long long)html_count(c, "attempted"), (long long)html_count(c, "committed"),
		(long long)html_count(c, "filtered"));
	fprintf(f, "<td class=\"n%s\">%lld</td><td class=\"n%s\">%lld</td>", skipped ? " bad" : "", (long long)skipped,
		dropped ? " bad" : "", (long long)dropped);
	fprintf(f, "<td class=\"n%s\">%lld</td><td class=\"n\">%lld</td><td>", html_count(c, "errors") ? " bad" : "",
		(long long)html_count(c, "errors"), (long long)html_count(c, "in_flight"));
	if (!html_count(c, "attempted"))
		html_text(f, coverage_why_silent(model, probe, silent, sizeof silent));
	html_text(f, why);
	fputs("</td></tr>\n", f);
}

static bool fired(const json_t *runs)
{
	bool any = false;

	for (size_t i = 0; i < json_array_size(runs); i++)
		any |= html_count(json_array_get(runs, i), "attempted") > 0;
	return any;
}

static void silent_probes(FILE *f, json_t *coverage)
{
	const char *probe, *gap = "<p>Never fired: ";
	json_t *runs;

	json_object_foreach(coverage, probe, runs)
	{
		if (fired(runs))
			continue;
		fputs(gap, f);
		fputs("<code>", f);
		html_text(f, probe);
		fputs("</code>", f);
		gap = ", ";
	}
	if (*gap == ',')
		fputs(".</p>\n", f);
}

void html_coverage(FILE *f, const struct html_page *page)
{
	json_t *coverage = page->diff ? coverage_json(page->diff->run, 2) : coverage_json(page->run[0], 1), *runs;
	const char *probe;

	runs_table(f, page);
	fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Coverage by probe\"><table>"
	      "<caption>What each probe attempted, and what became of it</caption><thead><tr>"
	      "<th scope=\"col\">probe</th><th scope=\"col\">run</th><th scope=\"col\">attempted</th>"
	      "<th scope=\"col\">recorded</th><th scope=\"col\">filtered</th><th scope=\"col\">skipped</th>"
	      "<th scope=\"col\">dropped</th><th scope=\"col\">errors</th><th scope=\"col\">in flight</th>"
	      "<th scope=\"col\">why not</th></tr></thead><tbody>\n",
	      f);
	json_object_foreach(coverage, probe, runs)
	{
		for (size_t i = 0; fired(runs) && i < json_array_size(runs); i++)
			counters_row(f, probe,
				     page->n_runs == 1 ? "run"
				     : i               ? "B"
						       : "A",
				     page->diff ? &page->diff->run[i] : page->run[0], json_array_get(runs, i));
	}
	fputs("</tbody></table></div>\n", f);
	silent_probes(f, coverage);
	json_decref(coverage);
}
