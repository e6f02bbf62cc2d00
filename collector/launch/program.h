/* SPDX-License-Identifier: Apache-2.0
 *
 * program.h: can a preload get into this program at all.
 */
#ifndef COLLECTOR_PROGRAM_H
#define COLLECTOR_PROGRAM_H

#include <stddef.h>

enum program_kind {
	PROGRAM_DYNAMIC, /* an ELF with an interpreter: a preload works */
	PROGRAM_STATIC,  /* no interpreter: LD_PRELOAD means nothing to it */
	PROGRAM_SECURE,  /* setuid, setgid or file capabilities: the loader drops the preload */
	PROGRAM_FOREIGN, /* of another word size or machine than libslotprobe.so */
	PROGRAM_UNKNOWN  /* not an ELF, or not readable */
};

/* Path of the file that execvp would run. 0, or -1 with errno. */
int program_find(const char *name, char *path, size_t size);

/* Follows "#!" lines. `through` (may be NULL) gets the file that was judged. */
enum program_kind program_inspect(const char *path, char *through, size_t size);

/* "is statically linked", ...; NULL when a preload works or nobody knows. */
const char *program_problem(enum program_kind kind);

#endif
