/* SPDX-License-Identifier: Apache-2.0
 *
 * names.c: kernel names, each kept once. Copied when a node is read, since a driver's string goes with its module.
 * Under the lock of graph.c.
 */
#include "graph.h"

#include <string.h>

#define TEXT_BYTES (1u << 20)
#define PLACES     8192u
#define TRIES      64u

static char *text; /* id = offset; the first byte is the empty name */
static uint32_t used, place[PLACES];

uint32_t probe_name(const char *name)
{
	size_t n = name ? strnlen(name, sizeof(((struct log_graph_touch *)0)->kernel) - 1) : 0;
	uint64_t h;

	if (!n)
		return 0;
	if (!text && !(text = probe_map(TEXT_BYTES, false)))
		return 0;
	used = used ? used : 1;
	h = log_key_hash(name, n);
	for (uint32_t i = 0; i < TRIES; i++) {
		uint32_t *id = &place[(h + i) % PLACES];
		if (*id && !strncmp(text + *id, name, n) && !text[*id + n])
			return *id;
		if (*id)
			continue;
		if (n + 1 > TEXT_BYTES - used)
			return 0;
		memcpy(text + used, name, n); /* the zero behind it is there */
		*id = used;
		used += (uint32_t)n + 1;
		return *id;
	}
	return 0;
}

const char *probe_name_text(uint32_t id)
{
	return text && id < used ? text + id : "";
}

void probe_names_forget(void)
{
	text = NULL;
	used = 0;
	memset(place, 0, sizeof place);
}
