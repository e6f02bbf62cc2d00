/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c: what we hold in each context: the kernels, a stream of our own, an arena of device memory. Made when the
 * first pool of the context is registered, since loading and allocating have no place on a hot path, and never torn
 * down: freeing device memory waits for the device. The context takes it along when it goes.
 */
#include "core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEVICES    32u
#define WORD_BYTES 4096u

static struct probe_device devices[DEVICES];

bool probe_ctx_enter(const struct shim_driver *drv, cu_context ctx, bool *pushed)
{
	cu_context current = NULL;

	*pushed = false;
	if (drv->ctx_get_current(&current) == CU_SUCCESS && current == ctx)
		return true;
	*pushed = drv->ctx_push(ctx) == CU_SUCCESS;
	return *pushed;
}

void probe_ctx_leave(const struct shim_driver *drv, bool pushed)
{
	cu_context ctx;

	for (unsigned i = 0; pushed && i < SHIM_UNDO_TRIES; i++)
		pushed = drv->ctx_pop(&ctx) != CU_SUCCESS;
}

static bool device_live(const struct probe_device *d)
{
	return __atomic_load_n(&d->state, __ATOMIC_ACQUIRE) == PROBE_DEVICE_LIVE;
}

bool probe_device_matches(const struct probe_device *d, cu_context ctx, cu_device device)
{
	return device_live(d) && (ctx ? d->ctx == ctx : d->handle == device);
}

/* ---- which context ---- */

static struct probe_device *known(cu_context ctx, int32_t ordinal)
{
	for (uint32_t i = 0; i < DEVICES; i++) {
		struct probe_device *d = &devices[i];
		if (device_live(d) && (ctx ? d->ctx == ctx : d->ordinal == ordinal))
			return d;
	}
	return NULL;
}

static bool current_is_of(const struct shim_driver *drv, cu_device handle, cu_context *ctx)
{
	cu_device device;

	return drv->ctx_get_current(ctx) == CU_SUCCESS && *ctx && drv->ctx_get_device(&device) == CU_SUCCESS &&
	       device == handle;
}

/* The primary context, if somebody has made it: retaining it is how one learns its handle. */
static bool primary_of(const struct shim_driver *drv, cu_device handle, cu_context *ctx)
{
	unsigned flags;
	int active = 0;

	if (!drv->primary_ctx_get_state || !drv->primary_ctx_retain)
		return false;
	if (drv->primary_ctx_get_state(handle, &flags, &active) != CU_SUCCESS || !active)
		return false;
	if (drv->primary_ctx_retain(ctx, handle) != CU_SUCCESS)
		return false;
	/* Given back at once: it must still go when its owner lets go of it. */
	if (drv->primary_ctx_release)
		drv->primary_ctx_release(handle);
	return true;
}

/* ---- making it: each step is kept, so that a second attempt goes on where the first failed ---- */

static bool load_library(const struct shim_driver *drv, struct probe_device *d)
{
	cu_library library;
	cu_kernel print, ready;

	if (!drv->library_load_data || !drv->library_get_kernel || !drv->kernel_get_function)
		return false;
	if (drv->library_load_data(&library, fp_image, NULL, NULL, 0, NULL, NULL, 0) != CU_SUCCESS)
		return false;
	if (drv->library_get_kernel(&print, library, FP_KERNEL_NAME) != CU_SUCCESS ||
	    drv->library_get_kernel(&ready, library, FP_READY_NAME) != CU_SUCCESS ||
	    drv->kernel_get_function(&d->ready, ready) != CU_SUCCESS ||
	    drv->kernel_get_function(&d->print, print) != CU_SUCCESS) {
		d->print = NULL;
		return false;
	}
	/* Lazy loading would otherwise do it at the first launch, which may fall into somebody's capture. */
	if (drv->func_load) {
		drv->func_load(d->print);
		drv->func_load(d->ready);
	}
	return true;
}

static bool load_module(const struct shim_driver *drv, struct probe_device *d)
{
	cu_module module;

	if (drv->module_load_data(&module, fp_image) != CU_SUCCESS)
		return false;
	if (drv->module_get_function(&d->ready, module, FP_READY_NAME) == CU_SUCCESS &&
	    drv->module_get_function(&d->print, module, FP_KERNEL_NAME) == CU_SUCCESS)
		return true;
	d->print = NULL;
	return false;
}

static bool make_word(const struct shim_driver *drv, struct probe_device *d)
{
	const unsigned flags = CU_HOSTREGISTER_PORTABLE | CU_HOSTREGISTER_DEVICEMAP;
	uint32_t *word = probe_map(WORD_BYTES, true);

	if (!word)
		return false;
	if (drv->mem_host_register(word, WORD_BYTES, flags) == CU_SUCCESS) {
		if (drv->mem_host_get_device_pointer(&d->word_address, word, 0) == CU_SUCCESS) {
			d->word = word;
			return true;
		}
		drv->mem_host_unregister(word);
	}
	probe_unmap(word, WORD_BYTES);
	return false;
}

static bool make_arena(const struct shim_driver *drv, struct probe_device *d)
{
	for (uint32_t units = PROBE_ARENA_UNITS; units >= PROBE_ARENA_UNITS / 8; units /= 2) {
		if (drv->mem_alloc(&d->arena, (size_t)units * PROBE_ARENA_UNIT) == CU_SUCCESS) {
			d->units = units;
			return true;
		}
	}
	d->arena = 0;
	return false;
}

static bool make_parts(const struct shim_driver *drv, struct probe_device *d)
{
	if (!d->print && !load_library(drv, d) && !load_module(drv, d))
		return false;
	if (!d->stream && drv->stream_create(&d->stream, CU_STREAM_NON_BLOCKING) != CU_SUCCESS) {
		d->stream = NULL;
		return false;
	}
	return (d->word || make_word(drv, d)) && (d->arena || make_arena(drv, d));
}

/* ---- saying it ---- */

static void say_driver(const struct log_device *r)
{
	char text[64];

	snprintf(text, sizeof text, "CUDA %d.%d, %.40s", r->driver_version / 1000, r->driver_version % 1000 / 10,
		 r->name);
	record_set_driver(text);
}

static void say_device(const struct shim_driver *drv, struct probe_device *d)
{
	struct log_device r;
	struct cu_uuid uuid;
	size_t memory = 0;

	memset(&r, 0, sizeof r);
	record_fill(&r, LOG_DEVICE);
	r.context = (uintptr_t)d->ctx;
	r.ordinal = d->ordinal;
	drv->driver_get_version(&r.driver_version);
	if (drv->device_total_mem && drv->device_total_mem(&memory, d->handle) == CU_SUCCESS)
		r.memory_bytes = memory;
	drv->device_get_attribute(&r.multiprocessors, CU_ATTRIBUTE_MULTIPROCESSORS, d->handle);
	int major = 0, minor = 0;
	drv->device_get_attribute(&major, CU_ATTRIBUTE_CAPABILITY_MAJOR, d->handle);
	drv->device_get_attribute(&minor, CU_ATTRIBUTE_CAPABILITY_MINOR, d->handle);
	r.capability = major * 10 + minor;
	if (drv->device_get_uuid && drv->device_get_uuid(&uuid, d->handle) == CU_SUCCESS)
		memcpy(r.uuid, uuid.bytes, sizeof r.uuid);
	drv->device_get_name(r.name, sizeof r.name - 1, d->handle);
	say_driver(&r);
	d->said = record_put_meta(&r);
}

/* ---- the table ---- */

static struct probe_device *place_for(cu_context ctx)
{
	struct probe_device *fresh = NULL;

	for (uint32_t i = 0; i < DEVICES; i++) {
		struct probe_device *d = &devices[i];
		uint32_t state = __atomic_load_n(&d->state, __ATOMIC_ACQUIRE);
		if (state == PROBE_DEVICE_MAKING && d->ctx == ctx)
			return d;
		if (state == PROBE_DEVICE_FREE && !fresh)
			fresh = d;
	}
	if (fresh)
		memset(fresh, 0, sizeof *fresh);
	return fresh;
}

static struct probe_device *make(const struct shim_driver *drv, cu_context ctx, cu_device handle, int32_t ordinal)
{
	struct probe_device *d = place_for(ctx);
	bool pushed, made;

	if (!d)
		return NULL;
	d->ctx = ctx;
	d->handle = handle;
	d->ordinal = ordinal;
	__atomic_store_n(&d->state, PROBE_DEVICE_MAKING, __ATOMIC_RELEASE);
	if (!probe_ctx_enter(drv, ctx, &pushed))
		return NULL;
	made = make_parts(drv, d);
	if (made && !d->said)
		say_device(drv, d);
	probe_ctx_leave(drv, pushed);
	if (!made)
		return NULL;
	__atomic_store_n(&d->state, PROBE_DEVICE_LIVE, __ATOMIC_RELEASE);
	return d;
}

struct probe_device *probe_device_get(const struct shim_driver *drv, int32_t ordinal, int *error)
{
	struct probe_device *d;
	cu_device handle;
	cu_context ctx;

	*error = -ENODEV;
	if (drv->device_get(&handle, ordinal) != CU_SUCCESS)
		return NULL;
	if (!current_is_of(drv, handle, &ctx)) {
		d = known(NULL, ordinal);
		if (d)
			return d;
		if (!primary_of(drv, handle, &ctx))
			return NULL;
	}
	d = known(ctx, ordinal);
	if (d)
		return d;
	*error = -EAGAIN;
	return make(drv, ctx, handle, ordinal);
}

/* The state stays GONE for as long as pools or spare rings may name it: 32 contexts in the life of a process. */
void probe_devices_going(cu_context ctx, cu_device device)
{
	for (uint32_t i = 0; i < DEVICES; i++) {
		struct probe_device *d = &devices[i];
		uint32_t state = __atomic_load_n(&d->state, __ATOMIC_ACQUIRE);
		if (state != PROBE_DEVICE_LIVE && state != PROBE_DEVICE_MAKING)
			continue;
		if (ctx ? d->ctx != ctx : d->handle != device)
			continue;
		__atomic_store_n(&d->state, PROBE_DEVICE_GONE, __ATOMIC_RELEASE);
		probe_rings_going(d);
		probe_regions_going(d);
	}
}

void probe_devices_forget(void)
{
	for (uint32_t i = 0; i < DEVICES; i++)
		if (devices[i].state != PROBE_DEVICE_FREE)
			memset(&devices[i], 0, sizeof devices[i]);
}

/* ---- the arena ---- */

static uint32_t units_of(uint64_t bytes)
{
	return (uint32_t)(probe_round(bytes, PROBE_ARENA_UNIT) / PROBE_ARENA_UNIT);
}

int probe_arena_take(struct probe_device *d, uint64_t bytes)
{
	uint32_t run = 0, want;

	if (!bytes || bytes > (uint64_t)d->units * PROBE_ARENA_UNIT)
		return -1;
	want = units_of(bytes);
	for (uint32_t i = 0; i < d->units; i++) {
		run = d->used[i] ? 0 : run + 1;
		if (run == want) {
			memset(d->used + i + 1 - want, 1, want);
			return (int)(i + 1 - want);
		}
	}
	return -1;
}

void probe_arena_give(struct probe_device *d, int unit, uint64_t bytes)
{
	if (unit >= 0)
		memset(d->used + unit, 0, units_of(bytes));
}

/* ---- pointers ---- */

enum { POINTER_MEMORY_TYPE = 2, POINTER_ORDINAL = 9, POINTER_RANGE_START = 11 };
enum { MEMORY_DEVICE = 2 };

static cu_result ask(const struct shim_driver *drv, int attribute, uint64_t address, uint64_t *value)
{
	*value = 0;
	return drv->pointer_get_attribute ? drv->pointer_get_attribute(value, attribute, address) : CU_NOT_SUPPORTED;
}

/* Two questions, since a driver may answer one of them alike for memory that it knows not and for an attribute that it
 * knows not. */
bool probe_pointer_known(const struct shim_driver *drv, uint64_t address)
{
	uint64_t value;

	return ask(drv, POINTER_RANGE_START, address, &value) != CU_INVALID_VALUE ||
	       ask(drv, POINTER_MEMORY_TYPE, address, &value) != CU_INVALID_VALUE;
}

uint64_t probe_pointer_allocation(const struct shim_driver *drv, uint64_t address)
{
	uint64_t start;

	return ask(drv, POINTER_RANGE_START, address, &start) == CU_SUCCESS ? start : 0;
}

bool probe_pointer_on(const struct shim_driver *drv, uint64_t address, int32_t ordinal)
{
	uint64_t value;
	cu_result rc = ask(drv, POINTER_ORDINAL, address, &value);

	if (rc == CU_SUCCESS)
		return (int32_t)value == ordinal;
	return rc != CU_INVALID_VALUE || probe_pointer_known(drv, address);
}

int32_t probe_pointer_device(const struct shim_driver *drv, uint64_t address)
{
	uint64_t type, ordinal;

	if (ask(drv, POINTER_MEMORY_TYPE, address, &type) == CU_SUCCESS && (uint32_t)type != MEMORY_DEVICE)
		return -1;
	return ask(drv, POINTER_ORDINAL, address, &ordinal) == CU_SUCCESS ? (int32_t)ordinal : -1;
}

/* ---- knowing that the device got there, without a call that synchronises ---- */

static bool word_is(void *arg)
{
	const struct probe_device *d = arg;

	return __atomic_load_n(d->word, __ATOMIC_ACQUIRE) == d->ready_value;
}

int probe_device_settle(const struct shim_driver *drv, struct probe_device *d)
{
	void *params[] = { &d->word_address, &d->ready_value };

	if (++d->ready_value == 0)
		d->ready_value = 1;
	if (drv->launch_kernel(d->ready, 1, 1, 1, 1, 1, 1, 0, d->stream, params, NULL) != CU_SUCCESS)
		return -EAGAIN;
	return probe_wait(word_is, d, PROBE_READY_MS) ? 0 : -ETIMEDOUT;
}
