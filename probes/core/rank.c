/* SPDX-License-Identifier: Apache-2.0
 *
 * rank.c: which rank of the server this process is, axis by axis. Reported as a process starts, often before there is
 * anything to record in, so it is kept and said again when the recording starts.
 */
#include "core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define AXES 8u

struct axis {
	char name[16];
	int32_t index, count;
	bool said;
};

/* The usual axes lead, in this order, and are there even if nobody reports them. */
static struct axis axes[AXES] = { { .name = "tp" }, { .name = "pp" }, { .name = "dp" } };
static uint32_t n_axes = 3;
static uint32_t axes_lock;

static bool sound(const char *axis)
{
	size_t n = axis ? strnlen(axis, sizeof axes[0].name) : 0;

	for (size_t i = 0; i < n; i++)
		if ((unsigned)(axis[i] | 32) - 'a' > 25u && axis[i] != '_')
			return false;
	return n && n < sizeof axes[0].name;
}

static struct axis *find(const char *name)
{
	for (uint32_t i = 0; i < n_axes; i++)
		if (!strcmp(axes[i].name, name))
			return &axes[i];
	if (n_axes == AXES)
		return NULL;
	probe_text(axes[n_axes].name, sizeof axes[0].name, name);
	return &axes[n_axes++];
}

static void show(void)
{
	char text[sizeof record_page()->rank];
	size_t at = 0;

	for (uint32_t i = 0; i < n_axes && at < sizeof text; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%d", i ? "." : "", axes[i].name,
				       axes[i].index);
	record_set_rank(text);
}

/* count 0: nobody has reported this axis. */
static void say(void)
{
	for (uint32_t i = 0; i < n_axes; i++) {
		struct log_rank r;
		if (!axes[i].count || axes[i].said)
			continue;
		memset(&r, 0, sizeof r);
		record_fill(&r, LOG_RANK);
		r.index = axes[i].index;
		r.count = axes[i].count;
		memcpy(r.axis, axes[i].name, sizeof r.axis);
		axes[i].said = record_put_meta(&r);
	}
}

void probe_rank_say(void)
{
	bool waiting = false;

	for (uint32_t i = 0; i < AXES; i++)
		waiting |= axes[i].count && !axes[i].said;
	if (!waiting || !record_active() || !probe_lock(&axes_lock, PROBE_WAIT_MS))
		return;
	say();
	probe_unlock(&axes_lock);
}

int probe_rank(const char *axis, int32_t index, int32_t count)
{
	struct axis *a;

	if (!record_options()->dir)
		return -ENOSYS;
	if (!sound(axis) || index < 0 || index >= count)
		return -EINVAL;
	if (!probe_lock(&axes_lock, PROBE_WAIT_MS))
		return -EAGAIN;
	a = find(axis);
	if (a && (a->index != index || a->count != count || !a->said)) {
		a->index = index;
		a->count = count;
		a->said = false;
		show();
		if (record_active())
			say();
	}
	probe_unlock(&axes_lock);
	return a ? 0 : -EAGAIN;
}

/* The child of a fork is the same rank until it says otherwise; its log has not heard of it. */
void probe_rank_forked(void)
{
	axes_lock = 0;
	for (uint32_t i = 0; i < AXES; i++)
		axes[i].said = false;
}
