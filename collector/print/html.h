/* SPDX-License-Identifier: Apache-2.0
 *
 * html.h: between the parts of the HTML page: what a page is made of, escaping, and the sections.
 *
 * A page is one file that needs no network: the template, the style and the script of print/html/ are linked into the
 * command. Verdict, coverage and findings are written here, so that they can be read without the script; what grows with
 * the run is thinned here, and each place says what was left out.
 */
#ifndef PRINT_HTML_H
#define PRINT_HTML_H

#include "compare/diff.h"
#include "print/print.h"

#define HTML_LANES_MAX  1000u  /* slots in the map, the timeline and the traces */
#define HTML_SLOTS_MAX  20000u /* slots in the table */
#define HTML_STATIC_MAX 100u   /* rows of a table that is there without the script */
#define HTML_CELLS      100000u
#define HTML_PLANES_MAX 512u /* columns of the map */

/* One slot, as the drawings see it. */
struct html_lane {
	uint32_t row; /* of the alignment */
};

/* An event that a finding points to. */
struct html_ref {
	unsigned run;
	uint32_t process, event;
};

struct html_page {
	const char *verb;
	json_t *result; /* the same object that --json prints */
	const struct alignment *al;
	const struct diff *diff; /* NULL: one run alone */
	const struct model *run[2];
	unsigned n_runs;
	uint64_t *zero
		[2]; /* of each process: the time of the first event on its host, so that hosts can be laid over each other */
	uint64_t span[2]; /* from that to the last event */

	struct html_lane *lane;
	uint32_t n_lanes;
	struct html_ref *ref;
	size_t n_refs, room_refs;
};

/* ---- html_text.c ---- */
void html_text(FILE *f, const char *text);      /* escaped for content and for attributes in double quotes */
void html_value(FILE *f, const json_t *value);  /* a text or a number; null: "not measured" */
void html_data_text(FILE *f, const char *text); /* a JSON text that may stand in a script element */
const char *html_member(const json_t *object, const char *name); /* a text; "" when there is none */
int64_t html_count(const json_t *object, const char *name);      /* an integer; 0 when there is none */
/* The template with each <!--NAME--> replaced by what put(f, NAME, arg) writes. */
void html_fill(FILE *f, const char *template, void (*put)(FILE *f, const char *name, void *arg), void *arg);

/* ---- html_lanes.c: which slots are drawn, and on which axis of time ---- */
bool html_lanes_choose(struct html_page *page);                     /* false: out of memory */
bool html_times(struct html_page *page);                            /* fills zero and span; false: out of memory */
bool html_row_is_told(const struct html_page *page, uint32_t row);  /* by key a row may say nothing of its own */
bool html_row_is_equal(const struct html_page *page, uint32_t row); /* true for all where there is one run */
void html_lane_name(const struct html_page *page, uint32_t row, char *out,
		    size_t size); /* RANK/POOL/SLOT, escaped like safe() */

/* ---- sections ---- */
void html_coverage(FILE *f, const struct html_page *page);
void html_verdict(FILE *f, const struct html_page *page);
void html_findings(FILE *f, struct html_page *page);
void html_slots(FILE *f, const struct html_page *page);
void html_slots_data(FILE *f, const struct html_page *page);
void html_events(FILE *f, const struct html_page *page); /* those that the findings refer to */
void html_callsites(FILE *f, const struct html_page *page);
void html_overview(FILE *f, const struct html_page *page); /* the drawing that is there without the script */
int html_data(FILE *f, const struct html_page *page, struct error *err); /* what the script draws */

/* A link to the event, which from now on is one of those that html_events lists. The object is one that event_json made. */
void html_event_link(FILE *f, struct html_page *page, unsigned run, const json_t *event);
void html_frames(FILE *f, const json_t *frames);                       /* that callsite_json made */
const char *html_run_name(const struct html_page *page, unsigned run); /* "run A"; "this run" where there is one */

#endif
