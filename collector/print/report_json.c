/* SPDX-License-Identifier: Apache-2.0
 *
 * report_json.c: one run for programs: the fields of status, and reasons, pools, slots, graphs, call sites. Its twin is
 * report_text.c.
 */
#include <string.h>

#include "print/compare.h"
#include "print/process_json.h"

#define REPORT_SCHEMA 1

static json_t *filled(const char *text)
{
	return text && *text ? json_text(text) : json_null();
}

/* ---- pools, slots, graphs, call sites ---- */

static json_t *plane_json(const struct model_plane *plane)
{
	if (!plane->known)
		return json_null();
	return json_pack("{s:o, s:i, s:s, s:o, s:o, s:o, s:I}", "tensor", json_text(plane->tensor), "layer",
			 (int)plane->layer, "dtype", model_dtype_name(plane->dtype), "elems", json_count(plane->elems),
			 "bytes", json_count(plane->bytes), "base", json_hex(plane->base), "stride",
			 (json_int_t)plane->stride);
}

static json_t *pools_json(const struct model *model)
{
	json_t *pools = json_array();

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct model_process *p = &model->process[i];

		for (size_t k = 0; k < p->n_pools; k++) {
			const struct model_pool *pool = &p->pool[k];
			json_t *planes = json_array();

			for (size_t j = 0; j < pool->room; j++)
				json_array_append_new(planes, plane_json(&pool->plane[j]));
			json_array_append_new(
				pools,
				json_pack("{s:o, s:o, s:i, s:I, s:I, s:o, s:o, s:b, s:o}", "rank", json_text(p->rank),
					  "pool", json_text(pool->name), "device", (int)pool->device, "first_slot",
					  (json_int_t)pool->first_slot, "n_slots", (json_int_t)pool->n_slots,
					  "n_planes", json_count(pool->n_planes), "slot_bytes",
					  json_count(pool->slot_bytes), "removed", pool->removed, "planes", planes));
		}
	}
	return pools;
}

static json_t *slots_json(const struct report *report)
{
	const struct align_side *side = &report->al.side[0];
	json_t *slots = json_array();

	for (size_t i = 0; i < report->al.n_rows; i++) {
		const struct align_row *r = &report->al.row[i];
		const struct align_group *group = &report->al.group[r->group];
		const struct model_event *e = NULL;
		const struct model_process *p = NULL;
		const struct model_print *print = NULL;
		uint64_t restores = 0, measured = 0;

		for (uint32_t o = r->side[0].first; o != ALIGN_NONE; o = side->occurrence[o].next) {
			restores += side->occurrence[o].n_restores;
			if (side->occurrence[o].at.event == ALIGN_NONE)
				continue;
			e = align_event(side, side->occurrence[o].at);
			p = align_process(side, side->occurrence[o].at);
			measured += model_measured(p, e);
		}
		if (e && model_measured(p, e))
			print = model_subject(p, e);
		json_array_append_new(slots,
				      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "rank",
						json_text(group->rank), "pool", json_text(group->pool), "slot",
						slot_json(r->slot), "donations", json_count(r->side[0].donations),
						"measured", json_count(measured), "restores", json_count(restores),
						"last", e ? event_json(p, e) : json_null(), "absmax",
						print ? json_number(print->absmax) : json_null(), "nan",
						print ? json_count(print->nan) : json_null(), "inf",
						print ? json_count(print->inf) : json_null(), "hash",
						print ? json_hex(print->rollup) : json_null()));
	}
	return slots;
}

/* Name of the pool or region that an address points into. */
static json_t *target_json(const struct model_process *p, const struct model_touch *t)
{
	const struct model_region *region;

	for (size_t i = 0; t->target == 0 && i < p->n_pools; i++) {
		if (p->pool[i].id == t->id)
			return json_text(p->pool[i].name);
	}
	region = t->target == 1 ? model_region(p, t->id) : NULL;
	return region ? json_text(region->name) : json_null();
}

static json_t *touch_json(const struct model_process *p, const struct model_touch *t)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "node", json_count(t->node), "kernel",
			 filled(t->kernel), "param", json_count(t->param), "param_offset", json_count(t->param_offset),
			 "target", t->target == 0 ? "pool" : "region", "name", target_json(p, t), "plane",
			 t->target == 0 ? json_count(t->plane) : json_null(), "offset", json_count(t->offset),
			 "address", json_hex(t->address));
}

static json_t *graphs_json(const struct model *model)
{
	json_t *graphs = json_array();

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct model_process *p = &model->process[i];

		for (size_t k = 0; k < p->n_graphs; k++) {
			const struct model_graph *g = &p->graph[k];
			json_t *touches = json_array();

			for (size_t j = 0; j < g->n_touch; j++)
				json_array_append_new(touches, touch_json(p, &g->touch[j]));
			json_array_append_new(
				graphs, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o}", "process",
						  json_count(p->from->pid), "rank", json_text(p->rank), "graph",
						  json_count(g->number), "nodes", json_count(g->nodes), "kernels",
						  json_count(g->kernels), "memcpys", json_count(g->memcpys), "memsets",
						  json_count(g->memsets), "unreadable",
						  (g->flags & LOG_GRAPH_UNREADABLE) != 0, "destroyed", g->destroyed,
						  "n_touches", json_count(g->touches), "touches", touches));
		}
	}
	return graphs;
}

/* {KIND: how many events of it} */
static json_t *kinds_json(const uint64_t *n)
{
	json_t *kinds = json_object();

	for (uint32_t kind = 0; kind < LOG_EV_KIND_COUNT; kind++) {
		if (n[kind])
			json_object_set_new(kinds, model_event_name(kind), json_count(n[kind]));
	}
	return kinds;
}

static json_t *callsites_json(const struct model *model)
{
	json_t *sites = json_array();

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct model_process *p = &model->process[i];

		for (size_t k = 0; k < p->n_callsites; k++) {
			uint64_t n[LOG_EV_KIND_COUNT], events = 0;

			callsite_count(p, p->callsite[k].id, n);
			for (uint32_t kind = 0; kind < LOG_EV_KIND_COUNT; kind++)
				events += n[kind];
			json_array_append_new(sites, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "process",
							       json_count(p->from->pid), "rank", json_text(p->rank),
							       "callsite", json_count(p->callsite[k].id), "events",
							       json_count(events), "kinds", kinds_json(n), "frames",
							       callsite_json(p, p->callsite[k].id)));
		}
	}
	return sites;
}

json_t *report_json(const struct report *report)
{
	const struct model *model = &report->model;
	const char *arm = model->run.manifest.arm;
	json_t *all = json_object(), *processes = json_array();

	for (size_t i = 0; i < model->n_processes; i++)
		json_array_append_new(processes, process_json(model->process[i].from, model->process[i].rank));
	json_object_set_new(all, "schema_version", json_integer(REPORT_SCHEMA));
	json_object_set_new(all, "tool", json_string("slotprobe " SLOTPROBE_VERSION));
	json_object_set_new(all, "run", json_text(model->run.path));
	json_object_set_new(all, "arm", filled(arm));
	json_object_set_new(all, "state", json_string(run_state(&model->run)));
	json_object_set_new(all, "exit_status", json_integer(reasons_exit_status(&report->reasons)));
	json_object_set_new(all, "reasons", reasons_json(&report->reasons));
	json_object_set_new(all, "processes", processes);
	json_object_set_new(all, "pools", pools_json(model));
	json_object_set_new(all, "slots", slots_json(report));
	json_object_set_new(all, "graphs", graphs_json(model));
	json_object_set_new(all, "call_sites", callsites_json(model));
	return all;
}
