/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h: the invariants that one run must hold by itself, whatever the server's numerics do.
 */
#ifndef COMPARE_CHECK_H
#define COMPARE_CHECK_H

#include "options.h"
#include "read/model.h"
#include "reasons.h"

/* reason code when broken, name, what must hold, which events it needs. */
#define INVARIANTS(X)                                                                                                  \
	X(never_written, "written", "the state at a donation is not the one that the slot was allocated with",         \
	  "core.alloc")                                                                                                \
	X(restore_differs, "restore", "a restored state is the one that was donated", "core.restore")                  \
	X(copy_differs, "copy", "a copy equals its source", "core.copy")                                               \
	X(length_disagrees, "length", "state length and key length agree", "donations with a key length")              \
	X(non_finite, "finite", "no donated state holds NaN or Inf", "core.donate")                                    \
	X(same_hash_other_key, "distinct", "different keys never have the same state",                                 \
	  "donations whose key stands for exactly the claimed tokens")

enum invariant {
#define INVARIANT_ENUM(code, ...) INVARIANT_##code,
	INVARIANTS(INVARIANT_ENUM)
#undef INVARIANT_ENUM
		INVARIANT_COUNT
};

struct invariant_row {
	enum reason_code code;
	const char *name, *text, *needs;
};
extern const struct invariant_row invariant_rows[INVARIANT_COUNT];

#define CHECK_EXAMPLES 8

struct check_example {
	uint32_t process, event, other; /* other: the event that it was held against, or MODEL_NONE */
};

struct check_result {
	uint64_t checked, broken; /* checked 0: its events were not reported */
	struct check_example example[CHECK_EXAMPLES];
	uint32_t n_examples;
};

struct check {
	struct model model;
	struct reasons reasons;
	struct check_result result[INVARIANT_COUNT];
	uint64_t donations, measured, restores;
	uint64_t noise; /* donations whose state is not that of an earlier one of the same key and length */
};

/* 0, or -1 with *err set: exit status 2. */
int check_run(struct check *check, const char *path, const struct options *options, struct error *err);
void check_free(struct check *check);
const char *check_verdict(const struct check *check); /* "holds", "broken", "not_proven" */

#endif
