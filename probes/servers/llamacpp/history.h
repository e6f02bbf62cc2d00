/* SPDX-License-Identifier: Apache-2.0
 *
 * history.h: which tokens each sequence of each memory stands for, as hashes of its prefixes: the key of a donation.
 *
 * No call of llama.cpp says what a state was computed from, so this follows every call that changes it. What cannot be
 * followed (embeddings without tokens, shifted positions, states from files) ends the knowledge at that position, until
 * the sequence is cut back to where it is known. Unknown means: no key, never a wrong one.
 *
 * All of it is under lc_lock, held by the caller; a server may run a batch in another thread than the rest.
 */
#ifndef LLAMACPP_HISTORY_H
#define LLAMACPP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LC_TO_END INT32_MAX

void lc_lock(void);
void lc_unlock(void);

/* A token at a position of a sequence; token < 0: something that is no token. pos < 0: the next one. */
void lc_history_push(const void *mem, int32_t seq, int32_t pos, int32_t token);
/* What the sequence holds is not known any more, as far as its end. seq < 0: of every sequence. */
void lc_history_lose(const void *mem, int32_t seq);
/* Positions p0 ... p1 - 1 went; seq < 0: of every sequence. */
void lc_history_remove(const void *mem, int32_t seq, int32_t p0, int32_t p1);
/* Positions p0 ... p1 - 1 are others now. */
void lc_history_shift(const void *mem, int32_t seq, int32_t p0, int32_t p1);
void lc_history_copy(const void *mem, int32_t src, int32_t dst, int32_t p0, int32_t p1);
void lc_history_keep(const void *mem, int32_t seq);
/* The sequence is these tokens. */
void lc_history_set(const void *mem, int32_t seq, const int32_t *tokens, size_t n);
/* Nothing of this memory is known: it went, or came from elsewhere. */
void lc_history_forget(const void *mem);

/* Identity of the first n tokens; 0: not known. */
uint64_t lc_history_key(const void *mem, int32_t seq, int32_t n);

/* A whole sequence was written to a buffer, as a state of n tokens: what is restored from there again stands for the same
 * tokens. (The server moves such buffers, it does not copy them. Partial states it does copy; they stand for a prefix of
 * what their sequence holds.) */
void lc_history_save(const void *mem, int32_t seq, const void *buffer, size_t size, int32_t n);
/* False: no buffer that we know; then the sequence is unknown. */
bool lc_history_load(const void *mem, int32_t seq, const void *buffer, size_t size, int32_t n);

#endif
