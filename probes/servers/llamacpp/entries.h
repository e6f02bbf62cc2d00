/* SPDX-License-Identifier: Apache-2.0
 *
 * entries.h: the table of llama.cpp's functions: those that we stand in front of, and those that we only ask.
 *
 * X(return type, name, parameters, arguments, value when there is no such function, needed). "Needed" entries are what
 * donations, restores, lengths and keys come from: a build that lacks one is told so (point `symbols`). The two ways to
 * run a batch replace each other, so neither is needed by itself.
 */
#ifndef LLAMACPP_ENTRIES_H
#define LLAMACPP_ENTRIES_H

#include <stdbool.h>

#include "probes/servers/llamacpp/abi.h"

#define LC_WRAPPED(X)                                                                                                  \
	X(size_t, llama_state_seq_get_data_ext, (void *ctx, uint8_t *dst, size_t size, int32_t seq, uint32_t flags),   \
	  (ctx, dst, size, seq, flags), 0, true)                                                                       \
	X(size_t, llama_state_seq_set_data_ext,                                                                        \
	  (void *ctx, const uint8_t *src, size_t size, int32_t seq, uint32_t flags), (ctx, src, size, seq, flags), 0,  \
	  true)                                                                                                        \
	X(bool, llama_memory_seq_rm, (void *mem, int32_t seq, int32_t p0, int32_t p1), (mem, seq, p0, p1), false,      \
	  true)                                                                                                        \
	X(void, llama_memory_seq_cp, (void *mem, int32_t src, int32_t dst, int32_t p0, int32_t p1),                    \
	  (mem, src, dst, p0, p1), (void)0, true)                                                                      \
	X(void, _ZN24common_prompt_checkpoint10update_posElii,                                                         \
	  (void *self, int64_t n_tokens, int32_t pos_min, int32_t pos_max), (self, n_tokens, pos_min, pos_max),        \
	  (void)0, true)                                                                                               \
	X(int32_t, llama_decode, (void *ctx, struct lc_batch batch), (ctx, batch), -1, false)                          \
	X(int32_t, llama_process, (void *ctx, int type, void *batch), (ctx, type, batch), -1, false)                   \
	X(void *, llama_batch_ext_init, (void *ctx), (ctx), NULL, false)                                               \
	X(void, llama_batch_ext_free, (void *batch), (batch), (void)0, false)                                          \
	X(void, llama_batch_ext_clear, (void *batch), (batch), (void)0, false)                                         \
	X(int32_t, llama_batch_ext_add, (void *batch, int32_t seq), (batch, seq), -1, false)                           \
	X(int32_t, llama_batch_ext_add_token, (void *batch, int32_t seq, int32_t token), (batch, seq, token), -1,      \
	  false)                                                                                                       \
	X(int32_t, llama_batch_ext_add_embd, (void *batch, int32_t seq, struct lc_embd embd), (batch, seq, embd), -1,  \
	  false)                                                                                                       \
	X(bool, llama_batch_ext_add_seq, (void *batch, int32_t index, int32_t seq), (batch, index, seq), false, false) \
	X(bool, llama_batch_ext_set_pos, (void *batch, int32_t index, const int32_t *pos), (batch, index, pos), false, \
	  false)                                                                                                       \
	X(void, llama_memory_clear, (void *mem, bool data), (mem, data), (void)0, false)                               \
	X(void, llama_memory_seq_keep, (void *mem, int32_t seq), (mem, seq), (void)0, false)                           \
	X(void, llama_memory_seq_add, (void *mem, int32_t seq, int32_t p0, int32_t p1, int32_t delta),                 \
	  (mem, seq, p0, p1, delta), (void)0, false)                                                                   \
	X(void, llama_memory_seq_div, (void *mem, int32_t seq, int32_t p0, int32_t p1, int d), (mem, seq, p0, p1, d),  \
	  (void)0, false)                                                                                              \
	X(size_t, llama_state_seq_load_file,                                                                           \
	  (void *ctx, const char *path, int32_t seq, int32_t *tokens, size_t room, size_t *n_tokens),                  \
	  (ctx, path, seq, tokens, room, n_tokens), 0, false)                                                          \
	X(size_t, llama_state_set_data, (void *ctx, const uint8_t *src, size_t size), (ctx, src, size), 0, false)      \
	X(bool, llama_state_load_file, (void *ctx, const char *path, int32_t *tokens, size_t room, size_t *n_tokens),  \
	  (ctx, path, tokens, room, n_tokens), false, false)                                                           \
	X(void, llama_free, (void *ctx), (ctx), (void)0, false)

#define LC_ASKED(X)                                                                                                    \
	X(void *, llama_get_memory, (const void *ctx), (ctx), NULL, true)                                              \
	X(uint32_t, llama_n_seq_max, (const void *ctx), (ctx), 0, false)                                               \
	X(size_t, llama_state_seq_get_size_ext, (void *ctx, int32_t seq, uint32_t flags), (ctx, seq, flags), 0, false) \
	X(const void *, llama_get_model, (const void *ctx), (ctx), NULL, false)                                        \
	X(bool, llama_model_is_recurrent, (const void *model), (model), true, false)                                   \
	X(bool, llama_model_is_hybrid, (const void *model), (model), true, false)

/* The real function; `caller` is an address in the object that wants it. Without one, `absent` is returned. */
#define LC_DECLARE(ret, name, params, args, absent, needed)                                                            \
	ret lc_real_##name params __attribute__((visibility("hidden")));
LC_WRAPPED(LC_DECLARE)
LC_ASKED(LC_DECLARE)
#undef LC_DECLARE

/* Address of a code address in whoever called our wrapper, for finding functions that are out of RTLD_NEXT's sight. */
void lc_entries_caller(void *return_address);
/* How many of the needed functions this process has. */
void lc_entries_survey(unsigned *found, unsigned *missing);

#endif
