/* SPDX-License-Identifier: Apache-2.0
 *
 * weak.c: a program that refers weakly to a driver that is not there: it finds our symbol, and that must say so.
 */
#include "check.h"

extern int cuInit(unsigned flags) __attribute__((weak));
extern int cuGraphLaunch(void *exec, void *stream) __attribute__((weak));
extern int cudaGraphLaunch(void *exec, void *stream) __attribute__((weak));

int main(void)
{
	CHECK(cuInit && cuGraphLaunch && cudaGraphLaunch);
	errno = 5;
	CHECK_INT(cuInit(0), 3);
	CHECK_INT(cuGraphLaunch(NULL, NULL), 3);
	CHECK_INT(cudaGraphLaunch(NULL, NULL), 3);
	CHECK_INT(errno, 5);
	CHECK_INT(seen()->ready, 0);
	CHECK_INT(BEGINS(seen()), 0);
	return 0;
}
