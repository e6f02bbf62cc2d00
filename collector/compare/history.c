/* SPDX-License-Identifier: Apache-2.0
 *
 * history.c: see history.h. The events of a slot are a chain from its first to its last.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/history.h"

static uint64_t slot_name(uint32_t process, const struct model_event *e)
{
	return log_mix64(log_mix64(log_mix64(process + 1ull) + e->pool) + (uint64_t)e->slot);
}

static bool chain_process(struct history *h, unsigned s, uint32_t process)
{
	const struct model_process *p = &h->al->side[s].model->process[process];
	uint32_t *next = malloc((p->n_events + 1) * sizeof *next);
	bool fine = next != NULL;

	h->next[s][process] = next;
	for (uint32_t i = (uint32_t)p->n_events; fine && i-- > 0;) {
		uint64_t name = slot_name(process, &p->event[i]), first = map_get(&h->first[s], name);

		next[i] = first == MAP_NONE ? ALIGN_NONE : (uint32_t)first;
		fine = map_set(&h->first[s], name, i);
	}
	return fine;
}

bool history_make(struct history *h, const struct alignment *al)
{
	bool fine = true;

	memset(h, 0, sizeof *h);
	h->al = al;
	for (unsigned s = 0; fine && s < 2; s++) {
		size_t n = al->side[s].model->n_processes;

		h->next[s] = calloc(n + 1, sizeof *h->next[s]);
		fine = h->next[s] != NULL;
		for (uint32_t p = 0; fine && p < n; p++)
			fine = chain_process(h, s, p);
	}
	return fine;
}

uint32_t history_first(const struct history *h, unsigned s, struct align_ref at)
{
	uint64_t first = map_get(&h->first[s], slot_name(at.process, align_event(&h->al->side[s], at)));

	return first == MAP_NONE ? ALIGN_NONE : (uint32_t)first;
}

uint32_t history_next(const struct history *h, unsigned s, struct align_ref at)
{
	return h->next[s][at.process][at.event];
}

void history_free(struct history *h)
{
	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; h->next[s] && i < h->al->side[s].model->n_processes; i++)
			free(h->next[s][i]);
		free(h->next[s]);
		map_free(&h->first[s]);
	}
}
