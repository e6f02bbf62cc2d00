/* SPDX-License-Identifier: Apache-2.0
 *
 * audit.c: libslotprobe-audit.so, for LD_AUDIT (record --audit): where the loader binds a name of ours to libcuda or to
 * libc, past the preload, it binds it to what the preload has for it.
 *
 * That is what RTLD_DEEPBIND does, and all that changes: other bindings stay, other preloads' too. The auditor lives in
 * a namespace of its own with a libc of its own, and finds the preload's function in its link map: dlsym cannot be asked
 * about objects that came in at the start. Bindings by dlsym are left alone: whoever asks ours gets ours, and RTLD_NEXT
 * means somebody else.
 */
#include <link.h>
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum place { PLACE_OTHER, PLACE_DRIVER, PLACE_LIBC };

static struct link_map *preload;
typedef void *bind_fn(const char *symbol);
static bind_fn *bind;

static int is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, name, strlen(name));
}

/* The name of libcuda ends in a version or in none. */
static enum place place_of(const char *path)
{
	if (is_named(path, "libcuda.so"))
		return PLACE_DRIVER;
	return is_named(path, "libc.so.") || is_named(path, "libdl.so.") ? PLACE_LIBC : PLACE_OTHER;
}

EXPORT unsigned la_version(unsigned version);
EXPORT unsigned la_version(unsigned version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

EXPORT unsigned la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie);
EXPORT unsigned la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie)
{
	if (lmid != LM_ID_BASE)
		return 0;
	if (is_named(map->l_name, "libslotprobe.so")) {
		preload = map;
		return 0;
	}
	*cookie = place_of(map->l_name);
	return *cookie == PLACE_OTHER ? LA_FLG_BINDFROM : LA_FLG_BINDTO;
}

/* A defined symbol of that object, by its GNU hash table. */
static void *find(const struct link_map *map, const char *name)
{
	const Elf64_Sym *symbols = NULL;
	const uint32_t *table = NULL, *buckets, *chain;
	const char *strings = NULL;
	uint32_t hash = 5381, i;

	for (const Elf64_Dyn *dyn = map->l_ld; dyn->d_tag != DT_NULL; dyn++) {
		if (dyn->d_tag == DT_SYMTAB)
			symbols = (const Elf64_Sym *)dyn->d_un.d_ptr;
		else if (dyn->d_tag == DT_STRTAB)
			strings = (const char *)dyn->d_un.d_ptr;
		else if (dyn->d_tag == DT_GNU_HASH)
			table = (const uint32_t *)dyn->d_un.d_ptr;
	}
	if (!symbols || !strings || !table || !table[0])
		return NULL;
	for (const char *p = name; *p; p++)
		hash = hash * 33 + (unsigned char)*p;
	buckets = table + 4 + 2 * table[2]; /* behind the Bloom filter's 64-bit words */
	chain = buckets + table[0];
	i = buckets[hash % table[0]];
	for (; i >= table[1]; i++) {
		uint32_t there = chain[i - table[1]];

		if ((there | 1) == (hash | 1) && !strcmp(strings + symbols[i].st_name, name))
			return (void *)(map->l_addr + symbols[i].st_value);
		if (there & 1)
			break;
	}
	return NULL;
}

/* Not before something asks: the preload must have been bound itself. */
static void *ours(const char *symbol)
{
	if (!bind && preload)
		bind = (bind_fn *)find(preload, "slotprobe_bind");
	return bind ? bind(symbol) : NULL;
}

EXPORT uintptr_t la_symbind64(Elf64_Sym *sym, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
			      const char *name);
EXPORT uintptr_t la_symbind64(Elf64_Sym *sym, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
			      const char *name)
{
	void *instead = NULL;

	(void)index, (void)from;
	if (*flags & LA_SYMB_DLSYM)
		return sym->st_value;
	*flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
	if (*to == PLACE_DRIVER ? name[0] == 'c' && name[1] == 'u' : *to == PLACE_LIBC && !strcmp(name, "dlsym"))
		instead = ours(name);
	return instead ? (uintptr_t)instead : sym->st_value;
}
