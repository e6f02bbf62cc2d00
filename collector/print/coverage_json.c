/* SPDX-License-Identifier: Apache-2.0
 *
 * coverage_json.c: the account of the counters, runs and events as JSON. Its twin is coverage_text.c.
 */
#include <stdlib.h>

#include "compare/coverage.h"
#include "print/compare.h"

static json_t *group_json(const struct coverage_sum *sum, enum ctr_group group)
{
	json_t *object = json_object();

	for (unsigned o = 0; o < CTR_OUTCOME_COUNT; o++) {
		if (ctr_outcome_group(o) == group)
			json_object_set_new(object, ctr_outcome_label(o), json_count(sum->outcome[o]));
	}
	return object;
}

static json_t *sum_json(const struct coverage_sum *sum)
{
	/* A probe that no process registered was not counted: that is not 0. */
	if (!sum->processes)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "attempted", json_count(sum->attempted), "committed",
			 json_count(sum->group[CTR_IN_COMMITTED]), "filtered", json_count(sum->group[CTR_IN_FILTERED]),
			 "skipped", group_json(sum, CTR_IN_SKIPPED), "dropped", group_json(sum, CTR_IN_DROPPED),
			 "errors", json_count(sum->group[CTR_IN_ERRORS]), "in_flight", json_count(sum->in_flight));
}

json_t *coverage_json(const struct model *models, size_t n_models)
{
	json_t *object = json_object();
	size_t n;
	const char **probe = coverage_probes(models, n_models, &n);

	for (size_t i = 0; i < n; i++) {
		json_t *runs = json_array();

		for (size_t m = 0; m < n_models; m++) {
			struct coverage_sum sum = coverage_sum(&models[m].run, probe[i]);
			json_array_append_new(runs, sum_json(&sum));
		}
		json_object_set_new(object, safe(probe[i]), runs);
	}
	free(probe);
	return object;
}

static json_t *attempted_json(const struct model *model, const char *probe, bool without_errors)
{
	struct coverage_sum sum = coverage_sum(&model->run, probe);

	if (!sum.processes)
		return json_null();
	if (without_errors)
		sum.attempted -= sum.group[CTR_IN_ERRORS] < sum.attempted ? sum.group[CTR_IN_ERRORS] : sum.attempted;
	return json_count(sum.attempted);
}

json_t *run_json(const struct model *model)
{
	const char *arm = model->run.manifest.arm;
	uint64_t launches;
	bool known = coverage_plain(model, "pool_graph_launches", &launches);

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "path", json_text(model->run.path), "arm",
			 json_text(arm && *arm ? arm : NULL), "driver", json_text(run_driver(model)), "device",
			 json_text(run_device(model)), "processes", json_count(model->n_processes), "graph_launches",
			 attempted_json(model, "core.graph_launch", true), "pool_graph_launches",
			 known ? json_count(launches) : json_null(), "donations",
			 attempted_json(model, "core.donate", false), "restores",
			 attempted_json(model, "core.restore", false));
}

json_t *slot_json(int64_t slot)
{
	return slot == LOG_NO_SLOT ? json_null() : json_integer(slot);
}

json_t *event_json(const struct model_process *p, const struct model_event *e)
{
	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "process", json_count(p->from->pid),
			 "id", json_hex(e->id), "kind", model_event_name(e->kind), "rank", json_text(p->rank), "pool",
			 e->pool == MODEL_NONE ? json_null() : json_text(p->pool[e->pool].name), "slot",
			 slot_json(e->slot), "claimed_len", (json_int_t)e->claimed_len, "key",
			 e->key ? json_hex(e->key) : json_null(), "step", e->step ? json_count(e->step) : json_null(),
			 "t_ns", json_hex(e->t_ns));
}
