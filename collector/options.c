/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: reads a verb's arguments by the option table.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "options.h"
#include "print/print.h"

const struct option_row option_rows[] = {
#define OPTION_ROW(verbs, name, letter, kind, many, metavar, choices, fallback, help)                                  \
	{ verbs, name, letter, kind, many, metavar, choices, fallback, help },
	OPTIONS(OPTION_ROW)
#undef OPTION_ROW
};
const size_t n_option_rows = sizeof(option_rows) / sizeof(option_rows[0]);

int options_usage(enum verb verb, const char *format, ...)
{
	const char *name = verb_rows[verb].name;
	char text[900];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	complain(name, "%s; 'slotprobe %s --help' says more", text, name);
	return verb_rows[verb].usage_status;
}

/* ---- values ---- */

int size_parse(const char *text, uint64_t *size)
{
	static const char units[] = "KMGT";
	unsigned shift = 0;
	uint64_t value;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -1;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return -1;
	if (*end) {
		const char *unit = strchr(units, toupper((unsigned char)*end));

		if (!unit || end[1])
			return -1;
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (value > UINT64_MAX >> shift)
		return -1;
	*size = value << shift;
	return 0;
}

static int int_parse(const char *text, int64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)text[text[0] == '-']))
		return -1;
	errno = 0;
	*value = strtoll(text, &end, 10);
	return errno || *end ? -1 : 0;
}

static int real_parse(const char *text, double *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return -1;
	*value = strtod(text, &end);
	return end == text || *end || !isfinite(*value) || *value < 0 ? -1 : 0;
}

int expect_parse(const char *text, struct expect *expect)
{
	const char *sign = strstr(text, ">=");
	uint64_t n;

	if (!sign || sign == text || (size_t)(sign - text) >= sizeof(expect->probe) || strlen(sign + 2) > 19 ||
	    !isdigit((unsigned char)sign[2]) || size_parse(sign + 2, &n) ||
	    strspn(sign + 2, "0123456789") != strlen(sign + 2))
		return -1;
	for (const char *p = text; p < sign; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-*?[]!", *p))
			return -1;
	memcpy(expect->probe, text, (size_t)(sign - text));
	expect->probe[sign - text] = 0;
	expect->at_least = n;
	return 0;
}

static bool choice_has(const char *choices, const char *text)
{
	size_t n = strlen(text);

	for (const char *p = choices; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
		if (strcspn(p, "/") == n && !memcmp(p, text, n))
			return true;
	return false;
}

/* -1: the value is good. */
static int value_check(enum verb verb, const struct option_row *row, const char *text)
{
	struct expect expect;
	uint64_t size;
	int64_t integer;
	double real;
	regex_t regex;

	switch (row->kind) {
	case OPTION_CHOICE:
		if (choice_has(row->choices, text))
			return -1;
		return options_usage(verb, "--%s cannot be '%s': it is one of %s", row->name, text, row->choices);
	case OPTION_SIZE:
		if (!size_parse(text, &size))
			return -1;
		return options_usage(verb, "--%s cannot be '%s': it is an integer with K, M, G or T behind it, like 2G",
				     row->name, text);
	case OPTION_INT:
		if (!int_parse(text, &integer))
			return -1;
		return options_usage(verb, "--%s cannot be '%s': it is an integer", row->name, text);
	case OPTION_REAL:
		if (!real_parse(text, &real))
			return -1;
		return options_usage(verb, "--%s cannot be '%s': it is a number of 0 or more", row->name, text);
	case OPTION_EXPECT:
		if (!expect_parse(text, &expect))
			return -1;
		return options_usage(verb, "--%s cannot be '%s': it is PROBE>=N, like core.donate>=1", row->name, text);
	case OPTION_REGEX:
		if (!regcomp(&regex, text, REG_EXTENDED | REG_NOSUB)) {
			regfree(&regex);
			return -1;
		}
		return options_usage(verb, "--%s cannot be '%s': it is no extended regular expression", row->name,
				     text);
	case OPTION_TEXT:
	case OPTION_FLAG:
		break;
	}
	return -1;
}

/* ---- arguments ---- */

static const struct option_row *row_by_name(enum verb verb, const char *name, size_t n)
{
	for (size_t i = 0; i < n_option_rows; i++)
		if ((option_rows[i].verbs & 1u << verb) && strlen(option_rows[i].name) == n &&
		    !memcmp(option_rows[i].name, name, n))
			return &option_rows[i];
	return NULL;
}

static const struct option_row *row_by_letter(enum verb verb, char letter)
{
	for (size_t i = 0; i < n_option_rows; i++)
		if ((option_rows[i].verbs & 1u << verb) && option_rows[i].letter == letter)
			return &option_rows[i];
	return NULL;
}

static const struct option_given *given_last(const struct options *o, const char *name)
{
	const struct option_given *last = NULL;

	for (size_t i = 0; i < o->n_given; i++)
		if (!strcmp(o->given[i].row->name, name))
			last = &o->given[i];
	return last;
}

/* -1: taken. */
static int option_take(struct options *o, const struct option_row *row, const char *text)
{
	const struct option_given *before = given_last(o, row->name);
	int status;

	if (text && !*text)
		return options_usage(o->verb, "--%s needs a value that is not empty", row->name);
	if (text && before && !row->many && strcmp(before->text, text))
		return options_usage(o->verb, "--%s is given twice, as '%s' and as '%s': give it once", row->name,
				     before->text, text);
	status = text ? value_check(o->verb, row, text) : -1;
	if (status >= 0)
		return status;
	o->given[o->n_given].row = row;
	o->given[o->n_given].text = text;
	o->n_given++;
	return -1;
}

/* Reads argv[*i], which begins with '-', and its value. -1: go on. */
static int option_read(struct options *o, int argc, char **argv, int *i)
{
	const char *argument = argv[*i], *text = NULL;
	const struct option_row *row;

	if (argument[1] == '-') {
		size_t n = strcspn(argument + 2, "=");

		row = row_by_name(o->verb, argument + 2, n);
		if (argument[2 + n])
			text = argument + 2 + n + 1;
	} else {
		row = row_by_letter(o->verb, argument[1]);
		if (row && argument[2])
			text = argument + 2;
	}
	if (!row)
		return options_usage(o->verb, "unknown option '%s'", argument);
	if (row->kind == OPTION_FLAG && text)
		return options_usage(o->verb, "unknown option '%s': --%s takes no value", argument, row->name);
	if (row->kind != OPTION_FLAG && !text) {
		/* A forgotten value would swallow the next option. */
		if (*i + 1 >= argc || !strncmp(argv[*i + 1], "--", 2))
			return options_usage(o->verb, "--%s needs a value: %s", row->name, row->metavar);
		text = argv[++*i];
	}
	return option_take(o, row, text);
}

static int operands_check(const struct options *o)
{
	const struct verb_row *row = &verb_rows[o->verb];

	if (o->n_operands < row->fewest)
		return options_usage(o->verb, "%s missing: slotprobe %s %s",
				     o->n_operands ? "an operand is" : "operands are", row->name, row->operands);
	if (o->n_operands > row->most)
		return options_usage(o->verb, "one operand too many: '%s'", o->operands[row->most]);
	return -1;
}

static bool color_wanted(const struct options *o)
{
	const char *when = options_text(o, "color");
	const char *force = getenv("CLICOLOR_FORCE"), *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (strcmp(when, "auto"))
		return !strcmp(when, "always");
	if (options_given(o, "output"))
		return false;
	if (no && *no)
		return false;
	if (force && *force && strcmp(force, "0"))
		return true;
	return isatty(STDOUT_FILENO) && (!term || strcmp(term, "dumb"));
}

/* What is printed and done with. -1: go on. */
static int options_finish(struct options *o)
{
	const char *format = given_last(o, "format") ? given_last(o, "format")->text : NULL;
	int status;

	if (options_given(o, "help")) {
		options_print_help(o->verb);
		return 0;
	}
	if (options_given(o, "version")) {
		puts("slotprobe " SLOTPROBE_VERSION);
		return 0;
	}
	status = operands_check(o);
	if (status >= 0)
		return status;
	if (options_given(o, "json") && format && strcmp(format, "json"))
		return options_usage(o->verb, "--json and --format %s contradict each other", format);
	o->json = options_given(o, "json") || (format && !strcmp(format, "json"));
	o->html = format && !strcmp(format, "html");
	o->color = color_wanted(o);
	/* Whoever stops reading text, as head does, ends us as it ends any command. JSON, pages and files must be whole. */
	if (o->verb != VERB_record && !o->json && !o->html && !options_given(o, "output"))
		signal(SIGPIPE, SIG_DFL);
	return -1;
}

/* Sorts argv into options and operands. -1: go on. */
static int options_sort(struct options *o, int argc, char **argv)
{
	bool command = verb_rows[o->verb].most == VERB_MANY;
	int status = -1, i;

	for (i = 1; i < argc && status < 0; i++) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		if (argv[i][0] == '-' && argv[i][1])
			status = option_read(o, argc, argv, &i);
		else if (command)
			break;
		else
			o->operands[o->n_operands++] = argv[i];
	}
	for (; i < argc && status < 0; i++)
		o->operands[o->n_operands++] = argv[i];
	return status;
}

int options_parse(enum verb verb, int argc, char **argv, struct options *o)
{
	int status;

	*o = (struct options) { .verb = verb };
	o->given = calloc((size_t)argc + 1, sizeof(*o->given));
	o->operands = calloc((size_t)argc + 1, sizeof(*o->operands));
	if (!o->given || !o->operands) {
		options_free(o);
		return options_usage(verb, "out of memory");
	}
	status = options_sort(o, argc, argv);
	if (status < 0)
		status = options_finish(o);
	if (status >= 0)
		options_free(o);
	return status;
}

void options_free(struct options *o)
{
	free(o->given);
	free(o->operands);
	o->given = NULL;
	o->operands = NULL;
	o->n_given = 0;
}

/* ---- getters ---- */

bool options_given(const struct options *o, const char *name)
{
	return given_last(o, name) != NULL;
}

size_t options_count(const struct options *o, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n_given; i++)
		n += !strcmp(o->given[i].row->name, name);
	return n;
}

const char *options_nth(const struct options *o, const char *name, size_t n)
{
	for (size_t i = 0; i < o->n_given; i++)
		if (!strcmp(o->given[i].row->name, name) && !n--)
			return o->given[i].text;
	return NULL;
}

const char *options_text(const struct options *o, const char *name)
{
	const struct option_given *last = given_last(o, name);
	const struct option_row *row = row_by_name(o->verb, name, strlen(name));

	return last ? last->text : row ? row->fallback : NULL;
}

uint64_t options_size(const struct options *o, const char *name)
{
	const char *text = options_text(o, name);
	uint64_t size = 0;

	if (text)
		(void)size_parse(text, &size);
	return size;
}

int64_t options_int(const struct options *o, const char *name)
{
	const char *text = options_text(o, name);
	int64_t value = 0;

	if (text)
		(void)int_parse(text, &value);
	return value;
}

double options_real(const struct options *o, const char *name, double otherwise)
{
	const char *text = options_text(o, name);
	double value = otherwise;

	if (text)
		(void)real_parse(text, &value);
	return value;
}
