/* SPDX-License-Identifier: Apache-2.0
 *
 * wrap.c: the functions that we put in front of llama.cpp's. Each makes the server's call, returns its result untouched,
 * and says what happened: before the call where the bytes are read by it, after it where they are written.
 *
 * A call that llama.cpp makes inside of another reaches us too: what is noted of a batch is idempotent, and of batches
 * that run, only the outermost counts.
 */
#include <errno.h>

#include "probes/core/slotprobe.h"
#include "probes/servers/llamacpp/batch.h"
#include "probes/servers/llamacpp/claims.h"
#include "probes/servers/llamacpp/entries.h"
#include "probes/servers/llamacpp/history.h"
#include "probes/servers/llamacpp/points.h"

/* Preempts the server's function of that name. */
#define WRAP(ret, name, params)                                                                                        \
	__attribute__((visibility("default"))) ret name params;                                                        \
	ret name params

#define FROM_CALLER() lc_entries_caller(__builtin_return_address(0))

/* What we do after the server's call leaves the errno that it left. */
#define KEEPING_ERRNO(statements)                                                                                      \
	do {                                                                                                           \
		int saved_errno = errno;                                                                               \
		statements;                                                                                            \
		errno = saved_errno;                                                                                   \
	} while (0)

#define LOCKED(statement)                                                                                              \
	KEEPING_ERRNO({                                                                                                \
		lc_lock();                                                                                             \
		statement;                                                                                             \
		lc_unlock();                                                                                           \
	})

static __thread int depth; /* of batches that this thread runs */

/* ---- states ---- */

WRAP(size_t, llama_state_seq_get_data_ext, (void *ctx, uint8_t *dst, size_t size, int32_t seq, uint32_t flags))
{
	size_t written;

	FROM_CALLER();
	written = lc_real_llama_state_seq_get_data_ext(ctx, dst, size, seq, flags);
	KEEPING_ERRNO(lc_claims_donate(ctx, dst, size, written, seq, flags));
	return written;
}

WRAP(size_t, llama_state_seq_set_data_ext, (void *ctx, const uint8_t *src, size_t size, int32_t seq, uint32_t flags))
{
	size_t read;

	FROM_CALLER();
	KEEPING_ERRNO(lc_claims_restore(ctx, src, size, seq, flags));
	read = lc_real_llama_state_seq_set_data_ext(ctx, src, size, seq, flags);
	if (!read)
		KEEPING_ERRNO(lc_claims_restore_failed(ctx, seq));
	return read;
}

WRAP(void, _ZN24common_prompt_checkpoint10update_posElii,
     (void *self, int64_t n_tokens, int32_t pos_min, int32_t pos_max))
{
	FROM_CALLER();
	lc_real__ZN24common_prompt_checkpoint10update_posElii(self, n_tokens, pos_min, pos_max);
	lc_claims_length(n_tokens);
	KEEPING_ERRNO(lc_hit(LC_CHECKPOINT, SLOTPROBE_HIT_COMMITTED));
}

WRAP(size_t, llama_state_seq_load_file,
     (void *ctx, const char *path, int32_t seq, int32_t *tokens, size_t room, size_t *n_tokens))
{
	const void *mem;
	size_t read;

	FROM_CALLER();
	read = lc_real_llama_state_seq_load_file(ctx, path, seq, tokens, room, n_tokens);
	mem = lc_real_llama_get_memory(ctx);
	LOCKED({
		lc_history_remove(mem, seq, -1, -1);
		if (read && tokens && n_tokens && *n_tokens <= room)
			lc_history_set(mem, seq, tokens, *n_tokens);
		else
			lc_history_lose(mem, seq);
	});
	KEEPING_ERRNO(lc_hit(LC_SEQ_EDIT, SLOTPROBE_HIT_COMMITTED));
	return read;
}

static void forget_all(const void *ctx)
{
	const void *mem = lc_real_llama_get_memory(ctx);

	LOCKED(lc_history_lose(mem, -1));
	KEEPING_ERRNO(lc_hit(LC_SEQ_EDIT, SLOTPROBE_HIT_COMMITTED));
}

WRAP(size_t, llama_state_set_data, (void *ctx, const uint8_t *src, size_t size))
{
	size_t read;

	FROM_CALLER();
	read = lc_real_llama_state_set_data(ctx, src, size);
	forget_all(ctx);
	return read;
}

WRAP(bool, llama_state_load_file, (void *ctx, const char *path, int32_t *tokens, size_t room, size_t *n_tokens))
{
	bool read;

	FROM_CALLER();
	read = lc_real_llama_state_load_file(ctx, path, tokens, room, n_tokens);
	forget_all(ctx);
	return read;
}

WRAP(void, llama_free, (void *ctx))
{
	const void *mem;

	FROM_CALLER();
	mem = ctx ? lc_real_llama_get_memory(ctx) : NULL;
	LOCKED(lc_history_forget(mem));
	KEEPING_ERRNO(lc_claims_context_gone(ctx));
	lc_real_llama_free(ctx);
}

/* ---- sequences ---- */

WRAP(bool, llama_memory_seq_rm, (void *mem, int32_t seq, int32_t p0, int32_t p1))
{
	bool done;

	FROM_CALLER();
	done = lc_real_llama_memory_seq_rm(mem, seq, p0, p1);
	if (done)
		LOCKED(lc_history_remove(mem, seq, p0, p1));
	KEEPING_ERRNO(lc_hit(LC_SEQ_RM, done ? SLOTPROBE_HIT_COMMITTED : SLOTPROBE_HIT_FILTERED));
	return done;
}

WRAP(void, llama_memory_seq_cp, (void *mem, int32_t src, int32_t dst, int32_t p0, int32_t p1))
{
	FROM_CALLER();
	lc_real_llama_memory_seq_cp(mem, src, dst, p0, p1);
	LOCKED(lc_history_copy(mem, src, dst, p0, p1));
	KEEPING_ERRNO(lc_hit(LC_SEQ_CP, SLOTPROBE_HIT_COMMITTED));
}

/* Ways to change sequences: the call, then what is left of what we know. */
#define EDIT(name, params, args, statement)                                                                            \
	WRAP(void, name, params)                                                                                       \
	{                                                                                                              \
		FROM_CALLER();                                                                                         \
		lc_real_##name args;                                                                                   \
		LOCKED(statement);                                                                                     \
		KEEPING_ERRNO(lc_hit(LC_SEQ_EDIT, SLOTPROBE_HIT_COMMITTED));                                           \
	}

EDIT(llama_memory_clear, (void *mem, bool data), (mem, data), lc_history_remove(mem, -1, -1, -1))
EDIT(llama_memory_seq_keep, (void *mem, int32_t seq), (mem, seq), lc_history_keep(mem, seq))
EDIT(llama_memory_seq_add, (void *mem, int32_t seq, int32_t p0, int32_t p1, int32_t delta), (mem, seq, p0, p1, delta),
     lc_history_shift(mem, seq, p0, p1))
EDIT(llama_memory_seq_div, (void *mem, int32_t seq, int32_t p0, int32_t p1, int d), (mem, seq, p0, p1, d),
     lc_history_shift(mem, seq, p0, p1))

/* ---- batches as they are filled ---- */

WRAP(void *, llama_batch_ext_init, (void *ctx))
{
	void *batch;

	FROM_CALLER();
	batch = lc_real_llama_batch_ext_init(ctx);
	LOCKED(lc_batch_new(batch));
	return batch;
}

WRAP(void, llama_batch_ext_free, (void *batch))
{
	FROM_CALLER();
	LOCKED(lc_batch_free(batch));
	lc_real_llama_batch_ext_free(batch);
}

WRAP(void, llama_batch_ext_clear, (void *batch))
{
	FROM_CALLER();
	lc_real_llama_batch_ext_clear(batch);
	LOCKED(lc_batch_clear(batch));
}

WRAP(int32_t, llama_batch_ext_add, (void *batch, int32_t seq))
{
	int32_t index;

	FROM_CALLER();
	index = lc_real_llama_batch_ext_add(batch, seq);
	LOCKED(lc_batch_add(batch, index, seq, -1));
	return index;
}

WRAP(int32_t, llama_batch_ext_add_token, (void *batch, int32_t seq, int32_t token))
{
	int32_t index;

	FROM_CALLER();
	index = lc_real_llama_batch_ext_add_token(batch, seq, token);
	LOCKED(lc_batch_add(batch, index, seq, token));
	return index;
}

WRAP(int32_t, llama_batch_ext_add_embd, (void *batch, int32_t seq, struct lc_embd embd))
{
	int32_t index;

	FROM_CALLER();
	index = lc_real_llama_batch_ext_add_embd(batch, seq, embd);
	LOCKED(lc_batch_add(batch, index, seq, -1));
	return index;
}

WRAP(bool, llama_batch_ext_add_seq, (void *batch, int32_t index, int32_t seq))
{
	bool done;

	FROM_CALLER();
	done = lc_real_llama_batch_ext_add_seq(batch, index, seq);
	if (done)
		LOCKED(lc_batch_add_sequence(batch, index, seq));
	return done;
}

WRAP(bool, llama_batch_ext_set_pos, (void *batch, int32_t index, const int32_t *pos))
{
	bool done;

	FROM_CALLER();
	done = lc_real_llama_batch_ext_set_pos(batch, index, pos);
	if (done && pos)
		LOCKED(lc_batch_set_pos(batch, index, *pos));
	return done;
}

/* ---- batches as they run ---- */

/* Whether a graph ran is seen by the launches that there were meanwhile: the server decides that deep inside. */
static void say_step(int32_t batch, int32_t result)
{
	static uint64_t number;
	const struct slotprobe_step step = { .size = sizeof step,
					     .name = "decode",
					     .value = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED),
					     .batch = batch,
					     .padded = -1,
					     .mode = SLOTPROBE_MODE_SEEN };

	slotprobe_step(&step);
	lc_claims_length(-1);
	lc_hit(LC_DECODE, result == 0 ? SLOTPROBE_HIT_COMMITTED : SLOTPROBE_HIT_FILTERED);
}

WRAP(int32_t, llama_decode, (void *ctx, struct lc_batch batch))
{
	const void *mem;
	int32_t result;

	FROM_CALLER();
	depth++;
	result = lc_real_llama_decode(ctx, batch);
	if (--depth)
		return result;
	mem = lc_real_llama_get_memory(ctx);
	LOCKED(lc_batch_ran_plain(mem, &batch, result));
	KEEPING_ERRNO(say_step(batch.n_tokens, result));
	return result;
}

WRAP(int32_t, llama_process, (void *ctx, int type, void *batch))
{
	int32_t result, entries = -1;
	const void *mem;

	FROM_CALLER();
	depth++;
	result = lc_real_llama_process(ctx, type, batch);
	if (--depth || type != LC_PROCESS_DECODE)
		return result;
	mem = lc_real_llama_get_memory(ctx);
	LOCKED({
		entries = lc_batch_entries(batch);
		lc_batch_ran(mem, batch, result);
	});
	KEEPING_ERRNO(say_step(entries, result));
	return result;
}
