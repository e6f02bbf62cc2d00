/* SPDX-License-Identifier: Apache-2.0
 *
 * server.h: the server: what happens to slots (slots.c) and when (scheduler.c).
 */
#ifndef TOY_SERVER_H
#define TOY_SERVER_H

#include "cache.h"
#include "journal.h"
#include "model.h"
#include "options.h"
#include "pool.h"
#include "report.h"
#include "shadow.h"
#include "workload.h"

struct toy_server {
	const struct toy_options *options;
	enum toy_arm arm;           /* as obeyed */
	const struct toy_case *bug; /* as played in that arm */
	toy_stream stream;
	struct toy_pool pool;
	struct toy_model model;
	struct toy_cache cache;
	struct toy_report report;
	struct toy_shadow shadow;
	struct toy_journal journal;
	struct toy_request *requests;
	struct toy_request *running[TOY_MAX_BATCH]; /* in the order in which they came */
	int n_running, n_requests, next;
	uint64_t steps, tokens;
	struct toy_forward forward;
};

void toy_server_open(struct toy_server *server, const struct toy_options *options);
void toy_server_close(struct toy_server *server);

/* Serves every request. */
void toy_server_run(struct toy_server *server);

/* slots.c: each of these does it, reports it and notes it. A fresh live slot is cleared; a track slot is not. */
void toy_slots_live(struct toy_server *server, struct toy_request *request);
void toy_slots_track(struct toy_server *server, struct toy_request *request);
void toy_slots_restore(struct toy_server *server, struct toy_request *request, const struct toy_cached *from);

/* Hands the request's track slot, or at its end its live slot, to the prefix cache; then the request has none. */
void toy_slots_donate_track(struct toy_server *server, struct toy_request *request, const char *why);
void toy_slots_finish(struct toy_server *server, struct toy_request *request);

#endif
