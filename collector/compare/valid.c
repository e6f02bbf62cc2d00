/* SPDX-License-Identifier: Apache-2.0
 *
 * valid.c: is this a comparison at all: the arms' promises, layouts, ranks, workloads, launches, probes.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/coverage.h"
#include "compare/judge.h"
#include "print/print.h"

static void judge_arm(struct diff *diff, unsigned s)
{
	const char *arm = diff_arm(diff, s);
	uint64_t launches;

	if (!arm) {
		reasons_add(&diff->reasons, REASON_arm_unknown, "run %c", "AB"[s]);
		return;
	}
	if (arm_promise(arm) == ARM_PROMISES_NOTHING)
		return;
	/* Where no page could be read nothing is known, and a page that is missing is a reason already. */
	if (!coverage_plain(&diff->run[s], "pool_graph_launches", &launches))
		return;
	if (arm_promise(arm) == ARM_PROMISES_LAUNCHES && !launches)
		reasons_add(&diff->reasons, REASON_switch_had_no_effect,
			    "run %c is %s, and no graph that touches a pool was launched", "AB"[s], arm);
	if (arm_promise(arm) == ARM_PROMISES_NONE && launches)
		reasons_add(&diff->reasons, REASON_switch_had_no_effect,
			    "run %c is %s, and graphs that touch a pool were launched %llu times", "AB"[s], arm,
			    (unsigned long long)launches);
}

static void judge_layouts(struct diff *diff)
{
	for (size_t i = 0; i < diff->al.n_groups; i++) {
		const struct align_group *group = &diff->al.group[i];

		for (unsigned s = 0; s < 2; s++) {
			if (!group->steady[s])
				reasons_add(&diff->reasons, REASON_layout_mismatch,
					    "%s/%s was registered again with another layout in run %c", group->rank,
					    group->pool, "AB"[s]);
		}
		if (!group->layout[0] || !group->layout[1] || group->same_layout || !group->steady[0] ||
		    !group->steady[1])
			continue;
		/* A layout that was lost is no other layout: the damage is a reason already. */
		if (group->layout[0]->n_known != group->layout[0]->n_planes ||
		    group->layout[1]->n_known != group->layout[1]->n_planes)
			continue;
		reasons_add(&diff->reasons, REASON_layout_mismatch,
			    "%s/%s: %lld slots of %u planes, %s each, against %lld slots of %u planes, %s each",
			    group->rank, group->pool, (long long)group->layout[0]->n_slots, group->layout[0]->n_planes,
			    amount_bytes(group->layout[0]->slot_bytes), (long long)group->layout[1]->n_slots,
			    group->layout[1]->n_planes, amount_bytes(group->layout[1]->slot_bytes));
	}
}

/* A pool without its like is a missing rank when the whole rank is not there. */
static void judge_ranks(struct diff *diff)
{
	for (size_t i = 0; i < diff->al.n_groups; i++) {
		const struct align_group *group = &diff->al.group[i];
		unsigned absent = group->layout[0] ? 1 : 0;
		bool rank_there = false, any_there = false;

		if (group->layout[0] && group->layout[1])
			continue;
		for (size_t k = 0; k < diff->al.n_groups; k++) {
			if (!diff->al.group[k].layout[absent])
				continue;
			any_there = true;
			rank_there |= strcmp(diff->al.group[k].rank, group->rank) == 0;
		}
		if (!any_there)
			continue; /* the run has no pool at all: it says probe_never_fired or never_loaded */
		if (!rank_there)
			reasons_add(&diff->reasons, REASON_rank_missing, "%s is not in run %c", group->rank,
				    "AB"[absent]);
		else
			reasons_add(&diff->reasons, REASON_layout_mismatch, "pool %s of %s is not in run %c",
				    group->pool, group->rank, "AB"[absent]);
	}
}

static void judge_common_slots(struct diff *diff)
{
	if (!diff->al.side[0].donations || !diff->al.side[1].donations)
		return;
	for (size_t i = 0; i < diff->al.n_rows; i++) {
		if (diff->al.row[i].side[0].donations && diff->al.row[i].side[1].donations)
			return;
	}
	if (!diff->al.aligned)
		reasons_add(&diff->reasons, REASON_no_common_slots, "run A donated %llu times, run B %llu times",
			    (unsigned long long)diff->al.side[0].donations,
			    (unsigned long long)diff->al.side[1].donations);
}

/* Counts how many (key, length) claims of both runs find each other, whatever the slot. */
static bool count_shared_claims(const struct diff *diff, uint64_t *shared)
{
	struct map waiting = { NULL, 0, 0 };
	bool fine = true;

	*shared = 0;
	for (unsigned s = 0; s < 2; s++) {
		const struct align_side *side = &diff->al.side[s];

		for (size_t i = 0; fine && i < side->n_occurrences; i++) {
			const struct model_event *e = align_event(side, side->occurrence[i].at);
			uint64_t key, n;

			if (!e)
				continue;
			key = log_mix64(log_mix64(e->key + 1) + (uint64_t)e->claimed_len);
			n = map_get(&waiting, key);
			n = n == MAP_NONE ? 0 : n;
			if (s == 0)
				fine = map_set(&waiting, key, n + 1);
			else if (n)
				fine = map_set(&waiting, key, n - 1);
			*shared += s && n;
		}
	}
	map_free(&waiting);
	return fine;
}

/* Less than half of what the smaller run claims is claimed in the other: these are not two recordings of one thing. */
static int judge_workload(struct diff *diff)
{
	uint64_t a = diff->al.side[0].donations, b = diff->al.side[1].donations, shared;

	if (!a || !b)
		return 0;
	if (!count_shared_claims(diff, &shared))
		return -1;
	if (shared * 2 < (a < b ? a : b))
		reasons_add(&diff->reasons, REASON_workload_mismatch,
			    "of %llu and %llu donations only %llu claim the same key and length", (unsigned long long)a,
			    (unsigned long long)b, (unsigned long long)shared);
	return 0;
}

/* In a run that promises launches, something of what was compared must have been written by one. */
static void judge_launches(struct diff *diff)
{
	for (unsigned s = 0; s < 2; s++) {
		bool compared = false, launched = false;

		if (arm_promise(diff_arm(diff, s)) != ARM_PROMISES_LAUNCHES)
			continue;
		for (size_t i = 0; i < diff->al.side[s].n_occurrences; i++) {
			const struct align_occurrence *o = &diff->al.side[s].occurrence[i];

			if (o->mate == ALIGN_NONE || o->at.event == ALIGN_NONE)
				continue;
			compared = true;
			launched |= o->launched;
		}
		if (compared && !launched)
			reasons_add(&diff->reasons, REASON_no_launch_before_donation,
				    "run %c (%s): %llu donations compared", "AB"[s], diff_arm(diff, s),
				    (unsigned long long)diff -> measured);
	}
}

/* What fired on one side must have fired on the other. Graphs are the arm's affair, watched slots explain only. */
static void judge_probes(struct diff *diff)
{
	size_t n;
	const char **probe = coverage_probes(diff->run, 2, &n);

	for (size_t i = 0; i < n; i++) {
		uint64_t fired[2];

		if (strncmp(probe[i], "core.graph_", 11) == 0 || strcmp(probe[i], "core.watch") == 0)
			continue;
		for (unsigned s = 0; s < 2; s++)
			fired[s] = coverage_sum(&diff->run[s], probe[i]).attempted;
		for (unsigned s = 0; s < 2; s++) {
			/* core.donate is said of each run by itself */
			if (!fired[s] && fired[!s] && strcmp(probe[i], "core.donate") != 0 && diff->run[s].n_processes)
				reasons_add(&diff->reasons, REASON_probe_never_fired,
					    "%s in run %c, and %llu times in run %c", probe[i], "AB"[s],
					    (unsigned long long)fired[!s], "AB"[!s]);
		}
	}
	free(probe);
}

int judge_validity(struct diff *diff)
{
	for (unsigned s = 0; s < 2; s++)
		judge_arm(diff, s);
	judge_layouts(diff);
	if (judge_workload(diff) != 0)
		return -1;
	judge_common_slots(diff);
	return 0;
}

void judge_sides(struct diff *diff)
{
	judge_probes(diff);
	judge_ranks(diff);
	judge_launches(diff);
}
