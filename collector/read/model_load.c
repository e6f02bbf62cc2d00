/* SPDX-License-Identifier: Apache-2.0
 *
 * model_load.c: reads the log of one process into the model.
 *
 * A fingerprint's digest needs to know its planes. The log names them first, but a result may overtake them in the
 * writer; then the log is read a second time with the pools known from the first.
 */
#include <stdlib.h>
#include <string.h>

#include "read/digest.h"
#include "read/model_load.h"
#include "trouble.h"

#define POOLS_MAX        4096u
#define PLANES_TOTAL_MAX (1u << 20)

struct loader {
	struct model_process *p;
	struct map pool_by_id, graph_by_number;
	int32_t pool_id; /* of the pool that was asked for last */
	uint32_t pool;   /* and its index; MODEL_NONE: look it up */
	struct print_numbers numbers;
	size_t pools_met, planes_total;
	bool second, again, no_memory;
	const char *over;      /* which limit was passed */
	struct settle *settle; /* events go there, one by one, and are not kept; NULL: they are */
};

/* The next element of an array, zeroed; NULL: no memory. */
static void *next_in(struct loader *l, void *array, size_t *room, size_t *n, size_t element)
{
	void *at;

	if (!array_room(array, room, *n, element)) {
		l->no_memory = true;
		return NULL;
	}
	at = *(char **)array + *n * element;
	memset(at, 0, element);
	(*n)++;
	return at;
}

#define NEXT(l, what) next_in(l, &(l)->p->what, &(l)->p->room_##what##s, &(l)->p->n_##what##s, sizeof *(l)->p->what)

static void copy_text(char *to, size_t room, const char *from)
{
	size_t n = strnlen(from, room - 1);

	memcpy(to, from, n);
	to[n] = 0;
}

static void name_pool(struct loader *l, int32_t id, uint64_t index)
{
	l->no_memory |= !map_set(&l->pool_by_id, (uint32_t)id, index);
	l->pool = MODEL_NONE;
}

/* Record after record is about the same pool. */
static uint32_t pool_index(struct loader *l, int32_t id)
{
	uint64_t index;

	if (l->pool == MODEL_NONE || l->pool_id != id) {
		index = map_get(&l->pool_by_id, (uint32_t)id);
		l->pool = index == MAP_NONE ? MODEL_NONE : (uint32_t)index;
		l->pool_id = id;
	}
	return l->pool;
}

/* ---- pools ---- */

static void take_pool(struct loader *l, const struct log_pool *r)
{
	size_t number = l->pools_met++;
	struct model_pool *pool;

	if (number >= POOLS_MAX) {
		l->over = "pools";
		return;
	}
	/* A live log can have grown between the two readings: what the first did not see is not there. */
	if (l->second && number >= l->p->n_pools)
		return;
	name_pool(l, r->pool, number);
	if (l->second)
		return;
	pool = NEXT(l, pool);
	if (!pool)
		return;
	pool->id = r->pool;
	pool->device = r->device;
	pool->first_slot = r->first_slot;
	pool->n_slots = r->n_slots;
	pool->n_planes = r->n_planes;
	pool->slot_bytes = r->slot_bytes;
	pool->launches = r->launches;
	pool->pool_launches = r->pool_launches;
	pool->t_ns = r->t_ns;
	copy_text(pool->name, sizeof pool->name, r->name);
	if (pool->n_planes > MODEL_PLANES_MAX)
		l->over = "planes of a pool";
}

static uint64_t plane_identity(const struct log_plane *r)
{
	return log_mix64(log_key_hash(r->tensor, strlen(r->tensor)) + (uint32_t)r->layer);
}

static bool plane_room(struct loader *l, struct model_pool *pool, uint32_t index)
{
	size_t wanted = pool->n_planes;
	struct model_plane *plane;

	if (index < pool->room)
		return true;
	/* All at once: a pool announces how many it has. */
	l->planes_total += wanted;
	if (l->planes_total > PLANES_TOTAL_MAX) {
		l->over = "planes";
		return false;
	}
	plane = calloc(wanted, sizeof *plane);
	if (!plane) {
		l->no_memory = true;
		return false;
	}
	pool->plane = plane;
	pool->room = wanted;
	return true;
}

static void take_plane(struct loader *l, const struct log_plane *r)
{
	uint32_t index = pool_index(l, r->pool);
	struct model_pool *pool;
	struct model_plane *plane;

	if (l->second)
		return;
	pool = index == MODEL_NONE ? NULL : &l->p->pool[index];
	if (!pool || r->index >= pool->n_planes) {
		l->p->contradictions++;
		return;
	}
	if (!plane_room(l, pool, r->index))
		return;
	plane = &pool->plane[r->index];
	if (plane->known) {
		l->p->contradictions++;
		return;
	}
	plane->known = true;
	plane->layer = r->layer;
	plane->dtype = r->dtype;
	plane->base = r->base;
	plane->elems = r->elems;
	plane->bytes = r->bytes;
	plane->stride = r->slot_stride;
	plane->identity = plane_identity(r);
	copy_text(plane->tensor, sizeof plane->tensor, r->tensor);
	pool->n_known++;
}

static void take_pool_remove(struct loader *l, const struct log_pool_remove *r)
{
	uint32_t index = pool_index(l, r->pool);

	if (index == MODEL_NONE)
		return;
	l->p->pool[index].removed = true;
	l->p->pool[index].removed_why = r->why;
}

/* ---- events and fingerprints ---- */

static void fill_event(struct loader *l, struct model_event *e, const struct log_event *r)
{
	*e = (struct model_event) {
		.id = r->id,
		.t_ns = r->t_ns,
		.kind = r->kind,
		.pool = pool_index(l, r->pool),
		.slot = r->slot,
		.claimed_len = r->claimed_len,
		.key_len = r->key_len,
		.key = r->key,
		.src = r->src,
		.step = r->step,
		.launches = r->launches,
		.pool_launches = r->pool_launches,
		.said = r->outcome,
		.outcome = r->outcome,
		.callsite = r->callsite,
		.tid = r->tid,
		.subject = MODEL_NONE,
		.source = MODEL_NONE,
		.watched = MODEL_NONE,
		.wants_print = r->has_fingerprint != 0,
	};
	if (e->pool == MODEL_NONE)
		l->again = true;
}

static void take_event(struct loader *l, const struct log_event *r)
{
	struct model_event *e;

	if (!r->kind || r->kind >= LOG_EV_KIND_COUNT || r->outcome >= CTR_OUTCOME_COUNT || r->has_fingerprint > 1) {
		l->p->contradictions++;
		return;
	}
	if (l->settle) {
		e = settle_room(l->settle, r->id);
		if (e) {
			fill_event(l, e, r);
			l->p->last_ns = r->t_ns > l->p->last_ns ? r->t_ns : l->p->last_ns;
			settle_event(l->settle, e);
		}
		return;
	}
	if (l->p->n_events >= MODEL_EVENTS_MAX) {
		l->over = "events";
		return;
	}
	e = NEXT(l, event);
	if (e)
		fill_event(l, e, r);
}

uint32_t print_number(struct print_numbers *numbers, const struct log_fingerprint *part)
{
	uint64_t key = log_mix64(log_mix64(part->event * 4 + part->role) + (uint64_t)part->slot);
	uint64_t number;

	if (part->first_plane == 0) {
		number = numbers->n++;
		if (part->n_planes < part->total_planes && !map_set(&numbers->open, key, number))
			trouble_memory();
		return (uint32_t)number;
	}
	number = map_get(&numbers->open, key);
	return number == MAP_NONE ? MODEL_NONE : (uint32_t)number;
}

static void add_planes(struct loader *l, struct model_print *print, const struct log_fingerprint *r, bool digested)
{
	const struct model_pool *pool = print->pool == MODEL_NONE ? NULL : &l->p->pool[print->pool];

	for (uint32_t i = 0; i < r->n_planes; i++) {
		const struct log_plane_print *plane = &r->plane[i];
		uint32_t at = r->first_plane + i;
		bool known = pool && at < pool->room && pool->plane[at].known;

		if (!known)
			l->again = true;
		if (digested) /* a sum: the order in which planes were registered does not matter */
			print->digest += digest_plane(known ? pool->plane[at].identity : at, plane);
		if (plane->absmax > print->absmax)
			print->absmax = plane->absmax;
		print->nan += plane->nan;
		print->inf += plane->inf;
	}
	print->n_planes += r->n_planes;
}

static void fill_print(struct loader *l, struct model_print *print, const struct log_fingerprint *r, uint32_t number)
{
	*print = (struct model_print) {
		.event = r->event,
		.t_ns = r->t_ns,
		.slot = r->slot,
		.rollup = r->rollup,
		.pool = pool_index(l, r->pool),
		.role = r->role,
		.outcome = r->outcome,
		.total_planes = r->total_planes,
		.number = number,
		.complete = true,
	};
	if (print->pool == MODEL_NONE)
		l->again = true;
	if (r->role > LOG_ROLE_SOURCE || r->outcome >= CTR_OUTCOME_COUNT) {
		/* It keeps its number, and belongs to no event: ids begin at 1. */
		l->p->contradictions++;
		print->event = 0;
		print->outcome = CTR_ERROR_DRIVER;
	}
}

static struct model_print *new_print(struct loader *l, const struct log_fingerprint *r, uint32_t number)
{
	struct model_print *print = NEXT(l, print);

	if (print)
		fill_print(l, print, r, number);
	return print;
}

/* The fingerprint of the event's own slot, whole: by far the most are. It is written where it stays. */
static void settle_subject(struct loader *l, const struct log_fingerprint *r)
{
	bool digested;
	struct model_print *print = settle_subject_room(l->settle, r->event, &digested);

	if (!print)
		return;
	fill_print(l, print, r, 0);
	add_planes(l, print, r, digested);
	model_judge_print(l->p, print);
}

/* Parts of one fingerprint follow each other; where they do not, the log is irregular. */
static void settle_part(struct loader *l, const struct log_fingerprint *r)
{
	struct settle *s = l->settle;
	struct model_print *open = &s->open;
	uint64_t before = l->p->contradictions;

	if (r->first_plane == 0) {
		fill_print(l, open, r, 0);
		s->undigested = !settle_wants_digest(s, r->event);
	}
	if (r->event != open->event || r->role != open->role || r->slot != open->slot ||
	    r->first_plane != open->n_planes || r->rollup != open->rollup || r->total_planes != open->total_planes ||
	    l->p->contradictions != before) {
		s->irregular = true;
		return;
	}
	/* Watched slots explain only: what they hold nobody asks here. */
	if (r->role == LOG_ROLE_WATCHED)
		open->n_planes += r->n_planes;
	else
		add_planes(l, open, r, !s->undigested);
	if (open->n_planes < open->total_planes)
		return;
	model_judge_print(l->p, open);
	settle_print(s, open);
}

static void settle_fingerprint(struct loader *l, const struct log_fingerprint *r)
{
	struct model_print *open = &l->settle->open;

	if (r->first_plane == 0 && open->n_planes < open->total_planes)
		l->settle->irregular = true;
	else if (r->role == LOG_ROLE_SUBJECT && r->n_planes == r->total_planes)
		settle_subject(l, r);
	else
		settle_part(l, r);
}

static void take_fingerprint(struct loader *l, const struct log_fingerprint *r)
{
	uint32_t number = print_number(&l->numbers, r);
	struct model_print *print;

	if (number == MODEL_NONE) {
		l->p->contradictions++;
		return;
	}
	/* Numbers and indexes are the same thing until the prints are sorted. */
	print = number < l->p->n_prints ? &l->p->print[number] : new_print(l, r, number);
	if (!print)
		return;
	if (r->first_plane != print->n_planes || r->rollup != print->rollup || r->total_planes != print->total_planes) {
		print->complete = false;
		l->p->contradictions++;
	}
	add_planes(l, print, r, true);
}

/* ---- the rest: for the report ---- */

static void take_step(struct loader *l, const struct log_step *r)
{
	struct model_step *step = NEXT(l, step);

	if (!step)
		return;
	step->number = r->number;
	step->value = r->value;
	step->t_ns = r->t_ns;
	step->batch = r->batch;
	step->padded = r->padded;
	step->mode = r->mode;
	copy_text(step->name, sizeof step->name, r->name);
}

static void take_rank(struct loader *l, const struct log_rank *r)
{
	struct model_process *p = l->p;
	uint32_t i = 0;

	while (i < p->n_axes && strcmp(p->axis[i].name, r->axis) != 0)
		i++;
	if (i == MODEL_AXES_MAX) {
		p->contradictions++;
		return;
	}
	copy_text(p->axis[i].name, sizeof p->axis[i].name, r->axis);
	p->axis[i].index = r->index;
	p->axis[i].count = r->count;
	if (i == p->n_axes)
		p->n_axes++;
}

static void take_region(struct loader *l, const struct log_region *r)
{
	struct model_region *region = NEXT(l, region);

	if (!region)
		return;
	region->id = r->region;
	region->dtype = r->dtype;
	region->base = r->base;
	region->bytes = r->bytes;
	copy_text(region->name, sizeof region->name, r->name);
}

static struct model_graph *graph_at(struct loader *l, uint64_t number)
{
	uint64_t index = map_get(&l->graph_by_number, number);
	struct model_graph *graph;

	if (index != MAP_NONE)
		return &l->p->graph[index];
	index = l->p->n_graphs;
	graph = NEXT(l, graph);
	if (!graph)
		return NULL;
	graph->number = number;
	if (!map_set(&l->graph_by_number, number, index))
		l->no_memory = true;
	return graph;
}

static void take_graph(struct loader *l, const struct log_graph *r)
{
	struct model_graph *graph = graph_at(l, r->graph);

	if (!graph)
		return;
	graph->t_ns = r->t_ns;
	graph->nodes = r->nodes;
	graph->kernels = r->kernels;
	graph->memcpys = r->memcpys;
	graph->memsets = r->memsets;
	graph->flags = r->flags;
	graph->touches = r->touches;
	graph->n_touch = 0; /* what was said before is replaced */
}

static void take_touch(struct loader *l, const struct log_graph_touch *r)
{
	struct model_graph *graph = graph_at(l, r->graph);
	struct model_touch *touch;

	if (!graph || graph->n_touch >= LOG_GRAPH_TOUCH_MAX)
		return;
	touch = next_in(l, &graph->touch, &graph->room, &graph->n_touch, sizeof *touch);
	if (!touch)
		return;
	touch->node = r->node;
	touch->node_type = r->node_type;
	touch->target = r->target;
	touch->id = r->id;
	touch->param = r->param;
	touch->param_offset = r->param_offset;
	touch->plane = r->plane;
	touch->address = r->address;
	touch->offset = r->offset;
	copy_text(touch->kernel, sizeof touch->kernel, r->kernel);
}

static void take_module(struct loader *l, const struct log_module *r)
{
	struct model_module *module = NEXT(l, module);

	if (!module)
		return;
	module->id = r->module;
	module->path = strndup(r->path, r->bytes_path);
	l->no_memory |= !module->path;
}

static void take_callsite(struct loader *l, const struct log_callsite *r)
{
	struct model_callsite *site = NEXT(l, callsite);
	const char *text = (const char *)&r->frame[r->n_frames];

	if (!site)
		return;
	site->id = r->callsite;
	site->n_frames = r->n_frames;
	for (uint32_t i = 0; i < r->n_frames; i++) {
		site->frame[i] = r->frame[i];
		if (r->frame[i].symbol) {
			site->symbol[i] = strndup(text, r->frame[i].symbol);
			l->no_memory |= !site->symbol[i];
		}
		text += r->frame[i].symbol;
	}
}

static void take_device(struct loader *l, const struct log_device *r)
{
	if (l->p->device[0])
		return;
	copy_text(l->p->device, sizeof l->p->device, r->name);
	l->p->driver_version = r->driver_version;
}

static void take_bypassed(struct loader *l, const struct log_bypassed *r)
{
	if (*l->p->bypassed_name)
		return;
	copy_text(l->p->bypassing, sizeof l->p->bypassing, *r->object ? r->object : "the program itself");
	copy_text(l->p->bypassed_name, sizeof l->p->bypassed_name, r->symbol);
}

static void take_unrouted(struct loader *l, const struct log_unrouted *r)
{
	if (!l->p->unrouted++)
		copy_text(l->p->unrouted_name, sizeof l->p->unrouted_name, r->name);
}

static void take_disk_stop(struct loader *l, const struct log_disk_stop *r)
{
	l->p->disk_stopped = true;
	l->p->disk_stop_free = r->free_bytes;
}

static void take_graph_destroy(struct loader *l, const struct log_graph_destroy *r)
{
	uint64_t index = map_get(&l->graph_by_number, r->graph);

	if (index != MAP_NONE)
		l->p->graph[index].destroyed = true;
}

/* Key texts, region values, launches and control records tell the comparisons nothing. */
static void take_record(struct loader *l, const struct log_record *rec)
{
	const void *r = rec;

	switch (rec->type) {
	case LOG_DEVICE:
		take_device(l, r);
		break;
	case LOG_POOL:
		take_pool(l, r);
		break;
	case LOG_PLANE:
		take_plane(l, r);
		break;
	case LOG_POOL_REMOVE:
		take_pool_remove(l, r);
		break;
	case LOG_EVENT:
		take_event(l, r);
		break;
	case LOG_FINGERPRINT:
		if (l->settle)
			settle_fingerprint(l, r);
		else
			take_fingerprint(l, r);
		break;
	case LOG_STEP:
		/* Only what differs asks for its step. */
		if (!l->settle)
			take_step(l, r);
		break;
	case LOG_RANK:
		take_rank(l, r);
		break;
	case LOG_REGION:
		take_region(l, r);
		break;
	case LOG_GRAPH:
		take_graph(l, r);
		break;
	case LOG_GRAPH_TOUCH:
		take_touch(l, r);
		break;
	case LOG_GRAPH_DESTROY:
		take_graph_destroy(l, r);
		break;
	case LOG_MODULE:
		take_module(l, r);
		break;
	case LOG_CALLSITE:
		take_callsite(l, r);
		break;
	case LOG_DISK_STOP:
		take_disk_stop(l, r);
		break;
	case LOG_UNROUTED:
		take_unrouted(l, r);
		break;
	case LOG_BYPASSED:
		take_bypassed(l, r);
		break;
	default:
		break;
	}
}

void model_free_records(struct model_process *p)
{
	for (size_t i = 0; i < p->n_graphs; i++)
		free(p->graph[i].touch);
	for (size_t i = 0; i < p->n_modules; i++)
		free(p->module[i].path);
	for (size_t i = 0; i < p->n_callsites; i++) {
		for (uint32_t k = 0; k < p->callsite[i].n_frames; k++)
			free(p->callsite[i].symbol[k]);
	}
	p->n_events = p->n_prints = p->n_steps = p->n_graphs = p->n_regions = p->n_callsites = p->n_modules = 0;
	p->n_axes = 0;
	p->contradictions = p->unrouted = 0;
	*p->bypassing = *p->bypassed_name = 0;
}

static bool is_irregular(const struct loader *l)
{
	return l->settle && (l->settle->irregular || l->again || l->p->contradictions);
}

static int read_once(struct loader *l, struct error *err)
{
	const struct log_record *rec;
	struct audit_walk walk;
	struct log log;

	if (log_open(&log, l->p->from->log_path, err) != 0)
		return -1;
	log_expect(&log, l->p->from->pid, l->p->from->starttime);
	audit_begin(&walk, &l->p->audit);
	walk.events_apart = l->settle != NULL;
	while (!l->no_memory && !l->over && !is_irregular(l) && log_next(&log, &rec)) {
		take_record(l, rec);
		l->no_memory |= !audit_take(&walk, rec);
	}
	audit_end(&walk, &log);
	l->p->damage = log.damage;
	l->p->ended = log.ended;
	l->p->records = log.records;
	log_close(&log);
	map_free(&l->graph_by_number);
	map_free(&l->numbers.open);
	l->numbers.n = 0;
	if (l->no_memory)
		error_set(err, "%s: out of memory", l->p->from->log_path);
	else if (l->over)
		error_set(err, "%s: over the limit: too many %s", l->p->from->log_path, l->over);
	return l->no_memory || l->over ? -1 : 0;
}

int model_settle_process(struct model_process *process, const struct settle_sink *sink, bool *regular,
			 struct error *err)
{
	struct settle settle = { .sink = sink, .process = process, .audit = &process->audit };
	struct loader l = { .p = process, .pool = MODEL_NONE, .settle = &settle };
	int status = 0;

	if (process->from->log_path) {
		process->has_log = true;
		status = read_once(&l, err);
		if (!is_irregular(&l))
			settle_end(&settle);
	}
	*regular = !is_irregular(&l);
	map_free(&l.pool_by_id);
	settle_free(&settle);
	return status;
}

int model_load_process(struct model_process *process, struct error *err)
{
	struct loader l = { .p = process, .pool = MODEL_NONE };
	int status;

	if (!process->from->log_path)
		return 0;
	process->has_log = true;
	status = read_once(&l, err);
	if (status == 0 && l.again && process->n_pools) {
		model_free_records(process);
		l.second = true;
		l.pools_met = 0;
		/* Ids as they were first given out, until the log says otherwise. */
		for (size_t i = process->n_pools; i-- > 0;)
			name_pool(&l, process->pool[i].id, i);
		status = read_once(&l, err);
	}
	map_free(&l.pool_by_id);
	if (status == 0)
		model_link(process);
	return status;
}
