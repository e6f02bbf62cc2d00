/* SPDX-License-Identifier: Apache-2.0
 *
 * spend.c: runs a command on the CPU that is the fastest just now, and says what it took: seconds of user and system CPU, the most memory
 * in KiB, and the seconds that a fixed loop took on that CPU before and after it, on file descriptor 3. Others on a machine share its cores:
 * the loop takes half as long again then, and so does what is measured. A parent as small as this one adds nothing to the child's peak,
 * which Linux begins with what its parent had.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOP 400000u /* about a millisecond */

/* Seconds of CPU. Four chains, so that what shares the core is felt. */
static double loop(void)
{
	volatile uint64_t sink;
	uint64_t a = 1, b = 2, c = 3, d = 4;
	struct timespec from, to;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (unsigned i = 0; i < LOOP; i++) {
		a = a * 0x9e3779b97f4a7c15u ^ a >> 29;
		b = b * 0xbf58476d1ce4e5b9u ^ b >> 32;
		c = c * 0x94d049bb133111ebu ^ c >> 31;
		d = (d << 13 ^ d >> 7) + i;
	}
	sink = a + b + c + d;
	(void)sink;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
}

static bool go_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return !sched_setaffinity(0, sizeof one, &one);
}

/* And stays there; wherever it is, if no CPU can be chosen. */
static void go_to_the_fastest(void)
{
	double best = 0;
	cpu_set_t all;
	int at = -1;

	if (sched_getaffinity(0, sizeof all, &all))
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || !go_to(cpu))
			continue;
		double took = loop() + loop();
		if (at < 0 || took < best) {
			best = took;
			at = cpu;
		}
	}
	if (at >= 0)
		go_to(at);
}

int main(int argc, char **argv)
{
	struct rusage r;
	double before;
	pid_t child;
	int status;

	go_to_the_fastest();
	before = loop();
	child = argc > 1 ? fork() : -1;
	if (child < 0)
		return 125;
	if (child == 0) {
		close(3);
		execv(argv[1], argv + 1);
		_exit(127);
	}
	if (wait4(child, &status, 0, &r) != child)
		return 125;
	dprintf(3, "%ld.%06ld %ld.%06ld %ld %.9f %.9f\n", (long)r.ru_utime.tv_sec, (long)r.ru_utime.tv_usec,
		(long)r.ru_stime.tv_sec, (long)r.ru_stime.tv_usec, r.ru_maxrss, before, loop());
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
