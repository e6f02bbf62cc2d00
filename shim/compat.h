/* SPDX-License-Identifier: Apache-2.0
 *
 * compat.h: binds what the preload calls to the oldest version of it, so that one binary loads on glibc 2.28 and later
 * ones alike. glibc 2.32 and 2.34 moved threads and dl* into libc.so.6 under new versions; the old ones are still
 * there, and mean the same.
 *
 * Include it after the system headers in every file of the preload that calls one of these functions: a directive binds
 * the references of its own file only, and one without a reference leaves no trace. A file that DEFINES one of them
 * (dlsym) sets SLOTPROBE_NO_SYMVER_DLSYM before including it. Sanitizers interpose by plain name, so their builds leave
 * all of this out.
 */
#ifndef SHIM_COMPAT_H
#define SHIM_COMPAT_H

#include <features.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOTPROBE_NO_SYMVER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SLOTPROBE_NO_SYMVER 1
#endif
#endif

#if !defined(SLOTPROBE_NO_SYMVER) && defined(__GLIBC__)

#if defined(__x86_64__)
#define SHIM_GLIBC_BASE "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define SHIM_GLIBC_BASE "GLIBC_2.17"
#endif

#ifdef SHIM_GLIBC_BASE
#define SHIM_SYMVER(name) __asm__(".symver " #name "," #name "@" SHIM_GLIBC_BASE)

SHIM_SYMVER(dladdr);
SHIM_SYMVER(dlclose);
SHIM_SYMVER(dlerror);
SHIM_SYMVER(dlopen);
#ifndef SLOTPROBE_NO_SYMVER_DLSYM
SHIM_SYMVER(dlsym);
#endif
SHIM_SYMVER(dlvsym);
SHIM_SYMVER(pthread_attr_setstacksize);
SHIM_SYMVER(pthread_create);
SHIM_SYMVER(pthread_detach);
SHIM_SYMVER(pthread_getspecific);
SHIM_SYMVER(pthread_join);
SHIM_SYMVER(pthread_key_create);
SHIM_SYMVER(pthread_kill);
SHIM_SYMVER(pthread_mutex_trylock);
SHIM_SYMVER(pthread_once);
SHIM_SYMVER(pthread_setspecific);
SHIM_SYMVER(pthread_sigmask);
SHIM_SYMVER(sem_destroy);
SHIM_SYMVER(sem_init);
SHIM_SYMVER(sem_post);
SHIM_SYMVER(sem_timedwait);
SHIM_SYMVER(sem_trywait);
SHIM_SYMVER(sem_wait);
#endif

#endif
#endif
