/* SPDX-License-Identifier: Apache-2.0
 *
 * log_format.h: what slotprobe writes. The one header that the preload writes by and the collector reads by: the log,
 * the counters page, and the few functions (CRC, roll-up) that both sides must compute alike. docs/log-format.md is its
 * page.
 *
 * Rules: little endian, every structure a multiple of 8 bytes without holes, reserved fields 0. Nothing is
 * back-patched. A reader refuses a version that it does not know; a writer that changes any structure, or what is
 * measured of the same bytes (the order in which l2 is summed up, say), raises LOG_VERSION.
 */
#ifndef LOG_FORMAT_H
#define LOG_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define LOG_VERSION    2u
#define LOG_BYTE_ORDER 0x01020304u

/* ---- the log file: RUN/<host>.<pid>.<starttime>.log ------------------------------------------------------------- */

#define LOG_FILE_MAGIC    "SLPRLOG\n"
#define LOG_CHUNK_MAGIC   0x4b4e4843u /* "CHNK" */
#define LOG_CHUNK_RAW_MAX 65536u      /* raw bytes in one chunk */
#define LOG_RECORD_MAX    4096u       /* bytes of one record, its header included; longer things are split into parts */

struct log_file_header {
	char magic[8];
	uint32_t version, byte_order;
	uint32_t header_bytes; /* sizeof(struct log_file_header) */
	uint32_t crc;          /* CRC32C of this header with crc = 0 */
	uint64_t pid, starttime;
	uint64_t reserved[4];
};

enum log_codec { LOG_CODEC_STORED = 0, LOG_CODEC_LZ4 = 1 };

struct log_chunk_header {
	uint32_t magic;
	uint32_t header_crc;   /* CRC32C of this header with header_crc = 0 */
	uint64_t seq;          /* 0, 1, 2, ... */
	uint64_t first_record; /* number of its first record in this file, from 0 */
	uint32_t record_count;
	uint32_t raw_bytes, stored_bytes; /* stored == raw when codec is LOG_CODEC_STORED */
	uint32_t codec;
	uint32_t payload_crc; /* CRC32C of the stored bytes */
	uint32_t reserved;
};

/* ---- records ---------------------------------------------------------------------------------------------------- */

struct log_record {
	uint16_t type; /* enum log_type */
	uint16_t reserved;
	uint32_t bytes; /* this header included; a multiple of 8, the padding zero */
};

enum log_type {
	LOG_PROCESS = 1,
	LOG_DEVICE,
	LOG_POOL,
	LOG_PLANE,
	LOG_POOL_REMOVE,
	LOG_EVENT,
	LOG_KEY_TEXT,
	LOG_FINGERPRINT,
	LOG_STEP,
	LOG_RANK,
	LOG_REGION,
	LOG_REGION_VALUES,
	LOG_GRAPH,
	LOG_GRAPH_TOUCH,
	LOG_GRAPH_DESTROY,
	LOG_LAUNCH,
	LOG_MODULE,
	LOG_CALLSITE,
	LOG_CONTROL,
	LOG_DISK_STOP,
	LOG_UNROUTED,
	LOG_END,
	LOG_BYPASSED,
	LOG_TYPE_COUNT
};

/* Times are CLOCK_MONOTONIC nanoseconds; *_real is CLOCK_REALTIME. Text fields are NUL-terminated, cut if need be. */

struct log_process { /* first record of every log */
	struct log_record h;
	uint64_t pid, ppid, starttime;
	uint64_t t_ns, t_real_ns;
	uint32_t flags, reserved;
	char tool_version[16];
	char comm[16];
	char host[64];
};

struct log_device { /* a context was met */
	struct log_record h;
	uint64_t context;
	int32_t ordinal;
	int32_t driver_version; /* 13000 = CUDA 13.0 */
	uint64_t memory_bytes;
	int32_t multiprocessors, capability; /* 90 = sm_90 */
	uint8_t uuid[16];
	char name[64];
};

struct log_pool { /* followed, somewhere later, by n_planes LOG_PLANE records of this pool */
	struct log_record h;
	uint64_t t_ns;
	int32_t pool, device; /* device -1: host memory */
	int64_t first_slot, n_slots;
	uint32_t n_planes, reserved;
	uint64_t slot_bytes;
	uint64_t launches, pool_launches; /* as in struct log_event, when the pool was registered */
	char name[64];
};

struct log_plane {
	struct log_record h;
	int32_t pool;
	uint32_t index; /* order of registration, 0 ... n_planes-1; fingerprints come in this order */
	int32_t layer;
	uint32_t dtype; /* enum slotprobe_dtype */
	uint64_t base;
	int64_t slot_stride;
	uint64_t elems, bytes; /* per slot */
	char tensor[64];
};

struct log_pool_remove {
	struct log_record h;
	uint64_t t_ns;
	int32_t pool;
	uint32_t why; /* 0 asked for, 1 its memory was freed, 2 its context went */
};

enum log_event_kind {
	LOG_EV_DONATE = 1,
	LOG_EV_RESTORE,
	LOG_EV_ALLOC,
	LOG_EV_CLEAR,
	LOG_EV_COPY,
	LOG_EV_DISCARD,
	LOG_EV_FREE,
	LOG_EV_KIND_COUNT
};

#define LOG_NO_SLOT INT64_MIN /* the slot id lives on the device: its fingerprint says which it was */

/* What was said, when it was said. `outcome` is CTR_COMMITTED when the event is complete as it stands (discard, free)
 * or when a fingerprint is to follow (has_fingerprint); else the reason for which nothing was measured. */
struct log_event {
	struct log_record h;
	uint64_t id; /* > 0, unique in the process, in the order of the calls of a thread; a donation's is its donation
			id */
	uint64_t t_ns;
	uint32_t kind; /* enum log_event_kind */
	int32_t pool;
	int64_t slot; /* LOG_NO_SLOT: on the device */
	uint64_t slot_ptr;
	int64_t claimed_len, key_len; /* key_len <= 0: unknown */
	uint64_t key;                 /* 0: none */
	int64_t src; /* copy: source slot (LOG_NO_SLOT: on the device); discard: donation id; else -1 */
	uint64_t stream;
	uint64_t context;
	uint64_t step; /* number of steps reported before, 0: none yet */
	uint64_t launches,
		pool_launches;    /* graph launches of the process, and of graphs that touch this pool, before */
	uint32_t outcome;         /* enum ctr_outcome */
	uint32_t has_fingerprint; /* 1: LOG_FINGERPRINT records with this id follow */
	uint32_t callsite;        /* 0: none */
	uint32_t tid;
};

struct log_key_text { /* only when keys are kept; parts of one text in order */
	struct log_record h;
	uint64_t key;
	uint32_t offset, bytes;
	char text[200];
};

#define LOG_SAMPLES 4 /* raw elements at element i * (elems - 1) / (LOG_SAMPLES - 1), zero-extended */

struct log_plane_print { /* fingerprint of one plane of one slot */
	double absmax;   /* NaN skipped; 0 for SLOTPROBE_RAW */
	double l2;       /* sqrt of the sum of squares of the finite elements; 0 for SLOTPROBE_RAW */
	uint64_t nan, inf;
	uint64_t hash;
	uint64_t sample[LOG_SAMPLES];
};

enum log_role { LOG_ROLE_SUBJECT = 0, LOG_ROLE_WATCHED = 1, LOG_ROLE_SOURCE = 2 };

/* Planes first_plane ... first_plane + n_planes - 1 of one slot; a slot with many planes comes in parts, in order. */
struct log_fingerprint {
	struct log_record h;
	uint64_t event; /* id of the event */
	uint64_t t_ns;  /* when the result was seen */
	int64_t slot;   /* as the kernel read it */
	int32_t pool;
	uint32_t role;    /* enum log_role */
	uint32_t outcome; /* CTR_COMMITTED, else the reason for which there are no planes (slot out of range, padding,
			     ...) */
	uint32_t first_plane, n_planes, total_planes;
	uint64_t rollup; /* over all planes of the slot, the same in every part */
	struct log_plane_print plane[];
};

struct log_step {
	struct log_record h;
	uint64_t t_ns;
	uint64_t number; /* 1, 2, 3, ... */
	uint64_t value;
	int32_t batch, padded;
	uint32_t mode, reserved;
	char name[64];
};

struct log_rank {
	struct log_record h;
	int32_t index, count;
	char axis[16];
};

struct log_region {
	struct log_record h;
	uint64_t t_ns;
	uint32_t region, dtype;
	uint64_t base, bytes;
	char name[64];
};

struct log_region_values { /* the region's first integers when an event's slot was read, in stream order */
	struct log_record h;
	uint64_t event;
	uint32_t region, n_values;
	int64_t value[];
};

enum log_graph_flags {
	LOG_GRAPH_UNREADABLE = 1, /* some of its nodes could not be read: its launches count for every pool */
	LOG_GRAPH_UPDATED = 2,    /* not new: updated or a node was set */
	LOG_GRAPH_RESCANNED = 4   /* not new: a pool or region was registered later */
};

struct log_graph { /* replaces what was said of `graph` before */
	struct log_record h;
	uint64_t t_ns;
	uint64_t graph;  /* number of the executable graph in this process, from 1 */
	uint64_t handle; /* CUgraphExec */
	uint32_t nodes, kernels, memcpys, memsets;
	uint32_t flags;
	uint32_t touches; /* bound addresses that point into a pool or region; at most LOG_GRAPH_TOUCH_MAX are listed */
};

#define LOG_GRAPH_TOUCH_MAX 256u

struct log_graph_touch {
	struct log_record h;
	uint64_t graph;
	uint32_t node;                /* index in cuGraphGetNodes order, child graphs counted in place */
	uint32_t node_type;           /* CUgraphNodeType */
	uint32_t target;              /* 0 pool, 1 region */
	int32_t id;                   /* of the pool or region */
	uint32_t param, param_offset; /* kernel: which parameter and the byte within it; memcpy: param 0 source, 1
					 destination */
	uint64_t address;
	uint64_t offset; /* from the region's base; from the plane's base in a pool */
	uint32_t plane, reserved;
	char kernel[128];
};

struct log_graph_destroy {
	struct log_record h;
	uint64_t t_ns;
	uint64_t graph;
};

struct log_launch { /* level launches and above */
	struct log_record h;
	uint64_t t_ns;
	uint64_t number; /* of the launch in this process, from 1 */
	uint64_t graph;  /* 0: instantiated before we looked */
	uint64_t stream;
	uint64_t step;
	uint32_t tid;
	int32_t result;
};

struct log_module { /* a loaded object, for call sites */
	struct log_record h;
	uint32_t module, bytes_path;
	uint64_t base;
	char path[]; /* padded with zeros */
};

struct log_frame {
	uint64_t offset; /* from the module's base */
	uint32_t module; /* 0: unknown, offset is the address */
	uint32_t symbol; /* bytes of its name in the text that follows the frames, 0: none */
};

#define LOG_FRAMES_MAX 24

struct log_callsite {
	struct log_record h;
	uint32_t callsite, n_frames;
	uint32_t text_bytes, reserved;
	struct log_frame frame[]; /* innermost first; then text_bytes of symbol names, not terminated, padded */
};

enum log_control_what { LOG_CONTROL_RECORDING = 1, LOG_CONTROL_LEVEL, LOG_CONTROL_LABEL };

struct log_control { /* steering as it took effect */
	struct log_record h;
	uint64_t t_ns;
	uint32_t what, value;
	char label[64];
};

struct log_disk_stop { /* from here on the payload is missing, and counted */
	struct log_record h;
	uint64_t t_ns;
	uint64_t free_bytes, run_bytes;
	uint32_t why; /* 1 free space, 2 size cap, 3 write error */
	int32_t error;
};

struct log_unrouted { /* a table name resolved to an address that we do not know */
	struct log_record h;
	uint64_t t_ns;
	int32_t version;
	uint32_t reserved;
	uint64_t flags;
	char name[64];
};

struct log_bypassed { /* a loaded object's reference to a table name is bound past us; one record an object */
	struct log_record h;
	uint64_t t_ns;
	char symbol[64];
	char object[128]; /* its path; empty: the program itself */
};

struct log_end { /* last record of a clean end */
	struct log_record h;
	uint64_t t_ns, t_real_ns;
	uint64_t records; /* before this one */
};

enum log_level { LOG_LEVEL_DONATIONS = 0, LOG_LEVEL_LAUNCHES = 1, LOG_LEVEL_NODES = 2 };

/* ---- the counters page: RUN/<host>.<pid>.<starttime>.ctr --------------------------------------------------------- */

#define CTR_FILE_MAGIC "SLPRCTR\n"
#define CTR_MAX_ROWS   240u

enum ctr_group { CTR_IN_COMMITTED, CTR_IN_FILTERED, CTR_IN_SKIPPED, CTR_IN_DROPPED, CTR_IN_ERRORS };

/* Every way in which one attempt can end: name, group, printed label, meaning. Add rows at the end only. */
#define CTR_OUTCOMES(X)                                                                                                \
	X(COMMITTED, CTR_IN_COMMITTED, "committed", "recorded, and in the log file")                                   \
	X(FILTERED_PAUSED, CTR_IN_FILTERED, "paused", "recording was paused")                                          \
	X(FILTERED_PADDING, CTR_IN_FILTERED, "padding", "the slot id was negative: a padded row")                      \
	X(FILTERED_ADAPTER, CTR_IN_FILTERED, "adapter", "the adapter left it out")                                     \
	X(SKIPPED_CAPTURING, CTR_IN_SKIPPED, "capturing", "the stream was capturing: nothing may be launched")         \
	X(SKIPPED_LEGACY, CTR_IN_SKIPPED, "legacy_stream", "the legacy stream while something captures")               \
	X(SKIPPED_NO_CONTEXT, CTR_IN_SKIPPED, "no_context", "the stream's context has no pool or is gone")             \
	X(SKIPPED_POOL_GONE, CTR_IN_SKIPPED, "pool_gone", "the pool was removed or its memory freed")                  \
	X(SKIPPED_NOT_READY, CTR_IN_SKIPPED, "not_ready", "the pool's layout had not reached the device")              \
	X(SKIPPED_DISK, CTR_IN_SKIPPED, "disk_stop", "the disk guard had stopped the payload")                         \
	X(DROPPED_RING, CTR_IN_DROPPED, "ring_full", "every result buffer was in flight")                              \
	X(DROPPED_QUEUE, CTR_IN_DROPPED, "queue_full", "the queue to the writer was full")                             \
	X(DROPPED_CONTEXT, CTR_IN_DROPPED, "context_gone", "the context went before the result came")                  \
	X(DROPPED_WRITE, CTR_IN_DROPPED, "write_error", "the log could not be written")                                \
	X(DROPPED_EXIT, CTR_IN_DROPPED, "exit", "the process ended before the result came")                            \
	X(ERROR_ARGUMENT, CTR_IN_ERRORS, "argument", "an argument made no sense")                                      \
	X(ERROR_SLOT, CTR_IN_ERRORS, "slot_range", "the slot id was outside of the pool")                              \
	X(ERROR_DRIVER, CTR_IN_ERRORS, "driver", "a driver call failed")                                               \
	X(ERROR_ADAPTER, CTR_IN_ERRORS, "adapter", "the adapter reported an error")

enum ctr_outcome {
#define CTR_ENUM(id, group, label, meaning) CTR_##id,
	CTR_OUTCOMES(CTR_ENUM)
#undef CTR_ENUM
		CTR_OUTCOME_COUNT
};

#define CTR_OUTCOME_ROOM 22

/* A probe's row. `begun` holds attempts and attempts in flight in one word, so that beginning is one atomic add:
 * whoever is killed anywhere leaves attempted == outcomes + in_flight, or one more outcome for each thread that was
 * between "outcome + 1" and "in_flight - 1" (in that order); the reader of a dead process takes those off in_flight. A
 * plain counter uses outcome[0] alone.
 *
 * The last two words belong to one thread of the process, which counts in them without the lock prefix, and add to `begun` and to
 * the first outcome. Only what is hot and has one outcome is counted there: graph launches. */
struct ctr_row {
	char name[48];
	uint32_t kind; /* 0 free, 1 probe, 2 plain counter */
	uint32_t reserved;
	uint64_t begun; /* attempted << CTR_FLIGHT_BITS | in flight */
	uint64_t outcome[CTR_OUTCOME_ROOM];
	uint64_t own_begun, own_committed;
};

enum ctr_kind { CTR_FREE, CTR_PROBE, CTR_PLAIN };

#define CTR_FLIGHT_BITS      20
#define CTR_BEGIN_ONE        ((1ull << CTR_FLIGHT_BITS) + 1)
#define CTR_ATTEMPTED(begun) ((begun) >> CTR_FLIGHT_BITS)
#define CTR_IN_FLIGHT(begun) ((begun) & ((1ull << CTR_FLIGHT_BITS) - 1))

enum ctr_state { CTR_STARTING, CTR_RUNNING, CTR_DISK_STOP, CTR_WRITE_ERROR, CTR_ENDED };

/* Rows that always exist, in this order: name, kind, meaning. Adapters' rows follow. Add plain rows at the end only. */
#define CTR_CORE_ROWS(X)                                                                                               \
	X(GRAPH_LAUNCH, "core.graph_launch", CTR_PROBE, "cuGraphLaunch, every form")                                   \
	X(DONATE, "core.donate", CTR_PROBE, "donations")                                                               \
	X(RESTORE, "core.restore", CTR_PROBE, "restores")                                                              \
	X(ALLOC, "core.alloc", CTR_PROBE, "slots allocated")                                                           \
	X(CLEAR, "core.clear", CTR_PROBE, "slots cleared")                                                             \
	X(COPY, "core.copy", CTR_PROBE, "slots copied")                                                                \
	X(DISCARD, "core.discard", CTR_PROBE, "donations not taken")                                                   \
	X(FREE, "core.free", CTR_PROBE, "slots freed")                                                                 \
	X(STEP, "core.step", CTR_PROBE, "steps reported")                                                              \
	X(WATCH, "core.watch", CTR_PROBE, "fingerprints of watched slots")                                             \
	X(INSTANTIATE, "core.graph_instantiate", CTR_PROBE, "graphs instantiated")                                     \
	X(UPDATE, "core.graph_update", CTR_PROBE, "graphs updated or a node set")                                      \
	X(POOL_LAUNCHES, "pool_graph_launches", CTR_PLAIN, "launches of graphs that touch a pool")                     \
	X(RUNTIME_LAUNCHES, "runtime_graph_launches", CTR_PLAIN, "cudaGraphLaunch calls seen")                         \
	X(RUNTIME_UNROUTED, "runtime_without_driver", CTR_PLAIN,                                                       \
	  "cudaGraphLaunch calls in which no driver launch was seen")                                                  \
	X(UNROUTED, "unrouted_entries", CTR_PLAIN, "table names that resolved to an unknown address")                  \
	X(GRAPHS_UNREAD, "graphs_unreadable", CTR_PLAIN, "graphs with nodes that could not be read")                   \
	X(META_LOST, "metadata_lost", CTR_PLAIN, "records about pools, graphs or regions that were lost")              \
	X(LAUNCH_LOST, "launch_records_lost", CTR_PLAIN, "launch records dropped at level launches")                   \
	X(CALLSITES_LOST, "callsites_lost", CTR_PLAIN, "call sites that found no room")                                \
	X(WRITE_ERRORS, "write_errors", CTR_PLAIN, "failed writes to the log")                                         \
	X(INTERNAL, "internal_errors", CTR_PLAIN, "anything else that went wrong inside slotprobe")                    \
	X(BYPASSED, "bypassed_objects", CTR_PLAIN, "loaded objects that are bound past slotprobe")

enum ctr_core_row {
#define CTR_ENUM(id, name, kind, meaning) CTR_ROW_##id,
	CTR_CORE_ROWS(CTR_ENUM)
#undef CTR_ENUM
		CTR_CORE_ROW_COUNT
};

struct ctr_page {
	char magic[8];
	uint32_t version, byte_order;
	uint32_t page_bytes, row_offset, row_bytes, max_rows;
	uint64_t pid, starttime;
	uint64_t started_real_ns;
	char comm[16];
	char host[64];
	char driver[64]; /* "CUDA 13.0, NVIDIA H200" once known */
	char rank[64];   /* "tp0.pp0.dp0" */
	uint32_t crc;    /* CRC32C of the fields above that never change: magic ... started_real_ns */
	uint32_t n_rows; /* release: rows below it are named */

	/* written by the preload */
	uint32_t state;        /* enum ctr_state */
	uint32_t recording;    /* as obeyed */
	uint32_t level;        /* as obeyed: enum log_level */
	uint32_t driver_seen;  /* 1: libcuda was found and initialised */
	uint64_t heartbeat_ns; /* CLOCK_MONOTONIC of the writer's last turn */
	uint64_t bytes_written, chunks_written, records_written;
	uint64_t disk_stop_real_ns;
	uint64_t flush_done; /* last ctl_flush that was obeyed */
	uint64_t label_done; /* last ctl_label_seq that was obeyed */
	uint64_t reserved_shim[4];

	/* control words, written by `slotprobe ctl` through the same mapping */
	uint32_t ctl_recording; /* 0 stop, 1 start */
	uint32_t ctl_level;
	uint64_t ctl_flush;     /* raised by one to ask for a flush */
	uint64_t ctl_label_seq; /* odd while ctl_label is being written; raised by two for each label */
	char ctl_label[64];
	uint64_t reserved_ctl[4];

	struct ctr_row row[CTR_MAX_ROWS];
};

/* ---- functions that both sides compute alike --------------------------------------------------------------------- */

/* A bijective mixer of 64 bits, for roll-ups and key texts. */
static inline uint64_t log_mix64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

/* Roll-up hash of a slot: start with LOG_ROLLUP_START, add the planes' hashes in (layer, tensor name) order. */
#define LOG_ROLLUP_START 0x736c6f7470726f62ull
static inline uint64_t log_rollup_add(uint64_t rollup, uint64_t plane_hash)
{
	return log_mix64(rollup * 0x9e3779b97f4a7c15ull + plane_hash);
}

/* Identity of a key text. */
static inline uint64_t log_key_hash(const char *text, size_t bytes)
{
	uint64_t h = 0x6b65790000000000ull ^ bytes;
	for (size_t i = 0; i < bytes; i++)
		h = log_mix64(h * 0x9e3779b97f4a7c15ull + (unsigned char)text[i]);
	return h ? h : 1;
}

/* CRC32C (Castagnoli), reflected, by nibbles: 16 words of table, no state. */
static inline uint32_t log_crc32c_nibbles(uint32_t crc, const unsigned char *p, size_t n)
{
	static const uint32_t t[16] = { 0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
					0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
					0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75 };
	while (n--) {
		crc ^= *p++;
		crc = crc >> 4 ^ t[crc & 15];
		crc = crc >> 4 ^ t[crc & 15];
	}
	return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static inline uint64_t log_crc32c_word(uint64_t crc, const unsigned char *p)
{
	uint64_t w;
	__builtin_memcpy(&w, p, 8);
	return __builtin_ia32_crc32di(crc, w);
}

__attribute__((target("sse4.2"))) static inline uint32_t log_crc32c_sse(uint32_t crc, const unsigned char *p, size_t n)
{
	uint64_t c = crc;
	for (; n >= 8; n -= 8, p += 8)
		c = log_crc32c_word(c, p);
	while (n--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
	return (uint32_t)c;
}

/* Three lanes at once, because each step of one waits for the last. The first two are moved up by what follows them: multiplied
 * by x to the number of its bits, less 33 that product and instruction add. */
__attribute__((target("sse4.2,pclmul"))) static inline uint32_t log_crc32c_lanes(uint32_t crc, const unsigned char *p,
										 size_t n)
{
	typedef long long pair __attribute__((vector_size(16)));
	static const pair up = { 0x170076fa, 0xdd7e3b0c }; /* by two lanes, by one */
	enum { LANE = 512 };

	for (; n >= 3 * LANE; n -= 3 * LANE, p += 3 * LANE) {
		uint64_t a = crc, b = 0, c = 0;
		pair product;

		for (unsigned i = 0; i < LANE; i += 8) {
			a = log_crc32c_word(a, p + i);
			b = log_crc32c_word(b, p + LANE + i);
			c = log_crc32c_word(c, p + 2 * LANE + i);
		}
		product = __builtin_ia32_pclmulqdq128((pair) { (long long)a }, up, 0x00) ^
			  __builtin_ia32_pclmulqdq128((pair) { (long long)b }, up, 0x10);
		crc = (uint32_t)(c ^ __builtin_ia32_crc32di(0, (uint64_t)product[0]));
	}
	return log_crc32c_sse(crc, p, n);
}
#endif

/* CRC32C of n bytes; `crc` is 0 for the first piece and the previous result for the next. */
static inline uint32_t log_crc32c(uint32_t crc, const void *data, size_t n)
{
	crc = ~crc;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return ~(__builtin_cpu_supports("pclmul") ? log_crc32c_lanes(crc, data, n)
							  : log_crc32c_sse(crc, data, n));
#endif
	return ~log_crc32c_nibbles(crc, data, n);
}

_Static_assert(sizeof(struct log_file_header) == 72, "log_file_header");
_Static_assert(sizeof(struct log_chunk_header) == 48, "log_chunk_header");
_Static_assert(sizeof(struct log_plane_print) == 72, "log_plane_print");
_Static_assert(sizeof(struct ctr_row) == 256, "ctr_row");
_Static_assert((int)CTR_OUTCOME_COUNT <= CTR_OUTCOME_ROOM, "outcomes");
_Static_assert(offsetof(struct ctr_page, row) % 8 == 0, "rows aligned");

#endif
