/* SPDX-License-Identifier: Apache-2.0
 *
 * spill.c: the file is made without a name, where the file system can do that, else loses it at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "compare/spill.h"
#include "read/pread.h"

/* With a name for a moment, in which no signal ends the program. */
static int open_named(const char *folder)
{
	sigset_t all, was;
	char path[PATH_MAX];
	int fd;

	if ((size_t)snprintf(path, sizeof path, "%s/slotprobe-check.XXXXXX", folder) >= sizeof path)
		return -1;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &was);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	sigprocmask(SIG_SETMASK, &was, NULL);
	return fd;
}

bool spill_open(struct spill *spill)
{
	const char *asked = getenv("TMPDIR"), *folder = asked && *asked ? asked : "/var/tmp";

	*spill = (struct spill) { .fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600) };
	if (spill->fd < 0)
		spill->fd = open_named(folder);
	spill->open = spill->fd >= 0;
	return spill->open;
}

/* The pieces without their first n bytes. */
static void skip(struct iovec **piece, size_t *n, size_t bytes)
{
	for (; *n && bytes >= (*piece)->iov_len; ++*piece, --*n)
		bytes -= (*piece)->iov_len;
	if (*n) {
		(*piece)->iov_base = (char *)(*piece)->iov_base + bytes;
		(*piece)->iov_len -= bytes;
	}
}

bool spill_has_room(const struct spill *spill, uint64_t bytes, uint64_t leave_free)
{
	struct statvfs disk;
	uint64_t there = fstatvfs(spill->fd, &disk) ? 0 : (uint64_t)disk.f_bavail * disk.f_frsize;

	return there >= bytes && there - bytes >= leave_free;
}

bool spill_write(struct spill *spill, struct iovec *piece, size_t n)
{
	while (n) {
		ssize_t put = pwritev(spill->fd, piece, (int)n, (off_t)spill->bytes);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		spill->bytes += (uint64_t)put;
		skip(&piece, &n, (size_t)put);
	}
	return true;
}

bool spill_read(const struct spill *spill, void *to, size_t bytes, uint64_t offset)
{
	return pread_whole(spill->fd, to, bytes, offset) == (ssize_t)bytes;
}

void spill_close(struct spill *spill)
{
	if (spill->open)
		close(spill->fd);
	*spill = (struct spill) { .open = false };
}
