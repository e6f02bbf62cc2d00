/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c: the JSON values that every verb prints: 64-bit values as texts, NaN and infinities as texts, escaped text.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "print/print.h"
#include "trouble.h"

json_t *json_hex(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%016" PRIx64, value);
	return json_string(text);
}

json_t *json_count(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *json_number(double value)
{
	if (isnan(value))
		return json_string("nan");
	if (isinf(value))
		return json_string(value > 0 ? "inf" : "-inf");
	return json_real(value);
}

json_t *json_text_n(const char *text, size_t most)
{
	size_t n = strnlen(text, most);
	char *out = trouble_need(malloc(4 * n + 1));
	json_t *value;

	value = json_string(text_safe(out, 4 * n + 1, text, n));
	free(out);
	return value ? value : json_null();
}

json_t *json_text(const char *text)
{
	return text ? json_text_n(text, strlen(text)) : json_null();
}

static json_t *escaped_object(const json_t *value)
{
	json_t *copy = json_object(), *name;
	const char *key;
	json_t *part;

	json_object_foreach((json_t *)value, key, part)
	{
		name = json_text(key);
		json_object_set_new(copy, json_is_string(name) ? json_string_value(name) : "?", json_escaped(part));
		json_decref(name);
	}
	return copy;
}

json_t *json_escaped(const json_t *value)
{
	json_t *copy;

	if (json_is_string(value))
		return json_text_n(json_string_value(value), json_string_length(value));
	if (json_is_object(value))
		return escaped_object(value);
	if (!json_is_array(value))
		return json_deep_copy(value);
	copy = json_array();
	for (size_t i = 0; i < json_array_size(value); i++)
		json_array_append_new(copy, json_escaped(json_array_get(value, i)));
	return copy;
}

int json_print(FILE *f, const json_t *value)
{
	if (json_dumpf(value, f, JSON_INDENT(2) | JSON_ENCODE_ANY))
		return -1;
	return fputc('\n', f) == EOF ? -1 : 0;
}
