/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher.c: commands that start others with less than they were given themselves.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "launch/launcher.h"

/* name, what it does with what record gives, remedy */
#define LAUNCHERS(X)                                                                                                   \
	X("sudo", "starts its command in a new environment, without LD_PRELOAD and SLOTPROBE_DIR",                     \
	  "record behind it: sudo slotprobe record ... -- CMD")                                                        \
	X("doas", "starts its command in a new environment, without LD_PRELOAD and SLOTPROBE_DIR",                     \
	  "record behind it: doas slotprobe record ... -- CMD")                                                        \
	X("pkexec", "starts its command in a new environment, without LD_PRELOAD and SLOTPROBE_DIR",                   \
	  "record behind it: pkexec slotprobe record ... -- CMD")                                                      \
	X("su", "runs its command as another user, who cannot write into this run",                                    \
	  "record behind it: su USER -c 'slotprobe record ... -- CMD'")                                                \
	X("runuser", "runs its command as another user, who cannot write into this run",                               \
	  "record behind it: runuser -u USER -- slotprobe record ... -- CMD")                                          \
	X("ssh", "runs its command on another machine", "record there: ssh HOST slotprobe record ... -- CMD")          \
	X("systemd-run", "has its command started by the service manager, in another environment",                     \
	  "record behind it: systemd-run ... slotprobe record ... -- CMD")                                             \
	X("docker", "has its command started by a daemon, in a container without slotprobe",                           \
	  "mount slotprobe into the container, and record there")                                                      \
	X("podman", "starts its command in a container without slotprobe",                                             \
	  "mount slotprobe into the container, and record there")

static const struct {
	const char *name, *text, *remedy;
} launchers[] = {
#define ROW(name, text, remedy) { name, text, remedy },
	LAUNCHERS(ROW)
#undef ROW
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool drops_ours(const char *name)
{
	return !strcmp(name, "LD_PRELOAD") || !strcmp(name, "SLOTPROBE_DIR");
}

/* env(1) up to its command. */
static bool env_drops_ours(int argc, char *const *argv)
{
	for (int i = 1; i < argc && (argv[i][0] == '-' || strchr(argv[i], '=')); i++) {
		const char *a = argv[i];

		if (!strcmp(a, "-") || !strcmp(a, "--ignore-environment"))
			return true;
		if (!strncmp(a, "--unset=", 8)) {
			if (drops_ours(a + 8))
				return true;
		} else if (a[0] == '-' && a[1] != '-') {
			size_t n = strcspn(a, "uCS"); /* those that take a value */

			if (memchr(a, 'i', n))
				return true;
			if (a[n] == 'u' && drops_ours(a[n + 1] ? a + n + 1 : i + 1 < argc ? argv[i + 1] : ""))
				return true;
			i += a[n] && !a[n + 1];
		}
	}
	return false;
}

/* -E and -I make Python overlook PYTHONPATH; behind -c or -m the options are the program's. */
static bool python_overlooks_path(int argc, char *const *argv)
{
	for (int i = 1; i < argc && argv[i][0] == '-' && argv[i][1] && argv[i][1] != '-'; i++) {
		size_t n = strcspn(argv[i], "cmWX"); /* those that take a value */

		if (memchr(argv[i], 'E', n) || memchr(argv[i], 'I', n))
			return true;
		if (argv[i][n] == 'c' || argv[i][n] == 'm')
			break;
		i += argv[i][n] && !argv[i][n + 1];
	}
	return false;
}

static bool is_python(const char *base)
{
	return !strncmp(base, "python", 6) && !base[6 + strspn(base + 6, "0123456789.")];
}

struct launcher launcher_look(int argc, char *const *argv)
{
	const char *base = argc ? base_of(argv[0]) : "";

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
		if (!strcmp(base, launchers[i].name))
			return (struct launcher) { LAUNCHER_LOSES_ALL, launchers[i].text, launchers[i].remedy };
	if (!strcmp(base, "env") && env_drops_ours(argc, argv))
		return (struct launcher) { LAUNCHER_LOSES_ALL, "drops LD_PRELOAD or SLOTPROBE_DIR from the environment",
					   "leave them there: without -i, and without -u for these" };
	if (is_python(base) && python_overlooks_path(argc, argv))
		return (struct launcher) { LAUNCHER_LOSES_PACKAGES,
					   "overlooks PYTHONPATH with -E or -I: the preload works, adapters that are "
					   "Python packages do not",
					   "leave the option out, or install the adapter into that Python" };
	return (struct launcher) { LAUNCHER_LOSES_NOTHING, NULL, NULL };
}
