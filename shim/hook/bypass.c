/* SPDX-License-Identifier: Apache-2.0
 *
 * bypass.c: finds loaded objects whose references to our names the loader bound past us (RTLD_DEEPBIND, mostly): what
 * they launch is not seen, and must not look as if there was nothing.
 *
 * Read from the objects' relocations, on a thread of ours, with no cost on any call of the application. The loader's
 * list is walked under the loader's own lock, under which no object is unmapped; a fork waits until it is given back,
 * or the child could never load anything again.
 */
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "hook.h"

#if defined(__x86_64__)
#define RELOC_SLOT R_X86_64_JUMP_SLOT
#define RELOC_GOT  R_X86_64_GLOB_DAT
#define RELOC_WORD R_X86_64_64
#elif defined(__aarch64__)
#define RELOC_SLOT R_AARCH64_JUMP_SLOT
#define RELOC_GOT  R_AARCH64_GLOB_DAT
#define RELOC_WORD R_AARCH64_ABS64
#endif

#define WANTED_MAX 16u /* table names that one object refers to; more cannot say more */
#define NEWS_MAX   4u  /* found in one look; the others wait for the next */
#define KNOWN_MAX  64u /* objects that were told of, or whose slots are still empty */

extern void *shim_dlsym_real; /* resolve.c */

/* ---- one object ---- */

struct object {
	uintptr_t base;
	const Elf64_Sym *symbols;
	const char *strings;
	size_t string_bytes;
	const Elf64_Rela *rela, *plt;
	size_t n_rela, n_plt, n_relative, n_undefined;
};

/* The loader has added the base to the addresses in most objects' dynamic sections, and not in those of the kernel's. */
static const void *address(const struct dl_phdr_info *info, uintptr_t value)
{
	return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

static size_t most_referenced(const Elf64_Rela *rela, size_t n)
{
	size_t most = 0;

	for (size_t i = 0; rela && i < n; i++)
		if (ELF64_R_SYM(rela[i].r_info) > most)
			most = ELF64_R_SYM(rela[i].r_info);
	return most;
}

/* Undefined symbols come before all that are hashed. The table of an object that exports nothing does not tell how many
 * there are; its relocations do. */
static size_t undefined_symbols(const struct object *o, const uint32_t *gnu_hash, const uint32_t *hash)
{
	size_t plt, rest;

	if (gnu_hash && gnu_hash[1] > 1)
		return gnu_hash[1];
	if (hash)
		return hash[1];
	plt = most_referenced(o->plt, o->n_plt);
	rest = most_referenced(o->rela, o->n_rela);
	return (plt > rest ? plt : rest) + 1;
}

static bool read_object(const struct dl_phdr_info *info, struct object *o)
{
	const Elf64_Dyn *dyn = NULL;
	const uint32_t *gnu_hash = NULL, *hash = NULL;

	memset(o, 0, sizeof(*o));
	o->base = info->dlpi_addr;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const Elf64_Dyn *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
		const void *at = address(info, dyn->d_un.d_ptr);

		switch (dyn->d_tag) {
		case DT_SYMTAB:
			o->symbols = at;
			break;
		case DT_STRTAB:
			o->strings = at;
			break;
		case DT_STRSZ:
			o->string_bytes = dyn->d_un.d_val;
			break;
		case DT_GNU_HASH:
			gnu_hash = at;
			break;
		case DT_HASH:
			hash = at;
			break;
		case DT_RELA:
			o->rela = at;
			break;
		case DT_RELASZ:
			o->n_rela = dyn->d_un.d_val / sizeof(Elf64_Rela);
			break;
		case DT_RELACOUNT:
			o->n_relative = dyn->d_un.d_val;
			break;
		case DT_JMPREL:
			o->plt = at;
			break;
		case DT_PLTRELSZ:
			o->n_plt = dyn->d_un.d_val / sizeof(Elf64_Rela);
			break;
		}
	}
	if (!o->symbols || !o->strings)
		return false;
	o->n_undefined = undefined_symbols(o, gnu_hash, hash);
	return true;
}

static bool holds(const struct dl_phdr_info *info, const void *place)
{
	for (unsigned i = 0; place && i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && (uintptr_t)place - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* ---- its references to our names ---- */

/* Where the reference leads if it leads past us. */
struct wanted {
	uint32_t symbol;
	const char *name;
	const void *past;
};

static const void *past_us(const char *name)
{
	if (name[0] == 'd')
		return strcmp(name, "dlsym") ? NULL : __atomic_load_n(&shim_dlsym_real, __ATOMIC_RELAXED);
	if (name[0] != 'c' || name[1] != 'u')
		return NULL;
	for (unsigned i = 0; i < SHIM_ENTRY_COUNT; i++)
		if (!strcmp(name, shim_entry[i].symbol))
			return __atomic_load_n(&shim_target[i].raw, __ATOMIC_RELAXED);
	return NULL;
}

static unsigned find_wanted(const struct object *o, struct wanted *wanted)
{
	unsigned n = 0;

	for (size_t i = 1; i < o->n_undefined && n < WANTED_MAX; i++) {
		const Elf64_Sym *symbol = &o->symbols[i];
		const char *name = o->strings + symbol->st_name;
		const void *past;

		if (symbol->st_shndx != SHN_UNDEF || symbol->st_name >= o->string_bytes)
			continue;
		past = past_us(name);
		if (past)
			wanted[n++] = (struct wanted) { (uint32_t)i, name, past };
	}
	return n;
}

enum binding { BOUND_ELSEWHERE, BOUND_LATER, BOUND_PAST };

/* A slot that is not bound yet leads into its own object, or holds what the linker left there. */
static enum binding binding_of(const struct dl_phdr_info *info, const void *slot, const void *past)
{
	const void *to = __atomic_load_n((void *const *)slot, __ATOMIC_RELAXED);

	if (to == past)
		return BOUND_PAST;
	return (uintptr_t)to < 65536 || holds(info, to) || holds(info, (const char *)info->dlpi_addr + (uintptr_t)to)
		       ? BOUND_LATER
		       : BOUND_ELSEWHERE;
}

static enum binding judge(const struct dl_phdr_info *info, const struct object *o, const struct wanted *wanted,
			  unsigned n_wanted, const Elf64_Rela *rela, size_t n, const char **name)
{
	enum binding worst = BOUND_ELSEWHERE;

	for (size_t i = 0; rela && i < n; i++) {
		uint32_t type = ELF64_R_TYPE(rela[i].r_info), symbol = ELF64_R_SYM(rela[i].r_info);

		if (type != RELOC_SLOT && type != RELOC_GOT && type != RELOC_WORD)
			continue;
		for (unsigned k = 0; k < n_wanted; k++) {
			enum binding b;

			if (wanted[k].symbol != symbol)
				continue;
			b = binding_of(info, (const void *)(o->base + rela[i].r_offset), wanted[k].past);
			if (b > worst) {
				worst = b;
				*name = wanted[k].name;
			}
		}
		if (worst == BOUND_PAST)
			break;
	}
	return worst;
}

static enum binding judge_object(const struct dl_phdr_info *info, const char **name)
{
	struct wanted wanted[WANTED_MAX];
	enum binding plt, rest;
	const char *in_plt = NULL;
	struct object o;
	unsigned n;

	if (!read_object(info, &o))
		return BOUND_ELSEWHERE;
	n = find_wanted(&o, wanted);
	if (!n)
		return BOUND_ELSEWHERE;
	plt = judge(info, &o, wanted, n, o.plt, o.n_plt, &in_plt);
	rest = BOUND_ELSEWHERE;
	if (plt != BOUND_PAST && o.n_relative <= o.n_rela)
		rest = judge(info, &o, wanted, n, o.rela + o.n_relative, o.n_rela - o.n_relative, name);
	if (plt >= rest)
		*name = in_plt;
	return plt > rest ? plt : rest;
}

/* ---- all objects ---- */

struct news {
	char symbol[64], object[128];
};

/* Objects, by where they lie. */
struct list {
	unsigned n;
	bool cut; /* there was no room */
	uintptr_t base[KNOWN_MAX];
};

/* Of the one thread that looks. `later`: with slots that are not bound yet. */
static struct {
	unsigned long long adds, subs;
	struct list told, later;
	bool known; /* the rest is that of the last whole look */
} past;

/* All objects, or only those that were to be looked at later. */
struct look {
	bool all, first;
	unsigned n_news;
	struct list told, later;
	struct news news[NEWS_MAX];
};

static uint32_t walking, forking;

static bool listed(const struct list *list, uintptr_t base)
{
	for (unsigned i = 0; i < list->n; i++)
		if (list->base[i] == base)
			return true;
	return false;
}

static bool add(struct list *list, uintptr_t base)
{
	if (list->n == KNOWN_MAX)
		list->cut = true;
	else
		list->base[list->n++] = base;
	return !list->cut;
}

static void copy(char *to, size_t room, const char *from)
{
	size_t n = strnlen(from, room - 1);

	memcpy(to, from, n);
	to[n] = 0;
}

/* Ours, libcuda and libc are where the names lead. */
static bool is_an_end(const struct dl_phdr_info *info)
{
	return holds(info, (const void *)&past) || holds(info, __atomic_load_n(&shim_dlsym_real, __ATOMIC_RELAXED)) ||
	       holds(info, __atomic_load_n(&shim_target[SHIM_ENTRY_cuInit].raw, __ATOMIC_RELAXED));
}

static void take(struct look *look, const struct dl_phdr_info *info)
{
	const char *name = "";

	switch (judge_object(info, &name)) {
	case BOUND_PAST:
		if (look->n_news == NEWS_MAX) {
			add(&look->later, info->dlpi_addr);
		} else if (add(&look->told, info->dlpi_addr)) {
			copy(look->news[look->n_news].symbol, sizeof(look->news[0].symbol), name);
			copy(look->news[look->n_news].object, sizeof(look->news[0].object), info->dlpi_name);
			look->n_news++;
		}
		break;
	case BOUND_LATER:
		add(&look->later, info->dlpi_addr);
		break;
	case BOUND_ELSEWHERE:
		break;
	}
}

/* Is there anything to look at? */
static bool begin_look(struct look *look, const struct dl_phdr_info *info, size_t bytes)
{
	look->first = false;
	if (bytes < sizeof(*info))
		return false; /* a libc that does not say what came and went */
	look->all = !past.known || info->dlpi_adds != past.adds || info->dlpi_subs != past.subs || past.later.cut;
	past.adds = info->dlpi_adds;
	past.subs = info->dlpi_subs;
	return look->all || past.later.n;
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct look *look = data;

	if (look->first && !begin_look(look, info, bytes))
		return 1;
	if (listed(&past.told, info->dlpi_addr))
		add(&look->told, info->dlpi_addr); /* it is still there */
	else if ((look->all || listed(&past.later, info->dlpi_addr)) && !is_an_end(info))
		take(look, info);
	return 0;
}

/* ---- forks ---- */

#define FORK_WAIT_NS 200000000ll

/* Paired with shim_bypass_look: each side first shows itself and then looks for the other. Bounded, since the thread
 * that forks may itself hold the loader's lock. */
static void before_fork(void)
{
	const struct timespec nap = { 0, 50000 };
	int saved = errno;

	__atomic_fetch_add(&forking, 1, __ATOMIC_SEQ_CST);
	for (long long waited = 0; waited < FORK_WAIT_NS && __atomic_load_n(&walking, __ATOMIC_SEQ_CST);
	     waited += nap.tv_nsec)
		nanosleep(&nap, NULL);
	errno = saved;
}

static void after_fork(void)
{
	__atomic_fetch_sub(&forking, 1, __ATOMIC_SEQ_CST);
}

/* The child's recording is another, and tells anew. */
static void in_child(void)
{
	memset(&past, 0, sizeof(past));
	walking = forking = 0;
}

static bool begin_walk(void)
{
	static bool hooked;

	if (!hooked && pthread_atfork(before_fork, after_fork, in_child))
		return false;
	hooked = true;
	__atomic_store_n(&walking, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&forking, __ATOMIC_SEQ_CST))
		return true;
	__atomic_store_n(&walking, 0, __ATOMIC_SEQ_CST);
	return false;
}

static bool walk(int (*each)(struct dl_phdr_info *, size_t, void *), void *data)
{
	if (!begin_walk())
		return false;
	dl_iterate_phdr(each, data);
	__atomic_store_n(&walking, 0, __ATOMIC_SEQ_CST);
	return true;
}

static int is_driver(struct dl_phdr_info *info, size_t bytes, void *found)
{
	const char *slash = strrchr(info->dlpi_name, '/');

	(void)bytes;
	*(bool *)found = !strncmp(slash ? slash + 1 : info->dlpi_name, "libcuda.so", 10);
	return *(bool *)found;
}

/* Without a driver there is nothing to be bound to. Resolving waits for whoever is just loading something, unless it was
 * done before: so not without need. */
static bool driver_is_there(void)
{
	bool found = __atomic_load_n(&shim_target[SHIM_ENTRY_cuInit].raw, __ATOMIC_RELAXED);

	return (found || (walk(is_driver, &found) && found)) && shim_resolve_all();
}

void shim_bypass_look(void)
{
	struct look look = { .first = true };

	if (!driver_is_there() || !walk(visit, &look))
		return;
	if (look.all || past.later.n) {
		past.told = look.told;
		past.later = look.later;
		past.known = true;
	}
	for (unsigned i = 0; i < look.n_news; i++)
		SHIM_TELL(bypassed, look.news[i].symbol, look.news[i].object);
}
