/* SPDX-License-Identifier: Apache-2.0
 *
 * model_load.h: between model.c and model_load.c: how the log of one process becomes its part of the model.
 */
#ifndef READ_MODEL_LOAD_H
#define READ_MODEL_LOAD_H

#include "read/map.h"
#include "read/model.h"
#include "read/settle.h"

/* Numbers fingerprints in the order in which their first parts stand in the log. Reading the log again numbers them
 * alike, and that is how a print is found again. */
struct print_numbers {
	struct map open;
	uint32_t n;
};

/* Number of the print that the part belongs to; MODEL_NONE: its first part is not there. */
uint32_t print_number(struct print_numbers *numbers, const struct log_fingerprint *part);

/* Fills in everything but rank and `from`. 0, or -1 with *err set. */
int model_load_process(struct model_process *process, struct error *err);

/* The same but for events, fingerprints and steps, which are not kept: the sink sees each event once it is settled. *regular
 * false: it did not see them all. */
int model_settle_process(struct model_process *process, const struct settle_sink *sink, bool *regular,
			 struct error *err);

/* Whether the fingerprint is whole, once all that there is of it was added. */
void model_judge_print(const struct model_process *p, struct model_print *print);

/* Sorts events and prints and ties them together. */
void model_link(struct model_process *process);

void model_free_records(struct model_process *process);

#endif
