/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: how the toy server is asked to run.
 */
#ifndef TOY_OPTIONS_H
#define TOY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cases.h"

enum toy_arm { TOY_GRAPH_ON, TOY_GRAPH_OFF, TOY_PADDED_EAGER, TOY_GRAPH_PATH_EAGER, TOY_ARMS };
enum toy_stream_kind { TOY_STREAM_IS_CREATED, TOY_STREAM_IS_DEFAULT, TOY_STREAM_IS_PER_THREAD, TOY_STREAM_KINDS };

extern const char *const toy_arm_names[TOY_ARMS];
extern const char *const toy_stream_names[TOY_STREAM_KINDS];

struct toy_options {
	int64_t arm, stream;
	int64_t seed, requests, first, concurrency, slots, layers;
	int64_t track_interval, chunk;
	int64_t follow_ups; /* so many of the requests continue an earlier one's answer */
	int64_t perturb_slot, perturb_occurrence;
	int64_t device_slot_ids; /* 1: slot ids are reported by device address */
	int64_t by_proc_address; /* 1: entry points come from cuGetProcAddress */
	int64_t waves;           /* equal requests that start and end together: every batch is full */
	int64_t fixed_answers;   /* wrong states change no token, so all that follows stays comparable */
	int64_t use_slot_0;      /* slot 0 is handed out, and first */
	int64_t donate;          /* 0: the donation call to slotprobe is left out, and nothing else */
	int64_t shadow;          /* 0: do not work the state out on the host too */
	int64_t check_driver;    /* only say which driver and device there are */
	const char *journal, *driver_lib;
	const struct toy_case *bug;
};

/* Fills the options or ends the program. */
void toy_options_parse(struct toy_options *options, int argc, char **argv);

#endif
