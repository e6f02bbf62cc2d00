/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c: the slotprobe command: finds the verb and runs it.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "options.h"
#include "trouble.h"
#include "verbs.h"

static void print_overview(void)
{
	printf("usage: slotprobe VERB [OPTION]... [OPERAND]...\n"
	       "Is the state that a request hands over for reuse the same with CUDA graphs on as with CUDA graphs off, "
	       "and "
	       "was it really measured?\n\n");
	for (int verb = 0; verb < VERB_COUNT; verb++)
		printf("  %-9s %s\n", verb_rows[verb].name, verb_rows[verb].help);
	printf("  %-9s %s\n", "help", "this, or with a verb what 'slotprobe VERB --help' prints");
	printf("\n'slotprobe VERB --help' lists the options of a verb; --version prints the version.\n");
}

/* What was printed must have gotten out: a full disk or a closed pipe is trouble, whatever the verb said. */
static int stdout_finish(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (status != EXIT_TROUBLE)
		trouble_end("writing to stdout failed; what was printed is not whole");
	return EXIT_TROUBLE;
}

/* A file that we open must not become fd 1 or 2. Read-only, so that writing there still fails and is noticed. */
static void fill_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

static int run_verb(int argc, char **argv);

/* slotprobe help [VERB] */
static int help(int argc, char **argv)
{
	char *ask[] = { argc > 1 ? argv[1] : NULL, "--help", NULL };

	if (argc > 2) {
		complain("help", "one operand too many: '%s'", argv[2]);
		return EXIT_TROUBLE;
	}
	if (argc > 1 && strcmp(argv[1], "help"))
		return run_verb(2, ask);
	print_overview();
	return 0;
}

static int run_verb(int argc, char **argv)
{
	static const char *const later[] = { "kl", "ab" };

	if (!strcmp(argv[0], "help"))
		return help(argc, argv);
	for (int verb = 0; verb < VERB_COUNT; verb++) {
		if (strcmp(argv[0], verb_rows[verb].name))
			continue;
		/* A closed pipe must be noticed and said, but where text is printed: options_parse sees to that.
		 * record's command must inherit what we were given. */
		if (verb != VERB_record) {
			signal(SIGPIPE, SIG_IGN);
			fill_standard_files();
		}
		return verb_rows[verb].run(argc, argv);
	}
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		if (!strcmp(argv[0], later[i])) {
			complain(argv[0], "this verb is not built yet; 'slotprobe --help' lists those that are");
			return EXIT_TROUBLE;
		}
	}
	complain(NULL, "unknown %s '%s'; 'slotprobe --help' lists the verbs", argv[0][0] == '-' ? "option" : "verb",
		 argv[0]);
	return EXIT_TROUBLE;
}

int main(int argc, char **argv)
{
	trouble_guard_json();
	/* A file that may not grow (RLIMIT_FSIZE) is a full disk: it must be noticed and said, or another way taken. */
	if (argc < 2 || strcmp(argv[1], verb_rows[VERB_record].name))
		signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		complain(NULL, "a verb is missing; 'slotprobe --help' lists them");
		return EXIT_TROUBLE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_overview();
		return stdout_finish(0);
	}
	if (!strcmp(argv[1], "--version")) {
		puts("slotprobe " SLOTPROBE_VERSION);
		return stdout_finish(0);
	}
	if (!strcmp(argv[1], "--dump-options")) { /* for docs/man/generate */
		options_dump();
		return stdout_finish(0);
	}
	return stdout_finish(run_verb(argc - 1, argv + 1));
}
