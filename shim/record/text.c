/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c: bounded strings without stdio, locale or allocation.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct record_text record_text_start(char *buffer, size_t bytes)
{
	struct record_text text = { buffer, buffer + bytes - 1 };

	*buffer = '\0';
	return text;
}

void record_text_add_n(struct record_text *text, const char *s, size_t n)
{
	size_t room = (size_t)(text->end - text->at);

	if (n > room)
		n = room;
	memcpy(text->at, s, n);
	text->at += n;
	*text->at = '\0';
}

void record_text_add(struct record_text *text, const char *s)
{
	record_text_add_n(text, s, strlen(s));
}

void record_text_add_u64(struct record_text *text, uint64_t value, unsigned min_digits)
{
	char digits[24];
	unsigned n = 0;

	do {
		digits[sizeof digits - ++n] = (char)('0' + value % 10);
		value /= 10;
	} while (n < sizeof digits && (value || n < min_digits));
	record_text_add_n(text, digits + sizeof digits - n, n);
}

void record_text_copy(char *to, size_t bytes, const char *from)
{
	size_t n = strnlen(from, bytes - 1);

	memcpy(to, from, n);
	memset(to + n, 0, bytes - n);
}

/* For files of /proc: what fits, NUL-terminated. Returns the bytes read, 0 when there is no such file. */
size_t record_text_read_file(const char *path, char *to, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;

	while (fd >= 0 && have < bytes - 1) {
		ssize_t n = read(fd, to + have, bytes - 1 - have);
		if (n > 0)
			have += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	if (fd >= 0)
		close(fd);
	to[have] = '\0';
	return have;
}
