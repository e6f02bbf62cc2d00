/* SPDX-License-Identifier: Apache-2.0
 *
 * opener.c: opens plugin-linked.so beside it with RTLD_DEEPBIND, before main, in processes that have libcuda to bind it to;
 * nothing in it is called.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

__attribute__((constructor)) static void open_it(void)
{
	char path[4096];
	Dl_info info;
	char *slash;

	if (!dladdr((void *)open_it, &info) || strlen(info.dli_fname) > sizeof(path) - 32)
		return;
	strcpy(path, info.dli_fname);
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "plugin-linked.so");
	if (!dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND))
		fprintf(stderr, "%s\n", dlerror());
}
