/* SPDX-License-Identifier: Apache-2.0
 *
 * callsite.c: where in the server an event was reported, as text and as JSON.
 */
#include <inttypes.h>
#include <string.h>

#include "print/compare.h"

static void frame_print(FILE *f, const struct model_process *p, const struct model_callsite *site, uint32_t i)
{
	const struct log_frame *frame = &site->frame[i];
	const char *module = model_module(p, frame->module);

	if (site->symbol[i])
		fprintf(f, "%s (%s+0x%" PRIx64 ")\n", safe(site->symbol[i]), module ? safe(module) : "?",
			frame->offset);
	else
		fprintf(f, "%s%s0x%" PRIx64 "\n", module ? safe(module) : "", module ? "+" : "", frame->offset);
}

void callsite_print(FILE *f, const struct model_process *p, uint32_t callsite, uint32_t most, const char *indent)
{
	const struct model_callsite *site = model_callsite(p, callsite);

	for (uint32_t i = 0; site && i < site->n_frames && i < most; i++) {
		fprintf(f, "%sat ", indent);
		frame_print(f, p, site, i);
	}
}

json_t *callsite_json(const struct model_process *p, uint32_t callsite)
{
	const struct model_callsite *site = model_callsite(p, callsite);
	json_t *frames;

	if (!site)
		return json_null();
	frames = json_array();
	for (uint32_t i = 0; i < site->n_frames; i++)
		json_array_append_new(frames, json_pack("{s:o, s:o, s:o}", "symbol", json_text(site->symbol[i]),
							"module", json_text(model_module(p, site->frame[i].module)),
							"offset", json_hex(site->frame[i].offset)));
	return frames;
}

void callsite_count(const struct model_process *p, uint32_t callsite, uint64_t n[LOG_EV_KIND_COUNT])
{
	memset(n, 0, LOG_EV_KIND_COUNT * sizeof n[0]);
	for (size_t i = 0; i < p->n_events; i++) {
		if (p->event[i].callsite == callsite && p->event[i].kind < LOG_EV_KIND_COUNT)
			n[p->event[i].kind]++;
	}
}
