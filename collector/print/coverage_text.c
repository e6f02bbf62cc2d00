/* SPDX-License-Identifier: Apache-2.0
 *
 * coverage_text.c: the account of the counters, and events in words. Its twin is coverage_json.c.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "compare/coverage.h"
#include "compare/arm.h"
#include "print/compare.h"

static void list_why(const struct coverage_sum *sum, char *out, size_t size)
{
	size_t n = 0;

	*out = 0;
	for (unsigned o = CTR_COMMITTED + 1; o < CTR_OUTCOME_COUNT && n < size; o++) {
		if (sum->outcome[o])
			n += (size_t)snprintf(out + n, size - n, "%s%s %" PRIu64, n ? ", " : "", ctr_outcome_label(o),
					      sum->outcome[o]);
	}
}

/* Every run has its row where one of them has. Adapters' own points are shown when they never fired: that is what they
 * are there for. */
static bool is_worth_a_row(const struct model *models, size_t n_models, const char *probe)
{
	if (strncmp(probe, "core.", 5) != 0 || strcmp(probe, "core.donate") == 0 ||
	    strcmp(probe, "core.graph_launch") == 0)
		return true;
	for (size_t m = 0; m < n_models; m++) {
		if (coverage_sum(&models[m].run, probe).attempted)
			return true;
	}
	return false;
}

/* No launch is what some arms promise. */
const char *coverage_why_silent(const struct model *model, const char *probe, char *out, size_t size)
{
	const char *arm = model->run.manifest.arm;

	if (strncmp(probe, "core.graph_", 11) != 0 || arm_promise(arm) != ARM_PROMISES_NONE)
		return "never fired";
	snprintf(out, size, "none, as %s promises", safe(arm));
	return out;
}

void coverage_print_text(FILE *f, const struct model *models, size_t n_models, bool color)
{
	struct table *table =
		table_new("probe|>attempted|>recorded|>filtered|>skipped|>dropped|>errors|>in flight|why not");
	size_t n;
	const char **probe = coverage_probes(models, n_models, &n);

	for (size_t i = 0; i < n; i++) {
		for (size_t m = 0; m < n_models && is_worth_a_row(models, n_models, probe[i]); m++) {
			struct coverage_sum sum = coverage_sum(&models[m].run, probe[i]);
			const char *run = n_models == 1 ? "" : m ? "B  " : "A  ";
			char why[512], silent[256];

			if (!sum.processes) {
				table_row(table, "%s%s|not there|||||||%s", run, safe(probe[i]), "");
				continue;
			}
			list_why(&sum, why, sizeof why);
			table_row(table,
				  "%s%s|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64
				  "|%" PRIu64 "|%s%s",
				  run, safe(probe[i]), sum.attempted, sum.group[CTR_IN_COMMITTED],
				  sum.group[CTR_IN_FILTERED], sum.group[CTR_IN_SKIPPED], sum.group[CTR_IN_DROPPED],
				  sum.group[CTR_IN_ERRORS], sum.in_flight,
				  sum.attempted ? "" : coverage_why_silent(&models[m], probe[i], silent, sizeof silent),
				  why);
		}
	}
	free(probe);
	table_print(f, table, "  ", color);
	table_free(table);
}

const char *run_driver(const struct model *model)
{
	static char text[4][32];
	static unsigned turn;

	for (size_t i = 0; i < model->n_processes; i++) {
		int32_t version = model->process[i].driver_version;

		if (version <= 0)
			continue;
		turn = (turn + 1) % 4;
		snprintf(text[turn], sizeof text[turn], "CUDA %d.%d", version / 1000, version % 1000 / 10);
		return text[turn];
	}
	return NULL;
}

const char *run_device(const struct model *model)
{
	for (size_t i = 0; i < model->n_processes; i++) {
		if (model->process[i].device[0])
			return model->process[i].device;
	}
	return NULL;
}

static void __attribute__((format(printf, 3, 4))) add(char *out, size_t size, const char *format, ...)
{
	size_t n = strlen(out);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(out + n, size - n, format, arguments);
	va_end(arguments);
}

const char *event_text(const struct model_event *e)
{
	static char text[8][256];
	static unsigned turn;
	size_t size = sizeof text[0];
	const char *gap = " (";
	char *out;

	turn = (turn + 1) % 8;
	out = text[turn];
	snprintf(out, size, "%s %" PRIu64, model_event_name(e->kind), e->id);
	if (e->slot == LOG_NO_SLOT)
		add(out, size, " of an unknown slot");
	else
		add(out, size, " of slot %" PRId64, e->slot);
	if (e->kind == LOG_EV_DONATE || e->kind == LOG_EV_RESTORE) {
		add(out, size, "%slength %" PRId64, gap, e->claimed_len);
		gap = ", ";
	}
	if (e->step) {
		add(out, size, "%sstep %" PRIu64, gap, e->step);
		gap = ", ";
	}
	if (*gap == ',')
		add(out, size, ")");
	return out;
}
