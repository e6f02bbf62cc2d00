/* SPDX-License-Identifier: Apache-2.0
 *
 * rundir.c: the run directory and this process's two files in it. What is there already is never followed (links),
 * never overwritten, and never trusted when it belongs to somebody else.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define HIGH_FD   900  /* out of the way of servers that count on low numbers, or close them all */
#define SAME_NAME 1000 /* a process that execs keeps pid and start time: its second life gets a name of its own */

/* By the system call: glibc before 2.33 has no symbol for fstat, and old container filters refuse statx. On the machines
 * that we build for, the kernel's struct stat is the C library's. */
bool record_fd_identity(int fd, uint64_t *dev, uint64_t *ino, uint64_t *uid)
{
	struct stat st;

	if (syscall(SYS_fstat, fd, &st))
		return false;
	*dev = st.st_dev;
	*ino = st.st_ino;
	*uid = st.st_uid;
	return true;
}

static int open_directory(struct record_rundir *dir, const char *path)
{
	uint64_t dev, ino, uid;

	if (strlen(path) >= sizeof dir->path)
		return -ENAMETOOLONG;
	record_text_copy(dir->path, sizeof dir->path, path);
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir->fd < 0)
		return -errno;
	if (!record_fd_identity(dir->fd, &dev, &ino, &uid))
		return -errno;
	return uid == geteuid() ? 0 : -EPERM;
}

/* Field 22 of /proc/self/stat. The command name before it may hold anything: count from the last parenthesis. */
static uint64_t read_starttime(void)
{
	char stat[1024], *p;
	uint64_t value = 0;
	int field = 2;

	record_text_read_file("/proc/self/stat", stat, sizeof stat);
	p = strrchr(stat, ')');
	for (; p && *p && field < 22; p++)
		field += *p == ' ';
	for (; p && *p >= '0' && *p <= '9'; p++)
		value = value * 10 + (uint64_t)(*p - '0');
	return value;
}

static void read_identity(struct record_rundir *dir)
{
	struct utsname name;

	dir->pid = (uint64_t)getpid();
	dir->starttime = read_starttime();
	record_text_read_file("/proc/self/comm", dir->comm, sizeof dir->comm);
	dir->comm[strcspn(dir->comm, "\n")] = '\0';
	record_text_copy(dir->host, sizeof dir->host, uname(&name) || !name.nodename[0] ? "unknown" : name.nodename);
	for (char *p = dir->host; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '.' ||
		      *p == '_' || *p == '-'))
			*p = '_';
	if (dir->host[0] == '.')
		dir->host[0] = '_';
}

static void file_name(const struct record_rundir *dir, unsigned life, const char *ending, char *to, size_t bytes)
{
	struct record_text t = record_text_start(to, bytes);

	record_text_add(&t, dir->host);
	record_text_add(&t, ".");
	record_text_add_u64(&t, dir->pid, 1);
	record_text_add(&t, ".");
	record_text_add_u64(&t, dir->starttime, 1);
	if (life) {
		record_text_add(&t, "-");
		record_text_add_u64(&t, life, 1);
	}
	record_text_add(&t, ending);
}

static int create(const struct record_rundir *dir, unsigned life, const char *ending, char *path)
{
	char name[256];
	struct record_text t = record_text_start(path, PATH_MAX);
	int fd, high;

	file_name(dir, life, ending, name, sizeof name);
	record_text_add(&t, dir->path);
	record_text_add(&t, "/");
	record_text_add(&t, name);
	if (t.at == t.end)
		return -ENAMETOOLONG;
	fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

static int create_files(struct record_rundir *dir)
{
	unsigned life = 0;

	do
		dir->ctr_fd = create(dir, life, ".ctr", dir->ctr);
	while (dir->ctr_fd == -EEXIST && ++life < SAME_NAME);
	if (dir->ctr_fd < 0)
		return dir->ctr_fd;
	dir->ctr_made = true;
	dir->log_fd = create(dir, life, ".log", dir->log);
	if (dir->log_fd < 0)
		return dir->log_fd;
	dir->log_made = true;
	return 0;
}

int record_rundir_open(struct record_rundir *dir, const char *path)
{
	int rc;

	memset(dir, 0, sizeof *dir);
	dir->fd = dir->log_fd = dir->ctr_fd = -1;
	rc = open_directory(dir, path);
	if (!rc) {
		read_identity(dir);
		rc = create_files(dir);
	}
	return rc;
}

void record_rundir_close(struct record_rundir *dir, bool remove_files)
{
	if (remove_files && dir->ctr_made)
		unlink(dir->ctr);
	if (remove_files && dir->log_made)
		unlink(dir->log);
	if (dir->fd >= 0)
		close(dir->fd);
	if (dir->ctr_fd >= 0)
		close(dir->ctr_fd);
	if (dir->log_fd >= 0)
		close(dir->log_fd);
	dir->fd = dir->ctr_fd = dir->log_fd = -1;
}
