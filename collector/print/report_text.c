/* SPDX-License-Identifier: Apache-2.0
 *
 * report_text.c: one run for people: coverage, pools, slots, donations, graphs, call sites. Its twin is report_json.c.
 */
#include <inttypes.h>
#include <string.h>

#include "print/compare.h"

#define DONATIONS_SHOWN 40
#define GRAPHS_SHOWN    16
#define TOUCHES_SHOWN   24

static void head(FILE *f, const char *text, bool color)
{
	fprintf(f, "\n%s%s%s\n", color_on(color, COLOR_BOLD), text, color_off(color));
}

static void print_title(FILE *f, const struct report *report, bool color)
{
	const struct model *model = &report->model;
	const char *arm = model->run.manifest.arm, *driver = run_driver(model), *device = run_device(model);

	fprintf(f, "%srun %s%s: %s, %zu process%s, %s%s%s\n", color_on(color, COLOR_BOLD), safe(model->run.path),
		color_off(color), arm && *arm ? safe(arm) : "arm unknown", model->n_processes,
		model->n_processes == 1 ? "" : "es", driver ? driver : "driver unknown", device ? ", " : "",
		device ? safe(device) : "");
	if (report->reasons.n)
		reasons_print(f, &report->reasons, color);
}

static void print_pools(FILE *f, const struct model *model, bool color)
{
	struct table *table = table_new("rank|pool|>device|slots|>planes|>slot|tensors|removed");

	for (size_t i = 0; i < model->n_processes; i++) {
		const struct model_process *p = &model->process[i];

		for (size_t k = 0; k < p->n_pools; k++) {
			const struct model_pool *pool = &p->pool[k];
			char tensors[256] = "";
			size_t n = 0;

			for (size_t j = 0; j < pool->room && n < sizeof tensors; j++) {
				bool met = !pool->plane[j].known;

				for (size_t m = 0; m < j && !met; m++)
					met = strcmp(pool->plane[m].tensor, pool->plane[j].tensor) == 0;
				if (!met)
					n += (size_t)snprintf(tensors + n, sizeof tensors - n, "%s%s %s", n ? ", " : "",
							      safe(pool->plane[j].tensor),
							      model_dtype_name(pool->plane[j].dtype));
			}
			table_row(table, "%s|%s|%d|%" PRId64 " to %" PRId64 "|%u|%s|%s|%s", safe(p->rank),
				  safe(pool->name), pool->device, pool->first_slot,
				  (int64_t)((uint64_t)pool->first_slot + (uint64_t)pool->n_slots - 1), pool->n_planes,
				  amount_bytes(pool->slot_bytes), tensors, pool->removed ? "yes" : "no");
		}
	}
	table_print(f, table, "  ", color);
	table_free(table);
}

static const struct align_occurrence *last_donation(const struct align_side *side, uint32_t last)
{
	return last == ALIGN_NONE || side->occurrence[last].at.event == ALIGN_NONE ? NULL : &side->occurrence[last];
}

static void print_slots(FILE *f, const struct report *report, bool color)
{
	const struct align_side *side = &report->al.side[0];
	struct table *table = table_new("rank|pool|>slot|>donations|>last length|>abs-max|>NaN|>Inf|hash");

	for (size_t i = 0; i < report->al.n_rows; i++) {
		const struct align_row *r = &report->al.row[i];
		const struct align_group *group = &report->al.group[r->group];
		const struct align_occurrence *o = last_donation(side, r->side[0].last);
		const struct model_event *e = o ? align_event(side, o->at) : NULL;
		const struct model_process *p = o ? align_process(side, o->at) : NULL;
		const struct model_print *print = e && model_measured(p, e) ? model_subject(p, e) : NULL;
		char slot[24] = "?";

		if (r->slot != LOG_NO_SLOT)
			snprintf(slot, sizeof slot, "%" PRId64, r->slot);
		if (print)
			table_row(table, "%s|%s|%s|%u|%" PRId64 "|%g|%" PRIu64 "|%" PRIu64 "|%016" PRIx64,
				  safe(group->rank), safe(group->pool), slot, r->side[0].donations, e->claimed_len,
				  print->absmax, print->nan, print->inf, print->rollup);
		else
			table_row(table, "%s|%s|%s|%u|||||not measured", safe(group->rank), safe(group->pool), slot,
				  r->side[0].donations);
	}
	table_print(f, table, "  ", color);
	table_free(table);
}

static void print_donations(FILE *f, const struct report *report)
{
	const struct align_side *side = &report->al.side[0];
	size_t shown = 0;

	for (size_t i = 0; i < side->n_occurrences; i++) {
		const struct align_occurrence *o = &side->occurrence[i];
		const struct model_process *p = align_process(side, o->at);
		const struct model_event *e = align_event(side, o->at);

		if (!e || shown++ >= DONATIONS_SHOWN)
			continue;
		fprintf(f, "  %s: %s, restored %u time%s%s\n", safe(p->rank), event_text(e), o->n_restores,
			o->n_restores == 1 ? "" : "s", e->discarded ? ", not taken" : "");
		if (!model_measured(p, e))
			fprintf(f, "      not measured: %s\n",
				e->outcome == CTR_COMMITTED ? "its fingerprint is missing"
							    : ctr_outcome_meaning(e->outcome));
	}
	if (shown > DONATIONS_SHOWN)
		fprintf(f, "  and %zu more; 'slotprobe export' lists them all\n", shown - DONATIONS_SHOWN);
}

static void print_touch(FILE *f, const struct model_process *p, const struct model_touch *t)
{
	fprintf(f, "      node %u", t->node);
	if (t->kernel[0])
		fprintf(f, " %s, parameter %u+%u", safe(t->kernel), t->param, t->param_offset);
	fprintf(f, " -> ");
	if (t->target == 0) {
		for (size_t i = 0; i < p->n_pools; i++) {
			const struct model_pool *pool = &p->pool[i];

			if (pool->id != t->id)
				continue;
			fprintf(f, "pool %s", safe(pool->name));
			if (t->plane < pool->room && pool->plane[t->plane].known)
				fprintf(f, ", %s layer %d", safe(pool->plane[t->plane].tensor),
					pool->plane[t->plane].layer);
			break;
		}
	} else {
		const struct model_region *region = model_region(p, t->id);

		if (region)
			fprintf(f, "region %s", safe(region->name));
	}
	fprintf(f, " +%" PRIu64 "\n", t->offset);
}

static void print_graphs(FILE *f, const struct model_process *p)
{
	size_t shown = 0;

	for (size_t i = 0; i < p->n_graphs; i++) {
		const struct model_graph *g = &p->graph[i];

		if (shown++ >= GRAPHS_SHOWN)
			continue;
		fprintf(f,
			"  %s: graph %" PRIu64 ": %u nodes (%u kernels, %u copies, %u sets), %u bound addresses%s%s\n",
			safe(p->rank), g->number, g->nodes, g->kernels, g->memcpys, g->memsets, g->touches,
			g->flags & LOG_GRAPH_UNREADABLE ? ", not all of it could be read" : "",
			g->destroyed ? ", destroyed" : "");
		for (size_t k = 0; k < g->n_touch && k < TOUCHES_SHOWN; k++)
			print_touch(f, p, &g->touch[k]);
		if (g->n_touch > TOUCHES_SHOWN)
			fprintf(f, "      and %zu more\n", g->n_touch - TOUCHES_SHOWN);
	}
	if (shown > GRAPHS_SHOWN)
		fprintf(f, "  and %zu more graphs\n", shown - GRAPHS_SHOWN);
}

static void print_callsites(FILE *f, const struct model_process *p)
{
	for (size_t i = 0; i < p->n_callsites; i++) {
		const struct model_callsite *site = &p->callsite[i];
		uint64_t n[LOG_EV_KIND_COUNT];
		const char *gap = ": ";

		callsite_count(p, site->id, n);
		fprintf(f, "  %s: call site %u", safe(p->rank), site->id);
		for (uint32_t kind = 0; kind < LOG_EV_KIND_COUNT; kind++) {
			if (!n[kind])
				continue;
			fprintf(f, "%s%s %" PRIu64, gap, model_event_name(kind), n[kind]);
			gap = ", ";
		}
		fputs(*gap == ':' ? ": no events\n" : "\n", f);
		callsite_print(f, p, site->id, site->n_frames, "      ");
	}
}

void report_print_text(FILE *f, const struct report *report, bool color)
{
	const struct model *model = &report->model;

	print_title(f, report, color);
	head(f, "Coverage", color);
	coverage_print_text(f, model, 1, color);
	head(f, "Pools", color);
	print_pools(f, model, color);
	head(f, "Slots, as last donated", color);
	print_slots(f, report, color);
	head(f, "Donations", color);
	print_donations(f, report);
	head(f, "Graphs", color);
	for (size_t i = 0; i < model->n_processes; i++)
		print_graphs(f, &model->process[i]);
	head(f, "Call sites", color);
	for (size_t i = 0; i < model->n_processes; i++)
		print_callsites(f, &model->process[i]);
}
