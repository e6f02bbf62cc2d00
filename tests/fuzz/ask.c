/* SPDX-License-Identifier: Apache-2.0
 *
 * ask.c: calls cmd_*() with stdout and stderr in memory, and looks at what came: an allowed status, one line of complaint
 * where there must be one, no control characters, JSON that parses.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/fuzz/ask.h"
#include "verbs.h"

enum printed { PRINTS_TEXT, PRINTS_JSON, PRINTS_LINES, PRINTS_HTML, PRINTS_BYTES };

#define S(n) (1u << (n))

static const char ASK_THIRD[] = "third"; /* stands for the third run's path */

static const struct row {
	int (*run)(int argc, char **argv);
	const char *name, *option, *value;
	enum printed printed;
	unsigned statuses;
	bool two;
} rows[ASK_COUNT] = {
	[ASK_STATUS] = { cmd_status, "status", NULL, NULL, PRINTS_TEXT, S(0) | S(2), false },
	[ASK_STATUS_JSON] = { cmd_status, "status", "--json", NULL, PRINTS_JSON, S(0) | S(2), false },
	[ASK_VERIFY] = { cmd_verify, "verify", NULL, NULL, PRINTS_TEXT, S(0) | S(2) | S(3), false },
	[ASK_VERIFY_JSON] = { cmd_verify, "verify", "--json", NULL, PRINTS_JSON, S(0) | S(2) | S(3), false },
	[ASK_CHECK] = { cmd_check, "check", NULL, NULL, PRINTS_TEXT, S(0) | S(1) | S(2) | S(3), false },
	[ASK_CHECK_JSON] = { cmd_check, "check", "--json", NULL, PRINTS_JSON, S(0) | S(1) | S(2) | S(3), false },
	[ASK_CHECK_HTML] = { cmd_check, "check", "--format", "html", PRINTS_HTML, S(0) | S(1) | S(2) | S(3), false },
	[ASK_REPORT] = { cmd_report, "report", NULL, NULL, PRINTS_TEXT, S(0) | S(2) | S(3), false },
	[ASK_REPORT_JSON] = { cmd_report, "report", "--json", NULL, PRINTS_JSON, S(0) | S(2) | S(3), false },
	[ASK_REPORT_HTML] = { cmd_report, "report", "--format", "html", PRINTS_HTML, S(0) | S(2) | S(3), false },
	[ASK_DIFF] = { cmd_diff, "diff", NULL, NULL, PRINTS_TEXT, S(0) | S(1) | S(2) | S(3), true },
	[ASK_DIFF_JSON] = { cmd_diff, "diff", "--json", NULL, PRINTS_JSON, S(0) | S(1) | S(2) | S(3), true },
	[ASK_DIFF_HTML] = { cmd_diff, "diff", "--format", "html", PRINTS_HTML, S(0) | S(1) | S(2) | S(3), true },
	[ASK_DIFF_KEY] = { cmd_diff, "diff", "--align", "key", PRINTS_TEXT, S(0) | S(1) | S(2) | S(3), true },
	[ASK_DIFF_ORDER] = { cmd_diff, "diff", "--align", "order", PRINTS_TEXT, S(0) | S(1) | S(2) | S(3), true },
	[ASK_DIFF_THIRD] = { cmd_diff, "diff", "--third", ASK_THIRD, PRINTS_TEXT, S(0) | S(1) | S(2) | S(3), true },
	[ASK_DIFF_NOISE] = { cmd_diff, "diff", "--noise", ASK_THIRD, PRINTS_TEXT, S(0) | S(1) | S(2) | S(3), true },
	[ASK_JSONL] = { cmd_export, "export", "--format", "jsonl", PRINTS_LINES, S(0) | S(2), false },
	[ASK_CSV] = { cmd_export, "export", "--format", "csv", PRINTS_TEXT, S(0) | S(2), false },
	[ASK_PERFETTO] = { cmd_export, "export", "--format", "perfetto", PRINTS_BYTES, S(0) | S(2), false },
};

const char *asked_name(enum asked asked)
{
	static char name[64];
	const struct row *row = &rows[asked];

	snprintf(name, sizeof name, "%s%s%s%s%s", row->name, row->option ? " " : "", row->option ? row->option : "",
		 row->value ? " " : "", row->value ? row->value : "");
	return name;
}

bool asked_judges(enum asked asked)
{
	return rows[asked].statuses & S(3);
}

/* ---- what came ---- */

static bool is_clean(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\n') || text[i] == 0x7f)
			return false;
	return true;
}

static bool is_json(const char *text, size_t n)
{
	json_t *value = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	bool ok = value != NULL;

	json_decref(value);
	return ok;
}

static bool are_json_lines(const char *text, size_t n)
{
	while (n) {
		const char *end = memchr(text, '\n', n);
		size_t line = end ? (size_t)(end - text) : n;

		if (!end || !is_json(text, line))
			return false;
		text += line + 1;
		n -= line + 1;
	}
	return true;
}

/* A whole page, without a control character but for what its own style and script are laid out with. */
static bool is_page(const char *text, size_t n)
{
	static const char begin[] = "<!DOCTYPE html>", end[] = "</html>";

	while (n && text[n - 1] == '\n')
		n--;
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)text[i] < ' ' && !strchr("\n\t", text[i])) || text[i] == 0x7f || !text[i])
			return false;
	return n > sizeof begin + sizeof end && !strncasecmp(text, begin, sizeof begin - 1) &&
	       !memcmp(text + n - (sizeof end - 1), end, sizeof end - 1);
}

static unsigned lines(const char *text, size_t n)
{
	unsigned count = n && text[n - 1] != '\n';

	for (size_t i = 0; i < n; i++)
		count += text[i] == '\n';
	return count;
}

/* The verbs that judge say nothing on stderr unless they fail; status and export may warn in one line. */
static const char *judge(const struct row *row, int status, const char *out, size_t n_out, const char *err,
			 size_t n_err)
{
	unsigned said = lines(err, n_err), most = status == 2 || !(row->statuses & S(3));

	if (status < 0 || status > 3 || !(row->statuses & S(status)))
		return "a status that it does not have";
	if (said > most)
		return "more lines on stderr than it may";
	if (status == 2 && said != 1)
		return "no line that says what is wrong";
	if (said && strncmp(err, "slotprobe ", 10))
		return "a complaint that does not say who complains";
	if ((row->printed <= PRINTS_LINES && !is_clean(out, n_out)) || !is_clean(err, n_err))
		return "a control character";
	if (status != 2 && row->printed == PRINTS_JSON && !is_json(out, n_out))
		return "no JSON";
	if (status != 2 && row->printed == PRINTS_LINES && !are_json_lines(out, n_out))
		return "a line that is no JSON";
	if (status != 2 && row->printed == PRINTS_HTML && !is_page(out, n_out))
		return "no whole page";
	return NULL;
}

void ask(enum asked asked, const char *const *run, struct answer *answer)
{
	const struct row *row = &rows[asked];
	char *argv[8] = { NULL }, *out = NULL, *err = NULL;
	FILE *kept_out = stdout, *kept_err = stderr;
	const char *value = row->value == ASK_THIRD ? run[2] : row->value;
	const char *const given[] = { row->name, row->option, value, run[0], row->two ? run[1] : NULL };
	const char *broken;
	size_t n_out = 0, n_err = 0;
	int argc = 0;

	for (unsigned i = 0; i < sizeof given / sizeof given[0]; i++) {
		if (given[i])
			argv[argc++] = (char *)(uintptr_t)given[i];
	}
	stdout = open_memstream(&out, &n_out);
	stderr = open_memstream(&err, &n_err);
	answer->status = row->run(argc, argv);
	fclose(stdout);
	fclose(stderr);
	stdout = kept_out;
	stderr = kept_err;
	answer->complaints = lines(err, n_err);
	broken = judge(row, answer->status, out, n_out, err, n_err);
	answer->broken[0] = 0;
	if (broken)
		snprintf(answer->broken, sizeof answer->broken, "%s: status %d and %s; stderr: %.300s",
			 asked_name(asked), answer->status, broken, err);
	free(out);
	free(err);
}
