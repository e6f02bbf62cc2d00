/* SPDX-License-Identifier: Apache-2.0
 *
 * find.c: the search for bytes in all fingerprints of both runs.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/find.h"

static uint64_t plane_key(uint32_t group, uint64_t identity, uint64_t hash)
{
	return log_mix64(log_mix64(identity + group) ^ hash);
}

static uint64_t question_key(uint32_t group, uint32_t n, const uint64_t *identity, const uint64_t *hash)
{
	uint64_t key = log_mix64(group + 1);

	for (uint32_t i = 0; i < n; i++)
		key = log_mix64(key * 0x9e3779b97f4a7c15ull + plane_key(group, identity[i], hash[i]));
	return key;
}

/* The same planes, and the same hash of the first. */
static uint64_t planes_key(uint32_t group, uint32_t n, const uint64_t *identity, uint64_t first_hash)
{
	uint64_t key = log_mix64(group + 1) ^ first_hash;

	for (uint32_t i = 0; i < n; i++)
		key = log_mix64(key * 0x9e3779b97f4a7c15ull + identity[i]);
	return key;
}

static uint64_t *copied(const uint64_t *from, uint32_t n)
{
	uint64_t *to = malloc(n * sizeof *to + 1);

	if (to)
		memcpy(to, from, n * sizeof *to);
	return to;
}

uint32_t find_ask(struct find *find, uint32_t group, uint32_t n_planes, const uint64_t *identity, const uint64_t *hash)
{
	uint64_t key = question_key(group, n_planes, identity, hash), at = map_get(&find->by_digest, key), first;
	uint64_t planes = planes_key(group, n_planes, identity, hash[0]);
	struct find_question *q;

	if (at != MAP_NONE)
		return (uint32_t)at;
	if (!array_room(&find->question, &find->room, find->n_questions, sizeof *find->question))
		return ALIGN_NONE;
	q = &find->question[find->n_questions];
	memset(q, 0, sizeof *q);
	q->group = group;
	q->n_planes = n_planes;
	q->next = ALIGN_NONE;
	find->most_planes = n_planes > find->most_planes ? n_planes : find->most_planes;
	q->identity = copied(identity, n_planes);
	q->hash = copied(hash, n_planes);
	at = find->n_questions++;
	if (!q->identity || !q->hash || !map_set(&find->by_digest, key, at))
		return ALIGN_NONE;
	if (map_get(&find->by_planes, planes) != MAP_NONE)
		return (uint32_t)at;
	first = map_get(&find->by_plane, plane_key(group, identity[0], hash[0]));
	q->next = first == MAP_NONE ? ALIGN_NONE : (uint32_t)first;
	return map_set(&find->by_planes, planes, at) &&
			       map_set(&find->by_plane, plane_key(group, identity[0], hash[0]), at)
		       ? (uint32_t)at
		       : ALIGN_NONE;
}

/* ---- the pass over the logs of one process ---- */

#define OPEN_MAX 64

struct assembly { /* a fingerprint whose parts have not all come */
	uint32_t number, filled, total;
	uint64_t *hash;
};

struct scan {
	struct find *find;
	uint32_t side, process;
	const struct model_process *p;
	const uint32_t *group_of_pool;
	const struct align_group *group; /* all of them */
	uint32_t *print_of;              /* log number -> index */
	struct map plane_of;             /* (pool, identity) -> index of the plane */
	struct assembly open[OPEN_MAX];
	unsigned n_open;
	uint64_t *whole;     /* room for the hashes of a fingerprint in one part */
	uint64_t *of_planes; /* and for those of a question's planes */
	bool no_memory;
};

/* The question about these planes and what they hold here. ALIGN_NONE: nobody asked it. */
static uint32_t question_of(struct scan *scan, const struct find_question *like, uint32_t pool, const uint64_t *hash)
{
	uint64_t *of = scan->of_planes, found;
	const struct find_question *q;

	for (uint32_t i = 0; i < like->n_planes; i++) {
		uint64_t at = map_get(&scan->plane_of, log_mix64(like->identity[i]) + pool);

		if (at == MAP_NONE)
			return ALIGN_NONE;
		of[i] = hash[at];
	}
	found = map_get(&scan->find->by_digest, question_key(like->group, like->n_planes, like->identity, of));
	if (found == MAP_NONE)
		return ALIGN_NONE;
	q = &scan->find->question[found];
	return q->group == like->group && q->n_planes == like->n_planes &&
			       memcmp(q->identity, like->identity, q->n_planes * sizeof *of) == 0 &&
			       memcmp(q->hash, of, q->n_planes * sizeof *of) == 0
		       ? (uint32_t)found
		       : ALIGN_NONE;
}

static void take_match(struct scan *scan, uint32_t question, uint32_t print)
{
	struct find_question *q = &scan->find->question[question];

	if (array_room(&q->match, &q->room, q->n_matches, sizeof *q->match))
		q->match[q->n_matches++] = (struct find_match) { scan->side, scan->process, print };
	else
		scan->no_memory = true;
}

static void see_whole(struct scan *scan, uint32_t number, const uint64_t *hash)
{
	uint32_t index = scan->print_of[number];
	const struct model_print *print = &scan->p->print[index];
	const struct model_pool *pool;
	uint32_t group;

	if (!print->complete || print->pool == MODEL_NONE)
		return;
	pool = &scan->p->pool[print->pool];
	group = scan->group[scan->group_of_pool[print->pool]].kin;
	for (uint32_t i = 0; i < pool->n_planes; i++) {
		uint64_t at = map_get(&scan->find->by_plane, plane_key(group, pool->plane[i].identity, hash[i]));

		while (at != MAP_NONE && at != ALIGN_NONE) {
			const struct find_question *like = &scan->find->question[at];
			uint32_t question = ALIGN_NONE;

			/* The key may stand for a later plane of another question: only the first leads here. */
			if (like->group == group && like->identity[0] == pool->plane[i].identity)
				question = question_of(scan, like, print->pool, hash);
			if (question != ALIGN_NONE)
				take_match(scan, question, index);
			at = like->next;
		}
	}
}

static struct assembly *assembly_of(struct scan *scan, const struct log_fingerprint *part, uint32_t number)
{
	struct assembly *a;

	for (unsigned i = 0; i < scan->n_open; i++) {
		if (scan->open[i].number == number)
			return &scan->open[i];
	}
	if (part->first_plane)
		return NULL;
	if (scan->n_open == OPEN_MAX) {
		free(scan->open[0].hash);
		memmove(&scan->open[0], &scan->open[1], sizeof scan->open - sizeof scan->open[0]);
		scan->n_open--;
	}
	a = &scan->open[scan->n_open];
	a->number = number;
	a->filled = 0;
	a->total = part->total_planes;
	a->hash = malloc(part->total_planes * sizeof *a->hash + 1);
	if (!a->hash) {
		scan->no_memory = true;
		return NULL;
	}
	scan->n_open++;
	return a;
}

static void see_part(struct scan *scan, const struct log_fingerprint *part, uint32_t number)
{
	struct assembly *a = assembly_of(scan, part, number);

	if (!a || a->filled != part->first_plane || a->total != part->total_planes)
		return;
	for (uint32_t i = 0; i < part->n_planes; i++)
		a->hash[part->first_plane + i] = part->plane[i].hash;
	a->filled += part->n_planes;
	if (a->filled < a->total)
		return;
	see_whole(scan, number, a->hash);
	free(a->hash);
	*a = scan->open[--scan->n_open];
}

static bool see(void *arg, const struct log_fingerprint *part, uint32_t number)
{
	struct scan *scan = arg;

	if (!scan->p->print[scan->print_of[number]].complete)
		return true;
	if (part->n_planes < part->total_planes) {
		see_part(scan, part, number);
		return !scan->no_memory;
	}
	for (uint32_t i = 0; i < part->n_planes; i++)
		scan->whole[i] = part->plane[i].hash;
	see_whole(scan, number, scan->whole);
	return !scan->no_memory;
}

static bool prepare(struct scan *scan)
{
	const struct model_process *p = scan->p;

	scan->print_of = calloc(p->n_prints + 1, sizeof *scan->print_of);
	scan->whole = calloc(LOG_RECORD_MAX / sizeof(struct log_plane_print) + 1, sizeof *scan->whole);
	scan->of_planes = calloc(scan->find->most_planes + 1ul, sizeof *scan->of_planes);
	if (!scan->print_of || !scan->whole || !scan->of_planes)
		return false;
	for (uint32_t i = 0; i < p->n_prints; i++)
		scan->print_of[p->print[i].number] = i;
	for (uint32_t k = 0; k < p->n_pools; k++) {
		for (uint32_t i = 0; i < p->pool[k].room; i++) {
			if (p->pool[k].plane[i].known &&
			    !map_set(&scan->plane_of, log_mix64(p->pool[k].plane[i].identity) + k, i))
				return false;
		}
	}
	return true;
}

static int scan_process(struct find *find, uint32_t side, uint32_t process, struct error *err)
{
	struct scan scan = { .find = find, .side = side, .process = process };
	int status = 0;

	scan.p = &find->al->side[side].model->process[process];
	scan.group_of_pool = find->al->side[side].group_of_pool[process];
	scan.group = find->al->group;
	if (!scan.p->n_prints)
		return 0;
	if (prepare(&scan))
		status = model_planes(scan.p, see, &scan, err);
	else
		scan.no_memory = true;
	if (scan.no_memory) {
		error_set(err, "out of memory");
		status = -1;
	}
	for (unsigned i = 0; i < scan.n_open; i++)
		free(scan.open[i].hash);
	map_free(&scan.plane_of);
	free(scan.print_of);
	free(scan.whole);
	free(scan.of_planes);
	return status;
}

int find_answer(struct find *find, struct error *err)
{
	if (!find->n_questions)
		return 0;
	for (uint32_t s = 0; s < 2; s++) {
		for (uint32_t i = 0; i < find->al->side[s].model->n_processes; i++) {
			if (scan_process(find, s, i, err) != 0)
				return -1;
		}
	}
	return 0;
}

void find_free(struct find *find)
{
	for (size_t i = 0; i < find->n_questions; i++) {
		free(find->question[i].identity);
		free(find->question[i].hash);
		free(find->question[i].match);
	}
	free(find->question);
	map_free(&find->by_digest);
	map_free(&find->by_planes);
	map_free(&find->by_plane);
	memset(find, 0, sizeof *find);
}
