/* SPDX-License-Identifier: Apache-2.0
 *
 * journal.h: the server's own account of what happened, one JSON object a line, so that a test need not believe
 * slotprobe. Nothing in it comes from slotprobe but the donation ids.
 */
#ifndef TOY_JOURNAL_H
#define TOY_JOURNAL_H

#include <stdio.h>

#include "report.h"
#include "shadow.h"

struct toy_slot_note {
	uint64_t alloc_hash; /* of the bytes when it was allocated */
	uint64_t donations;
	bool differs; /* some donation or restore of it was not what it should have been */
};

struct toy_journal {
	FILE *file; /* NULL: nothing is written */
	const struct toy_shadow *shadow;
	struct toy_slot_note *notes; /* one for each slot */
	uint64_t launches, donations, restores, wrong_donations, wrong_restores;
};

void toy_journal_open(struct toy_journal *journal, const char *path, const struct toy_shadow *shadow);
void toy_journal_start(struct toy_journal *journal, const struct toy_options *options, enum toy_arm arm);
void toy_journal_step(struct toy_journal *journal, const char *name, uint64_t number, const struct toy_forward *forward,
		      bool graph);

/* A hand-over, with what the slot holds and what it should hold. why: which code handed it over; id: donation id. */
void toy_journal_donate(struct toy_journal *journal, int request, int slot, const char *why, int64_t len, uint64_t key,
			int64_t id);
void toy_journal_restore(struct toy_journal *journal, int request, int slot, int64_t len, uint64_t key);

void toy_journal_alloc(struct toy_journal *journal, int request, int slot, const char *use);
void toy_journal_slot(struct toy_journal *journal, enum toy_call event, int slot, int64_t from);
void toy_journal_perturb(struct toy_journal *journal, int slot, int layer, int offset);
void toy_journal_request(struct toy_journal *journal, int request, const int32_t *generated, int n);

void toy_journal_end(struct toy_journal *journal, const struct toy_report *report, int captured, bool device_agrees);
void toy_journal_close(struct toy_journal *journal);

#endif
