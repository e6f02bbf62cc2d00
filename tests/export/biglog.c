/* SPDX-License-Identifier: Apache-2.0
 *
 * biglog.c: writes large recorded runs quickly, as a fleet of tensor-parallel servers would: for tests of size and of fleets.
 *
 * biglog RUN ARM PROCESSES DONATIONS SLOTS PLANES [flawed] [lz4] [bare]: RUN must not exist; DONATIONS are those of one process. Eight
 * ranks a host. A flawed run has, where there are so many processes: in the 18th a slot that is not written any more, in the
 * 401st a NaN, in the 601st donations that were dropped, in the 802nd a large value. lz4: chunks are packed, as a server's are.
 * bare: donations and nothing else. Prints how many bytes of records it wrote.
 */
#include <errno.h>
#include <inttypes.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/record/log_format.h"

#define RANKS_A_HOST 8u

static struct {
	const char *folder, *arm;
	uint64_t processes, donations, slots, planes;
	bool flawed, lz4, bare;
	uint64_t bytes; /* of records, written */
} ask;

static struct {
	FILE *f;
	unsigned char raw[LOG_CHUNK_RAW_MAX];
	uint32_t bytes, records;
	uint64_t seq, first, now, id, launches, steps;
	uint64_t number, dp, tp; /* of the process */
	char host[32];
	uint64_t count[CTR_CORE_ROW_COUNT], dropped;
} p;

static void fail(const char *what)
{
	fprintf(stderr, "biglog: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the log ---- */

static void flush(void)
{
	static char packed[LZ4_COMPRESSBOUND(LOG_CHUNK_RAW_MAX)];
	int n = ask.lz4 ? LZ4_compress_fast((const char *)p.raw, packed, (int)p.bytes, sizeof packed, 1) : 0;
	bool smaller = n > 0 && (uint32_t)n < p.bytes;
	const void *stored = smaller ? (const void *)packed : p.raw;
	struct log_chunk_header head = { .magic = LOG_CHUNK_MAGIC,
					 .seq = p.seq++,
					 .first_record = p.first,
					 .record_count = p.records,
					 .raw_bytes = p.bytes,
					 .stored_bytes = smaller ? (uint32_t)n : p.bytes,
					 .codec = smaller ? LOG_CODEC_LZ4 : LOG_CODEC_STORED };

	if (!p.records)
		return;
	head.payload_crc = log_crc32c(0, stored, head.stored_bytes);
	head.header_crc = log_crc32c(0, &head, sizeof head);
	if (fwrite(&head, sizeof head, 1, p.f) != 1 || fwrite(stored, head.stored_bytes, 1, p.f) != 1)
		fail("write");
	ask.bytes += p.bytes;
	p.first += p.records;
	p.records = p.bytes = 0;
}

static void put(uint16_t type, void *record, size_t bytes)
{
	struct log_record *h = record;

	*h = (struct log_record) { .type = type, .bytes = (uint32_t)bytes };
	if (p.bytes + bytes > sizeof p.raw)
		flush();
	memcpy(p.raw + p.bytes, record, bytes);
	p.bytes += (uint32_t)bytes;
	p.records++;
}

static uint64_t tick(void)
{
	return p.now += 1000;
}

static void describe(void)
{
	struct log_process process = { .pid = 1000 + p.number, .ppid = 1, .starttime = 7, .t_ns = tick() };
	struct log_device device = {
		.context = 1, .driver_version = 13000, .memory_bytes = 1ull << 37, .capability = 90
	};
	struct log_rank tp = { .index = (int32_t)p.tp, .axis = "tp" };
	struct log_rank dp = { .index = (int32_t)p.dp, .axis = "dp" };
	struct log_pool pool = { .n_slots = (int64_t)ask.slots, .n_planes = (uint32_t)ask.planes, .name = "state" };

	tp.count = (int32_t)(ask.processes < RANKS_A_HOST ? ask.processes : RANKS_A_HOST);
	process.t_real_ns = 1700000000000000000ull;
	strcpy(process.tool_version, "0");
	strcpy(process.comm, "server");
	strcpy(process.host, p.host);
	put(LOG_PROCESS, &process, sizeof process);
	strcpy(device.name, "NVIDIA H200");
	put(LOG_DEVICE, &device, sizeof device);
	put(LOG_RANK, &tp, sizeof tp);
	dp.count = (int32_t)((ask.processes + RANKS_A_HOST - 1) / RANKS_A_HOST);
	put(LOG_RANK, &dp, sizeof dp);
	pool.t_ns = tick();
	pool.slot_bytes = 1024 * ask.planes;
	put(LOG_POOL, &pool, sizeof pool);
	for (uint32_t i = 0; i < ask.planes; i++) {
		struct log_plane plane = { .index = i,
					   .layer = (int32_t)(i / 2),
					   .dtype = 1,
					   .slot_stride = 1024,
					   .elems = 256,
					   .bytes = 1024 };

		plane.base = 0x7f0000000000ull + i * 0x100000ull;
		strcpy(plane.tensor, i % 2 ? "ssm" : "conv");
		put(LOG_PLANE, &plane, sizeof plane);
	}
}

/* What a slot holds is a number; planes follow from it. */
static void fingerprint(uint64_t id, uint64_t slot, uint64_t content, bool nan, bool large)
{
	size_t bytes = sizeof(struct log_fingerprint) + ask.planes * sizeof(struct log_plane_print);
	struct log_fingerprint *f = calloc(1, bytes);
	uint64_t rollup = LOG_ROLLUP_START;

	if (!f)
		fail("memory");
	f->event = id;
	f->t_ns = tick();
	f->slot = (int64_t)slot;
	f->n_planes = f->total_planes = (uint32_t)ask.planes;
	for (uint32_t i = 0; i < ask.planes; i++) {
		uint64_t hash = log_mix64(content * 1000003 + i * 8 + p.tp);

		f->plane[i] = (struct log_plane_print) { .absmax = 1 + (double)(hash % 4096) / 1024,
							 .l2 = 10,
							 .hash = hash,
							 .sample = { hash & 0xffff, hash >> 16 & 0xffff, 0, 1 } };
		f->plane[i].nan = nan && !i;
		if (large && !i)
			f->plane[i].absmax = 1e6;
		/* conv of a layer comes before its ssm: the order of registration is that of the roll-up */
		rollup = log_rollup_add(rollup, hash);
	}
	f->rollup = rollup;
	put(LOG_FINGERPRINT, f, bytes);
	free(f);
}

static uint64_t event(uint32_t kind, enum ctr_core_row row, uint64_t slot, int64_t length, uint64_t key, bool dropped)
{
	struct log_event e = { .id = ++p.id,
			       .kind = kind,
			       .slot = (int64_t)slot,
			       .claimed_len = length,
			       .key_len = length,
			       .key = key,
			       .src = -1 };

	p.count[row]++;
	p.dropped += dropped;
	e.t_ns = tick();
	e.step = p.steps;
	e.launches = e.pool_launches = p.launches;
	e.outcome = dropped ? CTR_DROPPED_RING : CTR_COMMITTED;
	e.has_fingerprint = !dropped && kind != LOG_EV_FREE;
	e.tid = (uint32_t)(1000 + p.number);
	put(LOG_EVENT, &e, sizeof e);
	return e.id;
}

static void step(uint64_t i)
{
	struct log_step s = {
		.number = ++p.steps, .batch = (int32_t)(i % 8 + 1), .padded = 8, .mode = 2, .name = "decode"
	};

	s.t_ns = tick();
	p.count[CTR_ROW_STEP]++;
	put(LOG_STEP, &s, sizeof s);
	if (strcmp(ask.arm, "graph-on") == 0) {
		p.launches += 4;
		p.count[CTR_ROW_GRAPH_LAUNCH] += 4;
	}
}

static void serve(void)
{
	for (uint64_t i = 0; i < ask.donations; i++) {
		uint64_t slot = i * 7 % ask.slots, content = i + 1, key = log_mix64(p.dp * 1000003 + i + 1), id;
		int64_t length = 16 + 16 * (int64_t)(i % 64);
		bool lost = ask.flawed && p.number == 600 && i % 2;

		if (i % 4 == 0 && (!ask.bare || !i))
			step(i);
		if (i % 16 == 0 && !ask.bare)
			fingerprint(event(LOG_EV_ALLOC, CTR_ROW_ALLOC, slot, 0, 0, false), slot, 0, false, false);
		if (ask.flawed && p.number == 17 && slot == 3 % ask.slots && i >= ask.slots)
			content = i - ask.slots + 1; /* what it held one round before */
		id = event(LOG_EV_DONATE, CTR_ROW_DONATE, slot, length, key, lost);
		if (!lost)
			fingerprint(id, slot, content, ask.flawed && p.number == 400 && i == 5,
				    ask.flawed && p.number == 801 && i == 7);
		if (i % 8 == 0 && !lost && !ask.bare)
			fingerprint(event(LOG_EV_RESTORE, CTR_ROW_RESTORE, slot, length, key, false), slot, content,
				    false, false);
		if (i % 16 == 0 && !ask.bare)
			event(LOG_EV_FREE, CTR_ROW_FREE, slot, 0, 0, false);
	}
}

static FILE *file(const char *suffix)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s.%" PRIu64 ".7.%s", ask.folder, p.host, 1000 + p.number, suffix);
	f = fopen(path, "we");
	if (!f)
		fail(path);
	return f;
}

static void write_log(void)
{
	struct log_file_header head = { .magic = "SLPRLOG",
					.version = LOG_VERSION,
					.byte_order = LOG_BYTE_ORDER,
					.header_bytes = sizeof head,
					.pid = 1000 + p.number,
					.starttime = 7 };
	struct log_end end = { 0 };

	head.magic[7] = '\n';
	head.crc = log_crc32c(0, &head, sizeof head);
	p.f = file("log");
	if (fwrite(&head, sizeof head, 1, p.f) != 1)
		fail("write");
	describe();
	serve();
	end.t_ns = tick();
	end.t_real_ns = 1700000001000000000ull;
	end.records = p.first + p.records;
	put(LOG_END, &end, sizeof end);
	flush();
	if (fclose(p.f))
		fail("write");
}

/* ---- the counters page ---- */

static void write_page(void)
{
	static const struct {
		const char *name;
		uint32_t kind;
	} core[] = {
#define ROW(id, name, kind, meaning) { name, kind },
		CTR_CORE_ROWS(ROW)
#undef ROW
	};
	static struct ctr_page page;
	FILE *f = file("ctr");

	memset(&page, 0, sizeof page);
	memcpy(page.magic, CTR_FILE_MAGIC, 8);
	page.version = LOG_VERSION;
	page.byte_order = LOG_BYTE_ORDER;
	page.page_bytes = sizeof page;
	page.row_offset = offsetof(struct ctr_page, row);
	page.row_bytes = sizeof page.row[0];
	page.max_rows = CTR_MAX_ROWS;
	page.pid = 1000 + p.number;
	page.starttime = 7;
	page.started_real_ns = 5 + (strcmp(ask.arm, "graph-on") == 0);
	strcpy(page.comm, "server");
	strcpy(page.host, p.host);
	strcpy(page.driver, "CUDA 13.0, NVIDIA H200");
	snprintf(page.rank, sizeof page.rank, "tp%" PRIu64 ".pp0.dp%" PRIu64, p.tp, p.dp);
	page.crc = log_crc32c(0, &page, offsetof(struct ctr_page, comm));
	page.n_rows = CTR_CORE_ROW_COUNT;
	page.state = CTR_ENDED;
	page.recording = page.ctl_recording = 1;
	page.driver_seen = 1;
	page.records_written = p.first;
	p.count[CTR_ROW_POOL_LAUNCHES] = p.launches;
	for (unsigned i = 0; i < CTR_CORE_ROW_COUNT; i++) {
		strcpy(page.row[i].name, core[i].name);
		page.row[i].kind = core[i].kind;
		page.row[i].outcome[CTR_COMMITTED] = p.count[i];
		if (core[i].kind == CTR_PROBE)
			page.row[i].begun = p.count[i] << CTR_FLIGHT_BITS;
	}
	page.row[CTR_ROW_DONATE].outcome[CTR_COMMITTED] -= p.dropped;
	page.row[CTR_ROW_DONATE].outcome[CTR_DROPPED_RING] = p.dropped;
	if (fwrite(&page, sizeof page, 1, f) != 1 || fclose(f))
		fail("write");
}

static void write_manifest(void)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/run.json", ask.folder);
	f = fopen(path, "we");
	if (!f)
		fail(path);
	fprintf(f,
		"{\"schema_version\": 1, \"tool_version\": \"0\", \"arm\": \"%s\", \"argv\": [\"server\"], \"cwd\": "
		"\"/\", \"host\": \"host000\", "
		"\"started\": \"2026-01-01T00:00:00Z\", \"ended\": \"2026-01-01T00:01:00Z\", \"exit\": 0, "
		"\"adapters\": [], \"options\": {}, "
		"\"env\": {}}\n",
		ask.arm);
	if (fclose(f))
		fail("write");
}

int main(int argc, char **argv)
{
	for (int i = 7; i < argc; i++) {
		ask.flawed |= strcmp(argv[i], "flawed") == 0;
		ask.lz4 |= strcmp(argv[i], "lz4") == 0;
		ask.bare |= strcmp(argv[i], "bare") == 0;
	}
	if (argc != 7 + ask.flawed + ask.lz4 + ask.bare) {
		fprintf(stderr, "usage: biglog RUN ARM PROCESSES DONATIONS SLOTS PLANES [flawed] [lz4] [bare]\n");
		return 2;
	}
	ask.folder = argv[1];
	ask.arm = argv[2];
	ask.processes = strtoull(argv[3], NULL, 10);
	ask.donations = strtoull(argv[4], NULL, 10);
	ask.slots = strtoull(argv[5], NULL, 10);
	ask.planes = strtoull(argv[6], NULL, 10);
	if (!ask.slots || !ask.planes || ask.planes > 50 || mkdir(ask.folder, 0700))
		fail(ask.folder);
	write_manifest();
	for (uint64_t i = 0; i < ask.processes; i++) {
		memset(&p, 0, sizeof p);
		p.number = i;
		p.tp = i % RANKS_A_HOST;
		p.dp = i / RANKS_A_HOST;
		p.now = 1000000 + i * 1000;
		snprintf(p.host, sizeof p.host, "host%03" PRIu64, p.dp);
		write_log();
		write_page();
	}
	printf("%" PRIu64 "\n", ask.bytes);
	return 0;
}
