/* SPDX-License-Identifier: Apache-2.0
 *
 * config.c: compares manifests, option by option.
 */
#include <string.h>

#include "compare/config.h"

/* A command line as {NAME: [values]}: "--x 1" and "--x=1" are the same; what stands before any option has its place as name. */
static json_t *by_option(const json_t *argv)
{
	json_t *options = json_object(), *values = NULL;
	char name[256] = "";

	for (size_t i = 0; i < json_array_size(argv); i++) {
		const char *text = json_string_value(json_array_get(argv, i)), *sign;
		bool is_option = text && text[0] == '-' && text[1] && !strchr("0123456789.", text[1]);

		if (!text)
			continue;
		sign = is_option ? strchr(text, '=') : NULL;
		if (is_option)
			snprintf(name, sizeof name, "%.*s", sign ? (int)(sign - text) : (int)strlen(text), text);
		else if (!*name || name[0] != '-')
			snprintf(name, sizeof name, "argument %zu", i);
		values = json_object_get(options, name);
		if (!values) {
			values = json_array();
			json_object_set_new(options, name, values);
		}
		if (sign)
			json_array_append_new(values, json_string(sign + 1));
		else if (!is_option)
			json_array_append_new(values, json_string(text));
	}
	return options;
}

/* These say where to record, and differ by themselves. */
static bool is_ours(const char *part, const char *name)
{
	return strcmp(part, "env") == 0 && (strcmp(name, "SLOTPROBE_DIR") == 0 || strcmp(name, "SLOTPROBE_ARM") == 0);
}

static bool add(json_t *list, const char *part, const char *name, json_t *a, json_t *b)
{
	if (is_ours(part, name))
		return true;
	return json_array_append_new(list, json_pack("{s:s, s:s, s:O, s:O}", "part", part, "name", name, "a",
						     a ? a : json_null(), "b", b ? b : json_null())) == 0;
}

static bool compare_objects(json_t *list, const char *part, json_t *a, json_t *b)
{
	const char *name;
	json_t *value;
	bool fine = true;

	json_object_foreach(a, name, value)
	{
		json_t *other = json_object_get(b, name);

		if (!other || !json_equal(value, other))
			fine = fine && add(list, part, name, value, other);
	}
	json_object_foreach(b, name, value)
	{
		if (!json_object_get(a, name))
			fine = fine && add(list, part, name, NULL, value);
	}
	return fine;
}

bool config_compare(struct config *config, const struct manifest *a, const struct manifest *b)
{
	json_t *x = by_option(a->argv), *y = by_option(b->argv);
	json_t *env[2] = { json_object_get(a->root, "env"), json_object_get(b->root, "env") };
	bool fine;

	config->differences = json_array();
	config->known = json_array_size(a->argv) && json_array_size(b->argv) && json_is_object(env[0]) &&
			json_is_object(env[1]);
	fine = config->differences && x && y && compare_objects(config->differences, "argv", x, y) &&
	       compare_objects(config->differences, "options", a->options, b->options);
	if (fine && json_is_object(env[0]) && json_is_object(env[1]))
		fine = compare_objects(config->differences, "env", env[0], env[1]);
	json_decref(x);
	json_decref(y);
	return fine;
}

void config_free(struct config *config)
{
	json_decref(config->differences);
	config->differences = NULL;
}
