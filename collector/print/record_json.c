/* SPDX-License-Identifier: Apache-2.0
 *
 * record_json.c: one table of the fields of every record type, and what turns a record into JSON by it.
 */
#include <math.h>
#include <string.h>

#include "print/print.h"
#include "print/record_json.h"
#include "read/counters.h"
#include "read/log.h"

enum field_kind {
	FIELD_U32,
	FIELD_I32,
	FIELD_U64,
	FIELD_I64,
	FIELD_HEX, /* addresses, handles, keys, hashes */
	FIELD_TEXT,
	FIELD_SLOT, /* null when it lives on the device */
	FIELD_OUTCOME,
	FIELD_EVENT_KIND,
	FIELD_ROLE,
	FIELD_UUID
};

struct field {
	uint16_t type, offset, bytes;
	uint16_t kind;
	const char *name;
};

#define N(type, structure, member, kind, name)                                                                         \
	{                                                                                                              \
		LOG_##type, offsetof(struct structure, member), sizeof(((struct structure *)0)->member), FIELD_##kind, \
			name                                                                                           \
	}
#define F(type, structure, member, kind) N(type, structure, member, kind, #member)

/* Every field that says something, in the order of the format; lengths and counts of the variable parts follow from them. One name
 * has one type wherever it stands, and what can be any 64 bits is a hex string: so that tables can be made of the lines. */
static const struct field fields[] = {
	F(PROCESS, log_process, pid, U64),
	F(PROCESS, log_process, ppid, U64),
	F(PROCESS, log_process, starttime, U64),
	F(PROCESS, log_process, t_ns, U64),
	F(PROCESS, log_process, t_real_ns, U64),
	F(PROCESS, log_process, flags, U32),
	F(PROCESS, log_process, tool_version, TEXT),
	F(PROCESS, log_process, comm, TEXT),
	F(PROCESS, log_process, host, TEXT),
	F(DEVICE, log_device, context, HEX),
	F(DEVICE, log_device, ordinal, I32),
	F(DEVICE, log_device, driver_version, I32),
	F(DEVICE, log_device, memory_bytes, U64),
	F(DEVICE, log_device, multiprocessors, I32),
	F(DEVICE, log_device, capability, I32),
	F(DEVICE, log_device, uuid, UUID),
	F(DEVICE, log_device, name, TEXT),
	F(POOL, log_pool, t_ns, U64),
	F(POOL, log_pool, pool, I32),
	F(POOL, log_pool, device, I32),
	F(POOL, log_pool, first_slot, I64),
	F(POOL, log_pool, n_slots, I64),
	F(POOL, log_pool, n_planes, U32),
	F(POOL, log_pool, slot_bytes, U64),
	F(POOL, log_pool, launches, U64),
	F(POOL, log_pool, pool_launches, U64),
	F(POOL, log_pool, name, TEXT),
	F(PLANE, log_plane, pool, I32),
	F(PLANE, log_plane, index, U32),
	F(PLANE, log_plane, layer, I32),
	F(PLANE, log_plane, dtype, U32),
	F(PLANE, log_plane, base, HEX),
	F(PLANE, log_plane, slot_stride, I64),
	F(PLANE, log_plane, elems, U64),
	F(PLANE, log_plane, bytes, U64),
	F(PLANE, log_plane, tensor, TEXT),
	F(POOL_REMOVE, log_pool_remove, t_ns, U64),
	F(POOL_REMOVE, log_pool_remove, pool, I32),
	F(POOL_REMOVE, log_pool_remove, why, U32),
	F(EVENT, log_event, id, U64),
	F(EVENT, log_event, t_ns, U64),
	F(EVENT, log_event, kind, EVENT_KIND),
	F(EVENT, log_event, pool, I32),
	F(EVENT, log_event, slot, SLOT),
	F(EVENT, log_event, slot_ptr, HEX),
	F(EVENT, log_event, claimed_len, I64),
	F(EVENT, log_event, key_len, I64),
	F(EVENT, log_event, key, HEX),
	F(EVENT, log_event, src, SLOT),
	F(EVENT, log_event, stream, HEX),
	F(EVENT, log_event, context, HEX),
	F(EVENT, log_event, step, U64),
	F(EVENT, log_event, launches, U64),
	F(EVENT, log_event, pool_launches, U64),
	F(EVENT, log_event, outcome, OUTCOME),
	F(EVENT, log_event, has_fingerprint, U32),
	F(EVENT, log_event, callsite, U32),
	F(EVENT, log_event, tid, U32),
	F(KEY_TEXT, log_key_text, key, HEX),
	F(KEY_TEXT, log_key_text, offset, U32),
	F(FINGERPRINT, log_fingerprint, event, U64),
	F(FINGERPRINT, log_fingerprint, t_ns, U64),
	F(FINGERPRINT, log_fingerprint, slot, SLOT),
	F(FINGERPRINT, log_fingerprint, pool, I32),
	F(FINGERPRINT, log_fingerprint, role, ROLE),
	F(FINGERPRINT, log_fingerprint, outcome, OUTCOME),
	F(FINGERPRINT, log_fingerprint, first_plane, U32),
	F(FINGERPRINT, log_fingerprint, total_planes, U32),
	F(FINGERPRINT, log_fingerprint, rollup, HEX),
	F(STEP, log_step, t_ns, U64),
	F(STEP, log_step, number, U64),
	F(STEP, log_step, value, HEX),
	F(STEP, log_step, batch, I32),
	F(STEP, log_step, padded, I32),
	F(STEP, log_step, mode, U32),
	F(STEP, log_step, name, TEXT),
	F(RANK, log_rank, index, I32),
	F(RANK, log_rank, count, I32),
	F(RANK, log_rank, axis, TEXT),
	F(REGION, log_region, t_ns, U64),
	F(REGION, log_region, region, U32),
	F(REGION, log_region, dtype, U32),
	F(REGION, log_region, base, HEX),
	F(REGION, log_region, bytes, U64),
	F(REGION, log_region, name, TEXT),
	F(REGION_VALUES, log_region_values, event, U64),
	F(REGION_VALUES, log_region_values, region, U32),
	F(GRAPH, log_graph, t_ns, U64),
	F(GRAPH, log_graph, graph, U64),
	F(GRAPH, log_graph, handle, HEX),
	F(GRAPH, log_graph, nodes, U32),
	F(GRAPH, log_graph, kernels, U32),
	F(GRAPH, log_graph, memcpys, U32),
	F(GRAPH, log_graph, memsets, U32),
	F(GRAPH, log_graph, flags, U32),
	F(GRAPH, log_graph, touches, U32),
	F(GRAPH_TOUCH, log_graph_touch, graph, U64),
	F(GRAPH_TOUCH, log_graph_touch, node, U32),
	F(GRAPH_TOUCH, log_graph_touch, node_type, U32),
	F(GRAPH_TOUCH, log_graph_touch, target, U32),
	F(GRAPH_TOUCH, log_graph_touch, id, I32),
	F(GRAPH_TOUCH, log_graph_touch, param, U32),
	F(GRAPH_TOUCH, log_graph_touch, param_offset, U32),
	F(GRAPH_TOUCH, log_graph_touch, address, HEX),
	F(GRAPH_TOUCH, log_graph_touch, offset, U64),
	F(GRAPH_TOUCH, log_graph_touch, plane, U32),
	F(GRAPH_TOUCH, log_graph_touch, kernel, TEXT),
	F(GRAPH_DESTROY, log_graph_destroy, t_ns, U64),
	F(GRAPH_DESTROY, log_graph_destroy, graph, U64),
	F(LAUNCH, log_launch, t_ns, U64),
	F(LAUNCH, log_launch, number, U64),
	F(LAUNCH, log_launch, graph, U64),
	F(LAUNCH, log_launch, stream, HEX),
	F(LAUNCH, log_launch, step, U64),
	F(LAUNCH, log_launch, tid, U32),
	F(LAUNCH, log_launch, result, I32),
	F(MODULE, log_module, module, U32),
	F(MODULE, log_module, base, HEX),
	F(CALLSITE, log_callsite, callsite, U32),
	F(CONTROL, log_control, t_ns, U64),
	F(CONTROL, log_control, what, U32),
	N(CONTROL, log_control, value, U32, "setting"),
	F(CONTROL, log_control, label, TEXT),
	F(DISK_STOP, log_disk_stop, t_ns, U64),
	F(DISK_STOP, log_disk_stop, free_bytes, U64),
	F(DISK_STOP, log_disk_stop, run_bytes, U64),
	F(DISK_STOP, log_disk_stop, why, U32),
	F(DISK_STOP, log_disk_stop, error, I32),
	F(UNROUTED, log_unrouted, t_ns, U64),
	F(UNROUTED, log_unrouted, version, I32),
	N(UNROUTED, log_unrouted, flags, HEX, "lookup_flags"),
	F(UNROUTED, log_unrouted, name, TEXT),
	F(BYPASSED, log_bypassed, t_ns, U64),
	F(BYPASSED, log_bypassed, symbol, TEXT),
	F(BYPASSED, log_bypassed, object, TEXT),
	F(END, log_end, t_ns, U64),
	F(END, log_end, t_real_ns, U64),
	F(END, log_end, records, U64),
};

const char *event_kind_name(uint32_t kind)
{
	static const char *const name[LOG_EV_KIND_COUNT] = { "?",     "donate", "restore", "alloc",
							     "clear", "copy",   "discard", "free" };

	return kind < LOG_EV_KIND_COUNT ? name[kind] : "?";
}

static const char *role_name(uint32_t role)
{
	static const char *const name[] = { "subject", "watched", "source" };

	return role < 3 ? name[role] : "?";
}

static json_t *json_uuid(const unsigned char *uuid)
{
	char text[40];
	size_t at = 0;

	for (int i = 0; i < 16; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%02x",
				       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	return json_string(text);
}

static json_t *field_json(const struct field *field, const char *at)
{
	uint32_t u32 = 0;
	uint64_t u64 = 0;

	if (field->bytes == sizeof(u32))
		memcpy(&u32, at, sizeof(u32));
	else if (field->bytes == sizeof(u64))
		memcpy(&u64, at, sizeof(u64));
	switch ((enum field_kind)field->kind) {
	case FIELD_U32:
		return json_count(u32);
	case FIELD_I32:
		return json_integer((int32_t)u32);
	case FIELD_U64:
		return json_count(u64);
	case FIELD_I64:
		return json_integer((int64_t)u64);
	case FIELD_HEX:
		return json_hex(u64);
	case FIELD_TEXT:
		return json_text_n(at, field->bytes);
	case FIELD_SLOT:
		return (int64_t)u64 == LOG_NO_SLOT ? json_null() : json_integer((int64_t)u64);
	case FIELD_OUTCOME:
		return json_string(ctr_outcome_label(u32));
	case FIELD_EVENT_KIND:
		return json_string(event_kind_name(u32));
	case FIELD_ROLE:
		return json_string(role_name(u32));
	case FIELD_UUID:
		return json_uuid((const unsigned char *)at);
	}
	return json_null();
}

/* ---- variable parts; log_next has checked their counts against the record's size ---- */

/* As Spark's and DuckDB's readers take them for doubles. */
static json_t *real_json(double value)
{
	if (isnan(value))
		return json_string("NaN");
	if (isinf(value))
		return json_string(value > 0 ? "Infinity" : "-Infinity");
	return json_real(value);
}

static json_t *planes_json(const struct log_fingerprint *f)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < f->n_planes; i++) {
		const struct log_plane_print *p = &f->plane[i];
		json_t *samples = json_array();

		for (int s = 0; s < LOG_SAMPLES; s++)
			json_array_append_new(samples, json_hex(p->sample[s]));
		json_array_append_new(array,
				      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "absmax", real_json(p->absmax), "l2",
						real_json(p->l2), "nan", json_count(p->nan), "inf", json_count(p->inf),
						"hash", json_hex(p->hash), "samples", samples));
	}
	return array;
}

static json_t *values_json(const struct log_region_values *v)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < v->n_values; i++)
		json_array_append_new(array, json_integer(v->value[i]));
	return array;
}

static json_t *frames_json(const struct log_callsite *c)
{
	const char *text = (const char *)&c->frame[c->n_frames];
	json_t *array = json_array();
	size_t at = 0;

	for (uint32_t i = 0; i < c->n_frames; i++) {
		const struct log_frame *frame = &c->frame[i];
		json_t *symbol = frame->symbol ? json_text_n(text + at, frame->symbol) : json_null();

		json_array_append_new(array, json_pack("{s:i, s:o, s:o}", "module", (int)frame->module, "offset",
						       json_hex(frame->offset), "symbol", symbol));
		at += frame->symbol;
	}
	return array;
}

static void add_variable(json_t *object, const struct log_record *rec)
{
	const struct log_key_text *k = (const void *)rec;
	const struct log_module *m = (const void *)rec;

	switch (rec->type) {
	case LOG_FINGERPRINT:
		json_object_set_new(object, "planes", planes_json((const void *)rec));
		break;
	case LOG_REGION_VALUES:
		json_object_set_new(object, "values", values_json((const void *)rec));
		break;
	case LOG_CALLSITE:
		json_object_set_new(object, "frames", frames_json((const void *)rec));
		break;
	case LOG_KEY_TEXT:
		json_object_set_new(object, "text", json_text_n(k->text, k->bytes));
		break;
	case LOG_MODULE:
		json_object_set_new(object, "path", json_text_n(m->path, m->bytes_path));
		break;
	default:
		break;
	}
}

json_t *record_json(const struct log_record *rec)
{
	json_t *object = json_object();

	json_object_set_new(object, "type", json_text(log_type_name(rec->type)));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].type == rec->type)
			json_object_set_new(object, fields[i].name,
					    field_json(&fields[i], (const char *)rec + fields[i].offset));
	add_variable(object, rec);
	return object;
}
