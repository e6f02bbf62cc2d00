/* SPDX-License-Identifier: Apache-2.0
 *
 * diff_json.c: a comparison for programs. Its twin is diff_text.c.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/coverage.h"
#include "print/compare.h"

#define DIFF_SCHEMA 1

static const struct model_process *process_of(const struct diff *diff, unsigned s, struct align_ref at)
{
	return align_process(&diff->al.side[s], at);
}

static const char *run_name(unsigned s)
{
	return s ? "b" : "a";
}

static json_t *explanation_json(const struct diff *diff, const struct explanation *x)
{
	json_t *object = json_pack("{s:s, s:s}", "kind", explain_kind_name(x->kind), "run", run_name(x->side));
	json_t *event;

	if (!x->has_event) {
		json_object_set_new(object, "event", json_null());
		return object;
	}
	event = event_json(process_of(diff, x->event_side, x->event),
			   align_event(&diff->al.side[x->event_side], x->event));
	json_object_set_new(event, "run", json_string(run_name(x->event_side)));
	json_object_set_new(object, "event", event);
	json_object_set_new(object, "found_in_slot", slot_json(x->slot));
	json_object_set_new(object, "watched", json_boolean(x->role == LOG_ROLE_WATCHED));
	if (x->kind == EXPLAIN_STALE)
		json_object_set_new(object, "never_written_since_alloc", json_boolean(x->since_alloc));
	return object;
}

static json_t *planes_json(const struct diff *diff, const struct diff_row *row)
{
	json_t *array = json_array();
	const struct model_pool *pool;

	if (!row->n_planes)
		return array;
	pool = &process_of(diff, 0, row->shown[0])->pool[align_event(&diff->al.side[0], row->shown[0])->pool];
	for (uint32_t i = 0; i < row->n_planes; i++)
		json_array_append_new(array,
				      json_pack("{s:o, s:i}", "tensor", json_text(pool->plane[row->plane[i]].tensor),
						"layer", (int)pool->plane[row->plane[i]].layer));
	return array;
}

/* The pairs [A, B] of one row: null where that side measured nothing. */
static void pairs_json(json_t *object, const struct diff *diff, const struct diff_row *row)
{
	static const char *const name[] = { "claimed_len", "absmax", "nan", "inf", "hash", "event" };
	json_t *pair[6];

	for (unsigned i = 0; i < 6; i++)
		pair[i] = json_array();
	for (unsigned s = 0; s < 2; s++) {
		const struct model_event *e = row->has[s] ? align_event(&diff->al.side[s], row->shown[s]) : NULL;
		const struct model_process *p = e ? process_of(diff, s, row->shown[s]) : NULL;
		const struct model_print *print = e && model_measured(p, e) ? model_subject(p, e) : NULL;

		json_array_append_new(pair[0], e ? json_integer(e->claimed_len) : json_null());
		json_array_append_new(pair[1], print ? json_number(print->absmax) : json_null());
		json_array_append_new(pair[2], print ? json_count(print->nan) : json_null());
		json_array_append_new(pair[3], print ? json_count(print->inf) : json_null());
		json_array_append_new(pair[4], print ? json_hex(print->rollup) : json_null());
		json_array_append_new(pair[5], e ? event_json(p, e) : json_null());
	}
	for (unsigned i = 0; i < 6; i++)
		json_object_set_new(object, name[i], pair[i]);
}

/* What a row that is within_tolerance is within. */
static json_t *near_json(const struct diff *diff, const struct diff_row *row)
{
	if (row->verdict != ROW_WITHIN_TOLERANCE || !row->has[0])
		return json_null();
	return json_string(map_get(&diff->near, (uint64_t)row->shown[0].process << 32 | row->shown[0].event) ==
					   NEAR_NOISE
				   ? "noise"
				   : "tolerance");
}

static json_t *row_json(const struct diff *diff, uint32_t index)
{
	const struct align_row *r = &diff->al.row[index];
	const struct diff_row *row = &diff->row[index];
	const struct align_group *group = &diff->al.group[r->group];
	json_t *explain = json_array(), *object;

	for (uint32_t i = 0; i < row->n_explain; i++)
		json_array_append_new(explain, explanation_json(diff, &row->explain[i]));
	object = json_pack("{s:o, s:o, s:o, s:s, s:o, s:[o, o], s:o, s:o, s:b}", "rank", json_text(group->rank), "pool",
			   json_text(group->pool), "slot", slot_json(r->slot), "verdict",
			   row_verdict_name(row->verdict), "occurrences", json_count(row->paired), "donations",
			   json_count(r->side[0].donations), json_count(r->side[1].donations), "occurrence",
			   row->has[0] || row->has[1] ? json_count(row->number) : json_null(), "shown",
			   row->has[0] || row->has[1] ? json_string(row->shows_restore ? "restore" : "donate")
						      : json_null(),
			   "allowed_missing", row->allowed);
	pairs_json(object, diff, row);
	json_object_set_new(object, "planes_differing", planes_json(diff, row));
	json_object_set_new(object, "explain", explain);
	json_object_set_new(object, "near", near_json(diff, row));
	json_object_set_new(object, "finding", row->finding == ALIGN_NONE ? json_null() : json_integer(row->finding));
	return object;
}

static json_t *first_json(const struct diff *diff)
{
	const struct align_side *side = &diff->al.side[diff->suspect];
	const struct model_process *p;
	const struct model_event *e;
	const struct model_step *step;
	struct align_ref at;
	json_t *object;

	if (!diff->has_first)
		return json_null();
	at = diff->row[diff->first_row].shown[diff->suspect];
	p = align_process(side, at);
	e = align_event(side, at);
	object = event_json(p, e);
	json_object_set_new(object, "run", json_string(run_name(diff->suspect)));
	json_object_set_new(object, "occurrence", json_count(diff->row[diff->first_row].number));
	json_object_set_new(object, "callsite", callsite_json(p, e->callsite));
	step = model_step(p, e->step);
	json_object_set_new(object, "batch", step ? json_integer(step->batch) : json_null());
	json_object_set_new(object, "padded", step ? json_integer(step->padded) : json_null());
	if (diff->has_last_equal) {
		at = side->occurrence[diff->last_equal].at;
		json_object_set_new(object, "last_equal", event_json(align_process(side, at), align_event(side, at)));
	} else {
		json_object_set_new(object, "last_equal", json_null());
	}
	return object;
}

static json_t *hints_json(const struct diff *diff)
{
	json_t *hints = json_array();
	char text[DIFF_HINT_MAX];

	if (diff_hint(diff, text, sizeof text))
		json_array_append_new(hints, json_text(text));
	return hints;
}

static json_t *silent_pools_json(const struct diff *diff)
{
	json_t *pools = json_array();

	for (uint32_t i = 0; i < diff->al.n_groups; i++) {
		if (diff_pool_is_silent(diff, i))
			json_array_append_new(pools, json_pack("{s:o, s:o}", "rank", json_text(diff->al.group[i].rank),
							       "pool", json_text(diff->al.group[i].pool)));
	}
	return pools;
}

/* Donations that were attempted and left out on purpose; null: no page tells. */
static json_t *not_recorded_json(const struct diff *diff)
{
	json_t *runs = json_array();

	for (unsigned s = 0; s < 2; s++) {
		struct coverage_sum sum = coverage_sum(&diff->run[s].run, "core.donate");

		json_array_append_new(
			runs, sum.processes ? json_pack("{s:o, s:o, s:o}", "attempted", json_count(sum.attempted),
							"paused", json_count(sum.outcome[CTR_FILTERED_PAUSED]),
							"adapter", json_count(sum.outcome[CTR_FILTERED_ADAPTER]))
					    : json_null());
	}
	return runs;
}

/* Ranks that had several lives in a run: how often their pools were there. */
static json_t *lives_json(const struct alignment *al)
{
	json_t *lives = json_array();

	for (uint32_t i = 0; i < al->n_groups; i++) {
		const struct align_group *g = &al->group[i];

		if (g->first_life == i && (g->lives[0] > 1 || g->lives[1] > 1))
			json_array_append_new(lives, json_pack("{s:o, s:o, s:[i, i]}", "rank", json_text(g->rank),
							       "pool", json_text(g->pool), "lives", (int)g->lives[0],
							       (int)g->lives[1]));
	}
	return lives;
}

/* Which donations lined up, what proves it, why the rest did not, and which way would line up more. */
static json_t *alignment_json(const struct alignment *al)
{
	enum align_mode proposal = align_proposal(al);
	json_t *tried = json_array();

	for (int mode = ALIGN_SLOT; mode <= ALIGN_ORDER; mode++) {
		if (al->count[mode].tried)
			json_array_append_new(tried, json_pack("{s:s, s:o, s:o}", "mode",
							       align_mode_name((enum align_mode)mode), "aligned",
							       json_count(al->count[mode].aligned), "unaligned",
							       json_count(al->count[mode].unaligned)));
	}
	return json_pack("{s:s, s:o, s:o, s:{s:o, s:o}, s:{s:o, s:[o, o], s:[o, o], s:[o, o]}, s:o, s:o, s:o, s:o}",
			 "mode", align_mode_name(al->mode), "aligned", json_count(al->aligned), "unaligned",
			 json_count(al->count[al->mode].unaligned), "proof", "key_and_length", json_count(al->by_key),
			 "length", json_count(al->aligned - al->by_key), "rest", "other_claim",
			 json_count(al->mismatched), "alone", json_count(al->alone[0]), json_count(al->alone[1]),
			 "without_key", json_count(al->without_key[0]), json_count(al->without_key[1]),
			 "restores_alone", json_count(al->restores_alone[0]), json_count(al->restores_alone[1]),
			 "across_lives", json_count(al->across_lives), "lives", lives_json(al), "tried", tried,
			 "proposal", proposal == ALIGN_AUTO ? json_null() : json_string(align_mode_name(proposal)));
}

json_t *diff_json(const struct diff *diff)
{
	json_t *all = json_object(), *slots = json_array();

	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		if (diff_row_speaks(diff, i))
			json_array_append_new(slots, row_json(diff, i));
	}
	json_object_set_new(all, "schema_version", json_integer(DIFF_SCHEMA));
	json_object_set_new(all, "tool", json_string("slotprobe " SLOTPROBE_VERSION));
	json_object_set_new(all, "verdict", json_string(diff_verdict(diff)));
	json_object_set_new(all, "exit_status", json_integer(diff_exit_status(diff)));
	json_object_set_new(all, "reasons", reasons_json(&diff->reasons));
	json_object_set_new(all, "alignment", alignment_json(&diff->al));
	json_object_set_new(all, "runs", json_pack("[o, o]", run_json(&diff->run[0]), run_json(&diff->run[1])));
	json_object_set_new(all, "coverage", coverage_json(diff->run, 2));
	json_object_set_new(all, "summary",
			    json_pack("{s:o, s:o, s:o, s:o}", "slots", json_count(diff->summary.slots), "equal",
				      json_count(diff->summary.equal), "differs", json_count(diff->summary.differs),
				      "not_proven", json_count(diff->summary.not_proven)));
	json_object_set_new(all, "first_divergence", first_json(diff));
	json_object_set_new(all, "findings", findings_json(diff));
	json_object_set_new(all, "patterns", patterns_json(&diff->patterns));
	json_object_set_new(all, "tolerance", tolerance_json(diff));
	json_object_set_new(all, "noise", noise_json(diff));
	json_object_set_new(all, "third", third_json(diff));
	json_object_set_new(all, "configuration", configuration_json(diff));
	json_object_set_new(all, "hints", hints_json(diff));
	json_object_set_new(all, "not_recorded", not_recorded_json(diff));
	json_object_set_new(all, "pools_without_donations", silent_pools_json(diff));
	json_object_set_new(all, "slots", slots);
	return all;
}
