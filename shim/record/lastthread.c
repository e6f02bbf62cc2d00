/* SPDX-License-Identifier: Apache-2.0
 *
 * lastthread.c: is any thread of this process left but the writer, which asks?
 *
 * A main thread that has ended stays in the list as a zombie until the others have, so it is asked first, and the list
 * only where it has: in every other process this is one small read.
 */
#include "internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool main_thread_is_gone(void)
{
	char path[64], stat[512];
	struct record_text t = record_text_start(path, sizeof path);
	const char *p;

	record_text_add(&t, "/proc/self/task/");
	record_text_add_u64(&t, (uint64_t)getpid(), 1);
	record_text_add(&t, "/stat");
	if (!record_text_read_file(path, stat, sizeof stat))
		return false;
	p = strrchr(stat, ')');
	return p && p[1] == ' ' && (p[2] == 'Z' || p[2] == 'X');
}

/* "." and ".." count, too. Each list is one system call: two entries more than those are the main thread and us. */
static unsigned count_entries(const char *bytes, long n)
{
	unsigned entries = 0;

	for (long at = 0; at < n; entries++)
		at += ((const struct dirent64_head *)(const void *)(bytes + at))->reclen;
	return entries;
}

static bool two_threads_listed(void)
{
	union {
		struct dirent64_head align;
		char bytes[1024];
	} list;
	int dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n;

	if (dir < 0)
		return false;
	n = syscall(SYS_getdents64, dir, list.bytes, sizeof list.bytes);
	close(dir);
	return n > 0 && count_entries(list.bytes, n) == 4;
}

bool record_threads_all_gone(void)
{
	return main_thread_is_gone() && two_threads_listed() && two_threads_listed();
}
