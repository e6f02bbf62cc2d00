/* SPDX-License-Identifier: Apache-2.0
 *
 * program.c: looks at the file that a command would run.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "launch/program.h"

#define SCRIPT_DEPTH 5

int program_find(const char *name, char *path, size_t size)
{
	const char *list = getenv("PATH");
	int why = ENOENT;
	struct stat st;

	if (strchr(name, '/'))
		return (size_t)snprintf(path, size, "%s", name) < size ? access(path, X_OK) : -1;
	for (const char *p = list ? list : "/bin:/usr/bin"; p; p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL) {
		int n = (int)strcspn(p, ":");

		if ((size_t)snprintf(path, size, "%.*s/%s", n ? n : 1, n ? p : ".", name) >= size)
			continue;
		if (!access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode))
			return 0;
		if (errno == EACCES)
			why = EACCES;
	}
	errno = why;
	return -1;
}

static enum program_kind inspect_elf(int fd, const Elf64_Ehdr *ehdr, ssize_t n)
{
	static const Elf64_Half machine =
#if defined(__x86_64__)
		EM_X86_64;
#elif defined(__aarch64__)
		EM_AARCH64;
#else
		EM_NONE;
#endif
	Elf64_Phdr phdr;

	if (n < (ssize_t)sizeof(*ehdr) || ehdr->e_ident[EI_CLASS] != ELFCLASS64 || ehdr->e_machine != machine)
		return PROGRAM_FOREIGN;
	if (ehdr->e_phentsize != sizeof(phdr))
		return PROGRAM_UNKNOWN;
	for (unsigned i = 0; i < ehdr->e_phnum; i++) {
		off_t at = (off_t)(ehdr->e_phoff + i * sizeof(phdr));

		if (at < 0 || pread(fd, &phdr, sizeof(phdr), at) != sizeof(phdr))
			return PROGRAM_UNKNOWN;
		if (phdr.p_type == PT_INTERP)
			return PROGRAM_DYNAMIC;
	}
	return PROGRAM_STATIC;
}

/* setuid to oneself changes nothing, and root gains nothing from capabilities. */
static int is_secure(int fd, const struct stat *st)
{
	if ((st->st_mode & S_ISUID && st->st_uid != geteuid()) || (st->st_mode & S_ISGID && st->st_gid != getegid()))
		return 1;
	return geteuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* Takes the next word off *p. */
static char *next_word(char **p)
{
	char *word = *p + strspn(*p, " \t"), *end = word + strcspn(word, " \t\n");

	*p = *end == ' ' || *end == '\t' ? end + 1 : end;
	*end = 0;
	return word;
}

/* The interpreter of a "#!" line, in `path`; "#!/usr/bin/env NAME" means NAME. */
static int script_interpreter(char *head, ssize_t n, char *path, size_t size)
{
	char *p = head + 2, *word, *base;

	head[n] = 0;
	head[strcspn(head, "\n")] = 0;
	word = next_word(&p);
	base = strrchr(word, '/');
	if (base && !strcmp(base, "/env")) {
		word = next_word(&p);
		return *word && *word != '-' ? program_find(word, path, size) : -1;
	}
	return *word && (size_t)snprintf(path, size, "%s", word) < size ? 0 : -1;
}

static enum program_kind inspect(const char *path, int depth, char *through, size_t size)
{
	union {
		Elf64_Ehdr ehdr;
		char text[257];
	} head;
	enum program_kind kind = PROGRAM_UNKNOWN;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char next[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (through)
		snprintf(through, size, "%s", path);
	if (fd < 0)
		return PROGRAM_UNKNOWN;
	n = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -1 : pread(fd, &head, sizeof(head) - 1, 0);
	if (n >= SELFMAG && !memcmp(head.text, ELFMAG, SELFMAG)) {
		kind = inspect_elf(fd, &head.ehdr, n);
		if (kind == PROGRAM_DYNAMIC && is_secure(fd, &st))
			kind = PROGRAM_SECURE;
	}
	close(fd);
	if (n > 2 && head.text[0] == '#' && head.text[1] == '!' && depth &&
	    !script_interpreter(head.text, n, next, sizeof(next)))
		return inspect(next, depth - 1, through, size);
	return kind;
}

enum program_kind program_inspect(const char *path, char *through, size_t size)
{
	return inspect(path, SCRIPT_DEPTH, through, size);
}

const char *program_problem(enum program_kind kind)
{
	switch (kind) {
	case PROGRAM_STATIC:
		return "is statically linked, so no library can be preloaded into it";
	case PROGRAM_SECURE:
		return "is setuid, setgid or has file capabilities, so the loader drops every preload";
	case PROGRAM_FOREIGN:
		return "is of another machine or word size than libslotprobe.so";
	case PROGRAM_DYNAMIC:
	case PROGRAM_UNKNOWN:
		break;
	}
	return NULL;
}
