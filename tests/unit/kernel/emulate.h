/* SPDX-License-Identifier: Apache-2.0
 *
 * emulate.h: runs fingerprint.cu on the CPU; see emulator.h.
 */
#ifndef EMULATE_H
#define EMULATE_H

#include "probes/core/kernel/fingerprint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One launch. order_seed shuffles the order in which blocks and threads run; 0: ascending. before_block, when not NULL,
 * is called before each block with how many have run. */
void emulate_launch(const struct fp_launch *launch, uint64_t order_seed, void (*before_block)(void *arg, uint32_t done),
		    void *arg);
/* When not NULL, called before each thread goes on. */
extern void (*emulate_before_turn)(void);
void emulate_ready(uint64_t word, uint32_t value);

#ifdef __cplusplus
}
#endif

#endif
