/* SPDX-License-Identifier: Apache-2.0
 *
 * cpudriver.h: the objects of the CPU driver and what its files offer to each other.
 *
 * One lock guards every object. An API function holds it from api_enter() to its return; only waiting for a stream, the
 * code of kernels and host functions, and dlopen/dlsym (which take the loader's lock) happen without it.
 * A stream is a FIFO that a thread of its own executes. Everything that a program can put on a stream, and everything
 * that a graph node can do, is one `struct work`; submit() is the one door, which either queues it or, on a capturing
 * stream, records it as a node.
 */
#ifndef CPUDRIVER_H
#define CPUDRIVER_H

#include <pthread.h>
#include <stdbool.h>

#include "abi.h"
#include "api.h"
#include "cpukernel.h"

#define CPU_DRIVER_VERSION 13000
#define CPU_MAX_DEVICES    16
#define CPU_DEVICE_BYTES   ((size_t)8 << 30)

/* ---- api.c: entering and leaving ---- */
enum cpu_need { NEED_NOTHING, NEED_INIT, NEED_CONTEXT };

struct api_scope {
	cu_result result;
	bool locked;
};

struct api_scope api_enter(enum cpu_call call, enum cpu_need need);
void api_leave(struct api_scope *scope);

#define API(symbol, need)                                                                                              \
	struct api_scope api_scope __attribute__((cleanup(api_leave))) = api_enter(CALL_##symbol, need);               \
	if (api_scope.result)                                                                                          \
	return api_scope.result

void cpu_lock(void);
void cpu_unlock(void);
void cpu_wait(pthread_cond_t *cond); /* with the lock held */
void cpu_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
cu_result cpu_lacks(const char *what); /* says that it is not implemented: CU_NOT_SUPPORTED, never in silence */
void *cpu_alloc(size_t bytes);         /* zeroed; ends the process loudly when there is none: it is a test driver */
uint64_t cpu_next_id(void);
uint64_t cpu_thread(void); /* a number for the calling thread, never used again */
cu_result cpu_init(void);
int cpu_device_count(void);
bool cpu_device_ok(cu_device device);
extern unsigned cpu_delay_us;      /* $CPUDRIVER_DELAY_US: what each operation waits before it starts */
extern _Atomic(bool) cpu_stopping; /* the process is exiting: streams start nothing more */

/* ---- handles.c: which handles are alive ---- */
enum cpu_kind {
	KIND_CONTEXT,
	KIND_GREEN,
	KIND_STREAM,
	KIND_EVENT,
	KIND_MODULE,
	KIND_LIBRARY,
	KIND_KERNEL,
	KIND_FUNCTION,
	KIND_GRAPH,
	KIND_NODE,
	KIND_EXEC,
	KIND_RESOURCES,
	KIND_CONDITION,
};

void handle_add(enum cpu_kind kind, const void *object);
void handle_remove(const void *object);
bool handle_is(enum cpu_kind kind, const void *object);

/* ---- context.c ---- */
struct cu_green_ctx_st {
	cu_context ctx;
};

struct cu_context_st {
	cu_device device;
	unsigned flags;
	uint64_t id;
	bool primary, alive;
	int retained; /* primary: how often */
	cu_green_ctx green;
	cu_result sticky; /* a failure on the device: every later call answers it */
	cu_stream legacy;
	cu_stream streams; /* all of them, the default ones too */
	cu_module modules;
	cu_context next;
};

cu_context context_current(void);
bool context_ok(cu_context ctx);
cu_context context_first(void); /* for walking over all: ->next */
cu_context context_new(cu_device device, unsigned flags);
void context_end(cu_context ctx);

/* ---- work.c: what streams execute and graph nodes hold ---- */
enum work_kind {
	WORK_EMPTY,
	WORK_KERNEL,
	WORK_MEMCPY,
	WORK_MEMSET,
	WORK_HOST,
	WORK_EVENT,  /* records an event */
	WORK_FREE,   /* gives memory back */
	WORK_PLAN,   /* an executable graph */
	WORK_ALLOC,  /* node: owns graph memory */
	WORK_UNUSED, /* node: graph memory is no longer used */
	WORK_RECORD, /* node: records an event */
	WORK_WAIT,   /* node: waits for an event */
	WORK_BATCH,  /* writes and waits for words of memory */
	WORK_CONDITIONAL,
};

struct work {
	int refs;
	enum work_kind kind;
	cu_context ctx;
	union {
		struct {
			cu_function func;
			cu_kernel kern;
			void (*code)(const struct cpu_kernel_launch *launch, void **params);
			struct cpu_kernel_launch launch;
			unsigned n_params;
			void **params;
			bool programmatic; /* need not wait for the end of what is before it */
			bool by_extra;     /* its parameters came as one buffer */
			void *extra[5];
			size_t extra_bytes;
		} kernel;
		struct {
			struct cu_memcpy_params params;
			void *staged; /* pageable source, copied when the call was made */
		} memcpy;
		struct cu_memset_params memset;
		struct cux_host_params host;
		cu_event event;
		cu_deviceptr ptr;
		struct {
			cu_deviceptr ptr;
			size_t bytes;
			bool instantiated; /* one executable graph at a time has this memory */
		} alloc;
		struct plan *plan;
		struct {
			unsigned n;
			union cux_mem_op *op;
		} batch;
		struct {
			struct condition *condition;
			int type;
			unsigned n;
			struct plan **body;
		} conditional;
	};
	uint64_t data[]; /* kernel parameters, the staged bytes, operations, or the bodies' plans */
};

struct work *work_new(enum work_kind kind, cu_context ctx, size_t data_bytes);
struct work *work_ref(struct work *work);
void work_put(struct work *work);
cu_result work_check(const struct work *work);           /* are the addresses ours, now */
void work_execute(struct work *work, uint64_t sequence); /* without the lock */
int work_node_type(const struct work *work);
struct work *work_memcpy(cu_context ctx, const struct cu_memcpy_params *params);
struct work *work_memset(cu_context ctx, const struct cu_memset_params *params);
struct work *work_host(cu_context ctx, const struct cux_host_params *params);
struct work *work_plan(cu_context ctx, struct plan *plan);
bool work_in_host_function(void);
void plan_execute(const struct plan *plan); /* without the lock */

/* ---- stream.c ---- */
struct wait { /* until stream has completed its operation number sequence */
	cu_stream stream;
	uint64_t sequence;
};

struct operation;

enum stream_role { STREAM_CREATED, STREAM_LEGACY, STREAM_PER_THREAD };

struct node_set {
	cu_graph_node *node;
	size_t n;
};

struct cu_stream_st {
	cu_context ctx;
	unsigned flags;
	int priority;
	uint64_t id;
	enum stream_role role;
	bool blocking;  /* ordered with the legacy stream */
	uint64_t owner; /* thread of a per-thread stream */
	int refs;
	bool gone, has_thread;
	uint64_t enqueued, completed;
	struct operation *head, **tail;
	pthread_cond_t work;
	struct capture *capture;
	struct node_set captured;    /* what the next recorded node depends on */
	struct cux_edge_data *edges; /* as cuStreamGetCaptureInfo_v3 told them */
	cu_stream next;
};

cu_stream stream_new(cu_context ctx, unsigned flags, enum stream_role role);
void stream_put(cu_stream stream);
void stream_end(cu_stream stream);
cu_result stream_find(cu_stream handle, bool per_thread, cu_stream *stream);
uint64_t stream_enqueue(cu_stream stream, struct work *work, const struct wait *waits, size_t n); /* takes over work */
void stream_wait(cu_stream stream, uint64_t sequence);
void stream_stop_waiting(void);    /* wakes everybody who waits for a stream: the process is exiting */
void stream_drain(cu_context ctx); /* waits until nothing runs in ctx; NULL: in any */

/* Queues or records. Takes over `work`, also when it fails. *sequence is 0 when it was recorded. */
cu_result submit(cu_stream stream, struct work *work, uint64_t *sequence);

/* ---- event.c ---- */
struct cu_event_st {
	cu_context ctx;
	unsigned flags;
	int refs;
	cu_stream stream;  /* recorded there ... */
	uint64_t sequence; /* ... as this operation */
	uint64_t time_ns;  /* when it completed */
	uint64_t capture;  /* != 0: recorded in that capture, after ... */
	struct node_set captured;
};

void event_put(cu_event event);
void event_completed(cu_event event, uint64_t sequence);
struct work *work_event(enum work_kind kind, cu_context ctx, cu_event event); /* takes a count of the event */
void event_mark(cu_event event, cu_stream stream, uint64_t sequence);         /* recorded there, as that operation */

/* ---- capture.c ---- */
struct capture {
	uint64_t id, thread;
	int mode;
	bool broken, to_graph;
	cu_context ctx;
	cu_stream origin;
	cu_graph graph;
	struct capture *next;
};

/* A call that capture forbids ("potentially unsafe"): 900, and the captures that forbid it are invalidated. */
cu_result capture_unsafe(void);
/* The legacy stream is touched: 906 while a blocking stream of ctx captures; `invalidate` says whether they survive. */
cu_result capture_implicit(cu_context ctx, bool invalidate);
/* 900 while anything captures in ctx; invalidates. */
cu_result capture_forbids_all(cu_context ctx);
/* `stream` is to be waited for or asked: 900 and 901 if it captures, else as above. */
cu_result capture_forbids_waiting(cu_stream stream);
void capture_break(struct capture *capture);
void capture_abandon(cu_stream stream); /* its stream goes */
struct capture *capture_find(uint64_t id);
bool capture_owns(cu_graph graph); /* it is being captured into */
cu_result capture_record(cu_stream stream, struct work *work);
cu_result capture_event(cu_event event, cu_stream stream);
cu_result capture_wait(cu_stream stream, cu_event event);
void node_set_copy(struct node_set *to, const struct node_set *from);
void node_set_clear(struct node_set *set);

/* ---- memory.c ---- */
enum { MEMORY_VIRTUAL_ACCESS = 2, MEMORY_GRAPH_ALLOCATED = 4, MEMORY_POOL = 8 }; /* in the flags of its kind */
enum memory_kind { MEMORY_DEVICE, MEMORY_HOST, MEMORY_REGISTERED, MEMORY_VIRTUAL, MEMORY_GRAPH };

struct memory {
	uint64_t base, bytes, mapped;
	enum memory_kind kind;
	cu_context ctx;
	uint64_t id;
	unsigned flags;
};

struct memory *memory_find(uint64_t address);
bool memory_has(uint64_t address, uint64_t bytes); /* the device can read and write all of it */
struct memory *memory_insert(uint64_t base, uint64_t bytes, enum memory_kind kind, cu_context ctx);
void memory_remove(struct memory *memory);
cu_result memory_new(size_t bytes, enum memory_kind kind, int mmap_flags, uint64_t *base);
void memory_release(uint64_t base); /* unmaps */
void memory_end_context(cu_context ctx);
size_t memory_in_use(cu_device device);
void virtual_range(uint64_t address, uint64_t *base, uint64_t *bytes); /* of the reservation around it */

/* ---- kernel.c, module.c, ptx.c ---- */
struct ptx_param {
	size_t offset, bytes;
};

struct ptx_entry {
	char *name;
	struct ptx_param *param;
	unsigned n_params;
	size_t param_bytes;
	unsigned most_shared; /* dynamic shared bytes of a launch */
	void (*code)(const struct cpu_kernel_launch *launch, void **params);
};

struct ptx {
	struct ptx_entry *entry;
	unsigned n_entries;
};

cu_result ptx_parse(const char *text, struct ptx *ptx); /* without the lock */
void ptx_free(struct ptx *ptx);

struct cu_module_st {
	cu_context ctx;
	struct ptx ptx;
	cu_module next;
};

struct cu_library_st {
	cu_result unreadable; /* its image is looked at when a kernel is asked for */
	struct ptx ptx;
};

struct cu_kernel_st {
	cu_library library;
	struct ptx_entry *entry;
	cu_kernel next;
};

struct cu_function_st { /* an entry in one context */
	cu_context ctx;
	cu_module module; /* it comes from this ... */
	cu_kernel kernel; /* ... or that */
	struct ptx_entry *entry;
	bool loaded;
	cu_function next;
};

void kernels_open(void); /* once, without the lock */
void *kernels_find(const char *entry);
void modules_end_context(cu_context ctx);

/* Finds what a launch names, a cu_function or a cu_kernel in its place. */
cu_function function_in(cu_context ctx, cu_kernel kernel); /* that kernel as a function of ctx */
cu_result function_find(cu_function handle, cu_kernel kernel, cu_context ctx, cu_function *function, cu_kernel *kern);
cu_result kernel_work(cu_context ctx, const struct cu_kernel_params *params, struct work **work);

/* ---- graph.c ---- */
struct edge {
	cu_graph_node node;
	struct cux_edge_data data;
};

struct cu_graph_node_st {
	cu_graph graph;
	uint64_t id, original; /* original: the id of the node that this one was cloned from */
	int type;
	size_t order; /* index in graph->node */
	struct work *work;
	cu_graph child;
	cu_graph *body; /* of a conditional node */
	unsigned n_bodies;
	union cux_attribute_value attribute[CUX_ATTR_CARVEOUT + 1]; /* of a kernel node */
	struct edge *dep;
	size_t n_deps;
};

struct cu_graph_st {
	uint64_t id, original;
	cu_graph_node *node;
	size_t n_nodes, room;
	bool embedded; /* a child graph or a body: its node owns it */
	struct condition *conditions;
};

cu_graph graph_new(void);
void graph_free(cu_graph graph);
cu_graph graph_clone(cu_graph graph);
cu_result graph_add(cu_graph graph, const cu_graph_node *deps, const struct cux_edge_data *edges, size_t n, int type,
		    struct work *work, cu_graph_node *node); /* takes over work, also when it fails */
cu_result graph_add_edge(cu_graph_node from, cu_graph_node to, const struct cux_edge_data *data);
bool graph_can_clone(cu_graph graph);
void graph_order(cu_graph graph, cu_graph_node *order, size_t *n_ordered);
bool graph_reaches(cu_graph_node from, const struct node_set *to);

/* ---- nodes.c ---- */
cu_result node_work(cu_context ctx, int type, const void *params, struct work **work);
/* A node of a type that needs no more than its work, put into the graph. */
cu_result node_add(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps, const struct cux_edge_data *edges,
		   size_t n, int type, const void *params, cu_context ctx);
cu_result node_set(cu_graph_node node, int type, const void *params);
bool is_node(cu_graph_node node, int type);
void node_set_work(cu_graph_node node, struct work *work);

/* ---- memory_nodes.c ---- */
cu_result memory_node_add(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps,
			  const struct cux_edge_data *edges, size_t n, struct cux_alloc_params *params);
cu_result memory_node_free(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps,
			   const struct cux_edge_data *edges, size_t n, cu_deviceptr ptr);
bool graph_has_memory(cu_graph graph);
/* Memory of a graph is allocated by a launch, and freed by the same or by another, or by a call. */
cu_result plan_may_allocate(const struct plan *plan, bool again);
void plan_allocated(const struct plan *plan);
/* false: another executable graph has the memory */
bool plan_claim_memory(struct plan *plan);
void plan_leave_memory(struct plan *plan);

/* ---- batch.c ---- */
cu_result batch_work(cu_context ctx, const struct cux_batch_params *params, struct work **work);
void batch_execute(const struct work *work);

/* ---- conditional.c ---- */
struct condition { /* its address is the handle; lives as long as its graph, and work that looks at it */
	int refs;
	cu_graph graph;
	unsigned initial, flags, value;
	bool has_node;
	struct condition *next;
};

void condition_put(struct condition *condition);
void conditions_end(cu_graph graph);
void condition_set(uint64_t handle, unsigned value); /* what a kernel calls */
cu_result conditional_node_add(cu_graph_node *node, cu_graph graph, const cu_graph_node *deps,
			       const struct cux_edge_data *edges, size_t n, struct cux_conditional_params *params);
void conditions_reset(const struct plan *plan); /* a launch begins */
void conditional_execute(const struct work *work);
void kernel_params_v2(const struct cu_kernel_params_v1 *v1, struct cu_kernel_params *v2);

/* ---- exec.c: a plan is what a graph was when it was instantiated; never changed while anyone else holds it ---- */
struct plan_item {
	uint64_t node;
	int type;
	bool enabled;
	size_t *dep;
	size_t n_deps;
	struct work *work;
};

struct plan {
	int refs;
	size_t n;
	struct plan_item item[];
};

struct cu_graph_exec_st {
	struct plan *plan;
	uint64_t flags;
	struct wait last; /* a graph runs once at a time */
};

void plan_put(struct plan *plan);
struct plan *plan_new(cu_graph graph); /* NULL: there is a cycle */

/* ---- update.c ---- */
/* A new plan takes over the names of the nodes of an old one, if it has the same shape. *at: the item that has not, or
 * plan->n where the whole has not. */
enum cux_update_code plan_adopt(struct plan *plan, const struct plan *old, size_t *at);

#endif
