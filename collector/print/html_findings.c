/* SPDX-License-Identifier: Apache-2.0
 *
 * html_findings.c: what was found, each finding with links to its events and call sites.
 *
 * It reads the object that --json prints: findings[] where there are any, else the explanations of the slots, slots with the
 * same kinds of explanation together; the invariants of check.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "print/compare.h"
#include "print/html.h"

#define GROUPS_MAX   16u
#define EXAMPLES_MAX 8u
#define PLANES_MAX   4096u

const char *html_run_name(const struct html_page *page, unsigned run)
{
	return page->n_runs == 1 ? "this run" : run ? "run B" : "run A";
}

static unsigned run_of(const json_t *object)
{
	return html_member(object, "run")[0] == 'b';
}

/* Layers of one tensor, as ranges where they follow each other: "0-3, 7". */
static void layers_text(FILE *f, const json_t *planes, const char *tensor)
{
	const char *gap = " ";
	int64_t first = 0, last = 0;
	bool open = false;

	for (size_t i = 0; i <= json_array_size(planes); i++) {
		const json_t *plane = json_array_get(planes, i); /* NULL after the last */
		int64_t layer = html_count(plane, "layer");

		if (plane && strcmp(html_member(plane, "tensor"), tensor) != 0)
			continue;
		if (open && plane && layer == last + 1) {
			last = layer;
			continue;
		}
		if (open) {
			fprintf(f, "%s%" PRId64, gap, first);
			if (last != first)
				fprintf(f, "-%" PRId64, last);
			gap = ", ";
		}
		open = plane != NULL;
		first = last = layer;
	}
}

static bool tensor_came_before(const json_t *planes, size_t n)
{
	const char *tensor = html_member(json_array_get(planes, n), "tensor");

	for (size_t i = 0; i < n; i++) {
		if (strcmp(html_member(json_array_get(planes, i), "tensor"), tensor) == 0)
			return true;
	}
	return false;
}

/* "conv, layers 0-3; ssm, layers 0-3", of a list of {tensor, layer}. */
static void planes_text(FILE *f, const json_t *planes)
{
	size_t most = json_array_size(planes) < PLANES_MAX ? json_array_size(planes) : PLANES_MAX;

	for (size_t i = 0; i < most; i++) {
		if (tensor_came_before(planes, i))
			continue;
		fputs(i ? "; " : "", f);
		html_text(f, html_member(json_array_get(planes, i), "tensor"));
		fputs(", layers", f);
		layers_text(f, planes, html_member(json_array_get(planes, i), "tensor"));
	}
	if (json_array_size(planes) > most)
		fputs(", and others", f);
}

static void slot_text(FILE *f, const json_t *slot)
{
	html_text(f, html_member(slot, "rank"));
	fputc('/', f);
	html_text(f, html_member(slot, "pool"));
	if (json_is_integer(json_object_get(slot, "slot")))
		fprintf(f, "/%" PRId64, html_count(slot, "slot"));
	else
		fputs("/?", f);
}

/* ---- explanations of slots ---- */

/* What comes before the event that proves it. */
static const char *explanation_says(const char *kind, bool elsewhere)
{
	if (strcmp(kind, "non_finite") == 0)
		return "holds NaN or Inf; this slot had it first at";
	if (strcmp(kind, "zero") == 0)
		return "holds only zeros: never written";
	if (strcmp(kind, "stale") == 0)
		return "still holds what the slot held at";
	if (strcmp(kind, "misplaced") == 0)
		return elsewhere ? "holds what belongs to another slot:" : "has the right bytes elsewhere:";
	if (strcmp(kind, "wrong_length") == 0)
		return "holds the state of another length:";
	return "holds bytes that were found nowhere else in either run";
}

static void explanation(FILE *f, struct html_page *page, const json_t *x)
{
	const json_t *event = json_object_get(x, "event");
	const char *kind = html_member(x, "kind");
	bool elsewhere = json_is_object(event) && run_of(event) != run_of(x);

	fputs("<li><code>", f);
	html_text(f, kind);
	fprintf(f, "</code>: %s %s", html_run_name(page, run_of(x)), explanation_says(kind, elsewhere));
	if (json_is_object(event) && strcmp(kind, "zero") != 0) {
		fputc(' ', f);
		if (strcmp(kind, "misplaced") == 0 && json_is_integer(json_object_get(x, "found_in_slot")))
			fprintf(f, "slot %" PRId64 "%s, at ", html_count(x, "found_in_slot"),
				json_is_true(json_object_get(x, "watched")) ? " (watched)" : "");
		html_event_link(f, page, run_of(event), event);
		if (elsewhere)
			fprintf(f, " of %s", html_run_name(page, run_of(event)));
		if (json_is_true(json_object_get(x, "never_written_since_alloc")))
			fputs(": not written since its allocation", f);
	}
	fputs("</li>\n", f);
}

/* One slot that differs: where, which planes, whose bytes. */
static void slot_finding(FILE *f, struct html_page *page, const json_t *slot)
{
	const json_t *events = json_object_get(slot, "event"), *explain = json_object_get(slot, "explain");

	fputs("<li><strong>", f);
	slot_text(f, slot);
	fputs("</strong>, ", f);
	for (unsigned r = 0; r < 2; r++) {
		if (!json_is_object(json_array_get(events, r)))
			continue;
		fprintf(f, "%s%c: ", r ? "; " : "", "AB"[r]);
		html_event_link(f, page, r, json_array_get(events, r));
	}
	fprintf(f, "; %zu planes differ: ", json_array_size(json_object_get(slot, "planes_differing")));
	planes_text(f, json_object_get(slot, "planes_differing"));
	fputs("<ul>\n", f);
	for (size_t i = 0; i < json_array_size(explain); i++)
		explanation(f, page, json_array_get(explain, i));
	fputs("</ul></li>\n", f);
}

struct group { /* slots with the same kinds of explanation */
	char kinds[96];
	size_t n;
};

static void kinds_of(const json_t *slot, char *out, size_t size)
{
	const json_t *explain = json_object_get(slot, "explain");

	out[0] = 0;
	for (size_t i = 0; i < json_array_size(explain); i++) {
		const char *kind = html_member(json_array_get(explain, i), "kind");
		size_t n = strlen(out);

		if (!strstr(out, kind))
			snprintf(out + n, size - n, "%s%s", n ? ", " : "", kind);
	}
}

static size_t count_groups(const json_t *slots, struct group *group)
{
	size_t n_groups = 0, g;

	for (size_t i = 0; i < json_array_size(slots); i++) {
		char kinds[sizeof group->kinds];

		if (strcmp(html_member(json_array_get(slots, i), "verdict"), "differs") != 0)
			continue;
		kinds_of(json_array_get(slots, i), kinds, sizeof kinds);
		for (g = 0; g < n_groups && strcmp(group[g].kinds, kinds) != 0; g++)
			;
		if (g == GROUPS_MAX)
			continue;
		if (g == n_groups) {
			n_groups++;
			memcpy(group[g].kinds, kinds, sizeof kinds);
		}
		group[g].n++;
	}
	return n_groups;
}

static void group_examples(FILE *f, struct html_page *page, const json_t *slots, const struct group *group)
{
	size_t shown = 0;

	fputs("<ul>\n", f);
	for (size_t i = 0; i < json_array_size(slots) && shown < EXAMPLES_MAX; i++) {
		const json_t *slot = json_array_get(slots, i);
		char kinds[sizeof group->kinds];

		kinds_of(slot, kinds, sizeof kinds);
		if (strcmp(html_member(slot, "verdict"), "differs") != 0 || strcmp(kinds, group->kinds) != 0)
			continue;
		slot_finding(f, page, slot);
		shown++;
	}
	fputs("</ul>\n", f);
	if (group->n > shown)
		fprintf(f, "<p>and %zu more slots: see the table of slots.</p>\n", group->n - shown);
}

static void slots_found(FILE *f, struct html_page *page)
{
	const json_t *slots = json_object_get(page->result, "slots");
	struct group group[GROUPS_MAX] = { 0 };
	size_t n = count_groups(slots, group);

	for (size_t g = 0; g < n; g++) {
		fprintf(f, "<article class=\"finding\"><h3>%zu slot%s differ%s: ", group[g].n,
			group[g].n == 1 ? "" : "s", group[g].n == 1 ? "s" : "");
		html_text(f, group[g].kinds);
		fputs("</h3>\n", f);
		group_examples(f, page, slots, &group[g]);
		fputs("</article>\n", f);
	}
}

/* ---- the first divergence ---- */

static void first_divergence(FILE *f, struct html_page *page)
{
	const json_t *first = json_object_get(page->result, "first_divergence");

	if (!json_is_object(first))
		return;
	fputs("<article class=\"finding\"><h3>First divergence</h3>\n<p>In the order of ", f);
	fprintf(f, "%s: ", html_run_name(page, run_of(first)));
	html_event_link(f, page, run_of(first), first);
	if (json_is_integer(json_object_get(first, "batch")))
		fprintf(f, ", in a batch of %" PRId64 " padded to %" PRId64, html_count(first, "batch"),
			html_count(first, "padded"));
	fputs(". ", f);
	if (json_is_object(json_object_get(first, "last_equal"))) {
		fputs("Last equal before it: ", f);
		html_event_link(f, page, run_of(first), json_object_get(first, "last_equal"));
		fputc('.', f);
	}
	fputs("</p>\n", f);
	html_frames(f, json_object_get(first, "callsite"));
	fputs("</article>\n", f);
}

/* ---- what the differences share ---- */

static void patterns(FILE *f, const json_t *p)
{
	const json_t *planes = json_object_get(p, "planes"), *length = json_object_get(p, "length");

	if (json_is_object(planes)) {
		const json_t *tensors = json_object_get(planes, "tensors");

		fputs("<p>Only in ", f);
		for (size_t i = 0; i < json_array_size(tensors); i++) {
			fputs(i ? ", " : "", f);
			html_text(f, json_string_value(json_array_get(tensors, i)));
		}
		fprintf(f, ", layers %" PRId64 " to %" PRId64 ".</p>\n", html_count(planes, "first_layer"),
			html_count(planes, "last_layer"));
	}
	if (json_is_object(length))
		fprintf(f, "<p>Only at lengths that leave %" PRId64 " modulo %" PRId64 ".</p>\n",
			html_count(length, "remainder"), html_count(length, "modulus"));
	if (json_is_true(json_object_get(p, "padded_only")))
		fputs("<p>Only in padded batches.</p>\n", f);
	if (json_is_true(json_object_get(p, "reused_only")))
		fputs("<p>Only in slots that had an owner before.</p>\n", f);
	if (json_is_true(json_object_get(p, "restored_only")))
		fputs("<p>Only in requests that started from a restored state.</p>\n", f);
	if (json_is_string(json_object_get(p, "rank"))) {
		fputs("<p>Only in rank ", f);
		html_text(f, html_member(p, "rank"));
		fputs(".</p>\n", f);
	}
}

/* ---- findings[]: one cause each ---- */

static void finding_events(FILE *f, struct html_page *page, const json_t *events)
{
	fputs(json_array_size(events) ? "<ul>\n" : "", f);
	for (size_t i = 0; i < json_array_size(events) && i < EXAMPLES_MAX; i++) {
		const json_t *event = json_array_get(events, i);

		fputs("<li>", f);
		html_text(f, html_member(event, "part"));
		fputs(html_member(event, "part")[0] ? ": " : "", f);
		html_event_link(f, page, run_of(event), event);
		fprintf(f, " of %s", html_run_name(page, run_of(event)));
		html_frames(f, json_object_get(event, "callsite"));
		fputs("</li>\n", f);
	}
	fputs(json_array_size(events) ? "</ul>\n" : "", f);
}

static void finding_slots(FILE *f, const json_t *x)
{
	const json_t *slots = json_object_get(x, "slots");
	int64_t n = html_count(x, "n_slots");

	if (!json_array_size(slots))
		return;
	fputs("<p>Slots: ", f);
	for (size_t i = 0; i < json_array_size(slots) && i < HTML_STATIC_MAX; i++) {
		fputs(i ? ", " : "", f);
		slot_text(f, json_array_get(slots, i));
	}
	if (n > (int64_t)json_array_size(slots))
		fprintf(f, ", and %" PRId64 " more", n - (int64_t)json_array_size(slots));
	fputs(".</p>\n", f);
}

static void finding(FILE *f, struct html_page *page, const json_t *x)
{
	int64_t n = html_count(x, "n_slots");

	fputs("<article class=\"finding\"><h3>", f);
	html_text(f, html_member(x, "kind"));
	fprintf(f, ", %" PRId64 " slot%s</h3>\n<p>", n, n == 1 ? "" : "s");
	html_text(f, html_member(x, "sentence"));
	fputs("</p>\n", f);
	if (html_member(x, "usual_cause")[0]) {
		fputs("<p>Usual cause: ", f);
		html_text(f, html_member(x, "usual_cause"));
		fputs("</p>\n", f);
	}
	if (html_member(json_object_get(x, "writer"), "text")[0]) {
		fputs("<p>Written by: ", f);
		html_text(f, html_member(json_object_get(x, "writer"), "text"));
		fputs("</p>\n", f);
	}
	patterns(f, json_object_get(x, "patterns"));
	finding_slots(f, x);
	finding_events(f, page, json_object_get(x, "events"));
	fputs("</article>\n", f);
}

/* ---- invariants ---- */

static void invariant_example(FILE *f, struct html_page *page, const json_t *x)
{
	fputs("<li>", f);
	html_event_link(f, page, 0, json_object_get(x, "event"));
	if (json_is_object(json_object_get(x, "against"))) {
		fputs(", against ", f);
		html_event_link(f, page, 0, json_object_get(x, "against"));
	}
	html_frames(f, json_object_get(x, "callsite"));
	fputs("</li>\n", f);
}

static void invariants(FILE *f, struct html_page *page)
{
	const json_t *list = json_object_get(page->result, "invariants");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *x = json_array_get(list, i), *examples = json_object_get(x, "examples");
		const char *state = html_member(x, "state");

		fprintf(f, "<article class=\"finding\"><h3><span class=\"state %s\">%s</span> ", state,
			strcmp(state, "not_checked") == 0 ? "not checked" : state);
		html_text(f, html_member(x, "text"));
		fputs("</h3>\n", f);
		if (json_is_integer(json_object_get(x, "checked")))
			fprintf(f, "<p>%" PRId64 " checked, %" PRId64 " broken.</p>\n", html_count(x, "checked"),
				html_count(x, "broken"));
		fputs(json_array_size(examples) ? "<ul>\n" : "", f);
		for (size_t k = 0; k < json_array_size(examples); k++)
			invariant_example(f, page, json_array_get(examples, k));
		fputs(json_array_size(examples) ? "</ul>\n" : "", f);
		fputs("</article>\n", f);
	}
}

void html_findings(FILE *f, struct html_page *page)
{
	const json_t *findings = json_object_get(page->result, "findings");
	size_t before = page->n_refs;

	first_divergence(f, page);
	patterns(f, json_object_get(page->result, "patterns"));
	for (size_t i = 0; i < json_array_size(findings) && i < HTML_STATIC_MAX; i++)
		finding(f, page, json_array_get(findings, i));
	if (page->diff && !json_array_size(findings))
		slots_found(f, page);
	invariants(f, page);
	if (strcmp(page->verb, "report") == 0)
		fputs("<p>A report draws no conclusion: <code>slotprobe check</code> holds one run against itself, "
		      "<code>slotprobe diff</code> compares two.</p>\n",
		      f);
	else if (page->n_refs == before)
		fputs("<p>Nothing was found that points to an event.</p>\n", f);
}
