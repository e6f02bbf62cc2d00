/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c: launches the kernels and owns the graphs.
 */
#include "model.h"

#include <stdlib.h>

extern const char toy_ptx[];

#define ALIGN       256u
#define ARENA_BYTES (8u << 20)

/* Carves the next tensor out of a piece of memory. */
static toy_ptr carve(toy_ptr memory, uint64_t *at, uint64_t bytes)
{
	toy_ptr tensor = memory + *at;

	*at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
	return tensor;
}

static struct toy_inputs carve_inputs(toy_ptr memory, uint64_t *at, int rows, int tokens)
{
	uint64_t row_bytes = (uint64_t)rows * sizeof(int32_t);
	struct toy_inputs in = { .rows.fresh = 0 };

	in.rows.tokens = carve(memory, at, (uint64_t)tokens * sizeof(int32_t));
	in.rows.row_begin = carve(memory, at, row_bytes);
	in.rows.row_count = carve(memory, at, row_bytes);
	in.rows.state_indices = carve(memory, at, row_bytes);
	in.rows.hidden = carve(memory, at, (uint64_t)tokens * TOY_CHANNELS * sizeof(float));
	in.track_indices = carve(memory, at, row_bytes);
	in.track_mask = carve(memory, at, row_bytes);
	in.out = carve(memory, at, row_bytes);
	return in;
}

/* Tensors that live for one forward. finish() waits for each forward, so starting over is safe. */
static struct toy_inputs fresh_inputs(struct toy_model *model, int rows, int tokens)
{
	if (model->arena_at > ARENA_BYTES / 2)
		model->arena_at = 0;
	return carve_inputs(model->arena, &model->arena_at, rows, tokens);
}

static void put(const struct toy_model *model, toy_ptr to, const int32_t *from, int n)
{
	CHECK(to_device(to, from, (size_t)n * sizeof(*from), model->stream));
}

/* Refreshes the front of each tensor: as much as this forward has rows. */
static void put_inputs(const struct toy_model *model, const struct toy_inputs *in, const struct toy_forward *f,
		       int rows)
{
	put(model, in->rows.tokens, f->tokens, f->n_tokens);
	put(model, in->rows.row_begin, f->row_begin, rows);
	put(model, in->rows.row_count, f->row_count, rows);
	put(model, in->rows.state_indices, f->state_indices, rows);
	put(model, in->track_indices, f->track_indices, rows);
	put(model, in->track_mask, f->track_mask, rows);
}

static void launch(toy_function function, int rows, void **params, toy_stream stream)
{
	CHECK(launch(function, (unsigned)rows, 1, 1, TOY_THREADS, 1, 1, 0, stream, params, NULL));
}

/* Of the rows from `first` on. */
static void launch_track(struct toy_model *model, const struct toy_inputs *in, toy_ptr indices, int first, int rows,
			 toy_stream stream)
{
	struct toy_inputs from = *in;
	const uint64_t skipped = (uint64_t)first * sizeof(int32_t);
	int64_t conv_stride = TOY_CONV_BYTES, ssm_stride = TOY_SSM_BYTES;

	from.rows.state_indices += skipped;
	from.track_mask += skipped;
	indices += skipped;
	for (int layer = 0; layer < model->pool->layers; layer++) {
		toy_ptr conv = toy_pool_conv(model->pool, layer, 0), ssm = toy_pool_ssm(model->pool, layer, 0);
		void *params[] = {
			&from.rows.state_indices, &indices, &from.track_mask, &conv, &ssm, &conv_stride, &ssm_stride
		};

		launch(model->track, rows - first, params, stream);
	}
}

static void launch_wipe(struct toy_model *model, toy_ptr state_indices, int rows, int32_t multiply, toy_stream stream)
{
	int64_t conv_stride = TOY_CONV_BYTES, ssm_stride = TOY_SSM_BYTES;

	for (int layer = 0; layer < model->pool->layers; layer++) {
		toy_ptr conv = toy_pool_conv(model->pool, layer, 0), ssm = toy_pool_ssm(model->pool, layer, 0);
		void *params[] = { &state_indices, &conv, &ssm, &conv_stride, &ssm_stride, &multiply };

		launch(model->wipe, rows, params, stream);
	}
}

/* The operators of a forward, one after the other; on a capturing stream they become nodes. */
static void operators(struct toy_model *model, const struct toy_inputs *in, toy_ptr track_indices, int rows,
		      const struct toy_twist *twist, toy_stream stream)
{
	struct toy_inputs from = *in;
	void *embed_params[] = { &from.rows };
	void *output_params[] = { &from.rows, &from.out };
	void *stray_params[] = { &model->stray_table };

	if (twist->wipe)
		launch_wipe(model, from.rows.state_indices, rows, 0, stream);
	if (twist->early)
		launch_track(model, &from, track_indices, 1, rows, stream);
	launch(model->embed, rows, embed_params, stream);
	for (int layer = 0; layer < model->pool->layers; layer++) {
		struct toy_layer_args args = { .rows = from.rows,
					       .conv = toy_pool_conv(model->pool, layer, 0),
					       .ssm = toy_pool_ssm(model->pool, layer, 0),
					       .conv_stride = TOY_CONV_BYTES,
					       .ssm_stride = TOY_SSM_BYTES,
					       .layer = layer,
					       .wide = twist->by_rows && rows >= TOY_WIDE };
		void *params[] = { &args };

		launch(model->layer, rows, params, stream);
	}
	launch(model->output, rows, output_params, stream);
	if (twist->stray)
		launch(model->stray, rows, stray_params, stream);
	launch_track(model, &from, track_indices, 0, twist->early ? 1 : rows, stream);
}

static toy_function function(toy_module module, const char *name)
{
	toy_function found;

	toy_check(cu.module_function(&found, module, name), name);
	return found;
}

void toy_model_open(struct toy_model *model, const struct toy_pool *pool, enum toy_arm arm, const struct toy_case *bug,
		    toy_stream stream)
{
	struct toy_stray_table table = { .ssm = toy_pool_ssm(pool, pool->layers - 1, 0), .ssm_stride = TOY_SSM_BYTES };
	uint64_t fixed_bytes = 0;

	*model = (struct toy_model) { .pool = pool, .stream = stream, .arm = arm, .bug = bug };
	CHECK(module_load(&model->module, toy_ptx));
	model->embed = function(model->module, "toy_embed");
	model->layer = function(model->module, "toy_layer");
	model->track = function(model->module, "toy_track");
	model->output = function(model->module, "toy_output");
	model->wipe = function(model->module, "toy_wipe");
	model->stray = function(model->module, "toy_stray");
	carve_inputs(0, &fixed_bytes, TOY_MAX_BATCH, TOY_MAX_BATCH);
	CHECK(mem_alloc(&model->memory, fixed_bytes));
	CHECK(mem_alloc(&model->arena, ARENA_BYTES));
	CHECK(set(model->memory, 0, fixed_bytes, stream));
	CHECK(set(model->arena, 0, ARENA_BYTES, stream));
	CHECK(stream_sync(stream));
	fixed_bytes = 0;
	model->fixed = carve_inputs(model->memory, &fixed_bytes, TOY_MAX_BATCH, TOY_MAX_BATCH);
	if (!bug->stray)
		return;
	table.state_indices = model->fixed.rows.state_indices;
	CHECK(mem_alloc(&model->stray_table, sizeof(table)));
	CHECK(to_device(model->stray_table, &table, sizeof(table), stream));
	CHECK(stream_sync(stream));
}

bool toy_graph_path(enum toy_arm arm)
{
	return arm == TOY_GRAPH_ON || arm == TOY_GRAPH_PATH_EAGER;
}

struct toy_twist toy_model_prefill_twist(const struct toy_model *model, int rows)
{
	const struct toy_case *bug = model->bug;

	return (struct toy_twist) { .leak = bug->leak_conv,
				    .early = bug->early_position && rows > 1,
				    .by_rows = bug->by_rows };
}

/* Eager operators ask anew whether a sequence is fresh; a graph does what was right at its capture. */
struct toy_twist toy_model_decode_twist(const struct toy_model *model)
{
	const struct toy_case *bug = model->bug;

	return (struct toy_twist) { .wipe = bug->wipe && model->arm == TOY_GRAPH_ON,
				    .stray = bug->stray,
				    .by_rows = bug->by_rows };
}

int toy_model_padded(int rows)
{
	int padded = 1;

	while (padded < rows)
		padded *= 2;
	return padded;
}

int toy_model_track_offset(const struct toy_model *model, int padded)
{
	return model->bug->stale_tail ? TOY_MAX_BATCH - padded : 0;
}

static toy_ptr graph_path_indices(const struct toy_model *model, int padded)
{
	return model->fixed.track_indices + (uint64_t)toy_model_track_offset(model, padded) * sizeof(int32_t);
}

static int graph_of(int padded)
{
	int index = 0;

	while (1 << index < padded)
		index++;
	return index;
}

/* On a stream of its own: the legacy stream, on which the server may be working, cannot be captured. */
void toy_model_capture(struct toy_model *model)
{
	const struct toy_twist twist = toy_model_decode_twist(model);
	toy_stream side;

	if (model->arm != TOY_GRAPH_ON)
		return;
	CHECK(stream_create(&side, TOY_NON_BLOCKING));
	for (int i = TOY_GRAPHS - 1; i >= 0; i--) {
		CHECK(capture_begin(side, TOY_CAPTURE_GLOBAL));
		operators(model, &model->fixed, graph_path_indices(model, 1 << i), 1 << i, &twist, side);
		CHECK(capture_end(side, &model->graph[i]));
		CHECK(instantiate(&model->exec[i], model->graph[i], 0));
		model->captured++;
	}
	CHECK(stream_destroy(side));
}

void toy_model_close(struct toy_model *model)
{
	for (int i = 0; i < TOY_GRAPHS; i++) {
		if (model->exec[i])
			CHECK(exec_destroy(model->exec[i]));
		if (model->graph[i])
			CHECK(graph_destroy(model->graph[i]));
	}
	if (model->stray_table)
		CHECK(mem_free(model->stray_table));
	CHECK(mem_free(model->memory));
	CHECK(mem_free(model->arena));
	CHECK(module_unload(model->module));
}

void toy_model_warm_up(struct toy_model *model, const struct toy_forward *f)
{
	put_inputs(model, &model->fixed, f, f->padded);
	operators(model, &model->fixed, model->fixed.track_indices, f->padded, &f->twist, model->stream);
	CHECK(stream_sync(model->stream));
}

void toy_model_multiply(struct toy_model *model, int slot)
{
	const int32_t index = slot;
	struct toy_inputs in = fresh_inputs(model, 1, 1);

	put(model, in.rows.state_indices, &index, 1);
	launch_wipe(model, in.rows.state_indices, 1, 1, model->stream);
	CHECK(stream_sync(model->stream));
}

void toy_model_prefill(struct toy_model *model, const struct toy_forward *f)
{
	struct toy_inputs in = fresh_inputs(model, f->rows, f->n_tokens);

	put_inputs(model, &in, f, f->rows);
	if (f->twist.leak) {
		in.rows.fresh = carve(model->arena, &model->arena_at, (uint64_t)f->rows * sizeof(f->fresh[0]));
		put(model, in.rows.fresh, f->fresh, f->rows);
	}
	operators(model, &in, in.track_indices, f->rows, &f->twist, model->stream);
	model->out = in.out;
}

void toy_model_decode(struct toy_model *model, const struct toy_forward *f)
{
	bool graph_path = toy_graph_path(model->arm);
	int rows = model->arm == TOY_GRAPH_OFF ? f->rows : f->padded;
	struct toy_inputs in = graph_path ? model->fixed : fresh_inputs(model, rows, rows);

	put_inputs(model, &in, f, rows);
	if (model->arm == TOY_GRAPH_ON)
		CHECK(graph_launch(model->exec[graph_of(f->padded)], model->stream));
	else
		operators(model, &in, graph_path ? graph_path_indices(model, rows) : in.track_indices, rows, &f->twist,
			  model->stream);
	model->out = in.out;
}

void toy_model_finish(struct toy_model *model, struct toy_forward *f)
{
	CHECK(to_host(f->out, model->out, (size_t)f->rows * sizeof(f->out[0]), model->stream));
	CHECK(stream_sync(model->stream));
}
