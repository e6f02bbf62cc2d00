/* SPDX-License-Identifier: Apache-2.0
 *
 * fake.h: what the tests of probes/core put in the place of the driver and of the recorder, and look at afterwards.
 */
#ifndef TEST_FAKE_H
#define TEST_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probes/core/core.h"
#include "probes/core/graph.h"

/* ---- the recorder: keeps every record, commits at once ---- */

#define FAKE_RECORDS 20000u

struct fake_record {
	union {
		struct log_record h;
		struct log_event event;
		struct log_fingerprint fingerprint;
		struct log_graph graph;
		struct log_graph_touch touch;
		struct log_region_values values;
		struct log_pool pool;
		struct log_pool_remove removed;
		struct log_plane plane;
		struct log_key_text key_text;
		struct log_launch launch;
		struct log_step step;
		struct log_rank rank;
		struct log_device device;
		struct log_unrouted unrouted;
		struct log_bypassed bypassed;
		unsigned char room[LOG_RECORD_MAX];
	};
};

struct fake_recorder {
	struct record_options options;
	bool queue_full;
	uint32_t room;    /* records until the queue is full; 0: it is not limited */
	unsigned refused; /* records that found it full */
	struct fake_record *record;
	uint32_t n;
	uint32_t committed; /* the record with which an attempt was committed last */
	char rank[64], driver[64];
	unsigned wakes;
};
extern struct fake_recorder fake;

/* The k-th record of this type, or NULL. */
const struct fake_record *fake_find(enum log_type type, unsigned k);
unsigned fake_count(enum log_type type);
const struct ctr_row *fake_row(enum ctr_core_row row);
/* Its first outcome, wherever it is counted. */
uint64_t fake_committed(enum ctr_core_row row);
/* A launch, in turn on the thread with words of its own and on another. */
void fake_graph_launch(cu_graph_exec exec, cu_result result);
/* Polls as the writer does until nothing is awaited or `turns` are over. Returns what is still awaited. */
unsigned fake_turns(unsigned turns);

/* ---- the driver: host memory is device memory; kernels run when they are launched, or when the test lets them ---- */

struct fake_node {
	int type;
	cu_result rc; /* of reading it */
	struct cu_kernel_params kernel;
	struct cu_memcpy_params copy;
	struct cu_memset_params set;
	cu_graph child;
};
/* Claims that usual.c would take go there, or all to claim.c. From the next fake_reset on. */
extern bool fake_usual;
void fake_find_driver(void);

struct cu_graph_st {
	size_t n;
	cu_result rc;
	struct fake_node node[16];
};

struct fake_kernel { /* a cu_function or cu_kernel of the tests */
	const char *name;
	unsigned n;
	size_t offset[8], bytes[8];
};

struct fake_device {
	bool absent;                             /* no driver in this process */
	cu_context current, stream_ctx, primary; /* stream_ctx: of every created stream */
	cu_device current_device;
	int capturing;
	cu_result capture_rc, launch_rc, library_rc, register_rc, alloc_rc, copy_rc;
	bool legacy_refused;
	size_t register_most; /* bytes that may be registered in one piece; 0: it is not limited */
	cu_result map_rc;     /* of asking where registered memory lies on the device */
	unsigned legacy_open, guards_open, pushes, pops, launches, retains, releases, bypass_looks, registers,
		unregisters;
	bool hold;                          /* fingerprints wait for fake_run */
	uint32_t graph_stall;               /* the same for the reading of a graph */
	uint32_t stall;                     /* 1: a fingerprint that is being launched says 2 and waits for 0 */
	bool ready_dead;                    /* the ready kernel never runs */
	uint64_t unknown_low, unknown_high; /* addresses that the driver does not know */
	uint64_t other_low, other_high;     /* addresses of another device's memory */
	struct fp_launch held[PROBE_SHOTS];
	unsigned n_held;
};
extern struct fake_device fake_gpu;

void fake_run(void); /* the kernels that were held */

#define FAKE_CTX    ((cu_context)(uintptr_t)0xc0)
#define FAKE_OTHER  ((cu_context)(uintptr_t)0xc1)
#define FAKE_STREAM 0x5000u

/* ---- both ---- */

void fake_reset(void); /* a fresh process: recording, one device, its context current */

/* ---- a pool of `slots` slots, two layers x {conv bf16, ssm f32}, layer-major ---- */

#define TOY_SLOTS  8
#define TOY_PLANES 4
#define TOY_ELEMS  300u

struct toy_pool {
	uint16_t conv[2][TOY_SLOTS][TOY_ELEMS];
	float ssm[2][TOY_SLOTS][TOY_ELEMS];
	struct slotprobe_plane plane[TOY_PLANES];
	struct slotprobe_pool said;
};
extern struct toy_pool toy;

int toy_add(int32_t device); /* fills it and registers it */
uint32_t toy_shots(void);    /* that its 16 MiB of result buffers hold */
struct slotprobe_claim toy_claim(int pool, int64_t slot);
/* attempted == what is given, all of it with this outcome, and nothing in flight */
void assert_row(enum ctr_core_row row, unsigned attempted, enum ctr_outcome outcome);
void assert_print_is_of(const struct fake_record *r, const struct toy_pool *pool, int64_t slot);

#endif
