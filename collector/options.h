/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: the one table of options, and the parser that reads it. Help, man pages and completion come from the table.
 *
 * A verb begins with
 *	struct options o;
 *	int status = options_parse(VERB_diff, argc, argv, &o);
 *	if (status >= 0)
 *		return status; // help was printed, or a usage error said
 *	...
 *	options_free(&o);
 */
#ifndef COLLECTOR_OPTIONS_H
#define COLLECTOR_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs.h"

enum option_kind {
	OPTION_FLAG,
	OPTION_TEXT,   /* not empty */
	OPTION_CHOICE, /* one of choices, which are separated by '/' */
	OPTION_SIZE,   /* integer with K, M, G, T */
	OPTION_INT,    /* int64, decimal */
	OPTION_REAL,   /* finite and >= 0 */
	OPTION_EXPECT, /* PROBE>=N */
	OPTION_REGEX   /* POSIX extended */
};

#define V(name) (1u << VERB_##name)
#define V_ALL   ((1u << VERB_COUNT) - 1)

/* verbs, name, letter, kind, many, metavar, choices, fallback, help. `fallback` is what options_text and friends give when
 * the option is absent. Rows of one verb never share a name. */
#define OPTIONS(X)                                                                                                     \
	X(V(record), "output", 'o', OPTION_TEXT, false, "RUN", NULL, NULL,                                             \
	  "directory to create and record into (default: slotprobe-run.N, the first N that is free)")                  \
	X(V(record), "arm", 0, OPTION_TEXT, false, "NAME", NULL, NULL,                                                 \
	  "label of the run: graph-on promises graph launches; graph-off, padded-eager and graph-path-eager promise "  \
	  "none")                                                                                                      \
	X(V(record), "probe", 0, OPTION_TEXT, true, "NAME", NULL, NULL,                                                \
	  "adapter to load: a path if it holds '/', else looked up in SLOTPROBE_PROBE_PATH and the installed probes")  \
	X(V(record), "level", 0, OPTION_CHOICE, false, "LEVEL", "donations/launches/nodes", "donations",               \
	  "how much is recorded (nodes is not built yet)")                                                             \
	X(V(record), "paused", 0, OPTION_FLAG, false, NULL, NULL, NULL,                                                \
	  "start paused; 'slotprobe ctl RUN start' resumes")                                                           \
	X(V(record), "label", 0, OPTION_TEXT, false, "TEXT", NULL, NULL, "first label of the recording")               \
	X(V(record), "watch-slot", 0, OPTION_INT, true, "N", NULL, NULL, "fingerprint slot N after each donation too") \
	X(V(record), "min-free", 0, OPTION_SIZE, false, "SIZE", NULL, "2G",                                            \
	  "stop the payload below this much free disk")                                                                \
	X(V(record), "max-size", 0, OPTION_SIZE, false, "SIZE", NULL, "8G",                                            \
	  "stop the payload at this size of the run")                                                                  \
	X(V(record), "keep-keys", 0, OPTION_FLAG, false, NULL, NULL, NULL,                                             \
	  "record key texts as they are (they may be user text) instead of their hashes")                              \
	X(V(record), "audit", 0, OPTION_FLAG, false, NULL, NULL, NULL,                                                 \
	  "reach libraries that are opened with RTLD_DEEPBIND too, by way of LD_AUDIT")                                \
	X(V(status), "watch", 0, OPTION_FLAG, false, NULL, NULL, NULL, "print again every second until the run ends")  \
	X(V(check) | V(diff) | V(verify), "expect", 0, OPTION_EXPECT, true, "PROBE>=N", NULL, NULL,                    \
	  "require that many attempts of a probe, named or by glob")                                                   \
	X(V(diff), "align", 0, OPTION_CHOICE, false, "HOW", "auto/slot/key/order", "auto", "how rows are paired")      \
	X(V(diff), "allow-missing", 0, OPTION_REGEX, false, "REGEX", NULL, NULL,                                       \
	  "RANK/POOL/SLOT that may be missing on one side")                                                            \
	X(V(diff), "rtol", 0, OPTION_REAL, false, "X", NULL, NULL,                                                     \
	  "relative tolerance for samples and norms: within it is never equal (status 3)")                             \
	X(V(diff), "noise", 0, OPTION_TEXT, false, "B2", NULL, NULL,                                                   \
	  "a second run of one arm: what differs no more than it is noise, and never equal")                           \
	X(V(diff), "third", 0, OPTION_TEXT, false, "C", NULL, NULL,                                                    \
	  "a run of padded-eager or graph-path-eager: is it the padding, the graph path or the replay")                \
	X(V(selftest), "driver", 0, OPTION_CHOICE, false, "WHICH", "auto/cuda/cpu", "auto", "driver to test on")       \
	X(V(doctor), "url", 0, OPTION_TEXT, false, "URL", NULL, NULL, "ask a running server instead")                  \
	X(V(doctor), "run", 0, OPTION_TEXT, false, "RUN", NULL, NULL, "with --url: the run that it is recorded into")  \
	X(V(doctor), "concurrency", 0, OPTION_INT, false, "N", NULL, NULL,                                             \
	  "with --url: requests that will run at once")                                                                \
	X(V(doctor), "tokens", 0, OPTION_INT, false, "N", NULL, NULL,                                                  \
	  "with --url: tokens that a request will generate")                                                           \
	X(V(report) | V(check) | V(diff), "format", 0, OPTION_CHOICE, false, "FORMAT", "text/json/html", "text",       \
	  "output format")                                                                                             \
	X(V(verify) | V(status) | V(ctl) | V(selftest) | V(doctor), "format", 0, OPTION_CHOICE, false, "FORMAT",       \
	  "text/json", "text", "output format")                                                                        \
	X(V(export), "format", 0, OPTION_CHOICE, false, "FORMAT", "jsonl/csv/perfetto", NULL, "output format")         \
	X(V(report) | V(check) | V(diff) | V(verify) | V(status) | V(ctl) | V(selftest) | V(doctor), "json", 0,        \
	  OPTION_FLAG, false, NULL, NULL, NULL, "the same as --format json")                                           \
	X(V(report) | V(check) | V(diff) | V(verify) | V(export), "output", 'o', OPTION_TEXT, false, "FILE", NULL,     \
	  NULL, "write there instead of to stdout")                                                                    \
	X(V_ALL, "color", 0, OPTION_CHOICE, false, "WHEN", "auto/always/never", "auto",                                \
	  "colour (NO_COLOR and CLICOLOR_FORCE count)")                                                                \
	X(V_ALL, "help", 'h', OPTION_FLAG, false, NULL, NULL, NULL, "print this and exit")                             \
	X(V_ALL, "version", 0, OPTION_FLAG, false, NULL, NULL, NULL, "print the version and exit")

struct option_row {
	uint32_t verbs;
	const char *name;
	char letter;
	enum option_kind kind;
	bool many;
	const char *metavar, *choices, *fallback, *help;
};
extern const struct option_row option_rows[];
extern const size_t n_option_rows;

struct option_given {
	const struct option_row *row;
	const char *text; /* NULL for a flag; points into argv */
};

struct options {
	enum verb verb;
	struct option_given *given;
	size_t n_given;
	char **operands; /* argv from the first operand on, for a verb that takes a command; else a list of the operands */
	int n_operands;
	bool json;  /* --json or --format json */
	bool html;  /* --format html */
	bool color; /* stdout takes colour; with -o FILE only when it was forced */
};

/* -1: go on. Otherwise the exit status: help or version was printed, or one line said what is wrong. Every value has been
 * checked against its kind, so the getters below cannot fail. */
int options_parse(enum verb verb, int argc, char **argv, struct options *o);
void options_free(struct options *o);

bool options_given(const struct options *o, const char *name);
size_t options_count(const struct options *o, const char *name);
const char *options_nth(const struct options *o, const char *name, size_t n); /* in the order given */
const char *options_text(const struct options *o, const char *name);          /* the last given, else the fallback */
uint64_t options_size(const struct options *o, const char *name);
int64_t options_int(const struct options *o, const char *name);
double options_real(const struct options *o, const char *name, double otherwise);

/* The value of an OPTION_EXPECT: glob is copied. 0, or -1 when it makes no sense. */
struct expect {
	char probe[64]; /* name or glob */
	uint64_t at_least;
};
int expect_parse(const char *text, struct expect *expect);
int size_parse(const char *text, uint64_t *size);

/* One line on stderr and the verb's usage status: "slotprobe VERB: TEXT; 'slotprobe VERB --help' lists ...". */
int options_usage(enum verb verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For man pages, completion and the error catalogue. */
void options_print_help(enum verb verb);
void options_dump(void); /* JSON of the tables of verbs, options and reasons */

#endif
