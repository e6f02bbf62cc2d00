/* SPDX-License-Identifier: Apache-2.0
 *
 * arm.c: what an arm's label promises. A label that is none of ours promises nothing, so that a misspelt one would make any two
 * runs comparable: it must be told from one that was meant.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "compare/arm.h"

#define ARM_WORD 24u /* longer than any arm of ours and two slips more */

enum arm_promise arm_promise(const char *arm)
{
	static const char *const none[] = { "graph-off", "padded-eager", "graph-path-eager" };

	if (arm && strcmp(arm, "graph-on") == 0)
		return ARM_PROMISES_LAUNCHES;
	for (size_t i = 0; arm && i < sizeof none / sizeof none[0]; i++) {
		if (strcmp(arm, none[i]) == 0)
			return ARM_PROMISES_NONE;
	}
	return ARM_PROMISES_NOTHING;
}

/* Lower case, without what people put between words. false: too long for any of ours. */
static bool bare_word(const char *arm, char *out, size_t size)
{
	size_t n = 0;

	for (; *arm; arm++) {
		if (strchr(" \t\n\r\v\f_-", *arm))
			continue;
		if (n + 1 >= size)
			return false;
		out[n++] = (char)tolower((unsigned char)*arm);
	}
	out[n] = '\0';
	return true;
}

/* Letters left out, put in, exchanged for others or swapped with their neighbours. */
static unsigned slips(const char *x, const char *y)
{
	unsigned row[3][ARM_WORD + 1], *before = row[0], *last = row[1], *now = row[2];
	size_t n = strlen(y);

	for (size_t j = 0; j <= n; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; x[i - 1]; i++) {
		unsigned *free_row = before;

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= n; j++) {
			unsigned best = last[j - 1] + (x[i - 1] != y[j - 1]);

			best = last[j] + 1 < best ? last[j] + 1 : best;
			best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
			if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1] && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		before = last;
		last = now;
		now = free_row;
	}
	return last[n];
}

/* "graph-off-2" is a label of its own. */
static bool is_variant(const char *arm, const char *known)
{
	size_t n = strlen(known);

	return strncmp(arm, known, n) == 0 && arm[n] && (isdigit((unsigned char)arm[n]) || strchr("-_.", arm[n]));
}

const char *arm_near_miss(const char *arm)
{
	static const struct {
		const char *arm, *word;
		unsigned slips;
	} known[] = { { "graph-on", "graphon", 2 },
		      { "graph-off", "graphoff", 2 },
		      { "padded-eager", "paddedeager", 2 },
		      { "graph-path-eager", "graphpatheager", 2 },
		      { "graph-on", "on", 0 },
		      { "graph-off", "off", 0 },
		      { "graph-on", "cudagraphon", 2 },
		      { "graph-off", "cudagraphoff", 2 } };
	const char *like = NULL;
	unsigned best = ARM_WORD;
	char word[ARM_WORD];

	if (arm_promise(arm) != ARM_PROMISES_NOTHING || !bare_word(arm, word, sizeof word))
		return NULL;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		unsigned n;

		if (is_variant(arm, known[i].arm))
			return NULL;
		n = slips(word, known[i].word);
		if (n > known[i].slips || n >= best)
			continue;
		best = n;
		like = known[i].arm;
	}
	return like;
}
