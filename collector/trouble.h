/* SPDX-License-Identifier: Apache-2.0
 *
 * trouble.h: what nothing true can be said after: memory that is not there, a file that was opened and cannot be read. jansson drops a
 * part of an object that it has no memory for, and a file that cannot be read looks like one that ends: both would make a shorter
 * answer that looks whole. So the command ends there, with one line.
 */
#ifndef TROUBLE_H
#define TROUBLE_H

#include <stdio.h>

_Noreturn void trouble_end(const char *format, ...) __attribute__((format(printf, 1, 2)));

_Noreturn void trouble_memory(void);

/* What was just allocated, which is not NULL. */
void *trouble_need(void *memory);

/* The text of an open_memstream that is NULL if there was no memory: closes it. The text's address is where the stream was told. */
char *trouble_text(FILE *stream, char **text);

/* From now on jansson's memory is there as well. */
void trouble_guard_json(void);

/* What the command ends with instead of EXIT_TROUBLE, and what it takes back before. NULL: nothing. */
void trouble_ends_with(int status, void (*undo)(void));

#endif
