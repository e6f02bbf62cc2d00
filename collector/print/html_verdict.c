/* SPDX-License-Identifier: Apache-2.0
 *
 * html_verdict.c: the verdict of diff, check or report, and the reasons for it, each with what to do.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "print/compare.h"
#include "print/html.h"
#include "trouble.h"

/* By exit status: what check and report say in place of a verdict of diff. */
static const char *word_of(const struct html_page *page, int status)
{
	static const char *const diff[] = { "EQUAL", "DIFFERS", "", "NOT PROVEN" };
	static const char *const check[] = { "HOLDS", "BROKEN", "", "NOT PROVEN" };
	static const char *const report[] = { "RECORDED WHOLE", "", "", "RECORDED WITH LOSS" };

	return strcmp(page->verb, "check") == 0 ? check[status] : page->diff ? diff[status] : report[status];
}

static void diff_line(FILE *f, const struct diff *diff)
{
	const char *a = diff_arm(diff, 0), *b = diff_arm(diff, 1);
	uint64_t n = diff->summary.differs ? diff->summary.differs : diff->summary.equal;

	fprintf(f, "%" PRIu64 " of %" PRIu64 " slots %s (", n, diff->summary.slots,
		diff->summary.differs ? "differ" : "equal");
	html_text(f, a ? safe(a) : "arm unknown");
	fputs(" vs ", f);
	html_text(f, b ? safe(b) : "arm unknown");
	fprintf(f,
		"); %" PRIu64 " donations measured on both sides, of %" PRIu64 " and %" PRIu64
		". Aligned by %s: %" PRIu64 " donations line up, %" PRIu64 " do not.",
		diff->measured, diff->al.side[0].donations, diff->al.side[1].donations, align_mode_name(diff->al.mode),
		diff->al.aligned, diff->al.mismatched + diff->al.alone[0] + diff->al.alone[1]);
	if (diff->al.across_lives)
		fprintf(f, " %" PRIu64 " of them with one of another life of their rank.", diff->al.across_lives);
}

static void one_run_line(FILE *f, const struct html_page *page)
{
	const struct align_side *side = &page->al->side[0];

	fprintf(f, "%" PRIu64 " donations of %zu slots, %" PRIu64 " restores.", side->donations, page->al->n_rows,
		side->restores);
	if (json_object_get(page->result, "donations_measured"))
		fprintf(f, " %lld donations measured.", (long long)html_count(page->result, "donations_measured"));
}

static void reasons(FILE *f, const json_t *list)
{
	if (!json_array_size(list))
		return;
	fputs("<h3>Reasons</h3>\n<dl class=\"reasons\">\n", f);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *reason = json_array_get(list, i);

		fputs("<dt><code>", f);
		html_text(f, html_member(reason, "code"));
		fputs("</code></dt><dd>", f);
		html_text(f, html_member(reason, "text"));
		fputs("<br><span class=\"todo\">What to do: ", f);
		html_text(f, html_member(reason, "remedy"));
		fputs("</span></dd>\n", f);
	}
	fputs("</dl>\n", f);
}

static void hints(FILE *f, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		fputs("<p>Hint: ", f);
		html_text(f, json_string_value(json_array_get(list, i)));
		fputs("</p>\n", f);
	}
}

/* What the verdict does not speak of. */
static void left_out(FILE *f, const struct html_page *page)
{
	const json_t *runs = json_object_get(page->result, "not_recorded");
	const json_t *pools = json_object_get(page->result, "pools_without_donations");

	for (size_t i = 0; i < json_array_size(runs); i++) {
		const json_t *run = json_array_get(runs, i);
		long long paused = html_count(run, "paused"), adapter = html_count(run, "adapter");

		if (paused + adapter)
			fprintf(f,
				"<p>Run %c: %lld of %lld donations were not recorded (paused %lld, left out by an "
				"adapter "
				"%lld).</p>\n",
				"AB"[i & 1], paused + adapter, (long long)html_count(run, "attempted"), paused,
				adapter);
	}
	for (size_t i = 0; i < json_array_size(pools) && i < HTML_STATIC_MAX; i++) {
		fputs("<p>No donation in either run: pool ", f);
		html_text(f, html_member(json_array_get(pools, i), "rank"));
		fputs("/", f);
		html_text(f, html_member(json_array_get(pools, i), "pool"));
		fputs(".</p>\n", f);
	}
}

/* What a third run, a second of one arm, a tolerance and the manifests had to say: the words of the text report. */
static void beside(FILE *f, const struct diff *diff)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = trouble_need(open_memstream(&text, &size));

	beside_print_text(to, diff);
	if (*trouble_text(to, &text)) {
		fputs("<pre class=\"beside\">", f);
		html_text(f, text);
		fputs("</pre>\n", f);
	}
	free(text);
}

void html_verdict(FILE *f, const struct html_page *page)
{
	int status = (int)html_count(page->result, "exit_status");

	fprintf(f, "<p class=\"verdict s%d\"><strong>%s</strong> <span>", status, word_of(page, status));
	if (page->diff)
		diff_line(f, page->diff);
	else
		one_run_line(f, page);
	fputs("</span></p>\n", f);
	if (page->diff)
		beside(f, page->diff);
	hints(f, json_object_get(page->result, "hints"));
	left_out(f, page);
	reasons(f, json_object_get(page->result, "reasons"));
}
