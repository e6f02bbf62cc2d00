/* SPDX-License-Identifier: Apache-2.0
 *
 * conform.h: how the groups of conform make calls and write down what came of them.
 *
 * A case is one call: T("what", cuSymbol, arguments...) makes it, records its result under "GROUP/cuSymbol what" and
 * returns it; see() adds what else must be the same with every driver. The rules for a case: nothing that a device
 * could fault on, no garbage handles (a driver may read through them), no times, no addresses.
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <stdbool.h>

#define CPU_NO_DECLARATIONS
#include "tests/cpudriver/api.h"

/* What a case has in place of a result: libcuda does not export it; it ended the process. */
enum { CASE_ABSENT = -1, CASE_CRASHED = -2 };

struct conform_driver {
#define CONFORM_MEMBER(symbol, name, version, params)              cu_result(*symbol) params;
#define CONFORM_MEMBER_PAIR(symbol, suffix, name, version, params) cu_result(*symbol) params, (*symbol##suffix)params;
	CPU_CALLS(CONFORM_MEMBER, CONFORM_MEMBER_PAIR)
#undef CONFORM_MEMBER
#undef CONFORM_MEMBER_PAIR
};
extern struct conform_driver cu;

bool case_begin(const char *symbol, const char *what); /* false: this case crashed before and is left out */
cu_result case_end(cu_result result);
void see(const char *key, long long value);
void see_text(const char *key, const char *text);

#define T(what, symbol, ...)                                                                                           \
	(case_begin(#symbol, what) ? case_end(cu.symbol ? cu.symbol(__VA_ARGS__) : CASE_ABSENT) : CASE_CRASHED)

/* What a case only builds on: the group ends here, and the transcript says why, if it fails. */
void setup_failed(const char *call, cu_result result) __attribute__((noreturn));
#define NEED(symbol, ...)                                                                                              \
	do {                                                                                                           \
		cu_result need_result = cu.symbol ? cu.symbol(__VA_ARGS__) : CASE_ABSENT;                              \
                                                                                                                       \
		if (need_result)                                                                                       \
			setup_failed(#symbol, need_result);                                                            \
	} while (0)

/* ---- device.c: what most groups start from ---- */
extern cu_context ctx; /* the primary one of device 0, current */
extern cu_function store, add, wide;
extern cu_stream stream; /* created, not blocking */
extern cu_deviceptr memory;
#define MEMORY_BYTES 4096

extern const char conform_ptx[], toy_ptx[];
void device_open(void);
cu_result launch_store(cu_stream on, cu_deviceptr at, uint32_t value);
uint32_t peek(cu_deviceptr at); /* waits for all that is under way */
void wipe(void);                /* all of `memory` is 0 */
struct cu_kernel_params store_params(cu_deviceptr *at, uint32_t *value, void **params); /* params: two pointers */
void in_thread(void (*fn)(void *argument), void *argument);                             /* with ctx current there */

/* ---- groups ---- */
#define CONFORM_GROUPS(X)                                                                                              \
	X(exports)                                                                                                     \
	X(procaddr)                                                                                                    \
	X(uninitialised)                                                                                               \
	X(devices)                                                                                                     \
	X(contexts)                                                                                                    \
	X(primary)                                                                                                     \
	X(green)                                                                                                       \
	X(modules)                                                                                                     \
	X(libraries)                                                                                                   \
	X(memory)                                                                                                      \
	X(host_memory)                                                                                                 \
	X(virtual_memory)                                                                                              \
	X(copies)                                                                                                      \
	X(launches)                                                                                                    \
	X(attributes)                                                                                                  \
	X(streams)                                                                                                     \
	X(events)                                                                                                      \
	X(capture)                                                                                                     \
	X(fork_join)                                                                                                   \
	X(capture_memory)                                                                                              \
	X(matrix)                                                                                                      \
	X(graphs)                                                                                                      \
	X(edges)                                                                                                       \
	X(node_params)                                                                                                 \
	X(clones)                                                                                                      \
	X(execs)                                                                                                       \
	X(exec_params)                                                                                                 \
	X(updates)                                                                                                     \
	X(children)                                                                                                    \
	X(event_nodes)                                                                                                 \
	X(memory_nodes)                                                                                                \
	X(batch_nodes)                                                                                                 \
	X(conditional_nodes)                                                                                           \
	X(other_nodes)

#define CONFORM_DECLARE(group) void group_##group(void);
CONFORM_GROUPS(CONFORM_DECLARE)
#undef CONFORM_DECLARE

#endif
