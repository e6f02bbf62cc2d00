/* SPDX-License-Identifier: Apache-2.0
 *
 * batch.c: notes the entries of batches. A batch that found no room here makes the sequences of its memory unknown.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "probes/servers/llamacpp/batch.h"
#include "probes/servers/llamacpp/history.h"

#define BATCHES 64u
#define ENTRIES (1 << 20)

struct entry {
	int32_t seq, pos, token;
};

struct noted {
	const void *batch; /* NULL: free */
	struct entry *entry;
	int32_t n, room;
	struct entry *more; /* further sequences of entries: {sequence, index} */
	int32_t n_more, more_room;
	bool broken; /* something did not fit */
};

static struct noted batches[BATCHES];

static struct noted *find(const void *batch)
{
	for (unsigned i = 0; batch && i < BATCHES; i++)
		if (batches[i].batch == batch)
			return &batches[i];
	return NULL;
}

static void drop(struct noted *b)
{
	free(b->entry);
	free(b->more);
	memset(b, 0, sizeof *b);
}

void lc_batch_new(const void *batch)
{
	struct noted *b = find(batch);

	if (b)
		drop(b);
	for (unsigned i = 0; batch && i < BATCHES; i++) {
		if (batches[i].batch)
			continue;
		batches[i].batch = batch;
		return;
	}
}

void lc_batch_free(const void *batch)
{
	struct noted *b = find(batch);

	if (b)
		drop(b);
}

void lc_batch_clear(const void *batch)
{
	struct noted *b = find(batch);

	if (!b)
		return;
	b->n = b->n_more = 0;
	b->broken = false;
}

static bool grow(struct entry **list, int32_t *room, int32_t n)
{
	int32_t wanted = *room ? *room : 64;
	struct entry *grown;

	while (wanted <= n)
		wanted *= 2;
	if (n < *room)
		return true;
	grown = n < ENTRIES ? realloc(*list, (size_t)wanted * sizeof *grown) : NULL;
	if (!grown)
		return false;
	*list = grown;
	*room = wanted;
	return true;
}

void lc_batch_add(const void *batch, int32_t index, int32_t seq, int32_t token)
{
	struct noted *b = find(batch);

	if (!b || index == LC_ADD_REFUSED)
		return;
	/* Entries are numbered as they come; the same one may be told twice, by a call inside of a call. */
	if (index < 0 || index > b->n || !grow(&b->entry, &b->room, index)) {
		b->broken = true;
		return;
	}
	b->entry[index] = (struct entry) { seq, -1, token };
	if (index == b->n)
		b->n++;
}

void lc_batch_add_sequence(const void *batch, int32_t index, int32_t seq)
{
	struct noted *b = find(batch);

	if (!b)
		return;
	if (!grow(&b->more, &b->more_room, b->n_more))
		b->broken = true;
	else
		b->more[b->n_more++] = (struct entry) { seq, index, 0 };
}

void lc_batch_set_pos(const void *batch, int32_t index, int32_t pos)
{
	struct noted *b = find(batch);

	if (b && index >= 0 && index < b->n)
		b->entry[index].pos = pos;
}

int32_t lc_batch_entries(const void *batch)
{
	const struct noted *b = find(batch);

	return b ? b->n : -1;
}

/* ---- running ---- */

/* 1 and -1 leave the memory as it was; what else is not 0 may have run in part. */
static bool unchanged(int32_t result)
{
	return result == 1 || result == -1;
}

static void note(const void *mem, int32_t seq, int32_t pos, int32_t token, int32_t result)
{
	if (result == 0)
		lc_history_push(mem, seq, pos, token);
	else
		lc_history_lose(mem, seq);
}

/* Entry by entry, as the server ran them: a sequence may have entries of its own after those that it shares. */
static void ran(const void *mem, const struct noted *b, int32_t result)
{
	int32_t k = 0;

	for (int32_t i = 0; i < b->n; i++) {
		const struct entry *e = &b->entry[i];
		note(mem, e->seq, e->pos, e->token, result);
		for (; k < b->n_more && b->more[k].pos == i; k++)
			note(mem, b->more[k].seq, e->pos, e->token, result);
	}
	for (; k < b->n_more; k++) /* added out of order */
		lc_history_lose(mem, b->more[k].seq);
}

void lc_batch_ran(const void *mem, const void *batch, int32_t result)
{
	const struct noted *b = find(batch);

	if (unchanged(result))
		return;
	if (!b || b->broken)
		lc_history_lose(mem, -1);
	else
		ran(mem, b, result);
}

void lc_batch_ran_plain(const void *mem, const struct lc_batch *b, int32_t result)
{
	if (unchanged(result))
		return;
	for (int32_t i = 0; i < b->n_tokens; i++) {
		const bool whose = b->seq_id && b->n_seq_id;
		const int32_t token = b->token ? b->token[i] : -1, pos = b->pos ? b->pos[i] : -1;
		if (!whose)
			note(mem, 0, pos, token, result);
		for (int32_t s = 0; whose && s < b->n_seq_id[i]; s++)
			note(mem, b->seq_id[i][s], pos, token, result);
	}
}
