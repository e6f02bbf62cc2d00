/* SPDX-License-Identifier: Apache-2.0
 *
 * fold.h: two runs in memory that grows with their slots and not with their donations, where every slot lived the same in both.
 *
 * All donations and restores of a slot are folded into one: the one that a comparison shows. That is done only where both
 * runs hold the same of each slot: the same sequence of donations and restores, of the same claims, with the same
 * fingerprints. Whatever else there is, or could be, makes it refuse; then both runs are loaded whole.
 */
#ifndef COMPARE_FOLD_H
#define COMPARE_FOLD_H

#include "read/model.h"

/* True: both models are open, and hold one event a slot (model_event.fold says for how many more it stands). false: nothing
 * is open, and nothing is said. */
bool fold_runs(struct model *a, struct model *b, const char *path_a, const char *path_b);

#endif
