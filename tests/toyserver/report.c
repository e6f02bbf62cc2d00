/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c: the calls of slotprobe.h. No other file of the server knows of slotprobe.
 */
#include "report.h"

#include <stdlib.h>

#include "probes/core/slotprobe.h"

const char *const toy_call_names[TOY_CALLS] = {
	"donate", "restore", "alloc", "clear", "copy", "discard", "free", "step"
};

static const uint32_t events[TOY_CALLS] = {
	[TOY_CALL_ALLOC] = SLOTPROBE_ALLOC,     [TOY_CALL_CLEAR] = SLOTPROBE_CLEAR, [TOY_CALL_COPY] = SLOTPROBE_COPY,
	[TOY_CALL_DISCARD] = SLOTPROBE_DISCARD, [TOY_CALL_FREE] = SLOTPROBE_FREE,
};

static int64_t count(struct toy_report *report, enum toy_call call, int64_t result)
{
	report->calls[call]++;
	if (result < 0)
		report->refused[call]++;
	return result;
}

static void add_pool(struct toy_report *report)
{
	const struct toy_pool *pool = report->pool;
	struct slotprobe_plane *planes = calloc((size_t)pool->layers * 2, sizeof(*planes));
	struct slotprobe_pool p = { .size = sizeof(p), .name = "state", .n_slots = pool->slots, .planes = planes };

	if (!planes)
		toy_die("out of memory");
	for (int layer = 0; layer < pool->layers; layer++) {
		planes[p.n_planes++] = (struct slotprobe_plane) { .tensor = "conv",
								  .layer = layer,
								  .dtype = SLOTPROBE_BF16,
								  .base = toy_pool_conv(pool, layer, 0),
								  .slot_stride = TOY_CONV_BYTES,
								  .elems = TOY_CONV_ELEMS };
		planes[p.n_planes++] = (struct slotprobe_plane) { .tensor = "ssm",
								  .layer = layer,
								  .dtype = SLOTPROBE_F32,
								  .base = toy_pool_ssm(pool, layer, 0),
								  .slot_stride = TOY_SSM_BYTES,
								  .elems = TOY_SSM_ELEMS };
	}
	report->id = slotprobe_pool_add(&p);
	free(planes);
}

void toy_report_open(struct toy_report *report, const struct toy_pool *pool, const struct toy_model *model,
		     const struct toy_options *options)
{
	const uint64_t bytes = TOY_MAX_BATCH * sizeof(int32_t);

	*report = (struct toy_report) {
		.pool = pool, .stream = model->stream, .donate = options->donate, .device_ids = options->device_slot_ids
	};
	slotprobe_rank("tp", 0, 1);
	add_pool(report);
	slotprobe_region("track_indices", model->fixed.track_indices, bytes, SLOTPROBE_I32);
	slotprobe_region("state_indices", model->fixed.rows.state_indices, bytes, SLOTPROBE_I32);
}

void toy_report_close(struct toy_report *report)
{
	if (report->id >= 0)
		slotprobe_pool_remove(report->id);
}

static struct slotprobe_claim claim(const struct toy_report *report, int slot, int64_t len, uint64_t key)
{
	struct slotprobe_claim c = { .size = sizeof(c),
				     .pool = report->id,
				     .slot = slot,
				     .claimed_len = len,
				     .key = key,
				     .key_len = key ? len : 0,
				     .stream = (uint64_t)(uintptr_t)report->stream };

	if (report->device_ids) {
		c.slot = -1;
		c.slot_ptr = report->pool->ids + (uint64_t)slot * sizeof(int64_t);
		c.slot_ptr_bytes = sizeof(int64_t);
	}
	return c;
}

int64_t toy_report_donate(struct toy_report *report, int slot, int64_t claimed_len, uint64_t key)
{
	struct slotprobe_claim c = claim(report, slot, claimed_len, key);
	int64_t id;

	if (!report->donate)
		return 0;
	id = count(report, TOY_CALL_DONATE, slotprobe_donate(&c));
	return id > 0 ? id : 0;
}

void toy_report_restore(struct toy_report *report, int slot, int64_t claimed_len, uint64_t key)
{
	struct slotprobe_claim c = claim(report, slot, claimed_len, key);

	count(report, TOY_CALL_RESTORE, slotprobe_restore(&c));
}

void toy_report_slot(struct toy_report *report, enum toy_call event, int slot, int64_t from)
{
	struct slotprobe_claim c = claim(report, slot, 0, 0);

	count(report, event, slotprobe_slot(events[event], &c, from));
}

void toy_report_step(struct toy_report *report, const char *name, uint64_t value, int batch, int padded, bool graph)
{
	struct slotprobe_step s = { .size = sizeof(s),
				    .name = name,
				    .value = value,
				    .batch = batch,
				    .padded = padded,
				    .mode = graph ? SLOTPROBE_MODE_GRAPH : SLOTPROBE_MODE_EAGER };

	count(report, TOY_CALL_STEP, slotprobe_step(&s));
}
