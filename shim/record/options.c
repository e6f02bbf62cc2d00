/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: what the environment asks for. Read once, before main, into memory of our own: the application may change
 * its environment at any time later. A value that makes no sense leaves its default and counts an internal error.
 */
#include "internal.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <unistd.h>

static struct {
	struct record_options public;
	char dir[PATH_MAX], arm[128], label[64], probes[8192];
	char env[16384];
} opt;

enum { READ_NOT, READ_NOW, READ_DONE };
static uint32_t opt_state;

static void bad_value(void)
{
	ctr_internal_error();
}

static const char *env_of(const char *name)
{
	size_t n = strlen(name);

	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

/* A text that does not fit is a bad value: half a path or half a list would mean something else. */
static const char *read_text(const char *name, char *to, size_t bytes)
{
	const char *value = env_of(name);

	if (!value || !*value)
		return NULL;
	if (strlen(value) >= bytes) {
		bad_value();
		return NULL;
	}
	record_text_copy(to, bytes, value);
	return to;
}

static bool parse_u64(const char *s, const char **end, uint64_t *value)
{
	const char *p = s;
	uint64_t v = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	*end = p;
	*value = v;
	return p != s;
}

static uint64_t read_size(const char *name, uint64_t otherwise)
{
	static const char units[] = "KMGT";
	const char *value = env_of(name), *end, *unit;
	uint64_t v;

	if (!value || !*value)
		return otherwise;
	if (parse_u64(value, &end, &v)) {
		if (!*end)
			return v;
		unit = strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end);
		if (unit && !end[1] && !__builtin_mul_overflow(v, 1ull << (10 * (unit - units + 1)), &v))
			return v;
	}
	bad_value();
	return otherwise;
}

static bool read_switch(const char *name, bool otherwise)
{
	const char *value = env_of(name);

	if (!value || !*value)
		return otherwise;
	if (!strcmp(value, "0") || !strcmp(value, "1"))
		return *value == '1';
	bad_value();
	return otherwise;
}

static uint32_t read_level(void)
{
	const char *value = env_of("SLOTPROBE_LEVEL");

	if (!value || !*value || !strcmp(value, "donations") || !strcmp(value, "0"))
		return LOG_LEVEL_DONATIONS;
	if (!strcmp(value, "launches") || !strcmp(value, "1"))
		return LOG_LEVEL_LAUNCHES;
	bad_value(); /* nodes too: not built, and not to be accepted in silence */
	return LOG_LEVEL_DONATIONS;
}

static void read_watch(void)
{
	const uint32_t room = sizeof opt.public.watch / sizeof opt.public.watch[0];
	const char *p = env_of("SLOTPROBE_WATCH");

	while (p && *p) {
		bool minus = *p == '-';
		uint64_t v;
		if (!parse_u64(p + minus, &p, &v) || v > INT64_MAX || (*p && *p != ',') || opt.public.n_watch == room) {
			bad_value();
			return;
		}
		opt.public.watch[opt.public.n_watch++] = minus ? -(int64_t)v : (int64_t)v;
		p += *p == ',';
	}
}

/* A relative path means the directory that the process was started in, not one that it changes to later. */
static void read_dir(void)
{
	const char *value = env_of("SLOTPROBE_DIR");
	struct record_text path = record_text_start(opt.dir, sizeof opt.dir);
	char cwd[PATH_MAX];

	if (!value || !*value || getauxval(AT_SECURE))
		return;
	if (*value != '/') {
		if (!getcwd(cwd, sizeof cwd)) {
			bad_value();
			return;
		}
		record_text_add(&path, cwd);
		record_text_add(&path, "/");
	}
	record_text_add(&path, value);
	if (path.at == path.end)
		bad_value();
	else
		opt.public.dir = opt.dir;
}

bool record_options_sensitive(const char *name, size_t bytes)
{
	static const char *const words[] = { "KEY", "TOKEN", "SECRET", "PASSWORD" };

	for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
		size_t n = strlen(words[w]);
		for (size_t i = 0; i + n <= bytes; i++)
			if (!strncasecmp(name + i, words[w], n))
				return true;
	}
	return false;
}

static bool env_allowed(const char *entry)
{
	static const char *const names[] = {
		"CUDA_", "GGML_CUDA_", "XLA_", "JAX_", "TORCH_", "PYTORCH_", "SLOTPROBE_"
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!strncmp(entry, names[i], strlen(names[i])))
			return strchr(entry, '=') != NULL;
	return false;
}

static void copy_env(void)
{
	char *to = opt.env;

	for (char **e = environ; e && *e; e++) {
		size_t n = strlen(*e) + 1;
		if (!env_allowed(*e))
			continue;
		if (n >= (size_t)(opt.env + sizeof opt.env - to)) {
			bad_value();
			continue;
		}
		memcpy(to, *e, n);
		to += n;
	}
	*to = '\0';
}

static void read_all(void)
{
	struct record_options *o = &opt.public;
	int saved = errno;

	read_dir();
	o->recording = 1;
	o->min_free = 2ull << 30;
	o->max_size = 8ull << 30;
	if (o->dir) {
		o->arm = read_text("SLOTPROBE_ARM", opt.arm, sizeof opt.arm);
		o->label = read_text("SLOTPROBE_LABEL", opt.label, sizeof opt.label);
		o->probes = read_text("SLOTPROBE_PROBES", opt.probes, sizeof opt.probes);
		o->recording = read_switch("SLOTPROBE_RECORDING", true);
		o->level = read_level();
		o->min_free = read_size("SLOTPROBE_MIN_FREE", o->min_free);
		o->max_size = read_size("SLOTPROBE_MAX_SIZE", o->max_size);
		o->debug = read_switch("SLOTPROBE_DEBUG", false);
		o->keep_keys = read_switch("SLOTPROBE_KEEP_KEYS", false);
		read_watch();
		copy_env();
	}
	errno = saved;
}

/* Constructors of other libraries may come before ours: whoever asks first reads. */
const struct record_options *record_options(void)
{
	uint32_t expected = READ_NOT;

	if (__builtin_expect(__atomic_load_n(&opt_state, __ATOMIC_ACQUIRE) == READ_DONE, 1))
		return &opt.public;
	if (__atomic_compare_exchange_n(&opt_state, &expected, READ_NOW, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		read_all();
		__atomic_store_n(&opt_state, READ_DONE, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(&opt_state, __ATOMIC_ACQUIRE) != READ_DONE)
		sched_yield();
	return &opt.public;
}

const char *record_options_env(void)
{
	return opt.env;
}

__attribute__((constructor)) static void options_constructor(void)
{
	record_options();
}
