/* SPDX-License-Identifier: Apache-2.0
 *
 * rules.h: what an adapter's NAME.doctor asks of a running server's settings. The file alone knows the server.
 *
 * An object: `server`, its name; `paths`, where it says its settings as a JSON object, the first that answers counts; `knows`, settings
 * that tell it from other servers; `values`, each a list of places of which the first that is known counts: {"setting": NAME}, {"largest":
 * NAME of a list}, {"option": NAME}, {"counter": NAME}, each perhaps with "is": CONSTANT, which makes it true where it is that and
 * unknown where it is not; `checks`, each a `name` and `clauses`. The first clause counts of which
 * every condition of `if` holds: ["unknown", VALUE], ["is", VALUE, CONSTANT], ["begins", VALUE, TEXT], ["<" or ">", VALUE, VALUE or
 * NUMBER]. Its `text` may hold {VALUE}.
 */
#ifndef COLLECTOR_RULES_H
#define COLLECTOR_RULES_H

#include <jansson.h>
#include <stdbool.h>

#include "options.h"
#include "read/run.h"

struct rules_facts {
	const struct options *options;
	const struct run *run; /* NULL: none was given */
	json_t *info;          /* what the server said */
};

/* All NAME.doctor of the adapters' folders: an array. */
json_t *rules_load(void);

/* Whether these settings are this server's. */
bool rules_know(json_t *rules, json_t *info);

/* The clause of a check that counts; NULL: none does, the file makes no sense. Its text, filled in, goes to text[size]. */
json_t *rules_judge(json_t *rules, json_t *check, const struct rules_facts *facts, char *text, size_t size);

#endif
