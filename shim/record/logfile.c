/* SPDX-License-Identifier: Apache-2.0
 *
 * logfile.c: the log as a file: its header, and chunks that are appended whole or not at all.
 *
 * Writes go to an explicit offset, the end of the last good chunk: whatever a failed write left behind is cut off, and
 * were it not, it would be overwritten. Servers close and reuse descriptors that they do not know: before each chunk we
 * look whether ours still is ours.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int fd = -1;
static uint64_t good; /* bytes of the file that are whole */
static uint64_t file_dev, file_ino;
static char file_path[PATH_MAX];

static bool is_ours(int candidate)
{
	uint64_t dev, ino, uid;

	return candidate >= 0 && record_fd_identity(candidate, &dev, &ino, &uid) && dev == file_dev && ino == file_ino;
}

static bool reopen(void)
{
	int again = open(file_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (is_ours(again)) {
		fd = again;
		return true;
	}
	if (again >= 0)
		close(again);
	return false;
}

static int write_at(struct iovec *iov, int n, uint64_t offset)
{
	while (n) {
		ssize_t wrote = pwritev(fd, iov, n, (off_t)offset);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return wrote ? -errno : -EIO;
		offset += (uint64_t)wrote;
		for (; n && (size_t)wrote >= iov->iov_len; iov++, n--)
			wrote -= (ssize_t)iov->iov_len;
		if (n) {
			iov->iov_base = (char *)iov->iov_base + wrote;
			iov->iov_len -= (size_t)wrote;
		}
	}
	return 0;
}

static int append(struct iovec *iov, int n)
{
	uint64_t bytes = 0;
	int rc;

	for (int i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	rc = write_at(iov, n, good);
	if (rc) {
		while (ftruncate(fd, (off_t)good) && errno == EINTR)
			;
		return rc;
	}
	good += bytes;
	return 0;
}

int record_logfile_start(const struct record_rundir *dir)
{
	struct log_file_header header = { .version = LOG_VERSION,
					  .byte_order = LOG_BYTE_ORDER,
					  .header_bytes = sizeof header,
					  .pid = dir->pid,
					  .starttime = dir->starttime };
	struct iovec iov = { &header, sizeof header };
	uint64_t uid;

	memcpy(header.magic, LOG_FILE_MAGIC, sizeof header.magic);
	header.crc = log_crc32c(0, &header, sizeof header);
	if (!record_fd_identity(dir->log_fd, &file_dev, &file_ino, &uid))
		return -errno;
	record_text_copy(file_path, sizeof file_path, dir->log);
	fd = dir->log_fd;
	good = 0;
	return append(&iov, 1);
}

int record_logfile_write(const struct log_chunk_header *header, const void *payload)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)header, sizeof *header },
				{ (void *)(uintptr_t)payload, header->stored_bytes } };

	if (!is_ours(fd) && !reopen())
		return -EBADF;
	return append(iov, 2);
}

int record_logfile_fd(void)
{
	return fd;
}

/* Also in the child of a fork: the descriptor that it inherited, and nobody else's. */
void record_logfile_close(void)
{
	if (is_ours(fd))
		close(fd);
	fd = -1;
}
