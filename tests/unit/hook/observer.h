/* SPDX-License-Identifier: Apache-2.0
 *
 * observer.h: what the test observer saw; shared by it and the test programs.
 */
#ifndef TEST_OBSERVER_H
#define TEST_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/record/log_format.h"

struct seen {
	uint64_t begun, own_begun; /* as a row of the counters page has them */
	unsigned ready, ends, own_ends, runtime, runtime_missed, instantiated, updated, node_set, destroying, releasing,
		context_going, unrouted, bypassed;
	uintptr_t exec, stream, graph, node, params, ctx;
	uint64_t address, bytes, unrouted_flags;
	int result, kind, how, device, unrouted_version;
	unsigned driver_calls_before; /* fake_count of the call that a "before" was told of, just then */
	char unrouted_name[64], bypassed_symbol[64], bypassed_object[256];
};

#define BEGINS(seen) ((unsigned)(CTR_ATTEMPTED((seen)->begun) + CTR_ATTEMPTED((seen)->own_begun)))

/* Exported by the test preload under a name that the export list allows. */
struct seen *slotprobe_test_seen(void);
void slotprobe_test_bypass_look(void);
unsigned slotprobe_test_captures(void);
bool slotprobe_test_legacy_begin(void);
void slotprobe_test_legacy_end(void);
bool slotprobe_test_driver_complete(void);
/* Called, in the preload that is built for it, between the two looks of shim_legacy_begin. */
void slotprobe_test_between_looks(void (*then)(void));

#endif
