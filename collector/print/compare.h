/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.h: printers of diff, check and report, each as text, as JSON and as an HTML page, and what they share.
 */
#ifndef PRINT_COMPARE_H
#define PRINT_COMPARE_H

#include "compare/check.h"
#include "compare/diff.h"
#include "print/print.h"

void diff_print_text(FILE *f, const struct diff *diff, bool color);
json_t *diff_json(const struct diff *diff);
/* html.c; 0, or -1 with *err set: the page is not whole. */
int diff_print_html(FILE *f, const struct diff *diff, struct error *err);

/* The kind that leads a finding, and the row that it shows as its example. */
enum explain_kind finding_kind(const struct finding *finding);
uint32_t finding_example(const struct finding *finding);
char *writer_sentence(const struct finding_writer *writer);                     /* to be freed; NULL: no memory */
char *finding_sentence(const struct diff *diff, const struct finding *finding); /* to be freed; NULL: no memory */
/* Each pattern as "BEFOREonly in ...AFTER". */
void patterns_print(FILE *f, const struct patterns *patterns, const char *before, const char *after);
json_t *findings_json(const struct diff *diff);
json_t *patterns_json(const struct patterns *patterns);

/* What stands beside a comparison; null where it was not asked for. */
json_t *tolerance_json(const struct diff *diff);
json_t *noise_json(const struct diff *diff);
json_t *third_json(const struct diff *diff);
json_t *configuration_json(const struct diff *diff);
void beside_print_text(FILE *f, const struct diff *diff);

void check_print_text(FILE *f, const struct check *check, bool color);
json_t *check_json(const struct check *check);
int check_print_html(FILE *f, const struct check *check, struct error *err);

struct report {
	struct model model;
	struct alignment al; /* side 0 alone is filled */
	struct reasons reasons;
};
void report_print_text(FILE *f, const struct report *report, bool color);
json_t *report_json(const struct report *report);
int report_print_html(FILE *f, const struct report *report, struct error *err);

/* ---- shared ---- */

/* Counters of every probe, one column group a run: the account of what was measured. */
void coverage_print_text(FILE *f, const struct model *models, size_t n_models, bool color);
/* Of a probe that was attempted 0 times: "never fired", or that this is what the arm promises. */
const char *coverage_why_silent(const struct model *model, const char *probe, char *out, size_t size);
/* {PROBE: [{attempted, committed, ...} or null, one a run]} */
json_t *coverage_json(const struct model *models, size_t n_models);
/* {path, arm, driver, device, processes, graph_launches, pool_graph_launches, donations, restores} */
json_t *run_json(const struct model *model);
const char *run_driver(const struct model *model); /* "CUDA 13.0"; NULL: unknown. A rotating buffer. */
const char *run_device(const struct model *model); /* NULL: unknown */

json_t *slot_json(int64_t slot); /* null when it never came back from the device */
/* The call site's frames, innermost first: at most `most` lines, "INDENTat SYMBOL (MODULE+0xOFFSET)"; nothing is printed for
 * a site that is not known. */
void callsite_print(FILE *f, const struct model_process *process, uint32_t callsite, uint32_t most, const char *indent);
json_t *callsite_json(const struct model_process *process, uint32_t callsite); /* its frames; null: not known */
/* How many events of each kind came from there; kinds without one are left out. */
void callsite_count(const struct model_process *process, uint32_t callsite, uint64_t n[LOG_EV_KIND_COUNT]);
#define CALLSITE_FRAMES 3 /* that stand beside an event */

/* {process, id, kind, rank, pool, slot, claimed_len, key, step, t_ns} */
json_t *event_json(const struct model_process *process, const struct model_event *event);
/* "donate 7 of slot 3 (length 64, step 12)" in a rotating buffer */
const char *event_text(const struct model_event *event);

#endif
