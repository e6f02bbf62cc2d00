/* SPDX-License-Identifier: Apache-2.0
 *
 * shadow.h: the server's state worked out a second and a third time on the host, by the same arithmetic: as it really
 * is (bug included) and as it should be. What the journal says of right and wrong bytes comes from here, and from
 * nothing that slotprobe computes.
 */
#ifndef TOY_SHADOW_H
#define TOY_SHADOW_H

#include "forward.h"
#include "model.h"

struct toy_shadow_pool {
	unsigned char *conv, *ssm; /* as struct toy_pool lays them out */
};

struct toy_shadow {
	bool on; /* false: every call does nothing */
	int layers, slots;
	struct toy_shadow_pool real, right;
	int32_t fixed_track[TOY_MAX_BATCH]; /* what the graph path's static index buffer holds */
	bool *torn; /* slots that two rows of one forward wrote at once: their bytes are not determined on a GPU */
	float *hidden;
	int32_t out[TOY_MAX_BATCH]; /* next tokens by the real state */
	uint64_t wrong_outputs;     /* tokens of the device that were others */
};

void toy_shadow_open(struct toy_shadow *shadow, bool on, int layers, int slots);
void toy_shadow_close(struct toy_shadow *shadow);

void toy_shadow_clear(struct toy_shadow *shadow, int slot, enum toy_clear how);
void toy_shadow_copy(struct toy_shadow *shadow, int to, int from);

/* A forward as it should be, then as it really is. graph_path: the model whose graph path this forward took, NULL when it
 * ran on fresh tensors. */
void toy_shadow_right(struct toy_shadow *shadow, const struct toy_forward *forward);
void toy_shadow_real(struct toy_shadow *shadow, const struct toy_forward *forward, const struct toy_model *graph_path);

/* Puts a number into the first ssm element of the real slot. */
void toy_shadow_put(struct toy_shadow *shadow, int slot, uint32_t bits);

/* Once the device's tokens are in forward->out, and before any of the slots changes hands. */
void toy_shadow_check_output(struct toy_shadow *shadow, const struct toy_forward *forward);

/* Alters one byte of the real slot; returns the new value and where: byte `offset` of the last layer's ssm row. */
unsigned char toy_shadow_perturb(struct toy_shadow *shadow, int slot, int offset);

/* Hash of a slot's bytes, over the planes in (layer, tensor) order. */
uint64_t toy_shadow_hash(const struct toy_shadow *shadow, const struct toy_shadow_pool *pool, int slot);
bool toy_shadow_plane_differs(const struct toy_shadow *shadow, int slot, int layer, bool ssm);
bool toy_shadow_is_zero(const struct toy_shadow *shadow, int slot);

/* How many numbers of the real slot are NaN. */
int toy_shadow_nan(const struct toy_shadow *shadow, int slot);

/* Does the device hold what the shadow says? Torn slots are left out. Returns the first slot that does not, or -1. */
int toy_shadow_compare(const struct toy_shadow *shadow, const struct toy_pool *pool, toy_stream stream);

#endif
