/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c: a run in memory: its processes and their ranks, events tied to their fingerprints, look-ups.
 */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "read/model_load.h"
#include "trouble.h"

/* ---- tying events and prints together ---- */

static int by_event_id(const void *a, const void *b)
{
	const struct model_event *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* A writer that never overtakes itself leaves nothing to sort. */
static bool is_sorted(const void *array, size_t n, size_t element, int (*compare)(const void *, const void *))
{
	for (size_t i = 1; i < n; i++) {
		if (compare((const char *)array + (i - 1) * element, (const char *)array + i * element) > 0)
			return false;
	}
	return true;
}

static void sort(void *array, size_t n, size_t element, int (*compare)(const void *, const void *))
{
	if (!is_sorted(array, n, element, compare))
		qsort(array, n, element, compare);
}

static int by_event_role(const void *a, const void *b)
{
	const struct model_print *x = a, *y = b;

	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* An id that comes twice was not written by us: the first counts. */
static void drop_repeated_events(struct model_process *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n_events; i++) {
		if (kept && p->event[kept - 1].id == p->event[i].id) {
			p->contradictions++;
			continue;
		}
		p->event[kept++] = p->event[i];
	}
	p->n_events = kept;
}

void model_judge_print(const struct model_process *p, struct model_print *print)
{
	const struct model_pool *pool = print->pool == MODEL_NONE ? NULL : &p->pool[print->pool];

	if (print->outcome != CTR_COMMITTED || !print->total_planes || print->n_planes != print->total_planes ||
	    !pool || pool->n_planes != print->total_planes || !pool->slot_bytes)
		print->complete = false;
}

static void attach(struct model_process *p, struct model_event *e, uint32_t index)
{
	struct model_print *print = &p->print[index];

	/* An event that a fingerprint follows says committed; what became of it the fingerprint says. */
	if (print->pool != e->pool || !e->wants_print || e->said != CTR_COMMITTED) {
		p->contradictions++;
		print->complete = false;
		return;
	}
	if (print->role == LOG_ROLE_WATCHED) {
		if (!e->n_watched++)
			e->watched = index;
		return;
	}
	if (print->role == LOG_ROLE_SOURCE) {
		e->source = index;
		return;
	}
	if (e->subject != MODEL_NONE) {
		p->contradictions++;
		return;
	}
	e->subject = index;
	e->outcome = print->outcome;
	if (print->outcome != CTR_COMMITTED)
		return;
	if (e->slot == LOG_NO_SLOT) {
		e->slot = print->slot;
	} else if (e->slot != print->slot) {
		p->contradictions++;
		print->complete = false;
	}
}

static void mark_discarded(struct model_process *p)
{
	for (size_t i = 0; i < p->n_events; i++) {
		struct model_event *donation;

		if (p->event[i].kind != LOG_EV_DISCARD || p->event[i].src <= 0)
			continue;
		donation = (struct model_event *)model_event(p, (uint64_t)p->event[i].src);
		if (!donation || donation->kind != LOG_EV_DONATE)
			continue;
		donation->discarded = true;
		/* A discard that named only the donation is about the donation's slot. */
		if (p->event[i].slot == LOG_NO_SLOT)
			p->event[i].slot = donation->slot;
	}
}

void model_link(struct model_process *p)
{
	size_t e = 0;

	sort(p->event, p->n_events, sizeof *p->event, by_event_id);
	sort(p->print, p->n_prints, sizeof *p->print, by_event_role);
	drop_repeated_events(p);
	for (uint32_t i = 0; i < p->n_prints; i++) {
		model_judge_print(p, &p->print[i]);
		while (e < p->n_events && p->event[e].id < p->print[i].event)
			e++;
		/* Without its event a print says nothing; the counters tell that the event is lost. */
		if (p->print[i].event && e < p->n_events && p->event[e].id == p->print[i].event)
			attach(p, &p->event[e], i);
	}
	mark_discarded(p);
}

/* ---- ranks ---- */

static struct model_axis *axis_named(struct model_process *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_axes; i++) {
		if (strcmp(p->axis[i].name, name) == 0)
			return &p->axis[i];
	}
	return NULL;
}

/* Axes that the counters page knows and the log has lost. */
static void axes_of_page(struct model_process *p)
{
	const char *at = p->from->rank;
	char name[16];
	int index, used;

	while (at && sscanf(at, "%15[A-Za-z_]%9d%n", name, &index, &used) == 2) {
		if (!axis_named(p, name) && p->n_axes < MODEL_AXES_MAX) {
			struct model_axis *axis = &p->axis[p->n_axes++];
			memcpy(axis->name, name, sizeof name);
			axis->index = index;
			axis->count = 0;
		}
		at += used;
		at += *at == '.';
	}
}

static void name_rank(struct model_process *p)
{
	static const char *const usual[] = { "tp", "pp", "dp" };
	size_t n = 0;

	axes_of_page(p);
	for (unsigned i = 0; i < 3; i++) {
		const struct model_axis *axis = axis_named(p, usual[i]);
		n += (size_t)snprintf(p->rank + n, sizeof p->rank - n, "%s%s%d", i ? "." : "", usual[i],
				      axis ? axis->index : 0);
	}
	for (uint32_t i = 0; i < p->n_axes && n + 32 < sizeof p->rank; i++) {
		const char *name = p->axis[i].name;
		if (strcmp(name, "tp") != 0 && strcmp(name, "pp") != 0 && strcmp(name, "dp") != 0)
			n += (size_t)snprintf(p->rank + n, sizeof p->rank - n, ".%s%d", name, p->axis[i].index);
	}
}

/* The last that was heard of a process that has a pool. Whoever kept no events noted their last moment instead. */
static uint64_t last_heard(struct model_process *p)
{
	uint64_t pool = p->pool[p->n_pools - 1].t_ns, last = p->last_ns > pool ? p->last_ns : pool;
	bool known = p->last_ns && p->last_ns >= pool;

	for (size_t i = 0; !known && i < p->n_events; i++)
		last = p->event[i].t_ns > last ? p->event[i].t_ns : last;
	return p->last_ns = last;
}

/* Whether q, which was started first, was heard of no more when p got its first pool. Clocks of two hosts do not compare. */
static bool came_after(const struct model_process *p, struct model_process *q)
{
	return strcmp(p->from->host, q->from->host) == 0 && p->pool[0].t_ns > last_heard(q);
}

/* Processes that say the same rank (a server that was started again, or one that reports none) pair in the order of
 * their start. */
static void number_equal_ranks(struct model *model)
{
	for (size_t i = 0; i < model->n_processes; i++) {
		struct model_process *p = &model->process[i];
		unsigned same = 1;

		p->rank_length = (uint32_t)strlen(p->rank);
		for (size_t k = 0; p->n_pools && k < i; k++) {
			struct model_process *q = &model->process[k];

			if (!q->n_pools || q->rank_length != p->rank_length ||
			    memcmp(q->rank, p->rank, p->rank_length) != 0)
				continue;
			same++;
			if (!came_after(p, q))
				p->beside = q->beside = true;
		}
		if (same > 1)
			snprintf(p->rank + p->rank_length, sizeof p->rank - p->rank_length, "#%u", same);
	}
}

/* ---- the run ---- */

/* With a sink the events go there; *regular false: it did not see them all. */
static int open_run(struct model *model, const char *path, const struct settle_sink *sink, bool *regular,
		    struct error *err)
{
	memset(model, 0, sizeof *model);
	if (run_open(&model->run, path, err) != RUN_OK)
		return -1;
	model->process = calloc(model->run.n_processes + 1, sizeof *model->process);
	if (!model->process) {
		error_set(err, "%s: out of memory", path);
		model_close(model);
		return -1;
	}
	model->n_processes = model->run.n_processes;
	for (size_t i = 0; i < model->n_processes; i++)
		model->process[i].from = &model->run.processes[i];
	for (size_t i = 0; i < model->n_processes && *regular; i++) {
		struct model_process *p = &model->process[i];

		if ((sink ? model_settle_process(p, sink, regular, err) : model_load_process(p, err)) != 0) {
			model_close(model);
			return -1;
		}
		name_rank(p);
	}
	number_equal_ranks(model);
	return 0;
}

int model_open(struct model *model, const char *path, struct error *err)
{
	bool regular = true;

	return open_run(model, path, NULL, &regular, err);
}

int model_open_settled(struct model *model, const char *path, const struct settle_sink *sink, bool *regular,
		       struct error *err)
{
	*regular = true;
	return open_run(model, path, sink, regular, err);
}

void model_close(struct model *model)
{
	for (size_t i = 0; model->process && i < model->n_processes; i++) {
		struct model_process *p = &model->process[i];

		model_free_records(p);
		for (size_t k = 0; k < p->n_pools; k++)
			free(p->pool[k].plane);
		free(p->pool);
		free(p->event);
		free(p->print);
		free(p->fold);
		free(p->step);
		free(p->graph);
		free(p->region);
		free(p->callsite);
		free(p->module);
	}
	free(model->process);
	run_close(&model->run);
	memset(model, 0, sizeof *model);
}

/* ---- look-ups ---- */

const struct model_event *model_event(const struct model_process *p, uint64_t id)
{
	size_t low = 0, high = p->n_events;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (p->event[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < p->n_events && p->event[low].id == id ? &p->event[low] : NULL;
}

const struct model_step *model_step(const struct model_process *p, uint64_t number)
{
	/* Steps are numbered from 1 without holes, unless records were lost. */
	if (number && number <= p->n_steps && p->step[number - 1].number == number)
		return &p->step[number - 1];
	for (size_t i = 0; number && i < p->n_steps; i++) {
		if (p->step[i].number == number)
			return &p->step[i];
	}
	return NULL;
}

const struct model_callsite *model_callsite(const struct model_process *p, uint32_t id)
{
	for (size_t i = 0; id && i < p->n_callsites; i++) {
		if (p->callsite[i].id == id)
			return &p->callsite[i];
	}
	return NULL;
}

const char *model_module(const struct model_process *p, uint32_t id)
{
	for (size_t i = 0; id && i < p->n_modules; i++) {
		if (p->module[i].id == id)
			return p->module[i].path;
	}
	return NULL;
}

struct model_fold model_fold(const struct model_process *p, const struct model_event *e)
{
	return e->fold ? p->fold[e->fold - 1] : (struct model_fold) { 0, 0, 0, 0 };
}

uint64_t model_place_key(const char *rank, size_t rank_bytes, const char *pool)
{
	return log_mix64(log_key_hash(rank, rank_bytes) + log_key_hash(pool, strlen(pool)) * 3);
}

const struct model_print *model_subject(const struct model_process *p, const struct model_event *e)
{
	return e->subject == MODEL_NONE ? NULL : &p->print[e->subject];
}

bool model_measured(const struct model_process *p, const struct model_event *e)
{
	const struct model_print *print = model_subject(p, e);

	return e->outcome == CTR_COMMITTED && print && print->complete;
}

const char *model_event_name(uint32_t kind)
{
	static const char *const name[LOG_EV_KIND_COUNT] = { "?",     "donate", "restore", "alloc",
							     "clear", "copy",   "discard", "free" };

	return kind < LOG_EV_KIND_COUNT ? name[kind] : name[0];
}

const char *model_dtype_name(uint32_t dtype)
{
	static const char *const name[] = { "f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i8", "i32", "raw" };

	return dtype < sizeof name / sizeof name[0] ? name[dtype] : "?";
}

static int by_identity(const void *a, const void *b)
{
	const struct model_plane *x = *(const struct model_plane *const *)a, *y = *(const struct model_plane *const *)b;

	return (x->identity > y->identity) - (x->identity < y->identity);
}

static const struct model_plane **planes_in_order(const struct model_pool *pool)
{
	const struct model_plane **list = trouble_need(calloc(pool->n_planes + 1, sizeof *list));

	for (uint32_t i = 0; i < pool->n_planes; i++)
		list[i] = &pool->plane[i];
	if (pool->n_planes)
		qsort(list, pool->n_planes, sizeof *list, by_identity);
	return list;
}

bool model_same_layout(const struct model_pool *a, const struct model_pool *b)
{
	const struct model_plane **x, **y;
	bool same = true;

	if (a->first_slot != b->first_slot || a->n_slots != b->n_slots || a->n_planes != b->n_planes ||
	    a->slot_bytes != b->slot_bytes || a->n_known != a->n_planes || b->n_known != b->n_planes)
		return false;
	x = planes_in_order(a);
	y = planes_in_order(b);
	for (uint32_t i = 0; same && i < a->n_planes; i++)
		same = x[i]->identity == y[i]->identity && x[i]->dtype == y[i]->dtype && x[i]->elems == y[i]->elems &&
		       x[i]->bytes == y[i]->bytes;
	free(x);
	free(y);
	return same;
}

const struct model_region *model_region(const struct model_process *p, int64_t id)
{
	for (size_t i = 0; i < p->n_regions; i++) {
		if ((int64_t)p->region[i].id == id)
			return &p->region[i];
	}
	return NULL;
}

/* ---- a log that was read before, once more ---- */

typedef bool see_record(void *arg, const struct log_record *rec);

static int read_again(const struct model_process *p, see_record *see, void *arg, struct error *err)
{
	const struct log_record *rec;
	struct log log;

	if (!p->from->log_path)
		return 0;
	if (log_open(&log, p->from->log_path, err) != 0)
		return -1;
	while (log_next(&log, &rec) && see(arg, rec))
		;
	log_close(&log);
	return 0;
}

struct planes_again {
	struct print_numbers numbers;
	size_t n_prints;
	model_see *see;
	void *arg;
};

static bool see_part(void *arg, const struct log_record *rec)
{
	struct planes_again *again = arg;
	const struct log_fingerprint *part = (const void *)rec;
	uint32_t number;

	if (rec->type != LOG_FINGERPRINT)
		return true;
	number = print_number(&again->numbers, part);
	return number == MODEL_NONE || number >= again->n_prints || again->see(again->arg, part, number);
}

int model_planes(const struct model_process *p, model_see *see, void *arg, struct error *err)
{
	struct planes_again again = { .n_prints = p->n_prints, .see = see, .arg = arg };
	int failed = read_again(p, see_part, &again, err);

	map_free(&again.numbers.open);
	return failed;
}

struct values_again {
	uint64_t last;
	model_see_values *see;
	void *arg;
};

static bool see_values(void *arg, const struct log_record *rec)
{
	const struct values_again *again = arg;
	const struct log_region_values *values = (const void *)rec;

	return rec->type != LOG_REGION_VALUES || values->event > again->last || again->see(again->arg, values);
}

int model_values(const struct model_process *p, uint64_t last, model_see_values *see, void *arg, struct error *err)
{
	struct values_again again = { last, see, arg };

	return read_again(p, see_values, &again, err);
}
