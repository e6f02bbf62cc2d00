/* SPDX-License-Identifier: Apache-2.0
 *
 * work.c: one thing that a stream executes or a graph node holds: made once, then never changed, shared by count.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpudriver.h"

static __thread bool in_host_function;

bool work_in_host_function(void)
{
	return in_host_function;
}

struct work *work_new(enum work_kind kind, cu_context ctx, size_t data_bytes)
{
	struct work *work = cpu_alloc(sizeof(*work) + data_bytes);

	work->refs = 1;
	work->kind = kind;
	work->ctx = ctx;
	return work;
}

struct work *work_ref(struct work *work)
{
	work->refs++;
	return work;
}

void work_put(struct work *work)
{
	if (--work->refs)
		return;
	if (work->kind == WORK_EVENT || work->kind == WORK_RECORD || work->kind == WORK_WAIT)
		event_put(work->event);
	if (work->kind == WORK_PLAN)
		plan_put(work->plan);
	if (work->kind == WORK_ALLOC)
		memory_release(work->alloc.ptr);
	if (work->kind == WORK_CONDITIONAL) {
		condition_put(work->conditional.condition);
		for (unsigned i = 0; i < work->conditional.n; i++)
			plan_put(work->conditional.body[i]);
	}
	free(work);
}

int work_node_type(const struct work *work)
{
	switch (work->kind) {
	case WORK_KERNEL:
		return CU_NODE_KERNEL;
	case WORK_MEMCPY:
		return CU_NODE_MEMCPY;
	case WORK_MEMSET:
		return CU_NODE_MEMSET;
	case WORK_HOST:
		return CU_NODE_HOST;
	case WORK_ALLOC:
		return CU_NODE_MEM_ALLOC;
	case WORK_UNUSED:
		return CU_NODE_MEM_FREE;
	case WORK_RECORD:
		return CU_NODE_EVENT_RECORD;
	case WORK_WAIT:
		return CU_NODE_WAIT_EVENT;
	case WORK_BATCH:
		return CU_NODE_BATCH_MEM_OP;
	case WORK_CONDITIONAL:
		return CU_NODE_CONDITIONAL;
	default:
		return CU_NODE_EMPTY;
	}
}

/* ---- copies ---- */

struct side {
	uint64_t address; /* of the first byte */
	uint64_t row, slice;
	bool host;
};

static struct side side_of(const struct cu_memcpy_params *p, bool source)
{
	uint64_t pitch = source ? p->src_pitch : p->dst_pitch, height = source ? p->src_height : p->dst_height;
	unsigned type = source ? p->src_type : p->dst_type;
	struct side side = { .host = type == CUX_MEMORY_HOST };

	pitch = pitch ? pitch : p->width;
	height = height ? height : p->height;
	side.row = pitch;
	side.slice = pitch * height;
	if (source)
		side.address = (side.host ? (uint64_t)(uintptr_t)p->src_host : p->src_device) + p->src_x +
			       p->src_y * side.row + p->src_z * side.slice;
	else
		side.address = (side.host ? (uint64_t)(uintptr_t)p->dst_host : p->dst_device) + p->dst_x +
			       p->dst_y * side.row + p->dst_z * side.slice;
	return side;
}

static bool side_ok(const struct cu_memcpy_params *p, bool source)
{
	struct side side = side_of(p, source);

	if (side.host)
		return side.address != 0;
	return memory_has(side.address, (p->depth - 1) * side.slice + (p->height - 1) * side.row + p->width);
}

static bool memcpy_ok(const struct cu_memcpy_params *p)
{
	if (!p->width || !p->height || !p->depth)
		return true;
	return side_ok(p, true) && side_ok(p, false);
}

struct work *work_memcpy(cu_context ctx, const struct cu_memcpy_params *params)
{
	struct work *work = work_new(WORK_MEMCPY, ctx, 0);

	work->memcpy.params = *params;
	return work;
}

static void execute_memcpy(const struct work *work)
{
	const struct cu_memcpy_params *p = &work->memcpy.params;
	struct side from = side_of(p, true), to = side_of(p, false);

	if (work->memcpy.staged)
		from.address = (uint64_t)(uintptr_t)work->memcpy.staged;
	for (size_t z = 0; z < p->depth; z++)
		for (size_t y = 0; y < p->height; y++)
			memmove((void *)(uintptr_t)(to.address + z * to.slice + y * to.row),
				(const void *)(uintptr_t)(from.address + z * from.slice + y * from.row), p->width);
}

/* ---- memsets ---- */

static bool memset_ok(const struct cu_memset_params *p)
{
	uint64_t row = p->width * p->element_bytes;

	if (!p->width || !p->height)
		return true;
	return memory_has(p->dst, (p->height - 1) * (p->height > 1 ? p->pitch : 0) + row);
}

struct work *work_memset(cu_context ctx, const struct cu_memset_params *params)
{
	struct work *work = work_new(WORK_MEMSET, ctx, 0);

	work->memset = *params;
	return work;
}

static void execute_memset(const struct cu_memset_params *p)
{
	for (size_t y = 0; y < p->height; y++) {
		unsigned char *row = (unsigned char *)(uintptr_t)(p->dst + y * p->pitch);

		if (p->element_bytes == 1) {
			memset(row, (int)(p->value & 0xff), p->width);
			continue;
		}
		for (size_t x = 0; x < p->width; x++)
			memcpy(row + x * p->element_bytes, &p->value, p->element_bytes);
	}
}

/* ---- the rest ---- */

struct work *work_host(cu_context ctx, const struct cux_host_params *params)
{
	struct work *work = work_new(WORK_HOST, ctx, 0);

	work->host = *params;
	return work;
}

/* Takes over one count of the plan. */
struct work *work_plan(cu_context ctx, struct plan *plan)
{
	struct work *work = work_new(WORK_PLAN, ctx, 0);

	work->plan = plan;
	return work;
}

cu_result work_check(const struct work *work)
{
	if (work->kind == WORK_MEMCPY && !memcpy_ok(&work->memcpy.params)) {
		const struct cu_memcpy_params *p = &work->memcpy.params;

		cpu_say("copy of %zu x %zu x %zu bytes from %#llx to %#llx leaves the memory that was allocated",
			p->width, p->height, p->depth, (unsigned long long)side_of(p, true).address,
			(unsigned long long)side_of(p, false).address);
		return CU_INVALID_VALUE;
	}
	if (work->kind == WORK_MEMSET && !memset_ok(&work->memset)) {
		cpu_say("memset of %zu x %zu elements of %u bytes at %#llx leaves the memory that was allocated",
			work->memset.width, work->memset.height, work->memset.element_bytes,
			(unsigned long long)work->memset.dst);
		return CU_INVALID_VALUE;
	}
	return CU_SUCCESS;
}

/* The memory can have gone since the call: on a device that is a fault of the context. */
static bool still_good(const struct work *work)
{
	bool good;

	cpu_lock();
	good = !work_check(work);
	if (!good) {
		cpu_say("... by the time it ran: illegal address, the context is lost");
		work->ctx->sticky = CUX_ILLEGAL_ADDRESS;
	}
	cpu_unlock();
	return good;
}

void plan_execute(const struct plan *plan)
{
	for (size_t i = 0; i < plan->n && !atomic_load(&cpu_stopping); i++)
		if (plan->item[i].enabled)
			work_execute(plan->item[i].work, 0);
}

void work_execute(struct work *work, uint64_t sequence)
{
	if (cpu_delay_us && work->kind != WORK_EMPTY && work->kind != WORK_PLAN)
		usleep(cpu_delay_us);
	switch (work->kind) {
	case WORK_KERNEL:
		work->kernel.code(&work->kernel.launch, work->kernel.params);
		break;
	case WORK_MEMCPY:
		if (still_good(work))
			execute_memcpy(work);
		break;
	case WORK_MEMSET:
		if (still_good(work))
			execute_memset(&work->memset);
		break;
	case WORK_HOST:
		in_host_function = true;
		work->host.fn(work->host.data);
		in_host_function = false;
		break;
	case WORK_EVENT:
		cpu_lock();
		event_completed(work->event, sequence);
		cpu_unlock();
		break;
	case WORK_RECORD: /* the launch has marked it */
		cpu_lock();
		event_completed(work->event, work->event->sequence);
		cpu_unlock();
		break;
	case WORK_FREE:
		cpu_lock();
		memory_release(work->ptr);
		cpu_unlock();
		break;
	case WORK_PLAN:
		if (sequence) /* a launch, not a child graph in one */
			conditions_reset(work->plan);
		plan_execute(work->plan);
		break;
	case WORK_BATCH:
		batch_execute(work);
		break;
	case WORK_CONDITIONAL:
		conditional_execute(work);
		break;
	case WORK_EMPTY:
	case WORK_ALLOC:
	case WORK_UNUSED:
	case WORK_WAIT: /* was seen to when the graph was launched */
		break;
	}
}
