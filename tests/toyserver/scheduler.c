/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler.c: continuous batching. Each turn admits requests, runs one prefill forward for those that have prompt left
 * and one decode forward for the others. Nothing here looks at a clock, so two runs with one workload take the same
 * decisions.
 */
#include "server.h"

#include <string.h>

#define PREFILL_ROWS 2 /* requests in one prefill forward */

static void add_row(struct toy_forward *f, const struct toy_request *r, int count, int track_interval)
{
	int row = f->rows++;
	bool checkpoint = (r->len + count) % track_interval == 0;

	f->row_begin[row] = f->n_tokens;
	f->row_count[row] = count;
	f->state_indices[row] = r->live;
	f->track_indices[row] = checkpoint ? r->track : 0;
	f->track_mask[row] = checkpoint;
	f->fresh[row] = !r->len;
	memcpy(f->tokens + f->n_tokens, r->tokens + r->len, (size_t)count * sizeof(f->tokens[0]));
	f->n_tokens += count;
}

/* Rows without a request: one token each, no slot. */
static void pad(struct toy_forward *f, int32_t slot)
{
	f->padded = toy_model_padded(f->rows);
	for (int row = f->rows; row < f->padded; row++) {
		f->row_begin[row] = f->n_tokens;
		f->row_count[row] = 1;
		f->state_indices[row] = slot;
		f->track_indices[row] = 0;
		f->track_mask[row] = 0;
		f->tokens[f->n_tokens++] = 0;
	}
}

static void announce(struct toy_server *s, const char *name, bool graph)
{
	struct toy_forward *f = &s->forward;

	toy_report_step(&s->report, name, ++s->steps, f->rows, f->padded, graph);
	toy_journal_step(&s->journal, name, s->steps, f, graph);
}

static void output(struct toy_server *s, struct toy_request *r, int32_t token)
{
	r->tokens[r->n_tokens++] = s->options->fixed_answers ? r->tokens[0] : token;
	s->tokens++;
	if (r->n_tokens < r->prompt_len + r->gen)
		return;
	r->phase = TOY_DONE;
	toy_slots_finish(s, r);
	toy_journal_request(&s->journal, r->id, r->tokens + r->prompt_len, r->gen);
}

static void admit(struct toy_server *s, struct toy_request *r)
{
	struct toy_cached from;
	bool hit;

	if (r->follows >= 0)
		toy_workload_follow(r, &s->requests[r->follows], (int)s->options->track_interval);
	hit = toy_cache_match(&s->cache, r->tokens, r->prompt_len, &from);
	toy_slots_live(s, r);
	if (hit) {
		toy_slots_restore(s, r, &from);
		toy_cache_unpin(&s->cache, &from);
	}
	toy_slots_track(s, r);
	r->phase = TOY_PREFILL;
	s->running[s->n_running++] = r;
}

/* One a turn, so that lengths are out of step; in waves all at once, when the last wave has gone. */
static void admit_some(struct toy_server *s)
{
	if (s->options->waves && s->n_running)
		return;
	while (s->next < s->n_requests && s->n_running < s->options->concurrency) {
		struct toy_request *r = &s->requests[s->next];

		if (r->follows >= 0 && s->requests[r->follows].phase != TOY_DONE)
			return;
		s->next++;
		admit(s, r);
		if (!s->options->waves)
			return;
	}
}

/* A chunk ends at a multiple of the chunk size, or with the prompt. */
static int chunk_of(const struct toy_server *s, const struct toy_request *r)
{
	int chunk = (int)s->options->chunk;
	int end = (r->len / chunk + 1) * chunk;

	return (end < r->prompt_len ? end : r->prompt_len) - r->len;
}

/* Gathers the requests of that phase; returns how many. */
static int gather(struct toy_server *s, enum toy_phase phase, int most, struct toy_request **rows)
{
	int n = 0;

	for (int i = 0; i < s->n_running && n < most; i++)
		if (s->running[i]->phase == phase)
			rows[n++] = s->running[i];
	return n;
}

/* The states stand for what was just enqueued; checkpoints that were tracked on the way go to the cache before anybody
 * waits for the device. */
static void advance(struct toy_server *s, struct toy_request **rows, const char *why)
{
	struct toy_forward *f = &s->forward;

	for (int i = 0; i < f->rows; i++)
		rows[i]->len += f->row_count[i];
	for (int i = 0; i < f->rows; i++)
		if (f->track_mask[i])
			toy_slots_donate_track(s, rows[i], why);
}

static void prefill(struct toy_server *s)
{
	struct toy_forward *f = &s->forward;
	struct toy_request *rows[TOY_MAX_BATCH];
	int n = gather(s, TOY_PREFILL, s->options->waves ? TOY_MAX_BATCH : PREFILL_ROWS, rows);

	if (!n)
		return;
	f->rows = f->n_tokens = 0;
	for (int i = 0; i < n; i++)
		add_row(f, rows[i], chunk_of(s, rows[i]), (int)s->options->track_interval);
	f->padded = f->rows;
	f->twist = toy_model_prefill_twist(&s->model, f->rows);
	announce(s, "prefill", false);
	toy_shadow_right(&s->shadow, f);
	if (s->bug->early_donation)
		advance(s, rows, "prefill");
	toy_model_prefill(&s->model, f);
	toy_shadow_real(&s->shadow, f, NULL);
	if (!s->bug->early_donation)
		advance(s, rows, "prefill");
	toy_model_finish(&s->model, f);
	toy_shadow_check_output(&s->shadow, f);
	for (int i = 0; i < n; i++)
		if (rows[i]->len == rows[i]->prompt_len) {
			rows[i]->phase = TOY_DECODE;
			output(s, rows[i], f->out[i]);
		}
}

static void decode(struct toy_server *s)
{
	struct toy_forward *f = &s->forward;
	struct toy_request *rows[TOY_MAX_BATCH];
	int n = gather(s, TOY_DECODE, TOY_MAX_BATCH, rows);

	if (!n || (s->options->waves && gather(s, TOY_PREFILL, 1, rows + n)))
		return;
	f->rows = f->n_tokens = 0;
	for (int i = 0; i < n; i++)
		add_row(f, rows[i], 1, (int)s->options->track_interval);
	if (s->arm == TOY_GRAPH_OFF)
		f->padded = f->rows;
	else
		pad(f, s->bug->alias_padding ? 0 : -1);
	f->twist = toy_model_decode_twist(&s->model);
	announce(s, "decode", s->arm == TOY_GRAPH_ON);
	toy_model_decode(&s->model, f);
	toy_shadow_right(&s->shadow, f);
	toy_shadow_real(&s->shadow, f, toy_graph_path(s->arm) ? &s->model : NULL);
	advance(s, rows, "track");
	toy_model_finish(&s->model, f);
	toy_shadow_check_output(&s->shadow, f);
	for (int i = 0; i < n; i++)
		output(s, rows[i], f->out[i]);
}

static void drop_done(struct toy_server *s)
{
	int kept = 0;

	for (int i = 0; i < s->n_running; i++)
		if (s->running[i]->phase != TOY_DONE)
			s->running[kept++] = s->running[i];
	s->n_running = kept;
}

void toy_server_run(struct toy_server *s)
{
	while (s->next < s->n_requests || s->n_running) {
		admit_some(s);
		prefill(s);
		decode(s);
		drop_done(s);
	}
}
