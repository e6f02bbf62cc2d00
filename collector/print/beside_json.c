/* SPDX-License-Identifier: Apache-2.0
 *
 * beside_json.c: what stands beside a comparison, for programs: tolerance, noise, the third run, how the runs were started.
 * Its twin is beside_text.c.
 */
#include "print/compare.h"

json_t *tolerance_json(const struct diff *diff)
{
	const struct tolerance *t = &diff->tolerance;

	if (!t->asked)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rtol", json_number(t->rtol), "pairs",
			 json_count(t->pairs), "within", json_count(t->within), "values", json_count(t->values), "over",
			 json_count(t->over), "fraction_over",
			 t->values ? json_number((double)t->over / (double)t->values) : json_null(), "farthest",
			 t->values ? json_number(t->farthest) : json_null());
}

json_t *noise_json(const struct diff *diff)
{
	const struct noise *n = &diff->noise;

	if (!n->asked)
		return json_null();
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o}", "known", n->known, "run",
			 n->known ? json_string(n->side ? "b" : "a") : json_null(), "noisy",
			 n->known ? json_count(n->noisy) : json_null(), "farthest",
			 n->known ? json_number(n->largest) : json_null(), "pairs", json_count(n->pairs), "within",
			 json_count(n->within));
}

static json_t *verdict_json(const struct diff *diff)
{
	json_t *codes = json_array();

	for (size_t i = 0; i < diff->reasons.n; i++)
		json_array_append_new(codes, json_string(reason_rows[diff->reasons.list[i].code].code));
	return json_pack("{s:s, s:i, s:o, s:o}", "verdict", diff_verdict(diff), "exit_status", diff_exit_status(diff),
			 "differs", json_count(diff->summary.differs), "reasons", codes);
}

json_t *third_json(const struct diff *diff)
{
	enum third_conclusion conclusion = third_conclude(diff);

	if (!diff->third[0])
		return json_null();
	return json_pack("{s:o, s:[o, o], s:s, s:s}", "run", run_json(&diff->third[0]->run[1]), "against",
			 verdict_json(diff->third[0]), verdict_json(diff->third[1]), "conclusion",
			 third_name(conclusion), "text", third_text(conclusion));
}

json_t *configuration_json(const struct diff *diff)
{
	const char *note = diff_config_note(diff);
	json_t *differences = json_escaped(diff->config.differences);

	return json_pack("{s:o, s:o, s:o}", "differences", differences ? differences : json_array(), "single_variable",
			 diff->config.known ? json_boolean(json_array_size(diff->config.differences) <= 1)
					    : json_null(),
			 "note", note ? json_string(note) : json_null());
}
