/* SPDX-License-Identifier: Apache-2.0
 *
 * rules.c: reads NAME.doctor and judges settings by it. Both are input: what has another shape than expected is not there.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/install.h"
#include "launch/rules.h"

#define SUFFIX     ".doctor"
#define FILES_MAX  64
#define FILE_MAX   (1 << 20)
#define LOOK_DEPTH 5

/* ---- the files ---- */

/* Nobody's pipe may make us wait, nor a device feed us for ever. */
static json_t *load_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	json_t *rules = NULL;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= FILE_MAX)
		rules = json_loadfd(fd, 0, NULL);
	close(fd);
	return rules;
}

static void load_folder(json_t *all, const char *folder)
{
	DIR *dir = opendir(folder);
	char path[PATH_MAX + 300];
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) && json_array_size(all) < FILES_MAX) {
		size_t n = strlen(entry->d_name);
		json_t *rules;

		if (n <= strlen(SUFFIX) || strcmp(entry->d_name + n - strlen(SUFFIX), SUFFIX) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		rules = load_file(path);
		if (json_is_object(rules))
			json_array_append(all, rules);
		json_decref(rules);
	}
	if (dir)
		closedir(dir);
}

json_t *rules_load(void)
{
	json_t *all = json_array();
	char folder[PATH_MAX];

	for (size_t i = 0; !install_probe_folder(i, folder, sizeof(folder)); i++)
		load_folder(all, folder);
	return all;
}

/* ---- the server's settings: releases nest them differently, so a name is looked for from the top down ---- */

static json_t *look(json_t *value, const char *name, int depth);

static json_t *look_below(json_t *value, const char *name, int depth)
{
	json_t *hit = NULL;

	for (size_t i = 0; !hit && i < json_array_size(value); i++)
		hit = look(json_array_get(value, i), name, depth);
	for (void *at = json_object_iter(value); !hit && at; at = json_object_iter_next(value, at))
		hit = look(json_object_iter_value(at), name, depth);
	return hit;
}

static json_t *look(json_t *value, const char *name, int depth)
{
	json_t *hit = json_object_get(value, name);

	if (hit && !json_is_null(hit))
		return hit;
	return depth ? look_below(value, name, depth - 1) : NULL;
}

bool rules_know(json_t *rules, json_t *info)
{
	json_t *knows = json_object_get(rules, "knows");
	size_t n = json_array_size(knows);

	for (size_t i = 0; i < n; i++) {
		const char *name = json_string_value(json_array_get(knows, i));

		if (!name || !look(info, name, LOOK_DEPTH))
			return false;
	}
	return n > 0;
}

/* ---- values; each is a new reference, NULL: unknown ---- */

static json_t *setting(const struct rules_facts *facts, const char *name)
{
	json_t *hit = look(facts->info, name, LOOK_DEPTH);

	return json_is_boolean(hit) || json_is_integer(hit) || json_is_string(hit) ? json_incref(hit) : NULL;
}

static json_t *largest(const struct rules_facts *facts, const char *name)
{
	json_t *list = look(facts->info, name, LOOK_DEPTH);
	json_int_t most = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_int_t one = json_integer_value(json_array_get(list, i)); /* 0 for what is no integer */

		most = one > most ? one : most;
	}
	return most > 0 ? json_integer(most) : NULL;
}

static json_t *option(const struct rules_facts *facts, const char *name)
{
	bool known = !strcmp(name, "tokens") || !strcmp(name, "concurrency");

	return known && options_given(facts->options, name) ? json_integer(options_int(facts->options, name)) : NULL;
}

static json_t *counter(const struct rules_facts *facts, const char *name)
{
	return facts->run ? json_integer((json_int_t)run_counter(facts->run, name, NULL)) : NULL;
}

static const struct {
	const char *name;
	json_t *(*find)(const struct rules_facts *facts, const char *name);
} places[] = { { "setting", setting }, { "largest", largest }, { "option", option }, { "counter", counter } };

/* In its stead: true where it is that; where it is not, the next place is asked. */
static json_t *only_if(json_t *found, json_t *is)
{
	const bool same = json_equal(found, is);

	json_decref(found);
	return same ? json_true() : NULL;
}

static json_t *value_at(json_t *place, const struct rules_facts *facts)
{
	json_t *found = NULL, *is = json_object_get(place, "is");

	for (size_t p = 0; !found && p < sizeof(places) / sizeof(places[0]); p++) {
		const char *name = json_string_value(json_object_get(place, places[p].name));

		if (name)
			found = places[p].find(facts, name);
	}
	return found && is ? only_if(found, is) : found;
}

static json_t *value_of(json_t *rules, const char *name, const struct rules_facts *facts)
{
	json_t *list = json_object_get(json_object_get(rules, "values"), name), *found = NULL;

	for (size_t i = 0; !found && i < json_array_size(list); i++)
		found = value_at(json_array_get(list, i), facts);
	return found;
}

/* A number, or the name of a value. */
static json_t *operand(json_t *rules, json_t *said, const struct rules_facts *facts)
{
	return json_is_string(said) ? value_of(rules, json_string_value(said), facts) : json_incref(said);
}

/* ---- conditions ---- */

static bool compares(json_t *a, json_t *b, const char *how)
{
	if (!json_is_integer(a) || !json_is_integer(b))
		return false;
	return *how == '<' ? json_integer_value(a) < json_integer_value(b)
			   : json_integer_value(a) > json_integer_value(b);
}

static bool begins(json_t *value, json_t *with)
{
	const char *text = json_string_value(value), *start = json_string_value(with);

	return text && start && !strncmp(text, start, strlen(start));
}

static bool holds(json_t *rules, json_t *condition, const struct rules_facts *facts)
{
	const char *how = json_string_value(json_array_get(condition, 0));
	json_t *a = operand(rules, json_array_get(condition, 1), facts), *third = json_array_get(condition, 2), *b;
	bool yes = false;

	if (how && !strcmp(how, "unknown")) {
		yes = !a;
	} else if (how && !strcmp(how, "is")) {
		yes = a && third && json_equal(a, third);
	} else if (how && !strcmp(how, "begins")) {
		yes = begins(a, third);
	} else if (how && (!strcmp(how, "<") || !strcmp(how, ">"))) {
		b = operand(rules, third, facts);
		yes = compares(a, b, how);
		json_decref(b);
	}
	json_decref(a);
	return yes;
}

static bool counts(json_t *rules, json_t *clause, const struct rules_facts *facts)
{
	json_t *conditions = json_object_get(clause, "if");

	for (size_t i = 0; i < json_array_size(conditions); i++)
		if (!holds(rules, json_array_get(conditions, i), facts))
			return false;
	return true;
}

/* ---- text ---- */

static size_t put(char *text, size_t size, size_t at, const char *part, size_t n)
{
	if (at + n + 1 > size)
		n = size - at - 1;
	memcpy(text + at, part, n);
	text[at + n] = 0;
	return at + n;
}

static size_t put_value(char *text, size_t size, size_t at, json_t *value)
{
	char number[32];

	if (json_is_string(value))
		return put(text, size, at, json_string_value(value), json_string_length(value));
	if (json_is_boolean(value))
		return put(text, size, at, json_is_true(value) ? "true" : "false", json_is_true(value) ? 4 : 5);
	if (!json_is_integer(value))
		return put(text, size, at, "?", 1);
	return put(text, size, at, number,
		   (size_t)snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value)));
}

static void fill(json_t *rules, const char *format, const struct rules_facts *facts, char *text, size_t size)
{
	char name[64];
	size_t at = 0;

	*text = 0;
	while (*format) {
		size_t n = strcspn(format, "{"), inside;
		json_t *value;

		at = put(text, size, at, format, n);
		format += n;
		inside = strcspn(format, "}");
		if (!*format || !format[inside] || inside - 1 >= sizeof(name))
			break;
		snprintf(name, sizeof(name), "%.*s", (int)(inside - 1), format + 1);
		value = value_of(rules, name, facts);
		at = put_value(text, size, at, value);
		json_decref(value);
		format += inside + 1;
	}
}

json_t *rules_judge(json_t *rules, json_t *check, const struct rules_facts *facts, char *text, size_t size)
{
	json_t *clauses = json_object_get(check, "clauses");

	for (size_t i = 0; i < json_array_size(clauses); i++) {
		json_t *clause = json_array_get(clauses, i);
		const char *said = json_string_value(json_object_get(clause, "text"));

		if (!said || !counts(rules, clause, facts))
			continue;
		fill(rules, said, facts, text, size);
		return clause;
	}
	return NULL;
}
