/* SPDX-License-Identifier: Apache-2.0
 *
 * html_events.c: the events that findings refer to, and the places in the server from which events were reported.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "print/compare.h"
#include "print/html.h"
#include "trouble.h"

#define REFS_MAX  1000u
#define SITES_MAX 100u

static bool find_process(const struct html_page *page, unsigned run, const json_t *event, uint32_t *process)
{
	const struct model *model = page->run[run];

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct model_process *p = &model->process[i];

		if ((int64_t)p->from->pid == html_count(event, "process") &&
		    strcmp(safe(p->rank), html_member(event, "rank")) == 0) {
			*process = (uint32_t)i;
			return true;
		}
	}
	return false;
}

static bool remember(struct html_page *page, struct html_ref ref)
{
	for (size_t i = 0; i < page->n_refs; i++) {
		const struct html_ref *r = &page->ref[i];

		if (r->run == ref.run && r->process == ref.process && r->event == ref.event)
			return true;
	}
	if (page->n_refs >= REFS_MAX)
		return false;
	if (!array_room(&page->ref, &page->room_refs, page->n_refs, sizeof *page->ref))
		trouble_memory();
	page->ref[page->n_refs++] = ref;
	return true;
}

void html_event_link(FILE *f, struct html_page *page, unsigned run, const json_t *event)
{
	const struct model_event *e = NULL;
	struct html_ref ref = { .run = run };

	if (run < page->n_runs && find_process(page, run, event, &ref.process))
		e = model_event(&page->run[run]->process[ref.process], strtoull(html_member(event, "id"), NULL, 16));
	if (!e) {
		html_text(f, html_member(event, "kind"));
		return;
	}
	ref.event = (uint32_t)(e - page->run[run]->process[ref.process].event);
	if (remember(page, ref))
		fprintf(f, "<a href=\"#ev-%u-%" PRIu32 "-%" PRIu32 "\">%s</a>", run, ref.process, ref.event,
			event_text(e));
	else
		fputs(event_text(e), f);
}

void html_frames(FILE *f, const json_t *frames)
{
	if (!json_array_size(frames))
		return;
	fputs("<ol class=\"frames\">\n", f);
	for (size_t i = 0; i < json_array_size(frames); i++) {
		const json_t *frame = json_array_get(frames, i);

		fputs("<li><code>", f);
		html_text(f, html_member(frame, "symbol"));
		fputs(html_member(frame, "symbol")[0] ? "</code> <span class=\"none\">"
						      : "</code><span class=\"none\">",
		      f);
		html_text(f, html_member(frame, "module"));
		fprintf(f, "+0x%" PRIx64 "</span></li>\n", (uint64_t)strtoull(html_member(frame, "offset"), NULL, 16));
	}
	fputs("</ol>\n", f);
}

/* ---- events ---- */

static void event_row(FILE *f, const struct html_page *page, const struct html_ref *ref)
{
	const struct model *model = page->run[ref->run];
	const struct model_process *p = &model->process[ref->process];
	const struct model_event *e = &p->event[ref->event];
	const struct model_print *print = model_measured(p, e) ? model_subject(p, e) : NULL;
	uint64_t zero = page->zero[ref->run][ref->process];

	fprintf(f, "<tr id=\"ev-%u-%" PRIu32 "-%" PRIu32 "\"><th scope=\"row\">%s</th><td>%s</td><td>", ref->run,
		ref->process, ref->event, event_text(e), html_run_name(page, ref->run));
	html_text(f, safe(p->rank));
	fputs("</td><td>", f);
	html_text(f, e->pool == MODEL_NONE ? "?" : safe(p->pool[e->pool].name));
	fprintf(f, "</td><td class=\"n\">%.6f</td><td class=\"n\">%" PRIu64 "</td><td><code>",
		(double)(e->t_ns - zero) / 1e9, e->pool_launches);
	if (e->key)
		fprintf(f, "0x%016" PRIx64, e->key);
	fputs("</code></td>", f);
	if (print)
		fprintf(f, "<td class=\"n\">%.6g</td><td><code>0x%016" PRIx64 "</code></td>", print->absmax,
			print->rollup);
	else
		fputs("<td colspan=\"2\"><span class=\"none\">not measured</span></td>", f);
	if (model_callsite(p, e->callsite))
		fprintf(f, "<td><a href=\"#cs-%u-%" PRIu32 "-%" PRIu32 "\">call site %" PRIu32 "</a></td></tr>\n",
			ref->run, ref->process, e->callsite, e->callsite);
	else
		fputs("<td><span class=\"none\">not known</span></td></tr>\n", f);
}

void html_events(FILE *f, const struct html_page *page)
{
	if (!page->n_refs) {
		fputs("<p>No finding refers to an event.</p>\n", f);
		return;
	}
	fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of "
	      "events\"><table><thead><tr><th "
	      "scope=\"col\">event</th>"
	      "<th scope=\"col\">run</th><th scope=\"col\">rank</th><th scope=\"col\">pool</th><th "
	      "scope=\"col\">seconds</th>"
	      "<th scope=\"col\">launches on the pool so far</th><th scope=\"col\">key</th><th "
	      "scope=\"col\">abs-max</th>"
	      "<th scope=\"col\">hash</th><th scope=\"col\">reported from</th></tr></thead><tbody>\n",
	      f);
	for (size_t i = 0; i < page->n_refs; i++)
		event_row(f, page, &page->ref[i]);
	fputs("</tbody></table></div>\n", f);
	if (page->n_refs >= REFS_MAX)
		fprintf(f, "<p>Only the first %u events that findings refer to are listed.</p>\n", REFS_MAX);
}

/* ---- call sites ---- */

struct site {
	unsigned run;
	uint32_t process, callsite;
};

static size_t add_site(struct site *site, size_t n, struct site one)
{
	for (size_t i = 0; i < n; i++) {
		if (site[i].run == one.run && site[i].process == one.process && site[i].callsite == one.callsite)
			return n;
	}
	site[n] = one;
	return n + 1;
}

/* Those that the listed events link to, then others while there is room. */
static size_t choose_sites(const struct html_page *page, struct site *site, size_t most)
{
	size_t n = 0;

	for (size_t i = 0; i < page->n_refs && n < most; i++) {
		const struct html_ref *ref = &page->ref[i];
		const struct model_process *p = &page->run[ref->run]->process[ref->process];

		if (model_callsite(p, p->event[ref->event].callsite))
			n = add_site(site, n, (struct site) { ref->run, ref->process, p->event[ref->event].callsite });
	}
	most = n > SITES_MAX ? n : SITES_MAX;
	for (unsigned r = 0; r < page->n_runs; r++) {
		for (uint32_t i = 0; i < page->run[r]->n_processes; i++) {
			const struct model_process *p = &page->run[r]->process[i];

			for (size_t k = 0; k < p->n_callsites && n < most; k++)
				n = add_site(site, n, (struct site) { r, i, p->callsite[k].id });
		}
	}
	return n;
}

static void site_item(FILE *f, const struct html_page *page, const struct site *site)
{
	const struct model_process *p = &page->run[site->run]->process[site->process];
	json_t *frames = callsite_json(p, site->callsite);
	uint64_t n[LOG_EV_KIND_COUNT];
	const char *gap = ": ";

	callsite_count(p, site->callsite, n);
	fprintf(f, "<article id=\"cs-%u-%" PRIu32 "-%" PRIu32 "\"><h3>Call site %" PRIu32 " of %s, ", site->run,
		site->process, site->callsite, site->callsite, html_run_name(page, site->run));
	html_text(f, safe(p->rank));
	fputs("</h3>\n<p>Events reported from here", f);
	for (uint32_t kind = 0; kind < LOG_EV_KIND_COUNT; kind++) {
		if (!n[kind])
			continue;
		fprintf(f, "%s%s %" PRIu64, gap, model_event_name(kind), n[kind]);
		gap = ", ";
	}
	fputs("</p>\n", f);
	html_frames(f, frames);
	fputs("</article>\n", f);
	json_decref(frames);
}

void html_callsites(FILE *f, const struct html_page *page)
{
	size_t n, known = 0;
	struct site *site = trouble_need(calloc(page->n_refs + SITES_MAX + 1, sizeof *site));

	for (unsigned r = 0; r < page->n_runs; r++) {
		for (size_t i = 0; i < page->run[r]->n_processes; i++)
			known += page->run[r]->process[i].n_callsites;
	}
	n = choose_sites(page, site, page->n_refs + SITES_MAX);
	for (size_t i = 0; i < n; i++)
		site_item(f, page, &site[i]);
	free(site);
	if (!known)
		fputs("<p>No call site was recorded.</p>\n", f);
	else if (n < known)
		fprintf(f, "<p>%zu of %zu call sites are shown: those that findings refer to come first.</p>\n", n,
			known);
}
