/* SPDX-License-Identifier: Apache-2.0
 *
 * quiet.c: a library that exports nothing and looks symbols up.
 */
#include <dlfcn.h>

__attribute__((constructor)) static void look(void)
{
	void *found = dlsym(RTLD_DEFAULT, "environ");

	__asm__ volatile("" : "+r"(found)); /* no tail call: libc must find the caller in this library */
}
