/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: the table of options, from which parsing and help come.
 */
#include "options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "toy_cuda.h"

const char *const toy_arm_names[TOY_ARMS] = { "graph-on", "graph-off", "padded-eager", "graph-path-eager" };
const char *const toy_stream_names[TOY_STREAM_KINDS] = { "created", "default", "per-thread" };
static const char *const slot_id_names[] = { "host", "device" };
static const char *const resolve_names[] = { "dlsym", "proc" };

enum kind { NUMBER, CHOICE, TURN_ON, TURN_OFF, TEXT, BUG };

struct option {
	const char *name;
	enum kind kind;
	size_t offset;
	int64_t low, high; /* NUMBER */
	const char *const *choices;
	size_t n_choices;
	const char *help;
};

#define AT(member)      offsetof(struct toy_options, member)
#define CHOICES(values) .choices = (values), .n_choices = sizeof(values) / sizeof((values)[0])

static const struct option table[] = {
	{ "arm", CHOICE, AT(arm), CHOICES(toy_arm_names), .help = "how decode steps run" },
	{ "bug", BUG, AT(bug), .help = "the bug to play (clean: none)" },
	{ "stream", CHOICE, AT(stream), CHOICES(toy_stream_names), .help = "the stream that the server works on" },
	{ "slot-ids", CHOICE, AT(device_slot_ids), CHOICES(slot_id_names), .help = "where reported slot ids live" },
	{ "resolve", CHOICE, AT(by_proc_address), CHOICES(resolve_names), .help = "how driver entries are found" },
	{ "seed", NUMBER, AT(seed), 0, INT32_MAX, .help = "of the workload" },
	{ "requests", NUMBER, AT(requests), 1, 10000000, .help = "requests to serve" },
	{ "first", NUMBER, AT(first), 0, 10000000,
	  .help = "request to begin with: an earlier life served those before" },
	{ "concurrency", NUMBER, AT(concurrency), 1, TOY_MAX_BATCH, .help = "requests at a time" },
	{ "slots", NUMBER, AT(slots), 4, 100000, .help = "state slots, not counting the reserved slot 0" },
	{ "layers", NUMBER, AT(layers), 1, 256, .help = "layers of the model" },
	{ "track-interval", NUMBER, AT(track_interval), 1, 1024, .help = "tokens between two checkpoints" },
	{ "chunk", NUMBER, AT(chunk), 1, 1024, .help = "most tokens of a prompt in one forward" },
	{ "follow-ups", NUMBER, AT(follow_ups), 0, 10000000, .help = "requests that continue an earlier answer" },
	{ "waves", TURN_ON, AT(waves), .help = "equal requests that start and end together" },
	{ "fixed-answers", TURN_ON, AT(fixed_answers), .help = "an answer repeats its prompt's first token" },
	{ "use-slot-0", TURN_ON, AT(use_slot_0), .help = "slot 0 is not reserved" },
	{ "perturb-slot", NUMBER, AT(perturb_slot), 0, 100000, .help = "alter this slot once, just before a donation" },
	{ "perturb-occurrence", NUMBER, AT(perturb_occurrence), 1, 10000000, .help = "which donation of it" },
	{ "no-donate", TURN_OFF, AT(donate), .help = "leave out the donation call to slotprobe, nothing else" },
	{ "no-shadow", TURN_OFF, AT(shadow), .help = "do not check the state against the host's own arithmetic" },
	{ "journal", TEXT, AT(journal), .help = "write what happened there, one JSON object a line" },
	{ "driver-lib", TEXT, AT(driver_lib), .help = "the CUDA driver" },
	{ "check-driver", TURN_ON, AT(check_driver), .help = "only say which driver and device there are" },
};

#define N_OPTIONS (sizeof(table) / sizeof(table[0]))

static void print_help(void)
{
	puts("usage: toyserver [OPTION]...\nA small inference server with recurrent state, with or without a bug.\n");
	for (size_t i = 0; i < N_OPTIONS; i++) {
		printf("  --%-20s %s", table[i].name, table[i].help);
		for (size_t c = 0; c < table[i].n_choices; c++)
			printf("%s%s", c ? "/" : ": ", table[i].choices[c]);
		putchar('\n');
	}
	printf("bugs: %s\n", toy_case_names());
}

static int64_t number(const struct option *o, const char *text)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < o->low || value > o->high)
		toy_die("--%s %s: must be a number from %lld to %lld", o->name, text, (long long)o->low,
			(long long)o->high);
	return value;
}

static int64_t choice(const struct option *o, const char *text)
{
	for (size_t c = 0; c < o->n_choices; c++)
		if (!strcmp(o->choices[c], text))
			return (int64_t)c;
	toy_die("--%s %s: unknown; see --help", o->name, text);
}

static const struct toy_case *bug(const char *text)
{
	const struct toy_case *found = toy_case_find(text);

	if (!found)
		toy_die("--bug %s: unknown; built: %s", text, toy_case_names());
	if (!found->built)
		toy_die("--bug %s: not built yet; built: %s", text, toy_case_names());
	return found;
}

static void set(struct toy_options *options, const struct option *o, const char *text)
{
	void *member = (char *)options + o->offset;

	switch (o->kind) {
	case NUMBER:
		*(int64_t *)member = number(o, text);
		break;
	case CHOICE:
		*(int64_t *)member = choice(o, text);
		break;
	case TURN_ON:
	case TURN_OFF:
		*(int64_t *)member = o->kind == TURN_ON;
		break;
	case TEXT:
		*(const char **)member = text;
		break;
	case BUG:
		*(const struct toy_case **)member = bug(text);
		break;
	}
}

static void check_together(const struct toy_options *o)
{
	/* a live and a track slot each, and one donated slot that may be pinned while its request starts */
	if (o->slots < 2 * o->concurrency + 2)
		toy_die("--slots %lld: --concurrency %lld needs at least %lld", (long long)o->slots,
			(long long)o->concurrency, (long long)(2 * o->concurrency + 2));
	if (o->perturb_slot && !o->shadow)
		toy_die("--no-shadow: --perturb-slot needs it");
	if (o->perturb_slot > o->slots)
		toy_die("--perturb-slot %lld: there are %lld", (long long)o->perturb_slot, (long long)o->slots);
	if (o->first >= o->requests || (o->first && o->follow_ups))
		toy_die("--first %lld: there are %lld requests, and none may follow up", (long long)o->first,
			(long long)o->requests);
	if (o->waves && (o->requests % o->concurrency || o->follow_ups))
		toy_die("--waves: needs full waves and no --follow-ups");
	if (o->journal && !o->shadow)
		toy_die("--no-shadow: a --journal needs it");
	if (o->follow_ups > o->requests / 2)
		toy_die("--follow-ups %lld: at most half of the requests", (long long)o->follow_ups);
}

void toy_options_parse(struct toy_options *options, int argc, char **argv)
{
	*options = (struct toy_options) { .seed = 1,
					  .requests = 24,
					  .concurrency = 4,
					  .slots = 24,
					  .layers = 4,
					  .track_interval = 8,
					  .chunk = 16,
					  .perturb_occurrence = 1,
					  .donate = 1,
					  .shadow = 1,
					  .driver_lib = "libcuda.so.1",
					  .bug = toy_case_find("clean") };
	for (int i = 1; i < argc; i++) {
		const struct option *o = NULL;
		bool bare;

		if (!strcmp(argv[i], "--help")) {
			print_help();
			exit(0);
		}
		for (size_t t = 0; t < N_OPTIONS; t++)
			if (!strncmp(argv[i], "--", 2) && !strcmp(argv[i] + 2, table[t].name))
				o = &table[t];
		if (!o)
			toy_die("%s: unknown option; see --help", argv[i]);
		bare = o->kind == TURN_ON || o->kind == TURN_OFF;
		if (!bare && i + 1 == argc)
			toy_die("%s: needs a value", argv[i]);
		set(options, o, bare ? "" : argv[++i]);
	}
	check_together(options);
}
