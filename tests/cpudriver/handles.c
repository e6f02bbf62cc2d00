/* SPDX-License-Identifier: Apache-2.0
 *
 * handles.c: the set of handles that are alive, so that a stale or foreign one is an error and not a crash.
 */
#include <stdlib.h>

#include "cpudriver.h"

struct slot {
	uintptr_t object; /* 0 empty, 1 removed */
	enum cpu_kind kind;
};

static struct slot *table;
static size_t size, used; /* used counts removed ones too */

static struct slot *probe(struct slot *slots, size_t n, uintptr_t object)
{
	size_t at = (object >> 4) * 0x9e3779b97f4a7c15u >> 20;
	struct slot *removed = NULL;

	for (;; at++) {
		struct slot *slot = &slots[at & (n - 1)];

		if (slot->object == object)
			return slot;
		if (slot->object == 1 && !removed)
			removed = slot;
		if (!slot->object)
			return removed ? removed : slot;
	}
}

static void grow(void)
{
	size_t live = 0, n = 256;
	struct slot *bigger;

	for (size_t i = 0; i < size; i++)
		live += table[i].object > 1;
	while (n < live * 4)
		n *= 2;
	bigger = cpu_alloc(n * sizeof(*bigger));
	for (size_t i = 0; i < size; i++)
		if (table[i].object > 1)
			*probe(bigger, n, table[i].object) = table[i];
	free(table);
	table = bigger;
	size = n;
	used = live;
}

void handle_add(enum cpu_kind kind, const void *object)
{
	struct slot *slot;

	if (used * 2 >= size)
		grow();
	slot = probe(table, size, (uintptr_t)object);
	used += !slot->object;
	*slot = (struct slot) { (uintptr_t)object, kind };
}

void handle_remove(const void *object)
{
	struct slot *slot = size ? probe(table, size, (uintptr_t)object) : NULL;

	if (slot && slot->object == (uintptr_t)object)
		slot->object = 1;
}

bool handle_is(enum cpu_kind kind, const void *object)
{
	struct slot *slot;

	if ((uintptr_t)object < 16 || !size)
		return false;
	slot = probe(table, size, (uintptr_t)object);
	return slot->object == (uintptr_t)object && slot->kind == kind;
}
