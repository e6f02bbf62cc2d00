/* SPDX-License-Identifier: Apache-2.0
 *
 * journal.c: writes the journal.
 */
#include "journal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

void toy_journal_open(struct toy_journal *j, const char *path, const struct toy_shadow *shadow)
{
	*j = (struct toy_journal) { .shadow = shadow };
	j->notes = calloc((size_t)shadow->slots, sizeof(*j->notes));
	if (!j->notes)
		toy_die("out of memory");
	if (!path)
		return;
	j->file = fopen(path, "w");
	if (!j->file)
		toy_die("%s: cannot write the journal", path);
}

__attribute__((format(printf, 2, 3))) static void line(struct toy_journal *j, const char *format, ...)
{
	va_list args;

	if (!j->file)
		return;
	va_start(args, format);
	vfprintf(j->file, format, args);
	va_end(args);
	fputc('\n', j->file);
}

void toy_journal_start(struct toy_journal *j, const struct toy_options *o, enum toy_arm arm)
{
	line(j,
	     "{\"event\": \"start\", \"arm\": \"%s\", \"effective_arm\": \"%s\", \"bug\": \"%s\", \"seed\": %" PRId64
	     ", \"requests\": %" PRId64 ", \"layers\": %" PRId64 ", \"slots\": %" PRId64 "}",
	     toy_arm_names[o->arm], toy_arm_names[arm], o->bug->name, o->seed, o->requests, o->layers, o->slots);
}

void toy_journal_step(struct toy_journal *j, const char *name, uint64_t number, const struct toy_forward *f, bool graph)
{
	j->launches += graph;
	line(j,
	     "{\"event\": \"step\", \"number\": %" PRIu64
	     ", \"name\": \"%s\", \"batch\": %d, \"padded\": %d, \"mode\": \"%s\"}",
	     number, name, f->rows, f->padded, graph ? "graph" : "eager");
	if (graph)
		line(j, "{\"event\": \"launch\", \"number\": %" PRIu64 ", \"step\": %" PRIu64 ", \"padded\": %d}",
		     j->launches, number, f->padded);
}

static const char *boolean(bool value)
{
	return value ? "true" : "false";
}

/* Ends a line with the slot's bytes against the right ones; returns whether they differ. */
static bool bytes(struct toy_journal *j, int slot)
{
	const struct toy_shadow *s = j->shadow;
	uint64_t real = toy_shadow_hash(s, &s->real, slot), right = toy_shadow_hash(s, &s->right, slot);
	bool differs = real != right, first = true;
	const char *expect = "null";

	if (differs)
		expect = toy_shadow_is_zero(s, slot)         ? "\"zero\""
			 : j->notes[slot].alloc_hash == real ? "\"stale\""
							     : "\"other\"";
	fprintf(j->file,
		", \"nan\": %d, \"hash\": \"0x%016" PRIx64 "\", \"right\": \"0x%016" PRIx64
		"\", \"differs\": %s, \"torn\": %s, \"expect\": %s, \"in_slot0\": %s, \"planes_differing\": [",
		toy_shadow_nan(s, slot), real, right, boolean(differs), boolean(s->torn[slot]), expect,
		s->torn[0] ? "null" : boolean(differs && toy_shadow_hash(s, &s->real, 0) == right));
	for (int layer = 0; layer < s->layers; layer++)
		for (int ssm = 0; ssm < 2; ssm++)
			if (toy_shadow_plane_differs(s, slot, layer, ssm)) {
				fprintf(j->file, "%s[\"%s\", %d]", first ? "" : ", ", ssm ? "ssm" : "conv", layer);
				first = false;
			}
	fputs("]}\n", j->file);
	j->notes[slot].differs |= differs;
	return differs;
}

void toy_journal_donate(struct toy_journal *j, int request, int slot, const char *why, int64_t len, uint64_t key,
			int64_t id)
{
	j->donations++;
	j->notes[slot].donations++;
	if (!j->file)
		return;
	fprintf(j->file,
		"{\"event\": \"donate\", \"request\": %d, \"slot\": %d, \"occurrence\": %" PRIu64
		", \"why\": \"%s\", \"claimed_len\": %" PRId64 ", \"key\": \"0x%016" PRIx64 "\", \"id\": %" PRId64,
		request, slot, j->notes[slot].donations, why, len, key, id);
	j->wrong_donations += bytes(j, slot);
}

void toy_journal_restore(struct toy_journal *j, int request, int slot, int64_t len, uint64_t key)
{
	j->restores++;
	if (!j->file)
		return;
	fprintf(j->file,
		"{\"event\": \"restore\", \"request\": %d, \"slot\": %d, \"occurrence\": %" PRIu64
		", \"claimed_len\": %" PRId64 ", \"key\": \"0x%016" PRIx64 "\"",
		request, slot, j->notes[slot].donations, len, key);
	j->wrong_restores += bytes(j, slot);
}

void toy_journal_alloc(struct toy_journal *j, int request, int slot, const char *use)
{
	if (!j->file)
		return;
	j->notes[slot].alloc_hash = toy_shadow_hash(j->shadow, &j->shadow->real, slot);
	line(j,
	     "{\"event\": \"alloc\", \"request\": %d, \"slot\": %d, \"use\": \"%s\", \"nan\": %d, \"hash\": "
	     "\"0x%016" PRIx64 "\"}",
	     request, slot, use, toy_shadow_nan(j->shadow, slot), j->notes[slot].alloc_hash);
}

void toy_journal_slot(struct toy_journal *j, enum toy_call event, int slot, int64_t from)
{
	if (!j->file)
		return;
	line(j, "{\"event\": \"%s\", \"slot\": %d, \"from\": %" PRId64 ", \"nan\": %d}", toy_call_names[event], slot,
	     from, toy_shadow_nan(j->shadow, slot));
}

void toy_journal_perturb(struct toy_journal *j, int slot, int layer, int offset)
{
	line(j, "{\"event\": \"perturb\", \"slot\": %d, \"tensor\": \"ssm\", \"layer\": %d, \"byte\": %d}", slot, layer,
	     offset);
}

void toy_journal_request(struct toy_journal *j, int request, const int32_t *generated, int n)
{
	if (!j->file)
		return;
	fprintf(j->file, "{\"event\": \"request\", \"request\": %d, \"generated\": [", request);
	for (int i = 0; i < n; i++)
		fprintf(j->file, "%s%d", i ? ", " : "", generated[i]);
	fputs("]}\n", j->file);
}

void toy_journal_end(struct toy_journal *j, const struct toy_report *report, int captured, bool device_agrees)
{
	const char *between = "";

	if (!j->file)
		return;
	fprintf(j->file, "{\"event\": \"end\", \"graphs\": %d, \"graph_launches\": %" PRIu64, captured, j->launches);
	fprintf(j->file, ", \"donations\": %" PRIu64 ", \"restores\": %" PRIu64, j->donations, j->restores);
	fprintf(j->file, ", \"wrong_donations\": %" PRIu64 ", \"wrong_restores\": %" PRIu64, j->wrong_donations,
		j->wrong_restores);
	fputs(", \"calls\": {", j->file);
	for (int call = 0; call < TOY_CALLS; call++)
		fprintf(j->file, "%s\"%s\": %" PRIu64, call ? ", " : "", toy_call_names[call], report->calls[call]);
	fputs("}, \"refused\": {", j->file);
	for (int call = 0; call < TOY_CALLS; call++)
		fprintf(j->file, "%s\"%s\": %" PRIu64, call ? ", " : "", toy_call_names[call], report->refused[call]);
	fputs("}, \"slots_differing\": [", j->file);
	for (int slot = 0; slot < j->shadow->slots; slot++)
		if (j->notes[slot].differs) {
			fprintf(j->file, "%s%d", between, slot);
			between = ", ";
		}
	fprintf(j->file, "], \"device_agrees\": %s}\n", boolean(device_agrees));
}

void toy_journal_close(struct toy_journal *j)
{
	if (j->file && (ferror(j->file) | fclose(j->file)))
		toy_die("the journal could not be written");
	free(j->notes);
}
