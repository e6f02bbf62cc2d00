/* SPDX-License-Identifier: Apache-2.0
 *
 * html_text.c: escaping for HTML and for data in a script element, and filling the template.
 */
#include <string.h>

#include "print/html.h"

void html_text(FILE *f, const char *text)
{
	for (const char *c = text; *c; c++) {
		switch (*c) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		case '\'':
			fputs("&#39;", f);
			break;
		default:
			fputc(*c, f);
		}
	}
}

void html_value(FILE *f, const json_t *value)
{
	if (json_is_string(value))
		html_text(f, json_string_value(value));
	else if (json_is_integer(value))
		fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		fprintf(f, "%.6g", json_real_value(value));
	else
		fputs("<span class=\"none\">not measured</span>", f);
}

/* '<' ends script elements, and '&' and '>' begin and end what XML parsers see: none of them is written as it is. */
void html_data_text(FILE *f, const char *text)
{
	fputc('"', f);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c < 0x20 || strchr("<>&'\"\\", *c))
			fprintf(f, "\\u%04x", *c);
		else
			fputc(*c, f);
	}
	fputc('"', f);
}

const char *html_member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

int64_t html_count(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

void html_fill(FILE *f, const char *template, void (*put)(FILE *f, const char *name, void *arg), void *arg)
{
	char name[32];

	for (const char *at = template; *at;) {
		const char *open = strstr(at, "<!--"), *close = open ? strstr(open, "-->") : NULL;
		size_t n = close ? (size_t)(close - open) - 4 : 0;

		if (!close || n >= sizeof name) {
			fputs(at, f);
			return;
		}
		fwrite(at, 1, (size_t)(open - at), f);
		memcpy(name, open + 4, n);
		name[n] = 0;
		put(f, name, arg);
		at = close + 3;
	}
}
