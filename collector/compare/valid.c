/* SPDX-License-Identifier: Apache-2.0
 *
 * valid.c: is this a comparison at all: the arms' promises, layouts, ranks, workloads, launches, probes.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/arm.h"
#include "compare/coverage.h"
#include "compare/judge.h"
#include "compare/lives.h"
#include "print/print.h"
#include "trouble.h"

/* What an arm promises each rank that has a pool must have kept. */
static void judge_promise(struct diff *diff, unsigned s, const struct model_process *p)
{
	const char *arm = diff_arm(diff, s);
	const struct ctr_values *row = p->from->counters ? ctr_find(p->from->counters, "pool_graph_launches") : NULL;

	/* Without a page nothing is known, and a page that is missing is a reason already. */
	if (!row)
		return;
	if (arm_promise(arm) == ARM_PROMISES_LAUNCHES && p->n_pools && !row->outcome[0])
		reasons_add(&diff->reasons, REASON_switch_had_no_effect,
			    "run %c is %s, and rank %s (process %llu) launched no graph that touches a pool", "AB"[s],
			    arm, p -> rank, (unsigned long long)p -> from -> pid);
	if (arm_promise(arm) == ARM_PROMISES_NONE && row->outcome[0])
		reasons_add(&diff->reasons, REASON_switch_had_no_effect,
			    "run %c is %s, and rank %s (process %llu) launched graphs that touch a pool %llu times",
			    "AB"[s], arm, p -> rank, (unsigned long long)p -> from -> pid,
			    (unsigned long long)row -> outcome[0]);
}

static void judge_arm(struct diff *diff, unsigned s)
{
	const char *arm = diff_arm(diff, s), *like = arm ? arm_near_miss(arm) : NULL;
	size_t before = diff->reasons.seen[REASON_switch_had_no_effect];
	uint64_t launches;

	if (!arm) {
		reasons_add(&diff->reasons, REASON_arm_unknown, "run %c", "AB"[s]);
		return;
	}
	if (like)
		reasons_add(&diff->reasons, REASON_arm_unknown, "run %c is '%s', which is nearly %s and is not",
			    "AB"[s], arm, like);
	if (arm_promise(arm) == ARM_PROMISES_NOTHING)
		return;
	for (size_t i = 0; i < diff->run[s].n_processes; i++)
		judge_promise(diff, s, &diff->run[s].process[i]);
	/* Where there is no pool at all, no rank is named. */
	if (arm_promise(arm) == ARM_PROMISES_LAUNCHES && diff->reasons.seen[REASON_switch_had_no_effect] == before &&
	    coverage_plain(&diff->run[s], "pool_graph_launches", &launches) && !launches)
		reasons_add(&diff->reasons, REASON_switch_had_no_effect,
			    "run %c is %s, and no graph that touches a pool was launched", "AB"[s], arm);
}

/* A copy of a recording says nothing that the recording does not. */
static bool is_same_process(const struct run_process *a, const struct run_process *b)
{
	if (a->pid != b->pid || a->starttime != b->starttime || a->life != b->life || strcmp(a->host, b->host) != 0)
		return false;
	/* Pids and start times begin anew with each boot. */
	return !a->counters || !b->counters || a->counters->started_real_ns == b->counters->started_real_ns;
}

static void judge_copies(struct diff *diff)
{
	for (size_t i = 0; i < diff->run[0].n_processes; i++) {
		const struct run_process *p = diff->run[0].process[i].from;

		for (size_t k = 0; k < diff->run[1].n_processes; k++) {
			if (is_same_process(p, diff->run[1].process[k].from))
				reasons_add(&diff->reasons, REASON_same_process,
					    "process %llu of %s, with one start time", (unsigned long long)p->pid,
					    p->host);
		}
	}
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

/* One run had a rank more often than the other: what that life donated has no like, unless its donations pair with another's. */
static void judge_lone_life(struct diff *diff, uint32_t index, unsigned absent)
{
	const struct align_group *g = &diff->al.group[index];
	const char *why =
		g->kin != index ? "each life hands its slots out anew, and --align key pairs across lives"
		: g->beside && !g->says_rank
			? "processes that say no rank and ran side by side may hold different parts of a model"
			: "their layouts are not the same";

	if (g->kin != index && lives_mix(&diff->al, index))
		return;
	reasons_add(&diff->reasons, REASON_rank_missing,
		    "%s/%s is not in run %c, where that rank had %s against %u: %s", g->rank, g->pool, "AB"[absent],
		    amount_of(lives_count(&diff->al, index, absent), "life", "lives"),
		    lives_count(&diff->al, index, !absent), why);
}

/* A pool without its like is a missing rank when the whole rank is not there. */
static void judge_ranks(struct diff *diff)
{
	for (uint32_t i = 0; i < diff->al.n_groups; i++) {
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
		if (lives_count(&diff->al, i, absent))
			judge_lone_life(diff, i, absent);
		else if (!rank_there)
			reasons_add(&diff->reasons, REASON_rank_missing, "%s is not in run %c", group->rank,
				    "AB"[absent]);
		else
			reasons_add(&diff->reasons, REASON_layout_mismatch, "pool %s of %s is not in run %c",
				    group->pool, group->rank, "AB"[absent]);
	}
}

/* How many ranks a run says that an axis has; 0: it does not say. */
static int32_t count_of_axis(const struct model *model, const char *name)
{
	int32_t count = 0;

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct model_process *p = &model->process[i];

		for (uint32_t a = 0; a < p->n_axes; a++) {
			if (strcmp(p->axis[a].name, name) == 0 && p->axis[a].count > count)
				count = p->axis[a].count;
		}
	}
	return count;
}

/* Each axis of run s against the other run's: each is said once. */
static void judge_axes(struct diff *diff, unsigned s)
{
	struct map said = { NULL, 0, 0 };

	for (size_t i = 0; i < diff->run[s].n_processes; i++) {
		const struct model_process *p = &diff->run[s].process[i];

		for (uint32_t a = 0; a < p->n_axes; a++) {
			const char *name = p->axis[a].name;
			uint64_t key = log_key_hash(name, strlen(name));
			int32_t n[2] = { count_of_axis(&diff->run[0], name), count_of_axis(&diff->run[1], name) };

			if (n[0] == n[1] || map_get(&said, key) != MAP_NONE || (s && n[0]))
				continue;
			if (!map_set(&said, key, 1))
				trouble_memory();
			if (n[0] && n[1])
				reasons_add(&diff->reasons, REASON_layout_mismatch,
					    "axis %s has %d ranks in run A and %d in run B", safe(name), n[0], n[1]);
			else
				reasons_add(&diff->reasons, REASON_rank_missing,
					    "how many ranks axis %s has only run %c says: %d", safe(name),
					    n[0] ? 'A' : 'B', n[0] ? n[0] : n[1]);
		}
	}
	map_free(&said);
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
			uint64_t key, n, here;

			if (!e)
				continue;
			key = log_mix64(log_mix64(e->key + 1) + (uint64_t)e->claimed_len);
			n = map_get(&waiting, key);
			n = n == MAP_NONE ? 0 : n;
			here = align_weight(side, side->occurrence[i].at);
			if (s == 0) {
				fine = map_set(&waiting, key, n + here);
				continue;
			}
			here = here < n ? here : n;
			if (here)
				fine = map_set(&waiting, key, n - here);
			*shared += here;
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

/* In a run that promises launches, something of what was compared of each rank must have been written by one. */
static bool judge_launches_of(struct diff *diff, unsigned s)
{
	const struct align_side *side = &diff->al.side[s];
	struct {
		uint64_t compared, launched;
	} *of = calloc(diff->run[s].n_processes + 1, sizeof *of);
	bool fine = of != NULL;

	for (size_t i = 0; of && i < side->n_occurrences; i++) {
		const struct align_occurrence *o = &side->occurrence[i];
		const struct model_event *e;

		if (o->mate == ALIGN_NONE || o->at.event == ALIGN_NONE)
			continue;
		e = align_event(side, o->at);
		of[o->at.process].compared += align_weight(side, o->at);
		of[o->at.process].launched +=
			e->fold ? model_fold(align_process(side, o->at), e).launched : o->launched;
	}
	for (size_t i = 0; of && i < diff->run[s].n_processes; i++) {
		if (of[i].compared && !of[i].launched)
			reasons_add(&diff->reasons, REASON_no_launch_before_donation,
				    "run %c (%s), rank %s: %llu donations compared", "AB"[s], diff_arm(diff, s),
				    diff -> run[s].process[i].rank, (unsigned long long)of[i].compared);
	}
	free(of);
	return fine;
}

static bool judge_launches(struct diff *diff)
{
	for (unsigned s = 0; s < 2; s++) {
		if (arm_promise(diff_arm(diff, s)) == ARM_PROMISES_LAUNCHES && !judge_launches_of(diff, s))
			return false;
	}
	return true;
}

/* A pool that only one run donated from. Slots that may be missing do not count; a pool that is not there is a missing rank
 * or another layout. */
static void judge_silent_pools(struct diff *diff)
{
	uint32_t said = ALIGN_NONE;

	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		const struct align_row *r = &diff->al.row[i];
		const struct align_group *g = &diff->al.group[r->group];
		unsigned silent = g->donations[0] ? 1 : 0;

		/* The rows of one pool follow each other. */
		if (diff->row[i].allowed || r->group == said || !g->layout[0] || !g->layout[1])
			continue;
		if (g->donations[silent] || !r->side[!silent].donations || !diff->al.side[silent].donations)
			continue;
		if (lives_mix(&diff->al, r->group) && diff->al.group[g->kin].of_kin[silent])
			continue;
		said = r->group;
		reasons_add(&diff->reasons, REASON_probe_never_fired,
			    "core.donate of pool %s/%s in run %c; run %c donated from it %llu times", g->rank, g->pool,
			    "AB"[silent], "AB"[!silent], (unsigned long long)g -> donations[!silent]);
	}
}

/* What was left out was left out alike. Padded rows follow the batch, which the arms may pad differently. */
static void judge_filtered(struct diff *diff)
{
	static const enum ctr_outcome outcomes[] = { CTR_FILTERED_PAUSED, CTR_FILTERED_ADAPTER };
	static const char *const probes[] = { "core.donate", "core.restore" };

	for (size_t i = 0; i < 4; i++) {
		enum ctr_outcome outcome = outcomes[i % 2];
		struct coverage_sum a = coverage_sum(&diff->run[0].run, probes[i / 2]);
		struct coverage_sum b = coverage_sum(&diff->run[1].run, probes[i / 2]);

		if (a.outcome[outcome] != b.outcome[outcome])
			reasons_add(&diff->reasons, REASON_filtered_differs, "%s (%s): %llu in run A, %llu in run B",
				    probes[i / 2], ctr_outcome_label(outcome), (unsigned long long)a.outcome[outcome],
				    (unsigned long long)b.outcome[outcome]);
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
			fired[s] = coverage_sum(&diff->run[s].run, probe[i]).attempted;
		for (unsigned s = 0; s < 2; s++) {
			/* core.donate is said of each run by itself */
			if (!fired[s] && fired[!s] && strcmp(probe[i], "core.donate") != 0 && diff->run[s].n_processes)
				reasons_add(&diff->reasons, REASON_probe_never_fired, "%s: 0 in run %c, %llu in run %c",
					    probe[i], "AB"[s], (unsigned long long)fired[!s], "AB"[!s]);
		}
	}
	free(probe);
}

int judge_validity(struct diff *diff)
{
	judge_copies(diff);
	for (unsigned s = 0; s < 2; s++)
		judge_arm(diff, s);
	judge_layouts(diff);
	for (unsigned s = 0; s < 2; s++)
		judge_axes(diff, s);
	if (judge_workload(diff) != 0)
		return -1;
	judge_common_slots(diff);
	return 0;
}

bool judge_sides(struct diff *diff)
{
	judge_probes(diff);
	judge_filtered(diff);
	judge_silent_pools(diff);
	judge_ranks(diff);
	return judge_launches(diff);
}
