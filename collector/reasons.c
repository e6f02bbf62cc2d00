/* SPDX-License-Identifier: Apache-2.0
 *
 * reasons.c: collects reasons, and prints them with what to do.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "print/print.h"
#include "reasons.h"
#include "trouble.h"

const struct reason_row reason_rows[REASON_COUNT] = {
#define REASON_ROW(code, class, text, remedy) { #code, REASON_##class, text, remedy },
	REASONS(REASON_ROW)
#undef REASON_ROW
};

/* What a lost record, a process that was not loaded or a full disk leads to: said behind what led to it. */
static bool may_follow(enum reason_code code)
{
	return code == REASON_rank_missing || code == REASON_probe_never_fired || code == REASON_nothing_measured ||
	       code == REASON_slot_missing;
}

static size_t place_of(const struct reasons *reasons, enum reason_code code)
{
	size_t i = reasons->n;

	while (!may_follow(code) && i && may_follow(reasons->list[i - 1].code))
		i--;
	return i;
}

void reasons_add(struct reasons *reasons, enum reason_code code, const char *detail, ...)
{
	char raw[1024], text[1024];
	struct reason *list;
	va_list arguments;
	size_t at;

	if (reasons->seen[code]++ >= REASONS_PER_CODE)
		return;
	va_start(arguments, detail);
	vsnprintf(raw, sizeof(raw), detail, arguments);
	va_end(arguments);
	list = trouble_need(realloc(reasons->list, (reasons->n + 1) * sizeof(*list)));
	reasons->list = list;
	at = place_of(reasons, code);
	memmove(&list[at + 1], &list[at], (reasons->n - at) * sizeof(*list));
	list[at].code = code;
	list[at].detail = trouble_need(strdup(text_safe(text, sizeof(text), raw, sizeof(raw))));
	reasons->n++;
}

void reasons_free(struct reasons *reasons)
{
	for (size_t i = 0; i < reasons->n; i++)
		free(reasons->list[i].detail);
	free(reasons->list);
	*reasons = (struct reasons) { 0 };
}

size_t reasons_of_class(const struct reasons *reasons, enum reason_class class)
{
	size_t n = 0;

	for (int code = 0; code < REASON_COUNT; code++)
		if (reason_rows[code].class == class)
			n += reasons->seen[code];
	return n;
}

int reasons_exit_status(const struct reasons *reasons)
{
	if (reasons_of_class(reasons, REASON_INVALID))
		return 3;
	if (reasons_of_class(reasons, REASON_BROKEN))
		return 1;
	return reasons_of_class(reasons, REASON_UNPROVEN) ? 3 : 0;
}

/* "TEXT: DETAIL", and how many more there were after the last one that was kept. */
static void reason_text(const struct reasons *reasons, size_t i, char *out, size_t size)
{
	const struct reason *reason = &reasons->list[i];
	const char *detail = reason->detail;
	size_t kept = 0, before = 0, seen = reasons->seen[reason->code];

	for (size_t j = 0; j < reasons->n; j++) {
		kept += reasons->list[j].code == reason->code;
		before += j <= i && reasons->list[j].code == reason->code;
	}
	if (before == kept && seen > kept)
		snprintf(out, size, "%s%s%s (and %zu more of these)", reason_rows[reason->code].text,
			 *detail ? ": " : "", detail, seen - kept);
	else
		snprintf(out, size, "%s%s%s", reason_rows[reason->code].text, *detail ? ": " : "", detail);
}

json_t *reasons_json(const struct reasons *reasons)
{
	json_t *array = json_array();
	char text[2048];

	for (size_t i = 0; i < reasons->n; i++) {
		const struct reason_row *row = &reason_rows[reasons->list[i].code];

		reason_text(reasons, i, text, sizeof(text));
		json_array_append_new(array, json_pack("{s:s, s:o, s:s}", "code", row->code, "text", json_text(text),
						       "remedy", row->remedy));
	}
	return array;
}

void reasons_print(FILE *f, const struct reasons *reasons, int color)
{
	char text[2048];

	for (size_t i = 0; i < reasons->n; i++) {
		const struct reason_row *row = &reason_rows[reasons->list[i].code];
		enum color which = row->class == REASON_BROKEN ? COLOR_RED : COLOR_YELLOW;

		reason_text(reasons, i, text, sizeof(text));
		fprintf(f, "  %s%s%s  %s\n", color_on(color, which), row->code, color_off(color), text);
		if (i + 1 == reasons->n || reasons->list[i + 1].code != reasons->list[i].code)
			fprintf(f, "      -> %s\n", row->remedy);
	}
}
