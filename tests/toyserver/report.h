/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h: what the server tells slotprobe, and how often it did.
 */
#ifndef TOY_REPORT_H
#define TOY_REPORT_H

#include "model.h"
#include "pool.h"

enum toy_call {
	TOY_CALL_DONATE,
	TOY_CALL_RESTORE,
	TOY_CALL_ALLOC,
	TOY_CALL_CLEAR,
	TOY_CALL_COPY,
	TOY_CALL_DISCARD,
	TOY_CALL_FREE,
	TOY_CALL_STEP,
	TOY_CALLS
};

extern const char *const toy_call_names[TOY_CALLS];

struct toy_report {
	const struct toy_pool *pool;
	toy_stream stream;
	bool donate, device_ids;
	int id;                      /* of the pool */
	uint64_t calls[TOY_CALLS];   /* made */
	uint64_t refused[TOY_CALLS]; /* answered with an error, "no preload" included */
};

void toy_report_open(struct toy_report *report, const struct toy_pool *pool, const struct toy_model *model,
		     const struct toy_options *options);
void toy_report_close(struct toy_report *report);

/* The donation's id, or 0 when there is none: not reported, paused, refused. */
int64_t toy_report_donate(struct toy_report *report, int slot, int64_t claimed_len, uint64_t key);
void toy_report_restore(struct toy_report *report, int slot, int64_t claimed_len, uint64_t key);

/* from: source slot of a copy, donation id of a discard */
void toy_report_slot(struct toy_report *report, enum toy_call event, int slot, int64_t from);
void toy_report_step(struct toy_report *report, const char *name, uint64_t value, int batch, int padded, bool graph);

#endif
