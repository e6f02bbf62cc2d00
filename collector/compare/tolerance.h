/* SPDX-License-Identifier: Apache-2.0
 *
 * tolerance.h: how far apart are two fingerprints that are not equal? Samples, norms and abs-max stand in for the bytes.
 * What is near enough, or no farther apart than two runs of one arm, is set apart: it is never called equal.
 */
#ifndef COMPARE_TOLERANCE_H
#define COMPARE_TOLERANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "read/map.h"

struct diff;
struct log_plane_print;

/* The tails: how many values are farther apart than the tolerance, and the farthest. There is no mean. */
struct tolerance {
	bool asked;
	double rtol;
	uint64_t pairs, within; /* donations and restores that differ, and those of them that are near enough */
	uint64_t values, over;  /* of their differing planes: samples, norms, abs-maxima */
	double farthest;        /* the largest relative distance; infinite where NaN, Inf or raw bytes differ */
};

/* Of each plane, the farthest that two runs of one arm are apart. */
struct noise {
	bool asked, known;
	char why[160];       /* it is not known */
	unsigned side;       /* the run that it was measured against */
	struct map farthest; /* (rank, pool, plane) -> index in distance */
	double *distance;
	size_t n_distances, room;
	uint64_t pairs, within; /* that differ in the comparison, and those no farther apart than noise */
	uint64_t noisy;         /* that differ between the two runs of one arm */
	double largest;
};

/* Relative distance of two planes' facts; 0: none but the hash differs. *over: how many of *values exceed rtol. */
double tolerance_distance(const struct log_plane_print *a, const struct log_plane_print *b, uint32_t dtype, double rtol,
			  uint64_t *values, uint64_t *over);

/* Measures every pair that differs and marks in diff->near those that are within the tolerance or the noise. 0, or -1. */
int tolerance_judge(struct diff *diff, struct error *err);

/* Takes the distances of all pairs of `from`, two runs of one arm, as noise. 0, or -1. */
int noise_measure(struct noise *noise, const struct diff *from, struct error *err);
void noise_free(struct noise *noise);

enum near { NEAR_RTOL = 1, NEAR_NOISE = 2 };

#endif
