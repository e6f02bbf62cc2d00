/* SPDX-License-Identifier: Apache-2.0
 *
 * disk.c: the disk guard: how much room there is for the log, by free space and by the cap on the whole run.
 *
 * It looks once a second and every 4 MiB, and counts what it wrote in between. A chunk is begun only when all of it has
 * room, so the guard never has to take back what was accepted. Stopped is stopped: space that comes back later starts
 * nothing, since a recording with a hole in the middle helps nobody.
 */
#include "internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_EVERY_BYTES (4ull << 20)
#define CHUNK_ROOM       (LOG_CHUNK_RAW_MAX + sizeof(struct log_chunk_header))

static char run_path[PATH_MAX];
static uint64_t looked_ns, since_look; /* bytes written since */
static uint64_t free_bytes, run_bytes;

/* By the system call, as in record_fd_identity. */
static uint64_t log_bytes(int dir, const char *name)
{
	size_t n = strlen(name);
	struct stat st;

	if (n < 4 || strcmp(name + n - 4, ".log") || syscall(SYS_newfstatat, dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	return (uint64_t)st.st_size;
}

/* The logs of all processes of the run share the cap. */
static uint64_t sum_logs(void)
{
	static union {
		struct dirent64_head align;
		char bytes[8192];
	} entries;
	int dir = open(run_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t sum = 0;
	long n = 0;

	while (dir >= 0 && (n = syscall(SYS_getdents64, dir, entries.bytes, sizeof entries.bytes)) > 0)
		for (long at = 0; at < n;) {
			const struct dirent64_head *d = (const void *)(entries.bytes + at);
			sum += log_bytes(dir, d->name);
			at += d->reclen;
		}
	if (dir >= 0)
		close(dir);
	return sum;
}

static void look(uint64_t now_ns)
{
	struct statvfs fs;

	free_bytes = fstatvfs(record_logfile_fd(), &fs) ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
	run_bytes = sum_logs();
	looked_ns = now_ns;
	since_look = 0;
}

void record_disk_start(const struct record_rundir *dir)
{
	record_text_copy(run_path, sizeof run_path, dir->path);
	record_disk_set_stopped(false);
	look(record_now_ns());
}

bool record_disk_due(uint64_t now_ns)
{
	return now_ns - looked_ns >= NS_PER_S;
}

unsigned record_disk_full(uint64_t now_ns)
{
	const struct record_options *o = record_options();
	uint64_t needed;

	if (record_disk_due(now_ns) || since_look >= LOOK_EVERY_BYTES)
		look(now_ns);
	needed = since_look + CHUNK_ROOM;
	if (free_bytes < needed || free_bytes - needed < o->min_free)
		return 1;
	return run_bytes + needed > o->max_size ? 2 : 0;
}

void record_disk_wrote(uint64_t bytes)
{
	since_look += bytes;
}

void record_disk_fill(struct log_disk_stop *stop)
{
	stop->free_bytes = free_bytes > since_look ? free_bytes - since_look : 0;
	stop->run_bytes = run_bytes + since_look;
}

void record_disk_set_stopped(bool stop)
{
	__atomic_store_n(&record_hot.disk_stopped, stop, __ATOMIC_RELAXED);
}
