/* SPDX-License-Identifier: Apache-2.0
 *
 * spend.c: runs a command and says what it took: seconds of user and system CPU, and the most memory in KiB, on file descriptor 3.
 * A parent as small as this one adds nothing to the child's peak, which Linux begins with what its parent had.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rusage r;
	int status;
	pid_t child = argc > 1 ? fork() : -1;

	if (child < 0)
		return 125;
	if (child == 0) {
		close(3);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	if (wait4(child, &status, 0, &r) != child)
		return 125;
	dprintf(3, "%ld.%06ld %ld.%06ld %ld\n", (long)r.ru_utime.tv_sec, (long)r.ru_utime.tv_usec,
		(long)r.ru_stime.tv_sec, (long)r.ru_stime.tv_usec, r.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
