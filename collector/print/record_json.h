/* SPDX-License-Identifier: Apache-2.0
 *
 * record_json.h: one record of a log as a JSON object.
 */
#ifndef COLLECTOR_RECORD_JSON_H
#define COLLECTOR_RECORD_JSON_H

#include <jansson.h>

#include "shim/record/log_format.h"

/* {"type": ..., its fields}. The record must be one that log_next returned. */
json_t *record_json(const struct log_record *rec);

const char *event_kind_name(uint32_t kind); /* "donate", ...; "?" */

#endif
