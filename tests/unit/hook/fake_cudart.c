/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cudart.c: a runtime that finds the driver as libcudart does. ID tells several of them apart. With -DHIDDEN it
 * reaches the driver past every hook.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef int launch_fn(void *exec, void *stream);
typedef int get_fn(const char *name, void **out, int version, uint64_t flags, int *status);

unsigned fake_cudart_launches;

static int launch(uint64_t flags, void *exec, void *stream)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW), *p = NULL;
#ifdef HIDDEN
	void *(*real)(void *, const char *) = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	p = real(libcuda, "cuGraphLaunch");
	(void)flags;
#else
	((get_fn *)dlsym(libcuda, "cuGetProcAddress_v2"))("cuGraphLaunch", &p, 10000, flags, NULL);
#endif
	fake_cudart_launches++;
	return ((launch_fn *)p)(exec, stream) + ID;
}

int cudaGraphLaunch(void *exec, void *stream);
int cudaGraphLaunch_ptsz(void *exec, void *stream);

int cudaGraphLaunch(void *exec, void *stream)
{
	return launch(0, exec, stream);
}

int cudaGraphLaunch_ptsz(void *exec, void *stream)
{
	return launch(2, exec, stream);
}
