/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h: one run in memory, as the comparisons and the report see it: pools, events, what their fingerprints said.
 *
 * Of a fingerprint only a digest of all its planes is kept, so that memory grows with events and not with planes.
 * Whoever needs the planes of a few fingerprints reads the logs again with model_planes.
 */
#ifndef READ_MODEL_H
#define READ_MODEL_H

#include "error.h"
#include "read/audit.h"
#include "read/log.h"
#include "read/run.h"

#define MODEL_PLANES_MAX 65536u
#define MODEL_EVENTS_MAX (1u << 26) /* of one process; more is refused */
#define MODEL_NONE       UINT32_MAX

struct model_plane {
	char tensor[64];
	int32_t layer;
	uint32_t dtype;
	uint64_t base, elems, bytes;
	int64_t stride;
	uint64_t identity; /* of (layer, tensor): the same in both runs */
	bool known;
};

struct model_pool {
	int32_t id, device;
	char name[64];
	int64_t first_slot, n_slots;
	uint32_t n_planes, n_known; /* planes announced, and described */
	uint64_t slot_bytes, launches, pool_launches, t_ns;
	struct model_plane *plane;
	size_t room;
	bool removed;
	uint32_t removed_why;
};

/* What one fingerprint said of one slot. */
struct model_print {
	uint64_t event, t_ns;
	int64_t slot;
	uint64_t rollup;
	uint64_t digest; /* of every fact of every plane; order of registration does not matter */
	double absmax;   /* largest of the planes */
	uint64_t nan, inf;
	uint32_t pool; /* index, MODEL_NONE: its pool was never announced */
	uint32_t role, outcome;
	uint32_t n_planes, total_planes;
	uint32_t number; /* in the order of the log, to find it again */
	bool complete;   /* every plane came, once */
};

struct model_event {
	uint64_t id, t_ns;
	uint32_t kind, pool; /* pool: index or MODEL_NONE */
	int64_t slot;        /* resolved: LOG_NO_SLOT only when no fingerprint told it */
	int64_t claimed_len, key_len;
	uint64_t key;
	int64_t src;
	uint64_t step, launches, pool_launches;
	uint32_t said;    /* the outcome that the event's own record gives */
	uint32_t outcome; /* the final one: the fingerprint's when it failed */
	uint32_t callsite, tid;
	uint32_t subject, source;    /* index of the print, or MODEL_NONE */
	uint32_t watched, n_watched; /* the prints of the watched slots lie together */
	uint32_t fold;               /* 1 + index of the fold that says for how many more it stands; 0: for itself */
	bool wants_print;
	bool discarded; /* a donation that was not taken */
};

/* Donations and restores of a slot that are known to equal their mates in another run, and are not kept: see compare/fold.h.
 * One of them is, and is not counted in the first two. */
struct model_fold {
	uint32_t donations, restores;
	uint64_t launched, keyed; /* of all its donations: after a launch that touches the pool; with a key */
};

struct model_step {
	uint64_t number, value, t_ns;
	int32_t batch, padded;
	uint32_t mode;
	char name[64];
};

struct model_touch {
	uint32_t node, node_type, target;
	int32_t id;
	uint32_t param, param_offset, plane;
	uint64_t address, offset;
	char kernel[128];
};

struct model_graph {
	uint64_t number, t_ns;
	uint32_t nodes, kernels, memcpys, memsets, flags, touches;
	bool destroyed;
	struct model_touch *touch;
	size_t n_touch, room;
};

struct model_region {
	uint32_t id, dtype;
	uint64_t base, bytes;
	char name[64];
};

struct model_callsite {
	uint32_t id, n_frames;
	struct log_frame frame[LOG_FRAMES_MAX];
	char *symbol[LOG_FRAMES_MAX]; /* NULL: none */
};

struct model_module {
	uint32_t id;
	char *path;
};

struct model_axis {
	char name[16];
	int32_t index, count;
};

#define MODEL_AXES_MAX 8

struct model_process {
	const struct run_process *from;
	char rank[96];        /* "tp0.pp0.dp0", with "#2" for the second process of one rank: its second life */
	uint32_t rank_length; /* of the rank without its life */
	bool beside;          /* another process of that rank was there at the same time, as far as can be told */
	uint64_t last_ns; /* of the last event or pool, once somebody asked; before, of the events that were not kept */
	struct model_axis axis[MODEL_AXES_MAX];
	uint32_t n_axes;

	struct model_pool *pool;
	struct model_event *event; /* in the order of their ids */
	struct model_print *print; /* in the order of (event, role, log) */
	struct model_fold *fold;   /* where donations were folded */
	struct model_step *step;
	struct model_graph *graph;
	struct model_region *region;
	struct model_callsite *callsite;
	struct model_module *module;
	size_t n_folds, room_folds;
	size_t n_pools, n_events, n_prints, n_steps, n_graphs, n_regions, n_callsites, n_modules;
	size_t room_pools, room_events, room_prints, room_steps, room_graphs, room_regions, room_callsites,
		room_modules;

	char device[64]; /* "" if unknown */
	int32_t driver_version;
	struct log_damage damage;
	struct audit audit;      /* of the log against the page */
	uint64_t records;        /* that the log holds, readable or not */
	uint64_t contradictions; /* records that do not fit each other: an event twice, a plane out of order */
	uint64_t unrouted;
	char unrouted_name[64];
	char bypassing[128],
		bypassed_name[64]; /* the first object that is bound past us, and one name that it refers to */
	uint64_t disk_stop_free;
	bool has_log, ended, disk_stopped;
};

struct model {
	struct run run;
	struct model_process *process;
	size_t n_processes;
};

/* Opens and reads a run. 0, or -1 with *err set: not readable as a run. Loss is no error: see each process's damage. */
int model_open(struct model *model, const char *path, struct error *err);
void model_close(struct model *model);

/* True when the fingerprint of the event's own slot is whole. */
bool model_measured(const struct model_process *process, const struct model_event *event);
/* What else the event stands for; nothing where it was not folded. */
struct model_fold model_fold(const struct model_process *process, const struct model_event *event);
/* Of a pool of a rank, whose text may end with the number of its life: for indexes. */
uint64_t model_place_key(const char *rank, size_t rank_bytes, const char *pool);
const struct model_print *model_subject(const struct model_process *process, const struct model_event *event);
const struct model_event *model_event(const struct model_process *process, uint64_t id);
const struct model_step *model_step(const struct model_process *process, uint64_t number);
const struct model_region *model_region(const struct model_process *process, int64_t id);
const struct model_callsite *model_callsite(const struct model_process *process, uint32_t id);
const char *model_module(const struct model_process *process, uint32_t id);
const char *model_event_name(uint32_t kind);
const char *model_dtype_name(uint32_t dtype);

/* True when two pools have the same slots and planes: what must match across runs (addresses and strides may not). */
bool model_same_layout(const struct model_pool *a, const struct model_pool *b);

/* Reads a process's logs again and calls `see` for each part of each fingerprint: the part as it stands in the log
 * and the number of its print. false from `see` stops. -1: the log could not be opened again. */
typedef bool model_see(void *arg, const struct log_fingerprint *part, uint32_t print_number);
int model_planes(const struct model_process *process, model_see *see, void *arg, struct error *err);

/* The same for the integers that regions held when the slots of events were read, up to this event. */
typedef bool model_see_values(void *arg, const struct log_region_values *values);
int model_values(const struct model_process *process, uint64_t last, model_see_values *see, void *arg,
		 struct error *err);

#endif
