/* SPDX-License-Identifier: Apache-2.0
 *
 * saver.c: a program whose memory torch_memory_saver saves: allocates in its region, launches graphs, pauses (which unmaps
 * the memory), resumes, launches again. Usage: saver N
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "tests/routes/cuda.h"
#include "tests/routes/work.h"

#define BYTES (4u << 20)

extern int cudaMalloc(void **ptr, size_t bytes), cudaFree(void *ptr);

/* The saver's own interface; without it in the process there is nothing to test. */
static void *saver(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	if (!found)
		die("torch_memory_saver is not in this process");
	return found;
}

static void region(bool on)
{
	((void (*)(const char *))saver("tms_set_current_tag"))("pool");
	((void (*)(bool))saver("tms_set_interesting_region"))(on);
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	void *memory = NULL, *other = NULL;

	work("dlsym", "plain", n);
	region(true);
	if (cudaMalloc(&memory, BYTES) || !memory)
		die("cudaMalloc in the region failed");
	region(false);
	if (cudaMalloc(&other, BYTES) || !other)
		die("cudaMalloc failed");
	((int (*)(const char *))saver("tms_pause"))("pool");
	work("dlsym", "plain", n);
	((int (*)(const char *))saver("tms_resume"))("pool");
	work("proc_v2", "plain", n);
	if (cudaFree(memory) || cudaFree(other))
		die("cudaFree failed");
	say_launches();
	return 0;
}
