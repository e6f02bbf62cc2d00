/* SPDX-License-Identifier: Apache-2.0
 *
 * print.h: what every verb prints with: escaping, output that notices a full disk, tables, colour, JSON values.
 */
#ifndef COLLECTOR_PRINT_H
#define COLLECTOR_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "error.h"

/* ---- escaping: nothing that came out of a file reaches a terminal or a JSON text unescaped ---- */

/* Copies at most n bytes of `in` (stops at NUL) into out: control characters, DEL, C1 and invalid UTF-8 as \xNN. Always
 * terminates; what does not fit is cut at a character. Returns out. */
char *text_safe(char *out, size_t size, const char *in, size_t n);
/* The same in one of eight rotating buffers of 512 bytes: for printf arguments. */
const char *safe(const char *in);

/* ---- output: stdout, or -o FILE ---- */

struct output {
	FILE *f;
	const char *path; /* NULL: stdout */
};

/* Open it only when there is something to write: a failed verb must not empty an older FILE. */
int output_open(struct output *output, const char *path, struct error *error);
/* Flushes and closes; -1 when anything was not written (full disk, broken pipe). */
int output_close(struct output *output, struct error *error);

/* ---- tables: columns as wide as their widest cell ---- */

struct table;
/* Columns' heads, separated by '|'; a head that starts with '>' is aligned to the right: "probe|>attempted". */
struct table *table_new(const char *heads);
/* One row of cells, separated by '|' in the formatted text; a '|' that a value holds is not a separator when it is passed
 * with %s: the format alone is split. */
void table_row(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_print(FILE *f, const struct table *table, const char *indent, bool color);
void table_free(struct table *table);

/* ---- colour: "" where colour is off ---- */

enum color { COLOR_NONE, COLOR_BOLD, COLOR_RED, COLOR_GREEN, COLOR_YELLOW, COLOR_DIM };
const char *color_on(bool color, enum color which);
const char *color_off(bool color);

/* ---- JSON values ---- */

json_t *json_hex(uint64_t value);                   /* "0x0123456789abcdef" */
json_t *json_count(uint64_t value);                 /* integer; what no json_int_t can hold reads its maximum */
json_t *json_number(double value);                  /* NaN and infinities as texts: "nan", "inf", "-inf" */
json_t *json_text(const char *text);                /* escaped like text_safe; NULL gives null */
json_t *json_text_n(const char *text, size_t most); /* text that need not be terminated */
json_t *json_escaped(const json_t *value);          /* a copy whose texts and names are escaped; NULL: no memory */
int json_print(FILE *f, const json_t *value);       /* indented, in the order of insertion, a newline at the end */

/* ---- amounts for people ---- */
const char *amount_bytes(uint64_t bytes);                             /* "1.5 MiB", in a rotating buffer */
const char *amount_of(uint64_t n, const char *one, const char *many); /* "1 log", "2 logs"; rotating */

#endif
