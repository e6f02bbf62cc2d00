/* SPDX-License-Identifier: Apache-2.0
 *
 * workload.c: prompts.
 */
#include "workload.h"

#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "toy_cuda.h"

#define FAMILIES   3
#define TURN       5 /* tokens of a new turn */
#define GEN_LEAST  10
#define GEN_SPREAD 17
#define WAVE_GEN   20

static uint32_t draw(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)(z >> 32);
}

static void fill(int32_t *tokens, int n, uint64_t seed)
{
	for (int i = 0; i < n; i++)
		tokens[i] = (int32_t)(draw(&seed) % TOY_VOCAB);
}

static void room(struct toy_request *r)
{
	r->tokens = calloc((size_t)(r->prompt_len + r->gen), sizeof(*r->tokens));
	if (!r->tokens)
		toy_die("out of memory");
	r->n_tokens = r->prompt_len;
}

static int shared_len(int family, bool waves)
{
	return waves ? 24 : 20 + 7 * family;
}

static void make(struct toy_request *r, int id, const struct toy_options *o)
{
	uint64_t seed = (uint64_t)o->seed << 32;
	uint64_t own = seed ^ ((uint64_t)id + 1) * 0x51ed27ull;
	int shared;

	r->id = id;
	r->follows = -1;
	r->family = (int)(draw(&own) % FAMILIES);
	shared = shared_len(r->family, o->waves);
	r->prompt_len = shared + (o->waves ? 4 : 2 + (int)(draw(&own) % 9));
	r->gen = o->waves ? WAVE_GEN : GEN_LEAST + (int)(draw(&own) % GEN_SPREAD);
	room(r);
	fill(r->tokens, shared, seed + (uint64_t)r->family);
	fill(r->tokens + shared, r->prompt_len - shared, own);
}

struct toy_request *toy_workload_make(const struct toy_options *o)
{
	struct toy_request *requests = calloc((size_t)o->requests, sizeof(*requests));
	int first_follow_up = (int)(o->requests - o->follow_ups);

	if (!requests)
		toy_die("out of memory");
	for (int i = 0; i < o->requests; i++) {
		make(&requests[i], i, o);
		if (i >= first_follow_up)
			requests[i].follows = i - (int)o->follow_ups;
	}
	return requests;
}

void toy_workload_free(struct toy_request *requests, int n)
{
	for (int i = 0; i < n; i++)
		free(requests[i].tokens);
	free(requests);
}

void toy_workload_follow(struct toy_request *r, const struct toy_request *earlier, int track_interval)
{
	int checkpoint = earlier->len / track_interval * track_interval;
	int kept = checkpoint + 1 < earlier->n_tokens ? checkpoint + 1 : earlier->n_tokens;

	free(r->tokens);
	r->prompt_len = kept + TURN;
	room(r);
	memcpy(r->tokens, earlier->tokens, (size_t)kept * sizeof(*r->tokens));
	fill(r->tokens + kept, TURN, 0xf0110u + (uint64_t)r->id);
}
