/* SPDX-License-Identifier: Apache-2.0
 *
 * observer.c: stands in for probes/core: counts what the shim tells and spoils errno each time, to see that it is kept.
 */
#include <errno.h>
#include <stdio.h>

#include "shim/hook/driver.h"
#include "shim/hook/observer.h"
#include "observer.h"

#define EXPORT        __attribute__((visibility("default")))
#define COUNT(member) (__atomic_fetch_add(&seen.member, 1, __ATOMIC_RELAXED), errno = 99)

static struct seen seen;

static void cuda_ready(void)
{
	COUNT(ready);
}

static cu_result launch_end(cu_graph_exec exec, cu_stream stream, cu_result result)
{
	__atomic_fetch_add(&seen.ends, 1, __ATOMIC_RELAXED); /* errno is ours to keep here */
	__atomic_store_n(&seen.exec, (uintptr_t)exec, __ATOMIC_RELAXED);
	__atomic_store_n(&seen.stream, (uintptr_t)stream, __ATOMIC_RELAXED);
	__atomic_store_n(&seen.result, result, __ATOMIC_RELAXED);
	return result;
}

static cu_result own_launch_end(cu_graph_exec exec, cu_stream stream, cu_result result)
{
	__atomic_fetch_add(&seen.own_ends, 1, __ATOMIC_RELAXED);
	return launch_end(exec, stream, result);
}

static void runtime_launch(unsigned driver_launches, int result)
{
	COUNT(runtime);
	if (!driver_launches)
		COUNT(runtime_missed);
	__atomic_store_n(&seen.result, result, __ATOMIC_RELAXED);
}

static void instantiated(cu_graph_exec exec, cu_graph graph, cu_result result)
{
	COUNT(instantiated);
	seen.exec = (uintptr_t)exec;
	seen.graph = (uintptr_t)graph;
	seen.result = result;
}

static void updated(cu_graph_exec exec, cu_graph graph, cu_result result)
{
	COUNT(updated);
	seen.exec = (uintptr_t)exec;
	seen.graph = (uintptr_t)graph;
	seen.result = result;
}

static void node_set(cu_graph_exec exec, cu_graph_node node, enum shim_node_kind kind, const void *params,
		     cu_result result)
{
	COUNT(node_set);
	seen.exec = (uintptr_t)exec;
	seen.node = (uintptr_t)node;
	seen.params = (uintptr_t)params;
	seen.kind = kind;
	seen.result = result;
}

/* How often the driver had been called when we were told, to see that it was before. */
static unsigned driver_calls(void)
{
	extern unsigned fake_total(void) __attribute__((weak));

	return fake_total ? fake_total() : 0;
}

static void destroying(cu_graph_exec exec)
{
	COUNT(destroying);
	seen.exec = (uintptr_t)exec;
	seen.driver_calls_before = driver_calls();
}

static void releasing(uint64_t address, uint64_t bytes, enum shim_release how)
{
	COUNT(releasing);
	seen.address = address;
	seen.bytes = bytes;
	seen.how = how;
	seen.driver_calls_before = driver_calls();
}

static void context_going(cu_context ctx, cu_device device)
{
	COUNT(context_going);
	seen.ctx = (uintptr_t)ctx;
	seen.device = device;
	seen.driver_calls_before = driver_calls();
}

static void unrouted(const char *name, int version, uint64_t flags)
{
	COUNT(unrouted);
	snprintf(seen.unrouted_name, sizeof(seen.unrouted_name), "%s", name);
	seen.unrouted_version = version;
	seen.unrouted_flags = flags;
}

static void bypassed(const char *symbol, const char *object)
{
	COUNT(bypassed);
	snprintf(seen.bypassed_symbol, sizeof(seen.bypassed_symbol), "%s", symbol);
	snprintf(seen.bypassed_object, sizeof(seen.bypassed_object), "%s", object);
}

const struct shim_observer shim_observer = {
	.cuda_ready = cuda_ready,
	.launch_begun = &seen.begun,
	.own_launch_begun = &seen.own_begun,
	.launch_end = launch_end,
	.own_launch_end = own_launch_end,
	.runtime_launch = runtime_launch,
	.instantiated = instantiated,
	.updated = updated,
	.node_set = node_set,
	.destroying = destroying,
	.releasing = releasing,
	.context_going = context_going,
	.unrouted = unrouted,
	.bypassed = bypassed,
};

EXPORT struct seen *slotprobe_test_seen(void)
{
	return &seen;
}

EXPORT void slotprobe_test_bypass_look(void)
{
	shim_bypass_look();
}

EXPORT unsigned slotprobe_test_captures(void)
{
	return shim_captures_open();
}

EXPORT bool slotprobe_test_legacy_begin(void)
{
	return shim_legacy_begin();
}

EXPORT void slotprobe_test_legacy_end(void)
{
	shim_legacy_end();
}

EXPORT bool slotprobe_test_driver_complete(void)
{
	return shim_driver() && shim_driver()->complete;
}

static void (*between_looks)(void);

EXPORT void slotprobe_test_between_looks(void (*then)(void))
{
	between_looks = then;
}

/* Where capture.c is compiled with -finstrument-functions: a place to stand in the middle of a race. */
void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site)
{
	(void)function, (void)site;
}

void __cyg_profile_func_exit(void *function, void *site)
{
	void (*then)(void) = between_looks;

	(void)site;
	if (function != (void *)shim_captures_open || !then)
		return;
	between_looks = NULL;
	then();
}
