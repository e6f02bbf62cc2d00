/* SPDX-License-Identifier: Apache-2.0
 *
 * history.c: follows the tokens of sequences. One 64-bit hash for each position, so that a sequence can be cut back to
 * any length. Memory grows with what the server keeps itself (8 bytes a token, where a token of its own state takes
 * kilobytes); without memory nothing is known.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "probes/servers/llamacpp/history.h"

#define MEMORIES  16u
#define SEQUENCES 4096
#define SAVED     512u

struct tokens {
	uint64_t *prefix; /* prefix[i]: of the tokens 0 ... i */
	int32_t n, room;
	bool lost; /* it goes on, with what we do not know */
};

struct memory {
	const void *mem; /* NULL: free */
	struct tokens *seq;
	int32_t n_seq;
};

struct saved {
	const void *buffer; /* NULL: free */
	size_t size;
	struct tokens tokens;
};

static struct memory memories[MEMORIES];
static struct saved saved[SAVED];
static unsigned saved_next;
static uint32_t lock;

/* Held for microseconds, never across a call of the server's. */
void lc_lock(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

void lc_unlock(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* ---- one sequence of tokens ---- */

static uint64_t mix(uint64_t before, uint32_t token)
{
	uint64_t x = (before + token + 1) * 0x9e3779b97f4a7c15ull;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 32;
	return x ? x : 1; /* 0 says "no key" */
}

static bool reserve(struct tokens *t, int32_t n)
{
	int32_t room = t->room ? t->room : 256;
	uint64_t *grown;

	while (room < n && room < INT32_MAX / 2)
		room *= 2;
	if (n <= t->room)
		return true;
	grown = room >= n ? realloc(t->prefix, (size_t)room * sizeof *grown) : NULL;
	if (!grown)
		return false;
	t->prefix = grown;
	t->room = room;
	return true;
}

static void push(struct tokens *t, int32_t pos, int32_t token)
{
	if (t->lost)
		return;
	if (token < 0 || (pos >= 0 && pos != t->n) || !reserve(t, t->n + 1)) {
		t->lost = true;
		return;
	}
	t->prefix[t->n] = mix(t->n ? t->prefix[t->n - 1] : 0, (uint32_t)token);
	t->n++;
}

static void cut(struct tokens *t, int32_t n)
{
	if (n > t->n)
		return;
	t->n = n;
	t->lost = false;
}

static void copy(struct tokens *to, const struct tokens *from, int32_t n)
{
	cut(to, 0);
	to->lost = from->lost || n > from->n;
	if (n > from->n)
		n = from->n;
	if (!reserve(to, n)) {
		to->lost = true;
		return;
	}
	if (n)
		memcpy(to->prefix, from->prefix, (size_t)n * sizeof *to->prefix);
	to->n = n;
}

/* ---- memories and their sequences ---- */

static struct memory *memory_of(const void *mem, bool make)
{
	struct memory *unused = NULL;

	for (unsigned i = 0; mem && i < MEMORIES; i++) {
		if (memories[i].mem == mem)
			return &memories[i];
		if (!memories[i].mem && !unused)
			unused = &memories[i];
	}
	if (!make || !unused)
		return NULL;
	unused->mem = mem;
	return unused;
}

static struct tokens *tokens_of(const void *mem, int32_t seq, bool make)
{
	struct memory *m = memory_of(mem, make);
	struct tokens *grown;

	if (!m || seq < 0 || seq >= SEQUENCES || (seq >= m->n_seq && !make))
		return NULL;
	if (seq < m->n_seq)
		return &m->seq[seq];
	grown = realloc(m->seq, (size_t)(seq + 1) * sizeof *grown);
	if (!grown)
		return NULL;
	memset(grown + m->n_seq, 0, (size_t)(seq + 1 - m->n_seq) * sizeof *grown);
	m->seq = grown;
	m->n_seq = seq + 1;
	return &m->seq[seq];
}

void lc_history_push(const void *mem, int32_t seq, int32_t pos, int32_t token)
{
	struct tokens *t = tokens_of(mem, seq, true);

	if (t)
		push(t, pos, token);
}

void lc_history_lose(const void *mem, int32_t seq)
{
	struct memory *m = memory_of(mem, false);

	for (int32_t i = 0; m && i < m->n_seq; i++)
		if (seq < 0 || seq == i)
			m->seq[i].lost = true;
}

/* ---- changes of a range ---- */

static void remove_range(struct tokens *t, int32_t p0, int32_t p1)
{
	if (p0 >= p1)
		return;
	if (p1 == LC_TO_END || (p1 >= t->n && !t->lost)) {
		cut(t, p0);
	} else if (p0 < t->n) { /* what follows the hole keeps its positions */
		t->n = p0;
		t->lost = true;
	}
}

/* Negative ends mean all the way, as llama.cpp has it. */
static void normalise(int32_t *p0, int32_t *p1)
{
	if (*p0 < 0)
		*p0 = 0;
	if (*p1 < 0)
		*p1 = LC_TO_END;
}

void lc_history_remove(const void *mem, int32_t seq, int32_t p0, int32_t p1)
{
	struct memory *m = memory_of(mem, false);

	normalise(&p0, &p1);
	for (int32_t i = 0; m && i < m->n_seq; i++)
		if (seq < 0 || seq == i)
			remove_range(&m->seq[i], p0, p1);
}

void lc_history_shift(const void *mem, int32_t seq, int32_t p0, int32_t p1)
{
	struct memory *m = memory_of(mem, false);

	normalise(&p0, &p1);
	for (int32_t i = 0; m && i < m->n_seq; i++) {
		struct tokens *t = &m->seq[i];
		if ((seq >= 0 && seq != i) || p0 >= p1 || p0 >= t->n)
			continue;
		t->n = p0;
		t->lost = true;
	}
}

void lc_history_copy(const void *mem, int32_t src, int32_t dst, int32_t p0, int32_t p1)
{
	struct tokens *to, *from;

	if (src == dst)
		return;
	tokens_of(mem, src > dst ? src : dst, true); /* both are there before a pointer to either is taken */
	to = tokens_of(mem, dst, false);
	from = tokens_of(mem, src, false);
	if (!to || !from)
		return;
	normalise(&p0, &p1);
	copy(to, from, p0 ? 0 : from->n);
	/* Part of a recurrent state cannot be copied; what the server made of it is not known. */
	to->lost |= p0 || (p1 != LC_TO_END && p1 < from->n);
}

void lc_history_keep(const void *mem, int32_t seq)
{
	struct memory *m = memory_of(mem, false);

	for (int32_t i = 0; m && i < m->n_seq; i++)
		if (i != seq)
			cut(&m->seq[i], 0);
}

void lc_history_set(const void *mem, int32_t seq, const int32_t *tokens, size_t n)
{
	struct tokens *t = tokens_of(mem, seq, true);

	if (!t)
		return;
	cut(t, 0);
	for (size_t i = 0; i < n; i++)
		push(t, -1, tokens[i]);
}

void lc_history_forget(const void *mem)
{
	struct memory *m = memory_of(mem, false);

	if (!m)
		return;
	for (int32_t i = 0; i < m->n_seq; i++)
		free(m->seq[i].prefix);
	free(m->seq);
	memset(m, 0, sizeof *m);
}

uint64_t lc_history_key(const void *mem, int32_t seq, int32_t n)
{
	const struct tokens *t = tokens_of(mem, seq, false);

	return t && n > 0 && n <= t->n ? t->prefix[n - 1] : 0;
}

/* ---- whole sequences in buffers ---- */

static struct saved *saved_at(const void *buffer)
{
	for (unsigned i = 0; i < SAVED; i++)
		if (saved[i].buffer == buffer)
			return &saved[i];
	return NULL;
}

void lc_history_save(const void *mem, int32_t seq, const void *buffer, size_t size, int32_t n)
{
	const struct tokens *t = tokens_of(mem, seq, false);
	struct saved *s = saved_at(buffer);

	if (!buffer)
		return;
	if (!s)
		s = &saved[saved_next++ % SAVED];
	s->buffer = NULL;
	if (!t || n < 0)
		return;
	copy(&s->tokens, t, n);
	s->tokens.lost = false; /* what is known of it; the rest is caught by its length */
	s->buffer = buffer;
	s->size = size;
}

bool lc_history_load(const void *mem, int32_t seq, const void *buffer, size_t size, int32_t n)
{
	const struct saved *s = buffer ? saved_at(buffer) : NULL;
	struct tokens *t = tokens_of(mem, seq, true);

	if (!t)
		return false;
	cut(t, 0);
	t->lost = true;
	if (!s || s->size != size || s->tokens.n != n)
		return false;
	copy(t, &s->tokens, n);
	return !t->lost;
}
