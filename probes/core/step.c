/* SPDX-License-Identifier: Apache-2.0
 *
 * step.c: the server's forwards, numbered in the order in which they are reported.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

/* Launches are counted in the thread that launches, so those of a forward are there when it is reported after. */
static uint32_t mode_of(uint32_t said)
{
	uint64_t now, then;

	if (said != SLOTPROBE_MODE_SEEN)
		return said;
	now = probe_launches(&probe_counts.launches);
	then = __atomic_exchange_n(&probe_counts.launches_at_step, now, __ATOMIC_RELAXED);
	return now == then ? SLOTPROBE_MODE_EAGER : SLOTPROBE_MODE_GRAPH;
}

/* Numbered even while paused: the numbers of two runs are to agree. */
static void fill(struct log_step *r, const struct slotprobe_step *step)
{
	memset(r, 0, sizeof *r);
	record_fill(r, LOG_STEP);
	r->t_ns = record_now_ns();
	r->number = __atomic_add_fetch(&probe_counts.steps, 1, __ATOMIC_RELAXED);
	r->value = step->value;
	r->batch = step->batch;
	r->padded = step->padded;
	r->mode = mode_of(step->mode);
	probe_text(r->name, sizeof r->name, step->name);
}

static enum ctr_outcome attempt(const struct slotprobe_step *step, struct ctr_row *row)
{
	struct log_step r;

	if (!step || step->size < sizeof *step || step->mode > SLOTPROBE_MODE_SEEN)
		return CTR_ERROR_ARGUMENT;
	fill(&r, step);
	if (!record_recording())
		return record_disk_stopped() ? CTR_SKIPPED_DISK : CTR_FILTERED_PAUSED;
	return record_put(&r, row) ? CTR_COMMITTED : CTR_DROPPED_QUEUE;
}

int probe_step(const struct slotprobe_step *step)
{
	struct ctr_row *row = ctr_core(CTR_ROW_STEP);
	enum ctr_outcome outcome;

	if (!probe_on_or_inherits())
		return -ENOSYS;
	ctr_begin(row);
	outcome = attempt(step, row);
	if (outcome != CTR_COMMITTED)
		ctr_finish(row, outcome);
	if (outcome == CTR_ERROR_ARGUMENT)
		return -EINVAL;
	return outcome == CTR_COMMITTED || outcome == CTR_FILTERED_PAUSED ? 0 : -EAGAIN;
}
