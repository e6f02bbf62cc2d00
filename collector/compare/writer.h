/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.h: which captured kernel writes a slot's planes, and from which region it takes its indices.
 */
#ifndef COMPARE_WRITER_H
#define COMPARE_WRITER_H

#include "compare/align.h"

struct diff;
struct finding;

struct finding_writer {
	const struct model_graph *graph;
	uint32_t node, n_graphs; /* in how many graphs a kernel of that name does so */
	const char *kernel;
	const struct model_region *region; /* that the kernel is given an address of */
	uint64_t offset;                   /* bytes into it */
	int64_t slot;                      /* that the state was handed over in */
	uint64_t event, of; /* whose slot was read when the regions held this; the event that is explained */
	bool has_at;
	int64_t value;                    /* in the region at that offset, when the slot was read */
	uint64_t at;                      /* bytes into the region where the slot's number stood instead */
	const struct model_region *meant; /* another of its name in which the slot's number stood; NULL */
};

/* Looks for it in the run that is thought wrong. False: no captured kernel that writes there reads a region that held anything else
 * than the slot's own number. */
bool find_writer(const struct diff *diff, const struct finding *finding, struct finding_writer *writer);

#endif
