/* SPDX-License-Identifier: Apache-2.0
 *
 * server.c: puts the server's parts together and takes them apart.
 */
#include "server.h"

#define NAN_SLOT 8 /* one that a request works in first, from nothing */

static toy_stream make_stream(const struct toy_options *o)
{
	toy_stream stream;

	if (o->stream == TOY_STREAM_IS_DEFAULT)
		return TOY_STREAM_LEGACY;
	if (o->stream == TOY_STREAM_IS_PER_THREAD)
		return TOY_STREAM_PER_THREAD;
	CHECK(stream_create(&stream, TOY_NON_BLOCKING));
	return stream;
}

/* Before capture, a server runs its kernels: over rows that stand for no request. */
static void warm_up(struct toy_server *s)
{
	const uint32_t nan = 0x7fffffff; /* the one that a GPU makes */
	struct toy_forward *f = &s->forward;

	if (s->bug->nan_warm_up) {
		CHECK(to_device(toy_pool_ssm(&s->pool, 0, NAN_SLOT), &nan, sizeof(nan), s->stream));
		CHECK(stream_sync(s->stream));
		toy_shadow_put(&s->shadow, NAN_SLOT, nan);
	}
	for (int padded = TOY_MAX_BATCH; padded && s->bug->dirty_warm_up; padded /= 2) {
		*f = (struct toy_forward) { .rows = 1, .padded = padded, .n_tokens = padded };
		for (int row = 0; row < padded; row++) {
			f->row_begin[row] = row;
			f->row_count[row] = 1;
			f->state_indices[row] = row ? -1 : 0;
		}
		toy_model_warm_up(&s->model, f);
		toy_shadow_real(&s->shadow, f, NULL);
	}
}

void toy_server_open(struct toy_server *s, const struct toy_options *o)
{
	const int slots = (int)o->slots + 1;

	s->options = o;
	s->arm = o->bug->ignore_switch ? TOY_GRAPH_ON : (enum toy_arm)o->arm;
	s->bug = toy_case_played(o->bug, toy_graph_path(s->arm));
	s->stream = make_stream(o);
	toy_pool_open(&s->pool, (int)o->layers, slots, o->use_slot_0, s->stream);
	toy_model_open(&s->model, &s->pool, s->arm, s->bug, s->stream);
	toy_cache_open(&s->cache, slots);
	toy_shadow_open(&s->shadow, o->shadow, (int)o->layers, slots);
	toy_journal_open(&s->journal, o->journal, &s->shadow);
	toy_journal_start(&s->journal, o, s->arm);
	toy_report_open(&s->report, &s->pool, &s->model, o);
	if (s->arm == TOY_GRAPH_ON)
		warm_up(s);
	toy_model_capture(&s->model);
	s->requests = toy_workload_make(o);
	s->n_requests = (int)o->requests;
	s->next = (int)o->first;
}

void toy_server_close(struct toy_server *s)
{
	toy_report_close(&s->report);
	toy_model_close(&s->model);
	toy_pool_close(&s->pool);
	if (s->options->stream == TOY_STREAM_IS_CREATED)
		CHECK(stream_destroy(s->stream));
	toy_journal_close(&s->journal);
	toy_shadow_close(&s->shadow);
	toy_cache_close(&s->cache);
	toy_workload_free(s->requests, s->n_requests);
}
