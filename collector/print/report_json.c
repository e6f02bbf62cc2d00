/* SPDX-License-Identifier: Apache-2.0
 *
 * report_json.c: one run for programs: the fields of status, and reasons, pools, slots, graphs, call sites. Its twin is
 * report_text.c.
 */
#include <string.h>
#include <time.h>

#include "print/compare.h"

#define REPORT_SCHEMA 1

/* ---- the fields of status ---- */

static const char *state_of(const struct run *run)
{
	bool killed = false, unknown = run->n_processes == 0;

	for (size_t i = 0; i < run->n_processes; i++) {
		if (run->processes[i].state == PROCESS_RUNNING)
			return "running";
		killed |= run->processes[i].state == PROCESS_KILLED;
		unknown |= run->processes[i].state == PROCESS_UNKNOWN;
	}
	if (run->manifest.ended)
		return "ended";
	return killed ? "killed" : unknown ? "unknown" : "ended";
}

static json_t *heartbeat_json(const struct run_process *p)
{
	struct timespec now;

	if (!p->counters || p->state != PROCESS_RUNNING || clock_gettime(CLOCK_MONOTONIC, &now) != 0)
		return json_null();
	return json_real((double)((int64_t)((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec -
					    p->counters->heartbeat_ns)) /
			 1e9);
}

static json_t *group_json(const struct ctr_values *row, enum ctr_group group)
{
	json_t *object = json_object();

	for (unsigned o = 0; o < CTR_OUTCOME_COUNT; o++) {
		if (ctr_outcome_group(o) == group)
			json_object_set_new(object, ctr_outcome_label(o), json_count(row->outcome[o]));
	}
	return object;
}

static json_t *probes_json(const struct ctr_snapshot *page)
{
	json_t *probes = json_array();

	for (uint32_t i = 0; i < page->n_rows; i++) {
		const struct ctr_values *row = &page->row[i];

		if (row->kind != CTR_PROBE)
			continue;
		json_array_append_new(
			probes,
			json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", json_text(row->name), "attempted",
				  json_count(row->attempted), "committed", json_count(row->group[CTR_IN_COMMITTED]),
				  "filtered", json_count(row->group[CTR_IN_FILTERED]), "skipped",
				  group_json(row, CTR_IN_SKIPPED), "dropped", group_json(row, CTR_IN_DROPPED), "errors",
				  json_count(row->group[CTR_IN_ERRORS]), "in_flight", json_count(row->in_flight)));
	}
	return probes;
}

static json_t *filled(const char *text)
{
	return text && *text ? json_text(text) : json_null();
}

static json_t *process_json(const struct model_process *p)
{
	const struct run_process *from = p->from;
	const struct ctr_snapshot *page = from->counters;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "host", json_text(from->host),
			 "pid", json_count(from->pid), "comm", filled(from->comm), "rank", json_text(p->rank), "driver",
			 filled(from->driver), "state", process_state_name(from->state), "recording",
			 page ? json_boolean(page->recording) : json_null(), "level",
			 page ? json_text(ctr_level_name(page->level)) : json_null(), "label",
			 page ? filled(page->label) : json_null(), "bytes",
			 page ? json_count(page->bytes_written) : json_null(), "heartbeat_age_s", heartbeat_json(from),
			 "probes", page ? probes_json(page) : json_null());
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
	for (size_t i = 0; t->target == 0 && i < p->n_pools; i++) {
		if (p->pool[i].id == t->id)
			return json_text(p->pool[i].name);
	}
	for (size_t i = 0; t->target == 1 && i < p->n_regions; i++) {
		if ((int64_t)p->region[i].id == t->id)
			return json_text(p->region[i].name);
	}
	return json_null();
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

static json_t *frames_json(const struct model_process *p, const struct model_callsite *site)
{
	json_t *frames = json_array();

	for (uint32_t i = 0; i < site->n_frames; i++)
		json_array_append_new(frames, json_pack("{s:o, s:o, s:o}", "symbol", json_text(site->symbol[i]),
							"module", json_text(model_module(p, site->frame[i].module)),
							"offset", json_hex(site->frame[i].offset)));
	return frames;
}

static json_t *callsites_json(const struct model *model)
{
	json_t *sites = json_array();

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct model_process *p = &model->process[i];

		for (size_t k = 0; k < p->n_callsites; k++) {
			uint64_t events = 0;

			for (size_t e = 0; e < p->n_events; e++)
				events += p->event[e].callsite == p->callsite[k].id;
			json_array_append_new(sites,
					      json_pack("{s:o, s:o, s:o, s:o, s:o}", "process",
							json_count(p->from->pid), "rank", json_text(p->rank),
							"callsite", json_count(p->callsite[k].id), "events",
							json_count(events), "frames", frames_json(p, &p->callsite[k])));
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
		json_array_append_new(processes, process_json(&model->process[i]));
	json_object_set_new(all, "schema_version", json_integer(REPORT_SCHEMA));
	json_object_set_new(all, "tool", json_string("slotprobe " SLOTPROBE_VERSION));
	json_object_set_new(all, "run", json_text(model->run.path));
	json_object_set_new(all, "arm", filled(arm));
	json_object_set_new(all, "state", json_string(state_of(&model->run)));
	json_object_set_new(all, "exit_status", json_integer(reasons_exit_status(&report->reasons)));
	json_object_set_new(all, "reasons", reasons_json(&report->reasons));
	json_object_set_new(all, "processes", processes);
	json_object_set_new(all, "pools", pools_json(model));
	json_object_set_new(all, "slots", slots_json(report));
	json_object_set_new(all, "graphs", graphs_json(model));
	json_object_set_new(all, "call_sites", callsites_json(model));
	return all;
}
