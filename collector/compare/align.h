/* SPDX-License-Identifier: Apache-2.0
 *
 * align.h: which donation of run A is which of run B.
 *
 * A row is one slot of one pool of one rank. Its occurrences on either side are its donations in the order of their
 * events, each with the restores that follow it. Alignment gives an occurrence its mate in the other run.
 */
#ifndef COMPARE_ALIGN_H
#define COMPARE_ALIGN_H

#include "read/map.h"
#include "read/model.h"

#define ALIGN_NONE UINT32_MAX

enum align_mode { ALIGN_AUTO, ALIGN_SLOT, ALIGN_KEY, ALIGN_ORDER };

struct align_ref { /* an event of one side */
	uint32_t process, event;
};

struct align_restore {
	struct align_ref at;
	uint32_t next;
	uint32_t occurrence; /* that it follows, on its side */
	uint32_t mate;       /* on the other side */
	bool differs;        /* set by the comparison */
};

struct align_occurrence {
	struct align_ref at;  /* event ALIGN_NONE: restores that came before any donation of the slot */
	uint32_t row, number; /* 1, 2, ... within its slot; 0 for the restores before the first */
	uint32_t next;        /* of its row, on its side */
	uint32_t mate;        /* on the other side */
	uint32_t restore, last_restore, n_restores;
	bool reused;         /* the slot had another owner before */
	bool restored;       /* since its owner got it, the slot was restored or copied into */
	bool launched;       /* a graph that touches the pool was launched since the slot was last set up */
	bool equal, differs; /* set by the comparison; a loss is neither */
};

struct align_row {
	uint32_t group;
	int64_t slot; /* LOG_NO_SLOT: donations whose slot id never came back from the device */
	struct {
		uint32_t first, last, donations;
	} side[2];
};

struct align_group { /* one pool of one life of a rank, in both runs */
	const char *rank, *pool;
	uint32_t rank_length;   /* of the rank without its life */
	uint32_t first_life;    /* group of the first life of that rank and pool; its own */
	uint32_t kin;           /* the same, where its donations may have mates in another life */
	uint32_t lives[2];      /* of the first life: how many there are */
	bool in_turn;           /* of the first life: each was over when the next began */
	bool says_rank, beside; /* its processes say a rank; one was there together with another of that rank */
	const struct model_pool *layout[2]; /* NULL: absent on that side */
	uint64_t donations[2];
	uint64_t of_kin[2];          /* of its kin together, where it stands for them */
	bool same_layout, steady[2]; /* steady: registered again only with the layout it had */
};

struct align_side {
	const struct model *model;
	uint32_t **group_of_pool; /* [process][pool] */
	struct align_occurrence *occurrence;
	struct align_restore *restore;
	size_t n_occurrences, n_restores, room_occurrences, room_restores;
	uint64_t donations, restores, without_pool;
};

/* How many donations a way of pairing lines up, and how many not. */
struct align_count {
	uint64_t aligned, unaligned;
	bool tried;
};

struct alignment {
	enum align_mode mode; /* the one that was used */
	struct align_count
		count[ALIGN_ORDER + 1]; /* of each way that was tried: all, where the used one leaves a rest */
	struct align_side side[2];
	struct align_group *group;
	struct align_row *row; /* sorted by rank, pool, slot */
	size_t n_groups, n_rows, room_groups, room_rows;
	struct map group_index, row_index;
	uint64_t aligned, mismatched, alone[2]; /* donations paired; paired with another claim; without a mate */
	uint64_t restores_alone[2];             /* restores without a mate */
	uint64_t across_lives;                  /* donations paired with one of another life */
	bool several_lives;                     /* some rank has */
	uint64_t by_key;                        /* pairs that a key proves; lengths alone prove the others */
	uint64_t without_key[2];                /* donations that can have no mate by key */
};

/* 0, or -1: out of memory. */
int align_runs(struct alignment *alignment, const struct model *a, const struct model *b, enum align_mode mode);
void align_free(struct alignment *alignment);

const struct model_event *align_event(const struct align_side *side, struct align_ref ref);
const struct model_process *align_process(const struct align_side *side, struct align_ref ref);
/* How many donations this one stands for: 1, but where they were folded. */
uint64_t align_weight(const struct align_side *side, struct align_ref ref);
const char *align_mode_name(enum align_mode mode);

/* The way that would line up more donations than the one that was used: the most. ALIGN_AUTO: none. */
enum align_mode align_proposal(const struct alignment *alignment);

/* Two events claim the same: key, length, key length, and whether the donation was taken. */
bool align_same_claim(const struct model_event *a, const struct model_event *b);

#endif
