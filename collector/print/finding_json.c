/* SPDX-License-Identifier: Apache-2.0
 *
 * finding_json.c: findings and patterns of a comparison for programs.
 */
#include <stdlib.h>

#include "print/compare.h"

#define SLOTS_SHOWN 16

static const char *run_name(unsigned s)
{
	return s ? "b" : "a";
}

/* What the differences share, and the equal donations do not. */
json_t *patterns_json(const struct patterns *p)
{
	json_t *object = json_object(), *tensors = json_array();

	for (uint32_t i = 0; i < p->n_tensors; i++)
		json_array_append_new(tensors, json_text(p->tensor[i]));
	json_object_set_new(object, "planes",
			    p->planes ? json_pack("{s:O, s:i, s:i}", "tensors", tensors, "first_layer",
						  (int)p->first_layer, "last_layer", (int)p->last_layer)
				      : json_null());
	json_decref(tensors);
	json_object_set_new(object, "length",
			    p->modulus ? json_pack("{s:I, s:I}", "modulus", (json_int_t)p->modulus, "remainder",
						   (json_int_t)p->remainder)
				       : json_null());
	json_object_set_new(object, "padded_only", json_boolean(p->padded));
	json_object_set_new(object, "reused_only", json_boolean(p->reused));
	json_object_set_new(object, "restored_only", json_boolean(p->restored));
	json_object_set_new(object, "rank", json_text(p->rank));
	return object;
}

/* ---- events: the ones that the sentence names ---- */

static void add_event(json_t *events, const struct diff *diff, const char *part, unsigned s, struct align_ref at)
{
	const struct model_process *p = align_process(&diff->al.side[s], at);
	const struct model_event *e = align_event(&diff->al.side[s], at);
	json_t *event = event_json(p, e);

	json_object_set_new(event, "run", json_string(run_name(s)));
	json_object_set_new(event, "part", json_string(part));
	json_object_set_new(event, "callsite", callsite_json(p, e->callsite));
	json_array_append_new(events, event);
}

static json_t *events_json(const struct diff *diff, const struct finding *f)
{
	const struct diff_row *row = &diff->row[finding_example(f)];
	const struct explanation *x = row_explained(row, finding_kind(f));
	json_t *events = json_array();

	add_event(events, diff, "wrong", f->side, row->shown[f->side]);
	add_event(events, diff, "right", !f->side, row->shown[!f->side]);
	if (x && x->has_event)
		add_event(events, diff, "proof", x->event_side, x->event);
	if (f->has_origin)
		add_event(events, diff, "origin", f->side, f->origin);
	if (f->inherited)
		add_event(events, diff, "inherited", diff->suspect, f->heirloom);
	return events;
}

/* ---- planes and slots ---- */

static json_t *plane_range(const char *tensor, int32_t first, int32_t last)
{
	return json_pack("{s:o, s:i, s:i}", "tensor", json_text(tensor), "first_layer", (int)first, "last_layer",
			 (int)last);
}

static void widen(json_t *range, int32_t layer)
{
	json_t *first = json_object_get(range, "first_layer"), *last = json_object_get(range, "last_layer");

	if (layer < json_integer_value(first))
		json_integer_set(first, layer);
	if (layer > json_integer_value(last))
		json_integer_set(last, layer);
}

/* Of each tensor the layers that differ somewhere, in the order of their first meeting. */
static json_t *planes_json(const struct diff *diff, uint32_t index)
{
	json_t *by_name = json_object(), *list = json_array(), *range;
	const char *key;

	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		const struct diff_row *row = &diff->row[i];
		const struct model_pool *pool;

		if (row->finding != index || !row->n_planes)
			continue;
		pool = &align_process(&diff->al.side[0], row->shown[0])
				->pool[align_event(&diff->al.side[0], row->shown[0])->pool];
		for (uint32_t k = 0; k < row->n_planes; k++) {
			const struct model_plane *plane = &pool->plane[row->plane[k]];
			char name[512];

			text_safe(name, sizeof name, plane->tensor, sizeof plane->tensor);
			range = json_object_get(by_name, name);
			if (range)
				widen(range, plane->layer);
			else
				json_object_set_new(by_name, name,
						    plane_range(plane->tensor, plane->layer, plane->layer));
		}
	}
	json_object_foreach(by_name, key, range) json_array_append(list, range);
	json_decref(by_name);
	return list;
}

static json_t *slots_json(const struct diff *diff, uint32_t index)
{
	json_t *slots = json_array();

	for (uint32_t i = 0; i < diff->al.n_rows && json_array_size(slots) < SLOTS_SHOWN; i++) {
		const struct align_row *r = &diff->al.row[i];

		if (diff->row[i].finding == index)
			json_array_append_new(slots, json_pack("{s:o, s:o, s:o}", "rank",
							       json_text(diff->al.group[r->group].rank), "pool",
							       json_text(diff->al.group[r->group].pool), "slot",
							       slot_json(r->slot)));
	}
	return slots;
}

static json_t *kinds_json(const struct finding *f)
{
	json_t *kinds = json_object();

	for (unsigned k = 0; k < EXPLAIN_KIND_COUNT; k++) {
		if (f->rows_of[k])
			json_object_set_new(kinds, explain_kind_name((enum explain_kind)k),
					    json_integer(f->rows_of[k]));
	}
	return kinds;
}

/* A captured kernel that writes these planes and found another index than the slot's. */
static json_t *writer_json(const struct finding_writer *w)
{
	char *text = writer_sentence(w);
	json_t *object =
		json_pack("{s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:o, s:o}", "text", json_text(text),
			  "kernel", json_text(w->kernel), "graph", json_count(w->graph->number), "node",
			  (json_int_t)w->node, "graphs", (json_int_t)w->n_graphs, "region", json_text(w->region->name),
			  "offset", json_count(w->offset), "value", (json_int_t)w->value, "slot", (json_int_t)w->slot,
			  "slot_at", w->has_at ? json_count(w->at) : json_null(), "meant_in",
			  w->meant ? json_text(w->meant->name) : json_null(), "event", json_count(w->event));

	free(text);
	return object;
}

static json_t *finding_json(const struct diff *diff, uint32_t index)
{
	const struct finding *f = &diff->finding[index];
	char *sentence = finding_sentence(diff, f);
	json_t *object =
		json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "kind", explain_kind_name(finding_kind(f)), "cause",
			  finding_cause_name(f->cause), "usual_cause", finding_cause_text(f->cause), "sentence",
			  json_text(sentence), "n_slots", json_count(f->n_slots), "n_rows", json_integer(f->n_rows));

	free(sentence);
	json_object_set_new(object, "run", json_string(run_name(f->side)));
	json_object_set_new(object, "kinds", kinds_json(f));
	json_object_set_new(object, "slots", slots_json(diff, index));
	json_object_set_new(object, "events", events_json(diff, f));
	json_object_set_new(object, "planes", planes_json(diff, index));
	json_object_set_new(object, "patterns", patterns_json(&f->patterns));
	json_object_set_new(object, "writer", f->has_writer ? writer_json(&f->writer) : json_null());
	return object;
}

json_t *findings_json(const struct diff *diff)
{
	json_t *findings = json_array();

	for (uint32_t i = 0; i < diff->n_findings; i++)
		json_array_append_new(findings, finding_json(diff, i));
	return findings;
}
