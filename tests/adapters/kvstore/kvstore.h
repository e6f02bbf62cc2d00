/* SPDX-License-Identifier: Apache-2.0
 *
 * kvstore.h: a server's own library, which knows nothing of slotprobe: it keeps the states of sessions, so that a later
 * session can go on from one.
 */
#ifndef KVSTORE_H
#define KVSTORE_H

#include <stdint.h>

#define KV_FLOATS 96

/* Keeps a copy of a session's state of n_tokens tokens, whose prefix has that id; returns its ticket. */
int kv_save(int session, const float *state, long n_tokens, uint64_t prefix);
/* Puts a kept state into a session's; returns its length in tokens. */
long kv_load(int ticket, int session, float *state);
/* What is kept under a ticket, for whoever wants to look before it is loaded. */
const float *kv_peek(int ticket, int *session, long *n_tokens, uint64_t *prefix);

#endif
