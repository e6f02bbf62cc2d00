/* SPDX-License-Identifier: Apache-2.0
 *
 * standin.h: what the stand-in library and its driver share.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STANDIN_RECURRENT, STANDIN_HYBRID, STANDIN_ATTENTION };

struct standin_batch {
	int32_t n_tokens;
	int32_t *token;
	float *embd;
	int32_t *pos, *n_seq_id, **seq_id;
	int8_t *logits;
};

struct standin_embd {
	const float *data;
	size_t n_rows, n_embd;
};

extern int standin_fail, standin_lie;
extern const int32_t *standin_tokens;
extern int32_t standin_n_tokens;
void *standin_new(int kind);

void llama_free(void *ctx);
void *llama_get_memory(const void *ctx);
uint32_t llama_n_seq_max(const void *ctx);
const void *llama_get_model(const void *ctx);
bool llama_model_is_recurrent(const void *model);
bool llama_model_is_hybrid(const void *model);
size_t llama_state_seq_get_size_ext(void *ctx, int32_t seq, uint32_t flags);
size_t llama_state_seq_get_data_ext(void *ctx, uint8_t *dst, size_t size, int32_t seq, uint32_t flags);
size_t llama_state_seq_set_data_ext(void *ctx, const uint8_t *src, size_t size, int32_t seq, uint32_t flags);
bool llama_memory_seq_rm(void *mem, int32_t seq, int32_t p0, int32_t p1);
void llama_memory_seq_cp(void *mem, int32_t src, int32_t dst, int32_t p0, int32_t p1);
void llama_memory_seq_add(void *mem, int32_t seq, int32_t p0, int32_t p1, int32_t delta);
void llama_memory_clear(void *mem, bool data);
void *llama_batch_ext_init(void *ctx);
void llama_batch_ext_free(void *batch);
void llama_batch_ext_clear(void *batch);
int32_t llama_batch_ext_add_token(void *batch, int32_t seq, int32_t token);
int32_t llama_batch_ext_add_embd(void *batch, int32_t seq, struct standin_embd embd);
bool llama_batch_ext_set_pos(void *batch, int32_t index, const int32_t *pos);
int32_t llama_process(void *ctx, int type, void *batch);
int32_t llama_decode(void *ctx, struct standin_batch batch);
void _ZN24common_prompt_checkpoint10update_posElii(void *self, int64_t n_tokens, int32_t pos_min, int32_t pos_max);

#endif
