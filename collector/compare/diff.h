/* SPDX-License-Identifier: Apache-2.0
 *
 * diff.h: two runs compared: a verdict for each row, and one for all, with its reasons.
 */
#ifndef COMPARE_DIFF_H
#define COMPARE_DIFF_H

#include "compare/align.h"
#include "compare/config.h"
#include "compare/patterns.h"
#include "compare/third.h"
#include "compare/tolerance.h"
#include "compare/writer.h"
#include "options.h"
#include "reasons.h"

enum row_verdict {
	ROW_EQUAL,
	ROW_DIFFERS,
	ROW_WITHIN_TOLERANCE,
	ROW_NEVER_FIRED_A,
	ROW_NEVER_FIRED_B,
	ROW_NEVER_FIRED_BOTH,
	ROW_UNPAIRED,
	ROW_LOST,
	ROW_TRUNCATED,
	ROW_INCOMPARABLE,
	ROW_VERDICT_COUNT
};

enum explain_kind {
	EXPLAIN_NON_FINITE,
	EXPLAIN_ZERO,
	EXPLAIN_STALE,
	EXPLAIN_MISPLACED,
	EXPLAIN_WRONG_LENGTH,
	EXPLAIN_UNKNOWN,
	EXPLAIN_KIND_COUNT
};

struct explanation {
	enum explain_kind kind;
	unsigned side;       /* of the run that is thought wrong */
	bool has_event;      /* unknown has none */
	unsigned event_side; /* where the event that proves it lies */
	struct align_ref event;
	int64_t slot;     /* that the event's fingerprint is of */
	uint32_t role;    /* of that fingerprint */
	bool since_alloc; /* stale: as it was when it was allocated, never written since */
	bool strong;      /* misplaced: nothing but another place explains it; another length would not */
};

/* What can have gone wrong; each explanation points to one or two of them. */
enum finding_cause {
	CAUSE_NON_FINITE,
	CAUSE_NOT_WRITTEN, /* zero or stale: the same fault, in a fresh slot or in one that was used before */
	CAUSE_MISPLACED,
	CAUSE_WRONG_LENGTH,
	CAUSE_UNKNOWN,
	CAUSE_COUNT
};

struct diff_row {
	enum row_verdict verdict;
	bool allowed;       /* --allow-missing matches it */
	bool shows_restore; /* what is shown is a restore */
	struct align_ref shown[2];
	bool has[2];     /* shown[] is set */
	uint32_t number; /* of the occurrence shown */
	uint32_t paired; /* occurrences with a mate */
	uint32_t *plane; /* differing planes, by the index that run A's pool gives them */
	uint32_t n_planes;
	bool rollup_alone; /* the roll-up differs, and no plane */
	struct explanation explain[EXPLAIN_KIND_COUNT];
	uint32_t n_explain;
	uint32_t finding; /* that it belongs to; ALIGN_NONE */
};

/* Rows that one cause explains. */
struct finding {
	enum finding_cause cause;
	unsigned side; /* of the run that is thought wrong */
	uint32_t n_rows;
	uint64_t n_slots;                      /* whatever their rank */
	uint32_t first_row;                    /* the earliest, in the order of the suspected run */
	uint32_t rows_of[EXPLAIN_KIND_COUNT];  /* rows that have this explanation */
	uint32_t first_of[EXPLAIN_KIND_COUNT]; /* the earliest of them; ALIGN_NONE */
	struct patterns patterns;
	bool has_origin; /* non-finite: the first event of the run that had it, in whichever slot */
	struct align_ref origin;
	int64_t origin_slot;
	bool inherited; /* unknown: all of it came after this restore, which brought a wrong state back */
	struct align_ref heirloom;
	bool has_writer; /* a captured kernel that took another index */
	struct finding_writer writer;
};

struct diff {
	struct model run[2];
	struct alignment al;
	struct reasons reasons;
	struct diff_row *row; /* as al.row */
	struct {
		uint64_t slots, equal, differs, not_proven;
	} summary;
	uint64_t measured; /* donations measured on both sides and compared */
	bool has_first;
	uint32_t first_row;
	bool has_last_equal;
	uint32_t last_equal; /* occurrence on the suspect's side, the last equal one before the first divergence */
	unsigned suspect;    /* the side that the explanation suspects first, and whose order is the causal one */
	bool told_by_arm;    /* suspect follows from the arms */
	struct patterns patterns;
	struct finding *finding; /* in the order of their first rows */
	size_t n_findings;
	bool shallow; /* beside another comparison: a verdict, and no explanations */
	struct tolerance tolerance;
	struct noise noise;
	struct map near; /* (process, event) of run A -> enum near: differs, and within the tolerance or the noise */
	struct config config;  /* in what the runs were started otherwise */
	struct diff *third[2]; /* each run against the third; NULL: none was given */
};

/* 0, or -1 with *err set: exit status 2. */
int diff_runs(struct diff *diff, const char *a, const char *b, const struct options *options, struct error *err);
void diff_free(struct diff *diff);

int diff_exit_status(const struct diff *diff);
const char *diff_verdict(const struct diff *diff); /* "equal", "differs", "not_proven" */
const char *row_verdict_name(enum row_verdict verdict);
const char *explain_kind_name(enum explain_kind kind);
const char *diff_arm(const struct diff *diff, unsigned side); /* NULL: unknown */

/* By key a slot of B can have all its occurrences compared in rows of A: such a row says nothing of its own. */
bool diff_row_speaks(const struct diff *diff, uint32_t row);

/* Whole RANK/POOL/SLOT, as --allow-missing sees it. */
void diff_row_name(const struct diff *diff, uint32_t row, char *out, size_t size);

/* A pool of both runs from which neither donated. */
bool diff_pool_is_silent(const struct diff *diff, uint32_t group);

/* Whether the runs were started in one way that differs; what to say of it. NULL: nothing. */
const char *diff_config_note(const struct diff *diff);

/* What to record next, where the run could have told more. false: nothing. */
#define DIFF_HINT_MAX 160
bool diff_hint(const struct diff *diff, char *out, size_t size);

/* Whether x came before y in that run: within a process the ids are the order, across processes the clock is. */
bool diff_before(const struct align_side *side, struct align_ref x, struct align_ref y);

const char *finding_cause_name(enum finding_cause cause);
const char *finding_cause_text(enum finding_cause cause);                                    /* what usually makes it */
const struct explanation *row_explained(const struct diff_row *row, enum explain_kind kind); /* NULL: not so */

/* findings.c: groups the explained rows by cause. 0, or -1: out of memory. */
int find_findings(struct diff *diff);

/* explain.c: fills in planes and explanations of the rows that differ. 0, or -1 with *err set. */
int explain_rows(struct diff *diff, struct error *err);

#endif
