/* SPDX-License-Identifier: Apache-2.0
 *
 * workload.h: the requests: a few families of prompts that share their beginning, made from a seed.
 */
#ifndef TOY_WORKLOAD_H
#define TOY_WORKLOAD_H

#include "options.h"

enum toy_phase { TOY_WAITING, TOY_PREFILL, TOY_DECODE, TOY_DONE };

struct toy_request {
	int id, family, follows; /* follows: number of the request whose answer this one continues, or -1 */
	enum toy_phase phase;
	int32_t *tokens; /* the prompt, then what was generated */
	int prompt_len, n_tokens, gen;
	int len;         /* tokens that the state stands for */
	int live, track; /* slots */
};

struct toy_request *toy_workload_make(const struct toy_options *options);
void toy_workload_free(struct toy_request *requests, int n);

/* Gives a follow-up its prompt: the earlier request's tokens up to just after its last checkpoint, and a new turn. */
void toy_workload_follow(struct toy_request *request, const struct toy_request *earlier, int track_interval);

#endif
