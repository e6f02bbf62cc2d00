/* SPDX-License-Identifier: Apache-2.0
 *
 * tolerance.c: reads the planes of the pairs that differ, in batches, and measures how far apart they are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/judge.h"
#include "compare/tolerance.h"

#define BATCH_BYTES (128u << 20)

enum { F64, F32, F16, BF16, F8E4M3, F8E5M2, I8, I32, RAW }; /* enum slotprobe_dtype */

/* ---- values ---- */

/* Sign, `exponent` bits and `mantissa` bits; the largest exponent is Inf and NaN. */
static double small_float(uint64_t bits, unsigned exponent, unsigned mantissa)
{
	int bias = (1 << (exponent - 1)) - 1;
	uint64_t e = bits >> mantissa & ((1u << exponent) - 1), m = bits & ((1u << mantissa) - 1);
	double sign = bits >> (exponent + mantissa) & 1 ? -1 : 1;

	if (e == (1u << exponent) - 1)
		return m ? (double)NAN : sign * (double)INFINITY;
	if (!e)
		return sign * ldexp((double)m, 1 - bias - (int)mantissa);
	return sign * ldexp((double)(m | 1ull << mantissa), (int)e - bias - (int)mantissa);
}

static double value_of(uint64_t bits, uint32_t dtype)
{
	uint32_t word = (uint32_t)bits;
	double d;
	float f;

	switch (dtype) {
	case F64:
		memcpy(&d, &bits, sizeof d);
		return d;
	case F32:
		memcpy(&f, &word, sizeof f);
		return (double)f;
	case F16:
		return small_float(bits, 5, 10);
	case BF16:
		return small_float(bits, 8, 7);
	case F8E4M3: /* no Inf: all ones is NaN, and below that the exponent counts on */
		if ((bits & 0x7f) == 0x7f)
			return (double)NAN;
		if ((bits >> 3 & 15) == 15)
			return (bits >> 7 & 1 ? -1 : 1) * ldexp((double)(8 | (bits & 7)), 15 - 7 - 3);
		return small_float(bits, 4, 3);
	case F8E5M2:
		return small_float(bits, 5, 2);
	case I8:
		return (double)(int8_t)bits;
	case I32:
		return (double)(int32_t)bits;
	default:
		return (double)NAN;
	}
}

static double relative(double a, double b)
{
	double larger = fmax(fabs(a), fabs(b));

	if (memcmp(&a, &b, sizeof a) == 0 || a == b)
		return 0;
	if (!isfinite(a) || !isfinite(b))
		return (double)INFINITY;
	return fabs(a - b) / larger;
}

double tolerance_distance(const struct log_plane_print *a, const struct log_plane_print *b, uint32_t dtype, double rtol,
			  uint64_t *values, uint64_t *over)
{
	double apart[2 + LOG_SAMPLES], farthest = 0;
	bool never = a->nan != b->nan || a->inf != b->inf || (dtype >= RAW && a->hash != b->hash);

	apart[0] = relative(a->l2, b->l2);
	apart[1] = relative(a->absmax, b->absmax);
	for (unsigned i = 0; i < LOG_SAMPLES; i++)
		apart[2 + i] = a->sample[i] == b->sample[i]
				       ? 0
				       : relative(value_of(a->sample[i], dtype), value_of(b->sample[i], dtype));
	for (unsigned i = 0; i < sizeof apart / sizeof apart[0]; i++) {
		double d = never ? (double)INFINITY : apart[i];

		farthest = fmax(farthest, d);
		*values += 1;
		*over += d > rtol;
	}
	return farthest;
}

/* ---- pairs ---- */

struct pair {
	uint32_t group, n_planes;
	struct align_ref at[2];
	struct log_plane_print *plane[2];
};

typedef bool take_pair(void *arg, const struct diff *diff, const struct pair *pair); /* false: out of memory */

struct batch {
	const struct diff *diff;
	struct pair *pair;
	size_t n, room;
	uint64_t bytes;
	struct map wanted[2]; /* (process, print's number) -> pair */
	take_pair *take;
	void *arg;
	struct error *err;
};

struct collect {
	struct batch *batch;
	unsigned side;
	uint32_t process;
};

static bool collect_part(void *arg, const struct log_fingerprint *part, uint32_t number)
{
	struct collect *c = arg;
	uint64_t at = map_get(&c->batch->wanted[c->side], (uint64_t)c->process << 32 | number);
	struct pair *pair;

	if (at == MAP_NONE)
		return true;
	pair = &c->batch->pair[at];
	for (uint32_t i = 0; i < part->n_planes && part->first_plane + i < pair->n_planes; i++)
		pair->plane[c->side][part->first_plane + i] = part->plane[i];
	return true;
}

static void batch_clear(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->pair[i].plane[0]);
		free(b->pair[i].plane[1]);
	}
	b->n = 0;
	b->bytes = 0;
	map_free(&b->wanted[0]);
	map_free(&b->wanted[1]);
}

static int batch_read(struct batch *b)
{
	for (unsigned s = 0; s < 2; s++) {
		const struct model *model = b->diff->al.side[s].model;

		for (uint32_t p = 0; p < model->n_processes; p++) {
			struct collect c = { b, s, p };

			if (model_planes(&model->process[p], collect_part, &c, b->err) != 0)
				return -1;
		}
	}
	for (size_t i = 0; i < b->n; i++) {
		if (!b->take(b->arg, b->diff, &b->pair[i])) {
			error_set(b->err, "out of memory");
			return -1;
		}
	}
	batch_clear(b);
	return 0;
}

static int batch_add(struct batch *b, uint32_t group, struct align_ref a, struct align_ref c)
{
	struct pair pair = { .group = group, .at = { a, c } };
	bool fine = true;

	for (unsigned s = 0; s < 2; s++) {
		const struct align_side *side = &b->diff->al.side[s];
		const struct model_process *p = align_process(side, pair.at[s]);
		const struct model_event *e = align_event(side, pair.at[s]);

		pair.n_planes = p->pool[e->pool].n_planes;
		pair.plane[s] = calloc(pair.n_planes + 1ul, sizeof *pair.plane[s]);
		fine = fine && pair.plane[s] &&
		       map_set(&b->wanted[s], (uint64_t)pair.at[s].process << 32 | model_subject(p, e)->number, b->n);
	}
	fine = fine && array_room(&b->pair, &b->room, b->n, sizeof *b->pair);
	if (!fine) {
		free(pair.plane[0]);
		free(pair.plane[1]);
		error_set(b->err, "out of memory");
		return -1;
	}
	b->pair[b->n++] = pair;
	b->bytes += 2ull * pair.n_planes * sizeof(struct log_plane_print);
	return b->bytes < BATCH_BYTES ? 0 : batch_read(b);
}

/* Calls `take` for each donation and each restore whose mate differs, with the planes of both. */
static int each_difference(const struct diff *diff, take_pair *take, void *arg, struct error *err)
{
	struct batch b = { .diff = diff, .take = take, .arg = arg, .err = err };
	const struct align_side *side = &diff->al.side[0], *other = &diff->al.side[1];
	int status = 0;

	for (size_t i = 0; status == 0 && i < side->n_occurrences; i++) {
		const struct align_occurrence *o = &side->occurrence[i];
		uint32_t group = diff->al.row[o->row].group;

		if (o->mate != ALIGN_NONE && o->at.event != ALIGN_NONE &&
		    judge_differs(diff, group, o->at, other->occurrence[o->mate].at))
			status = batch_add(&b, group, o->at, other->occurrence[o->mate].at);
		for (uint32_t k = o->restore; status == 0 && k != ALIGN_NONE; k = side->restore[k].next) {
			const struct align_restore *r = &side->restore[k];

			if (r->mate != ALIGN_NONE && judge_differs(diff, group, r->at, other->restore[r->mate].at))
				status = batch_add(&b, group, r->at, other->restore[r->mate].at);
		}
	}
	if (status == 0 && b.n)
		status = batch_read(&b);
	batch_clear(&b);
	free(b.pair);
	return status;
}

/* ---- planes of a pair ---- */

static const struct model_pool *pool_of(const struct diff *diff, const struct pair *pair, unsigned s)
{
	const struct align_side *side = &diff->al.side[s];

	return &align_process(side, pair->at[s])->pool[align_event(side, pair->at[s])->pool];
}

/* Run B may have registered the planes in another order. */
static const struct log_plane_print *mate_of(const struct diff *diff, const struct pair *pair, uint32_t i)
{
	const struct model_pool *a = pool_of(diff, pair, 0), *b = pool_of(diff, pair, 1);
	uint32_t k = i;

	if (b->plane[k].identity != a->plane[i].identity) {
		for (k = 0; k < b->n_planes && b->plane[k].identity != a->plane[i].identity; k++)
			;
	}
	return k < b->n_planes ? &pair->plane[1][k] : NULL;
}

static uint64_t plane_key(const struct diff *diff, const struct pair *pair, uint32_t i)
{
	const struct align_group *g = &diff->al.group[pair->group];

	return log_mix64(model_place_key(g->rank, g->rank_length, g->pool) + pool_of(diff, pair, 0)->plane[i].identity);
}

/* ---- noise ---- */

static bool take_noise(void *arg, const struct diff *diff, const struct pair *pair)
{
	struct noise *noise = arg;
	uint64_t values = 0, over = 0;

	noise->noisy++;
	for (uint32_t i = 0; i < pair->n_planes; i++) {
		const struct log_plane_print *mate = mate_of(diff, pair, i);
		uint64_t key = plane_key(diff, pair, i), at;
		double d;

		if (!mate || memcmp(mate, &pair->plane[0][i], sizeof *mate) == 0)
			continue;
		d = tolerance_distance(&pair->plane[0][i], mate, pool_of(diff, pair, 0)->plane[i].dtype, 0, &values,
				       &over);
		/* Where runs of one arm differ in NaN, Inf or raw bytes, no distance can be told. */
		if (!isfinite(d))
			continue;
		noise->largest = fmax(noise->largest, d);
		at = map_get(&noise->farthest, key);
		if (at == MAP_NONE) {
			at = noise->n_distances;
			if (!array_room(&noise->distance, &noise->room, noise->n_distances, sizeof *noise->distance) ||
			    !map_set(&noise->farthest, key, at))
				return false;
			noise->distance[noise->n_distances++] = 0;
		}
		noise->distance[at] = fmax(noise->distance[at], d);
	}
	return true;
}

int noise_measure(struct noise *noise, const struct diff *from, struct error *err)
{
	noise->known = true;
	return each_difference(from, take_noise, noise, err);
}

void noise_free(struct noise *noise)
{
	map_free(&noise->farthest);
	free(noise->distance);
}

static bool is_noise(const struct noise *noise, uint64_t key, double distance)
{
	uint64_t at = noise->known ? map_get(&noise->farthest, key) : MAP_NONE;

	return at != MAP_NONE && isfinite(distance) && distance <= noise->distance[at];
}

/* ---- the comparison's own pairs ---- */

static bool take_difference(void *arg, const struct diff *from, const struct pair *pair)
{
	struct diff *diff = arg;
	struct tolerance *t = &diff->tolerance;
	uint64_t over_before = t->over, key = (uint64_t)pair->at[0].process << 32 | pair->at[0].event;
	bool any = false, noise = true;

	for (uint32_t i = 0; i < pair->n_planes; i++) {
		const struct log_plane_print *mate = mate_of(from, pair, i);
		double d;

		if (mate && memcmp(mate, &pair->plane[0][i], sizeof *mate) == 0)
			continue;
		if (!mate)
			return true;
		d = tolerance_distance(&pair->plane[0][i], mate, pool_of(from, pair, 0)->plane[i].dtype, t->rtol,
				       &t->values, &t->over);
		t->farthest = fmax(t->farthest, d);
		noise = noise && is_noise(&diff->noise, plane_key(from, pair, i), d);
		any = true;
	}
	t->pairs++;
	diff->noise.pairs++;
	/* Where the roll-up differs and no plane does, a record is damaged. */
	if (any && t->asked && t->over == over_before) {
		t->within++;
		return map_set(&diff->near, key, NEAR_RTOL);
	}
	if (any && noise) {
		diff->noise.within++;
		return map_set(&diff->near, key, NEAR_NOISE);
	}
	return true;
}

int tolerance_judge(struct diff *diff, struct error *err)
{
	return each_difference(diff, take_difference, diff, err);
}
