/* SPDX-License-Identifier: Apache-2.0
 *
 * table.c: text tables whose columns are as wide as their widest cell.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "print/print.h"
#include "trouble.h"

#define TABLE_COLUMNS 24
#define SEPARATOR     '\x1f' /* no value holds it: values are escaped */

struct table {
	size_t columns, rows, room;
	bool right[TABLE_COLUMNS];
	size_t width[TABLE_COLUMNS];
	char **cell; /* row-major; the first row is the heads */
};

/* Columns that a text takes on a terminal: UTF-8 continuation bytes take none. */
static size_t text_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

/* Takes `text` apart at the separators; missing cells are empty, surplus ones are dropped. */
static void table_add(struct table *table, char *text)
{
	char **row;

	if (table->rows == table->room) {
		size_t room = table->room ? 2 * table->room : 16;

		table->cell = trouble_need(realloc(table->cell, room * table->columns * sizeof(*table->cell)));
		table->room = room;
	}
	row = table->cell + table->rows * table->columns;
	for (size_t c = 0; c < table->columns; c++) {
		char *end = text ? strchr(text, SEPARATOR) : NULL;

		if (end)
			*end = 0;
		row[c] = trouble_need(strdup(text ? text : ""));
		if (text_width(row[c]) > table->width[c])
			table->width[c] = text_width(row[c]);
		text = end ? end + 1 : NULL;
	}
	table->rows++;
}

static void separate(char *text)
{
	for (; *text; text++)
		if (*text == '|')
			*text = SEPARATOR;
}

struct table *table_new(const char *heads)
{
	struct table *table = trouble_need(calloc(1, sizeof(*table)));
	char text[1024], bare[1024];
	size_t at = 0;

	snprintf(text, sizeof(text), "%s", heads);
	separate(text);
	table->columns = 1;
	for (char *p = text; *p; p++) {
		bool first = p == text || p[-1] == SEPARATOR;

		if (*p == SEPARATOR && table->columns < TABLE_COLUMNS)
			table->columns++;
		if (*p == '>' && first)
			table->right[table->columns - 1] = true;
		else
			bare[at++] = *p;
	}
	bare[at] = 0;
	table_add(table, bare);
	return table;
}

void table_row(struct table *table, const char *format, ...)
{
	char separated[512], text[4096];
	va_list arguments;

	snprintf(separated, sizeof(separated), "%s", format);
	separate(separated);
	va_start(arguments, format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	vsnprintf(text, sizeof(text), separated, arguments);
#pragma GCC diagnostic pop
	va_end(arguments);
	table_add(table, text);
}

void table_print(FILE *f, const struct table *table, const char *indent, bool color)
{
	for (size_t r = 0; r < table->rows; r++) {
		char *const *row = table->cell + r * table->columns;

		fputs(indent, f);
		fputs(r ? "" : color_on(color, COLOR_BOLD), f);
		for (size_t c = 0; c < table->columns; c++) {
			const char *text = row[c];
			int pad = (int)(table->width[c] - text_width(text));
			bool last = c + 1 == table->columns;

			if (table->right[c])
				fprintf(f, "%*s%s", pad, "", text);
			else
				fprintf(f, "%s%*s", text, last ? 0 : pad, "");
			fputs(last ? "" : "  ", f);
		}
		fputs(r ? "" : color_off(color), f);
		fputc('\n', f);
	}
}

void table_free(struct table *table)
{
	for (size_t i = 0; i < table->rows * table->columns; i++)
		free(table->cell[i]);
	free(table->cell);
	free(table);
}
