/* SPDX-License-Identifier: Apache-2.0
 *
 * callsite.c: who called. A stack is taken by libunwind on the caller's thread, interned in a table without locks, and
 * described by the writer: modules and symbol names are looked up there, where the loader's lock hurts nobody.
 *
 * libunwind is opened by the writer with RTLD_LOCAL: as a dependency of a preload it would take over exception handling
 * for the whole process. Where it is absent, and in the child of a fork (another thread may have held its locks), call
 * sites are 0.
 */
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "shim/compat.h"

#define STACKS       4096u
#define PROBES_MAX   64u
#define OWN_FRAMES   8
#define MODULES_MAX  1024u
#define SYMBOL_BYTES 144u
#define PATH_BYTES   1024u

_Static_assert(sizeof(struct log_callsite) + LOG_FRAMES_MAX * (sizeof(struct log_frame) + SYMBOL_BYTES) <=
		       LOG_RECORD_MAX,
	       "a call site is one record");

/* The hash is the identity: 64 bits over the return addresses. */
struct stack {
	uint64_t hash; /* 0: free */
	uint32_t n;
	uint64_t pc[LOG_FRAMES_MAX];
};

static struct stack stacks[STACKS];
static uint32_t arrived[STACKS]; /* ids in the order in which they became readable */
static uint32_t n_arrived, n_told;

typedef int unwind_fn(void **pc, int room);
static unwind_fn *unwind;
static bool forked;

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

void record_callsite_load(void)
{
	void *library = forked ? NULL : dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

	if (library)
		__atomic_store_n(&unwind, (unwind_fn *)(uintptr_t)dlsym(library, "unw_backtrace"), __ATOMIC_RELEASE);
}

void record_callsite_forget(void)
{
	forked = true;
	__atomic_store_n(&unwind, NULL, __ATOMIC_RELEASE);
	n_told = n_arrived;
}

static uint64_t hash_of(void *const *pc, uint32_t n)
{
	uint64_t h = n;

	for (uint32_t i = 0; i < n; i++)
		h = (h ^ (uintptr_t)pc[i]) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	return h | 1;
}

static uint32_t place_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32) % STACKS;
}

static void fill(struct stack *s, void *const *pc, uint32_t n)
{
	uint32_t place;

	s->n = n;
	for (uint32_t i = 0; i < n; i++)
		s->pc[i] = (uintptr_t)pc[i];
	place = __atomic_fetch_add(&n_arrived, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&arrived[place], (uint32_t)(s - stacks) + 1, __ATOMIC_RELEASE);
}

/* Whoever swaps the hash in describes the stack; others use the id at once. */
static uint32_t intern(void *const *pc, uint32_t n)
{
	uint64_t hash = hash_of(pc, n);

	if (__builtin_expect(__atomic_load_n(&stacks[place_of(hash)].hash, __ATOMIC_RELAXED) == hash, 1))
		return place_of(hash) + 1;
	for (uint32_t i = 0; i < PROBES_MAX; i++) {
		struct stack *s = &stacks[(place_of(hash) + i) % STACKS];
		uint64_t have = __atomic_load_n(&s->hash, __ATOMIC_RELAXED);
		if (!have &&
		    __atomic_compare_exchange_n(&s->hash, &have, hash, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			fill(s, pc, n);
			have = hash;
		}
		if (have == hash)
			return (uint32_t)(s - stacks) + 1;
	}
	ctr_add(ctr_core(CTR_ROW_CALLSITES_LOST), 1);
	return 0;
}

static bool is_own(const void *pc)
{
	return (uintptr_t)pc - (uintptr_t)__ehdr_start < (uintptr_t)_end - (uintptr_t)__ehdr_start;
}

uint32_t record_callsite(void)
{
	unwind_fn *take = __atomic_load_n(&unwind, __ATOMIC_ACQUIRE);
	void *pc[LOG_FRAMES_MAX + OWN_FRAMES];
	int n, own = 1; /* the first one is here */

	if (!take)
		return 0;
	n = take(pc, LOG_FRAMES_MAX + OWN_FRAMES);
	while (own < n && is_own(pc[own]))
		own++;
	n -= own;
	if (n <= 0)
		return 0;
	return intern(pc + own, n > LOG_FRAMES_MAX ? LOG_FRAMES_MAX : (uint32_t)n);
}

/* ---- the writer's side ---- */

struct module {
	uint64_t base, name_hash;
};
static struct module modules[MODULES_MAX];
static uint32_t n_modules;

struct lookup {
	uint64_t pc, base;
	char path[PATH_BYTES];
};

/* Under the loader's lock: the name cannot be freed while it is copied. */
static int match_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct lookup *l = data;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;
		if (p->p_type != PT_LOAD || l->pc < start || l->pc - start >= p->p_memsz)
			continue;
		l->base = info->dlpi_addr;
		record_text_copy(l->path, sizeof l->path, info->dlpi_name ? info->dlpi_name : "");
		return 1;
	}
	return 0;
}

static void tell_module(uint32_t id, const struct lookup *l)
{
	union {
		struct log_module record;
		unsigned char bytes[sizeof(struct log_module) + PATH_BYTES];
	} m = { .record = { .module = id, .base = l->base, .bytes_path = (uint32_t)strlen(l->path) } };

	m.record.h.type = LOG_MODULE;
	m.record.h.bytes = (uint32_t)(sizeof m.record + m.record.bytes_path + 7) & ~7u;
	memcpy(m.record.path, l->path, m.record.bytes_path);
	record_chunk_add(&m.record, NULL);
}

/* 0: unknown. A module that took the place of one that was unloaded is a new one. */
static uint32_t module_of(uint64_t pc, uint64_t *base)
{
	static struct lookup l;
	struct module m;

	l.pc = pc;
	*base = 0;
	if (!dl_iterate_phdr(match_module, &l))
		return 0;
	if (!l.path[0]) {
		ssize_t n = readlink("/proc/self/exe", l.path, sizeof l.path - 1);
		l.path[n > 0 ? n : 0] = '\0';
	}
	m = (struct module) { l.base, log_key_hash(l.path, strlen(l.path)) };
	for (uint32_t i = 0; i < n_modules; i++)
		if (modules[i].base == m.base && modules[i].name_hash == m.name_hash) {
			*base = m.base;
			return i + 1;
		}
	if (n_modules == MODULES_MAX)
		return 0;
	modules[n_modules++] = m;
	tell_module(n_modules, &l);
	*base = m.base;
	return n_modules;
}

/* The name that dladdr points to goes when its module is unloaded, and nobody keeps that from happening now: read it
 * through the kernel, which answers EIO where we would die. */
static uint32_t symbol_of(uint64_t pc, int memory, char *to)
{
	Dl_info info;
	ssize_t n;

	if (memory < 0 || !dladdr((void *)(uintptr_t)pc, &info) || !info.dli_sname)
		return 0;
	n = pread(memory, to, SYMBOL_BYTES, (off_t)(uintptr_t)info.dli_sname);
	return n > 0 ? (uint32_t)strnlen(to, (size_t)n) : 0;
}

static void tell(uint32_t id)
{
	static union {
		struct log_callsite record;
		unsigned char bytes[LOG_RECORD_MAX];
	} c;
	const struct stack *s = &stacks[id - 1];
	char *text = (char *)&c.record.frame[s->n];
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	uint64_t base;

	memset(&c, 0, sizeof c);
	c.record.callsite = id;
	c.record.n_frames = s->n;
	for (uint32_t i = 0; i < s->n; i++) {
		/* a return address may be the first byte of the next function */
		c.record.frame[i].module = module_of(s->pc[i] - 1, &base);
		c.record.frame[i].offset = s->pc[i] - base;
		c.record.frame[i].symbol = symbol_of(s->pc[i] - 1, memory, text + c.record.text_bytes);
		c.record.text_bytes += c.record.frame[i].symbol;
	}
	if (memory >= 0)
		close(memory);
	memset(text + c.record.text_bytes, 0, (size_t)((char *)&c + sizeof c - text) - c.record.text_bytes);
	c.record.h.type = LOG_CALLSITE;
	c.record.h.bytes =
		(uint32_t)(sizeof c.record + s->n * sizeof c.record.frame[0] + c.record.text_bytes + 7) & ~7u;
	record_chunk_add(&c.record, NULL);
}

void record_callsite_emit(void)
{
	while (n_told < STACKS && n_told < __atomic_load_n(&n_arrived, __ATOMIC_ACQUIRE)) {
		uint32_t id = __atomic_load_n(&arrived[n_told], __ATOMIC_ACQUIRE);
		if (!id)
			return; /* on its way */
		tell(id);
		n_told++;
	}
}
