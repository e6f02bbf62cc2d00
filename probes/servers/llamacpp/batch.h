/* SPDX-License-Identifier: Apache-2.0
 *
 * batch.h: what the server has put into its batches. An extended batch is opaque: what goes into it is noted as the
 * server adds it, and becomes history when the batch has been run. Under lc_lock, held by the caller.
 */
#ifndef LLAMACPP_BATCH_H
#define LLAMACPP_BATCH_H

#include <stdint.h>

#include "probes/servers/llamacpp/abi.h"

void lc_batch_new(const void *batch);
void lc_batch_free(const void *batch);
void lc_batch_clear(const void *batch);
#define LC_ADD_REFUSED (-1) /* nothing was added; other negative results leave an entry behind that we do not know */

/* Entry `index` belongs to a sequence; token < 0: no token. */
void lc_batch_add(const void *batch, int32_t index, int32_t seq, int32_t token);
void lc_batch_add_sequence(const void *batch, int32_t index, int32_t seq);
void lc_batch_set_pos(const void *batch, int32_t index, int32_t pos);

/* Entries of an extended batch; -1: it is none that we know. */
int32_t lc_batch_entries(const void *batch);
/* The batch was run in this memory: `result` is what the server was told. */
void lc_batch_ran(const void *mem, const void *batch, int32_t result);
void lc_batch_ran_plain(const void *mem, const struct lc_batch *batch, int32_t result);

#endif
