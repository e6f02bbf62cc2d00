/* SPDX-License-Identifier: Apache-2.0
 *
 * pread.h: a piece of a file, whole, however the reads come back.
 */
#ifndef READ_PREAD_H
#define READ_PREAD_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Bytes that are there, fewer than asked for only where the file ends before; -1: errno says why. */
static inline ssize_t pread_whole(int fd, void *to, size_t bytes, uint64_t offset)
{
	size_t got = 0;

	while (got < bytes) {
		ssize_t n = pread(fd, (char *)to + got, bytes - got, (off_t)(offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

#endif
