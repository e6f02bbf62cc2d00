/* SPDX-License-Identifier: Apache-2.0
 *
 * check_json.c: one run's invariants for programs. Its twin is check_text.c.
 */
#include "print/compare.h"

#define CHECK_SCHEMA 1

static json_t *invariant_json(const struct check *check, unsigned i)
{
	const struct check_result *r = &check->result[i];
	const struct invariant_row *row = &invariant_rows[i];
	const char *state = r->broken ? "broken" : r->checked ? "holds" : "not_checked";
	json_t *examples = json_array();

	for (uint32_t k = 0; k < r->n_examples; k++) {
		const struct check_example *x = &r->example[k];
		const struct model_process *p = &check->model.process[x->process];

		json_array_append_new(
			examples, json_pack("{s:o, s:o, s:o}", "event", event_json(p, &p->event[x->event]), "against",
					    x->other == MODEL_NONE ? json_null() : event_json(p, &p->event[x->other]),
					    "callsite", callsite_json(p, p->event[x->event].callsite)));
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "name", row->name, "code", reason_rows[row->code].code,
			 "text", row->text, "state", state, "checked",
			 r->checked ? json_count(r->checked) : json_null(), "broken",
			 r->checked ? json_count(r->broken) : json_null(), "examples", examples);
}

json_t *check_json(const struct check *check)
{
	json_t *all = json_object(), *invariants = json_array();

	for (unsigned i = 0; i < INVARIANT_COUNT; i++)
		json_array_append_new(invariants, invariant_json(check, i));
	json_object_set_new(all, "schema_version", json_integer(CHECK_SCHEMA));
	json_object_set_new(all, "tool", json_string("slotprobe " SLOTPROBE_VERSION));
	json_object_set_new(all, "verdict", json_string(check_verdict(check)));
	json_object_set_new(all, "exit_status", json_integer(reasons_exit_status(&check->reasons)));
	json_object_set_new(all, "reasons", reasons_json(&check->reasons));
	json_object_set_new(all, "run", run_json(&check->model));
	json_object_set_new(all, "coverage", coverage_json(&check->model, 1));
	json_object_set_new(all, "invariants", invariants);
	json_object_set_new(all, "donations_measured", json_count(check->measured));
	json_object_set_new(all, "noise", json_count(check->noise));
	return all;
}
