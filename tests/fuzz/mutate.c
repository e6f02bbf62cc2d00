/* SPDX-License-Identifier: Apache-2.0
 *
 * mutate.c: mutates counters pages, and inputs of several parts by the mutator that each part's kind has.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/record/log_format.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/mutate.h"

void dice_seed(struct dice *dice, unsigned seed)
{
	dice->state = log_mix64(seed + 1ull);
}

uint32_t dice_below(struct dice *dice, uint32_t n)
{
	dice->state += 0x9e3779b97f4a7c15ull;
	return n ? (uint32_t)(log_mix64(dice->state) >> 32) % n : 0;
}

/* ---- the counters page ---- */

static void mutate_row(uint8_t *data, size_t size, struct dice *dice)
{
	size_t rows = size > offsetof(struct ctr_page, row)
			      ? (size - offsetof(struct ctr_page, row)) / sizeof(struct ctr_row)
			      : 0;
	uint8_t *row =
		data + offsetof(struct ctr_page, row) + dice_below(dice, (uint32_t)rows) * sizeof(struct ctr_row);

	if (rows)
		LLVMFuzzerMutate(row, sizeof(struct ctr_row), sizeof(struct ctr_row));
}

size_t mutate_page(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	size_t head = offsetof(struct ctr_page, row), sealed = offsetof(struct ctr_page, comm);
	struct dice dice;
	uint32_t crc;

	dice_seed(&dice, seed);
	if (size < head || !dice_below(&dice, 16))
		return LLVMFuzzerMutate(data, size, room);
	if (!dice_below(&dice, 24))
		return dice_below(&dice, (uint32_t)size);
	if (dice_below(&dice, 3))
		mutate_row(data, size, &dice);
	else if (dice_below(&dice, 4))
		LLVMFuzzerMutate(data + sealed, head - sealed, head - sealed);
	else
		LLVMFuzzerMutate(data, head, head);
	crc = log_crc32c(0, data, sealed);
	memcpy(data + offsetof(struct ctr_page, crc), &crc, sizeof crc);
	return size;
}

/* ---- several parts ---- */

static size_t mutate_part(uint8_t *data, size_t size, size_t room, unsigned kind, unsigned seed)
{
	if (kind == PART_LOG)
		return mutate_log(data, size, room, seed);
	if (kind == PART_PAGE)
		return mutate_page(data, size, room, seed);
	return LLVMFuzzerMutate(data, size, room);
}

static void mutate_list(struct input *input, struct dice *dice)
{
	unsigned i = dice_below(dice, input->n);
	struct part *part = &input->part[i];

	switch (dice_below(dice, 3)) {
	case 0: /* an end of its own for the list */
		*part = input->part[--input->n];
		break;
	case 1:
		part->h.process = (uint8_t)dice_below(dice, INPUT_PROCESSES);
		break;
	default:
		if (input->n < INPUT_PARTS) {
			struct part *more = &input->part[input->n++];

			*more = *part;
			more->h.run = (uint8_t)dice_below(dice, INPUT_RUNS);
			more->h.process = (uint8_t)dice_below(dice, INPUT_PROCESSES);
		}
	}
}

size_t mutate_input(uint8_t *data, size_t size, size_t room, unsigned seed)
{
	static uint8_t scratch[1 << 18], packed[1 << 19];
	struct input input;
	struct part *part;
	struct dice dice;

	dice_seed(&dice, seed);
	input_unpack(&input, data, size);
	if (!input.n)
		return LLVMFuzzerMutate(data, size, room);
	if (!dice_below(&dice, 20)) {
		mutate_list(&input, &dice);
	} else {
		part = &input.part[dice_below(&dice, input.n)];
		if (part->h.bytes > sizeof scratch / 2)
			return LLVMFuzzerMutate(data, size, room);
		memcpy(scratch, part->data, part->h.bytes);
		part->h.bytes = (uint32_t)mutate_part(scratch, part->h.bytes, sizeof scratch / 2, part->h.kind,
						      dice_below(&dice, UINT32_MAX));
		part->data = scratch;
	}
	size = input_pack(&input, packed, room < sizeof packed ? room : sizeof packed);
	memcpy(data, packed, size);
	return size;
}
