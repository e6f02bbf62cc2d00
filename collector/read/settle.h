/* SPDX-License-Identifier: Apache-2.0
 *
 * settle.h: the events of a process one by one, in the order of their ids, each with its fingerprints, in memory that does not
 * grow with their number.
 *
 * A log holds events nearly in the order of their ids, and a fingerprint soon after its event. So a window over the ids is
 * enough: an event leaves it when it is whole and so are some that are newer. What does not fit that picture, and every
 * contradiction, makes the log irregular: then nothing that was handed out counts, and whoever asked loads the whole model.
 */
#ifndef READ_SETTLE_H
#define READ_SETTLE_H

#include "read/model.h"

/* An event with its fingerprints: as in the model, but that its indexes point nowhere. */
struct settled {
	struct model_event event;
	struct model_print subject;
	struct settled_source { /* of a copy */
		uint64_t rollup, digest;
		uint32_t pool;
		bool complete;
	} source;
	bool has_subject, has_source;
};

/* As model_measured, of an event that is not kept. */
static inline bool settle_measured(const struct settled *settled)
{
	return settled->event.outcome == CTR_COMMITTED && settled->has_subject && settled->subject.complete;
}

/* For tests: whether SLOTPROBE_READING asks that runs be read "whole", or "folded" and nothing else. */
bool settle_asked(const char *reading);

/* Whoever asks for them; false from `take`: no more, and the log counts as irregular. */
typedef bool settle_take(void *arg, const struct model_process *process, const struct settled *settled);
struct settle_sink {
	settle_take *take;
	void *arg;
	bool digests_of_copies; /* and of nothing else: what is left out is 0 */
};

/* Opens and reads a run as model_open does, but that it keeps no events, fingerprints and steps: the sink gets the events of
 * one process after the other. *regular false: it did not get them all, and what it got does not count. */
int model_open_settled(struct model *model, const char *path, const struct settle_sink *sink, bool *regular,
		       struct error *err);

struct settle_entry;

struct settle {
	const struct settle_sink *sink;
	const struct model_process *process;
	struct audit *audit;
	struct settle_entry *ring; /* an id's entry is at id % room */
	uint64_t room, base, newest, held;
	uint64_t printed;        /* the newest id whose fingerprint has come */
	struct model_print open; /* the fingerprint whose parts are coming */
	bool begun, irregular;
	bool undigested; /* of `open` no digest is asked */
};

/* Where an event of that id is to be written, before settle_event takes it; NULL: the log is irregular. */
struct model_event *settle_room(struct settle *settle, uint64_t id);
void settle_event(struct settle *settle, const struct model_event *event);
/* Whether somebody may ask for the digest of a fingerprint of that event. */
bool settle_wants_digest(struct settle *settle, uint64_t id);
/* Where the fingerprint of the event's own slot is to be written, by one who writes it whole before the next record, and whether it
 * wants a digest; NULL: the log is irregular. */
struct model_print *settle_subject_room(struct settle *settle, uint64_t id, bool *digested);
/* A fingerprint all of whose parts have come. */
void settle_print(struct settle *settle, const struct model_print *print);
/* Hands out what is left. */
void settle_end(struct settle *settle);
void settle_free(struct settle *settle);

#endif
