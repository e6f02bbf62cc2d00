/* SPDX-License-Identifier: Apache-2.0
 *
 * coverage.h: what one run did not measure, lost or cannot vouch for, as reasons. Judged before anything is compared.
 */
#ifndef COMPARE_COVERAGE_H
#define COMPARE_COVERAGE_H

#include "options.h"
#include "read/model.h"
#include "reasons.h"

/* What the user has allowed to be missing (diff --allow-missing) of one process: donations [0] and restores [1] by their
 * outcomes, to be taken off the counters. */
struct coverage_excuse {
	uint64_t lost[2][CTR_OUTCOME_COUNT];
};

struct coverage_ask {
	const char *run;  /* "A", "B", or "" where there is one run */
	bool launches;    /* graph launches matter: an entry that we did not hook does too */
	bool slot_events; /* alloc, clear, copy and discard matter as well as donations and restores */
	const struct coverage_excuse *excuse; /* one a process; may be NULL */
};

void coverage_judge(const struct model *model, const struct coverage_ask *ask, const struct options *options,
		    struct reasons *reasons);

/* Counters of one probe summed over the processes whose pages could be read. */
struct coverage_sum {
	uint64_t attempted, in_flight, outcome[CTR_OUTCOME_COUNT], group[CTR_IN_ERRORS + 1];
	size_t processes; /* that have such a row */
};
struct coverage_sum coverage_sum(const struct run *run, const char *probe);

/* A plain counter; false: no process has it. */
bool coverage_plain(const struct model *model, const char *name, uint64_t *value);

/* Names of all probes of the runs, each once, in the order of the rows; the caller frees the array alone. */
const char **coverage_probes(const struct model *models, size_t n_models, size_t *n);

#endif
