/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_url.c: slotprobe doctor --url: would a recording of this running server prove anything; a remedy for each thing that
 * is in the way. What to ask and how to judge it stands in the adapters' NAME.doctor.
 */
#include <stdlib.h>
#include <string.h>

#include "launch/http.h"
#include "launch/rules.h"
#include "print/print.h"
#include "verbs/doctor_url.h"

#define ANSWER_MAX    (4u << 20)
#define CHECKS_MAX    32
#define PATHS_MAX     8 /* each may take as long as an answer may */
#define DOCTOR_SCHEMA 1

enum state { STATE_OK, STATE_WARNING, STATE_PROBLEM };
static const char *const state_name[] = { "ok", "warning", "problem" };

struct finding {
	enum state state;
	char name[32], text[512], remedy[256]; /* remedy "": none */
};

struct findings {
	size_t n;
	struct finding list[CHECKS_MAX];
};

static void found(struct findings *all, const char *name, enum state state, const char *text, const char *remedy)
{
	struct finding *f = &all->list[all->n];

	if (all->n == CHECKS_MAX)
		return;
	all->n++;
	f->state = state;
	text_safe(f->name, sizeof(f->name), name, strlen(name));
	text_safe(f->text, sizeof(f->text), text, strlen(text));
	text_safe(f->remedy, sizeof(f->remedy), remedy, strlen(remedy));
}

/* ---- printing ---- */

static void print_json(FILE *f, const struct findings *all, int status)
{
	json_t *array = json_array(), *whole;

	for (size_t i = 0; i < all->n; i++) {
		const struct finding *one = &all->list[i];

		json_array_append_new(array, json_pack("{s:o, s:s, s:o, s:o}", "name", json_text(one->name), "state",
						       state_name[one->state], "text", json_text(one->text), "remedy",
						       json_text(*one->remedy ? one->remedy : NULL)));
	}
	whole = json_pack("{s:i, s:s, s:i, s:o}", "schema_version", DOCTOR_SCHEMA, "tool",
			  "slotprobe " SLOTPROBE_VERSION, "exit_status", status, "checks", array);
	json_print(f, whole);
	json_decref(whole);
}

static void print_text(FILE *f, const struct findings *all, bool color)
{
	static const enum color which[] = { COLOR_GREEN, COLOR_YELLOW, COLOR_RED };

	for (size_t i = 0; i < all->n; i++) {
		const struct finding *one = &all->list[i];

		fprintf(f, "%-12s %s%-8s%s %s\n", one->name, color_on(color, which[one->state]), state_name[one->state],
			color_off(color), one->text);
		if (*one->remedy)
			fprintf(f, "%-12s          -> %s\n", "", one->remedy);
	}
}

static int print_all(const struct options *o, const struct findings *all)
{
	struct output output;
	struct error error;
	int status = 0;

	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].state == STATE_PROBLEM)
			status = 1;
	output_open(&output, NULL, NULL);
	if (o->json)
		print_json(output.f, all, status);
	else
		print_text(output.f, all, o->color);
	if (output_close(&output, &error)) {
		complain("doctor", "%s", error.text);
		status = EXIT_TROUBLE;
	}
	return status;
}

/* ---- asking ---- */

static json_t *ask_at(const char *url, const char *path, struct http_error *error)
{
	size_t n = strlen(url);
	json_t *answer = NULL;
	char *full = NULL, *body;

	while (n && url[n - 1] == '/')
		n--;
	if (asprintf(&full, "%.*s%s", (int)n, url, path) < 0) {
		error_set(&error->why, "out of memory");
		return NULL;
	}
	body = http_get(full, ANSWER_MAX, error);
	free(full);
	if (!body)
		return NULL;
	answer = json_loads(body, 0, NULL);
	free(body);
	if (json_is_object(answer))
		return answer;
	error->trouble = HTTP_STRANGE;
	error_set(&error->why, "the answer is no JSON object");
	json_decref(answer);
	return NULL;
}

/* Whoever does not answer at one path does not at another, whatever adapter asks. */
static bool is_absent(enum http_trouble trouble)
{
	return trouble == HTTP_UNREACHABLE || trouble == HTTP_SILENT;
}

/* What the server said, if this adapter knows it. */
static json_t *ask_by(json_t *rules, const char *url, struct http_error *error)
{
	json_t *paths = json_object_get(rules, "paths"), *info = NULL;
	bool told = false; /* the first path that goes wrong is the one to tell of */
	struct http_error why = { .trouble = HTTP_OURS };

	for (size_t i = 0; !info && i < json_array_size(paths) && i < PATHS_MAX; i++) {
		const char *path = json_string_value(json_array_get(paths, i));

		if (!path)
			continue;
		info = ask_at(url, path, &why);
		if (info && !rules_know(rules, info)) {
			why.trouble = HTTP_STRANGE;
			error_set(&why.why, "what answers is no server that an adapter knows");
			json_decref(info);
			info = NULL;
		}
		if (!info && !told) {
			error->trouble = why.trouble;
			error_set(&error->why, "asked for %s: %s", path, why.why.text);
		}
		told = true;
		if (!info && is_absent(why.trouble))
			break;
	}
	return info;
}

/* The adapter whose server this is, and what it said. */
static json_t *recognise(json_t *adapters, const char *url, json_t **info, struct http_error *error)
{
	error->trouble = HTTP_OURS;
	error_set(&error->why, "no adapter here knows how to ask a server: build or install slotprobe again");
	for (size_t i = 0; i < json_array_size(adapters); i++) {
		*info = ask_by(json_array_get(adapters, i), url, error);
		if (*info)
			return json_array_get(adapters, i);
		if (is_absent(error->trouble))
			break;
	}
	return NULL;
}

/* ---- judging ---- */

static enum state state_of(json_t *clause)
{
	const char *said = json_string_value(json_object_get(clause, "state"));

	for (unsigned i = STATE_OK; said && i <= STATE_PROBLEM; i++)
		if (!strcmp(said, state_name[i]))
			return (enum state)i;
	return STATE_PROBLEM;
}

static const char *text_of(json_t *object, const char *name, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : otherwise;
}

static void judge(struct findings *all, json_t *rules, const struct rules_facts *facts)
{
	json_t *checks = json_object_get(rules, "checks");
	char text[512];

	snprintf(text, sizeof(text), "%s %s answers", text_of(rules, "server", "the server"),
		 text_of(facts->info, "version", "of an unknown version"));
	found(all, "server", STATE_OK, text, "");
	for (size_t i = 0; i < json_array_size(checks); i++) {
		json_t *check = json_array_get(checks, i),
		       *clause = rules_judge(rules, check, facts, text, sizeof(text));

		if (clause)
			found(all, text_of(check, "name", "?"), state_of(clause), text, text_of(clause, "remedy", ""));
	}
}

bool doctor_url_asked(const struct options *o)
{
	return options_given(o, "url") || options_given(o, "run") || options_given(o, "concurrency") ||
	       options_given(o, "tokens");
}

/* -1: each number that is given is one of requests or tokens. */
static int check_plan(const struct options *o)
{
	static const char *const number[] = { "concurrency", "tokens" };

	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++)
		if (options_given(o, number[i]) && options_int(o, number[i]) < 1)
			return options_usage(VERB_doctor, "--%s cannot be '%s': it is 1 or more", number[i],
					     options_text(o, number[i]));
	return -1;
}

static int ask_and_judge(const struct options *o, const struct run *run)
{
	struct rules_facts facts = { .options = o, .run = run };
	json_t *adapters = rules_load(), *rules;
	struct findings all = { 0 };
	struct http_error error;

	rules = recognise(adapters, options_text(o, "url"), &facts.info, &error);
	if (rules)
		judge(&all, rules, &facts);
	else
		found(&all, "server", STATE_PROBLEM, error.why.text, http_remedy(error.trouble));
	json_decref(facts.info);
	json_decref(adapters);
	return print_all(o, &all);
}

int doctor_url(const struct options *o)
{
	struct error error;
	struct run run;
	int status;

	if (!options_given(o, "url"))
		return options_usage(VERB_doctor,
				     "--run, --concurrency and --tokens say more of a server: give its --url");
	if (o->n_operands)
		return options_usage(VERB_doctor,
				     "--url asks a server that runs, CMD is one that does not: give one of them");
	status = check_plan(o);
	if (status >= 0)
		return status;
	if (!options_given(o, "run"))
		return ask_and_judge(o, NULL);
	if (run_open(&run, options_text(o, "run"), &error)) {
		complain("doctor", "%s", error.text);
		return EXIT_TROUBLE;
	}
	status = ask_and_judge(o, &run);
	run_close(&run);
	return status;
}
