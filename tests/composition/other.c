/* SPDX-License-Identifier: Apache-2.0
 *
 * other.c: somebody else's preload, of the usual kind: takes some entries of the driver and goes on by RTLD_NEXT. It ends
 * its process when there is no next, as some do, and says at exit how many launches it saw: a line in $OTHER_COUNT.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned launches, inits;

static void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found) {
		fprintf(stderr, "other: no next %s\n", name);
		exit(1);
	}
	return found;
}

__attribute__((visibility("default"))) int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
	inits++;
	return ((int (*)(unsigned))next("cuInit"))(flags);
}

__attribute__((visibility("default"))) int cuGraphLaunch(void *exec, void *stream);
int cuGraphLaunch(void *exec, void *stream)
{
	__atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
	return ((int (*)(void *, void *))next("cuGraphLaunch"))(exec, stream);
}

__attribute__((destructor)) static void say(void)
{
	const char *path = getenv("OTHER_COUNT");
	int fd = path && (launches || inits) ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "launches %u inits %u\n", launches, inits);
	close(fd);
}
