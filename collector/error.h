/* SPDX-License-Identifier: Apache-2.0
 *
 * error.h: one line that says what went wrong, where, and what to do, carried up to whoever prints it.
 */
#ifndef COLLECTOR_ERROR_H
#define COLLECTOR_ERROR_H

struct error {
	char text[1024]; /* already safe to print: no control character, no newline */
};

/* Fills in the text (NULL is allowed for error). Whatever the arguments held that a terminal must not see is escaped. */
void error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One line on stderr: "slotprobe VERB: TEXT", without a verb "slotprobe: TEXT". Escaped like an error's text. */
void complain(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
