/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher.c: starts a command; linked statically, as some launchers are. Usage: launcher keep|clear CMD [ARG]...
 */
#include <string.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
	static char *empty[] = { NULL };

	if (argc < 3)
		return 2;
	execve(argv[2], argv + 2, strcmp(argv[1], "clear") ? environ : empty);
	return 127;
}
