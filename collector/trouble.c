/* SPDX-License-Identifier: Apache-2.0
 *
 * trouble.c: ends the command with one line.
 */
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>

#include "error.h"
#include "trouble.h"
#include "verbs.h"

static struct {
	int status;
	void (*undo)(void);
} ending = { EXIT_TROUBLE, NULL };

void trouble_end(const char *format, ...)
{
	void (*undo)(void) = ending.undo;
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	complain(NULL, "%s", text);
	ending.undo = NULL;
	if (undo)
		undo();
	exit(ending.status);
}

void trouble_memory(void)
{
	trouble_end("out of memory, so that nothing is complete: free some or raise the limit (ulimit -v)");
}

void *trouble_need(void *memory)
{
	if (!memory)
		trouble_memory();
	return memory;
}

char *trouble_text(FILE *stream, char **text)
{
	if (fclose(stream) || !*text) /* glibc closes well and leaves no text where it had no memory to trim it */
		trouble_memory();
	return *text;
}

static void *json_memory(size_t bytes)
{
	return trouble_need(malloc(bytes ? bytes : 1));
}

void trouble_guard_json(void)
{
	json_set_alloc_funcs(json_memory, free);
}

void trouble_ends_with(int status, void (*undo)(void))
{
	ending.status = status;
	ending.undo = undo;
}
