/* SPDX-License-Identifier: Apache-2.0
 *
 * claims.h: from llama.cpp's calls to donations and restores.
 */
#ifndef LLAMACPP_CLAIMS_H
#define LLAMACPP_CLAIMS_H

#include <stddef.h>
#include <stdint.h>

/* The server says how many tokens the checkpoint that this thread takes next stands for; -1: it will not say. */
void lc_claims_length(int64_t n_tokens);
/* A state of `seq` was written to the buffer; `written` is what the server was told. */
void lc_claims_donate(void *ctx, const uint8_t *blob, size_t size, size_t written, int32_t seq, uint32_t flags);
/* A state is about to be read from the buffer into `seq`. */
void lc_claims_restore(void *ctx, const uint8_t *blob, size_t size, int32_t seq, uint32_t flags);
/* It was not: nothing is known of the sequence. */
void lc_claims_restore_failed(void *ctx, int32_t seq);
/* The context goes. */
void lc_claims_context_gone(const void *ctx);

#endif
