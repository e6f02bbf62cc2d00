/* SPDX-License-Identifier: Apache-2.0
 *
 * error.c: formats one-line errors and prints them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "print/print.h"

static void error_format(struct error *error, const char *format, va_list arguments)
{
	char raw[sizeof(error->text)];

	vsnprintf(raw, sizeof(raw), format, arguments);
	text_safe(error->text, sizeof(error->text), raw, sizeof(raw));
}

void error_set(struct error *error, const char *format, ...)
{
	va_list arguments;

	if (!error)
		return;
	va_start(arguments, format);
	error_format(error, format, arguments);
	va_end(arguments);
}

void complain(const char *verb, const char *format, ...)
{
	struct error error;
	va_list arguments;

	va_start(arguments, format);
	error_format(&error, format, arguments);
	va_end(arguments);
	fprintf(stderr, "slotprobe%s%s: %s\n", verb ? " " : "", verb ? verb : "", error.text);
}
