/* SPDX-License-Identifier: Apache-2.0
 *
 * verbs.h: the one table of verbs. Dispatch, help, man pages and completion come from it; verbs/NAME.c has cmd_NAME.
 */
#ifndef COLLECTOR_VERBS_H
#define COLLECTOR_VERBS_H

/* Exit statuses of the verbs that judge. record has its own: see verbs/record.c. */
enum { EXIT_HOLDS = 0, EXIT_DIFFERS = 1, EXIT_TROUBLE = 2, EXIT_NOT_PROVEN = 3 };

#define VERB_MANY 1000000

/* name, operands as printed, fewest, most, status of a usage error, help, exit statuses. The option table names verbs by
 * this name. A verb with VERB_MANY operands takes a command: all from its first operand on belongs to that command. */
#define VERBS(X)                                                                                                       \
	X(record, "[--] CMD [ARG]...", 1, VERB_MANY, 125,                                                              \
	  "run CMD with the preload and its adapters, recording into RUN; stdout is CMD's, so there is no --json",     \
	  "that of CMD, 128+n when signal n ended it; 125 own failure, 126 CMD cannot be run, 127 CMD not found")      \
	X(status, "RUN", 1, 1, 2, "the live counters of every process of a run", "0 printed, 2 not readable")          \
	X(ctl, "RUN start|stop|label TEXT|level L|flush", 2, 3, 2, "steer a running server",                           \
	  "0 every live process obeyed, 2 trouble")                                                                    \
	X(report, "RUN", 1, 1, 2, "one run: coverage, pools, slots, donations, graphs, call sites",                    \
	  "0 printed, 2 not readable, 3 readable with loss")                                                           \
	X(check, "RUN", 1, 1, 2, "the invariants that one run must hold by itself",                                    \
	  "0 they hold, 1 one is broken, 2 trouble, 3 not proven")                                                     \
	X(diff, "A B", 2, 2, 2, "compare two runs: equal, differs or not proven",                                      \
	  "0 equal, 1 a measured difference, 2 trouble, 3 not proven")                                                 \
	X(verify, "RUN", 1, 1, 2, "are log and counters whole and reconciled, did the probes fire",                    \
	  "0 yes, 2 not readable, 3 no")                                                                               \
	X(selftest, "", 0, 0, 2, "the positive controls on this machine",                                              \
	  "0 all found what they must, 1 one did not, 2 usage")                                                        \
	X(export, "RUN", 1, 1, 2, "the records of a run, for other tools", "0 written, 2 trouble")                     \
	X(doctor, "[-- CMD [ARG]...]", 0, VERB_MANY, 2, "can this machine, driver and command be probed",              \
	  "0 yes, 1 there is a problem, 2 usage")

enum verb {
#define VERB_ENUM(name, ...) VERB_##name,
	VERBS(VERB_ENUM)
#undef VERB_ENUM
		VERB_COUNT
};

#define VERB_DECLARE(name, ...) int cmd_##name(int argc, char **argv); /* argv[0] is the verb */
VERBS(VERB_DECLARE)
#undef VERB_DECLARE

struct verb_row {
	const char *name, *operands;
	int fewest, most, usage_status;
	const char *help, *exits;
	int (*run)(int argc, char **argv);
};
extern const struct verb_row verb_rows[VERB_COUNT];

#endif
