/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h: runs forwards on the device, eagerly or as one of the captured graphs.
 */
#ifndef TOY_MODEL_H
#define TOY_MODEL_H

#include "forward.h"
#include "options.h"
#include "pool.h"

#define TOY_GRAPHS 4 /* padded sizes 1, 2, 4, 8 */

/* Device addresses of what a forward reads and writes. */
struct toy_inputs {
	struct toy_rows rows;
	toy_ptr track_indices, track_mask, out;
};

struct toy_model {
	const struct toy_pool *pool;
	toy_stream stream;
	enum toy_arm arm;
	const struct toy_case *bug; /* as played in this arm */
	toy_module module;
	toy_function embed, layer, track, output, wipe, stray;
	toy_ptr stray_table;
	toy_ptr memory, arena; /* the graph path's static buffers; memory for fresh tensors */
	uint64_t arena_at;
	struct toy_inputs fixed;
	toy_ptr out; /* of the forward in flight */
	toy_graph graph[TOY_GRAPHS];
	toy_exec exec[TOY_GRAPHS];
	int captured;
};

void toy_model_open(struct toy_model *model, const struct toy_pool *pool, enum toy_arm arm, const struct toy_case *bug,
		    toy_stream stream);
void toy_model_capture(struct toy_model *model);
void toy_model_close(struct toy_model *model);

/* Does decode work on the static buffers? */
bool toy_graph_path(enum toy_arm arm);

/* What the bug makes of a prefill of that many rows, and of a decode step. */
struct toy_twist toy_model_prefill_twist(const struct toy_model *model, int rows);
struct toy_twist toy_model_decode_twist(const struct toy_model *model);

/* What servers do before they capture: the operators once, over the static buffers. */
void toy_model_warm_up(struct toy_model *model, const struct toy_forward *forward);

/* Empties a slot by a product with 0. */
void toy_model_multiply(struct toy_model *model, int slot);

/* The padded size that serves so many rows. */
int toy_model_padded(int rows);

/* Where in the static index buffer the track kernel of that padded size starts to read. */
int toy_model_track_offset(const struct toy_model *model, int padded);

/* Enqueues; finish waits for forward->out. Both kinds of decode over static buffers count as the graph path. */
void toy_model_prefill(struct toy_model *model, const struct toy_forward *forward);
void toy_model_decode(struct toy_model *model, const struct toy_forward *forward);
void toy_model_finish(struct toy_model *model, struct toy_forward *forward);

#endif
