/* SPDX-License-Identifier: Apache-2.0
 *
 * blob.c: reads a state blob. It is memory of the server's, of a length that the server says: nothing in it is believed
 * before it is checked, and every byte must be accounted for.
 */
#include <stdbool.h>
#include <string.h>

#include "probes/servers/llamacpp/abi.h"
#include "probes/servers/llamacpp/blob.h"

struct reader {
	const uint8_t *data;
	size_t size, at;
	bool ok;
};

static const uint8_t *take(struct reader *r, uint64_t bytes)
{
	const uint8_t *p = r->data + r->at;

	if (!r->ok || bytes > r->size - r->at) {
		r->ok = false;
		return NULL;
	}
	r->at += bytes;
	return p;
}

static uint32_t take_u32(struct reader *r)
{
	const uint8_t *p = take(r, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

static uint64_t take_u64(struct reader *r)
{
	const uint8_t *p = take(r, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return v;
}

enum lc_blob_status lc_blob_sequence(const uint8_t *blob, size_t size, int32_t *seq)
{
	struct reader r = { blob, size, 0, blob != NULL };
	uint32_t magic = take_u32(&r);

	*seq = (int32_t)take_u32(&r);
	return r.ok && magic == LC_BLOB_MAGIC ? LC_BLOB_SOUND : LC_BLOB_UNKNOWN;
}

static bool take_row(struct reader *r, struct lc_row *row)
{
	row->type = (int32_t)take_u32(r);
	row->bytes = take_u64(r);
	row->offset = r->at;
	take(r, row->bytes);
	return r->ok && row->type >= 0 && row->type < 256;
}

/* Rows of no bytes are kept: they hold their place among the layers. */
static bool take_rows(struct reader *r, struct lc_part *out)
{
	for (out->n_rows = 0; r->at < r->size; out->n_rows++)
		if (out->n_rows == LC_ROWS_MAX || !take_row(r, &out->row[out->n_rows]))
			return false;
	return out->n_rows && out->n_rows % 2 == 0;
}

enum lc_blob_status lc_blob_part(const uint8_t *part, size_t size, struct lc_part *out)
{
	struct reader r = { part, size, 0, part != NULL };
	uint32_t cells = take_u32(&r), ids = 0, transposed, layers;

	if (r.ok && !cells)
		return LC_BLOB_EMPTY;
	out->size = size;
	out->pos = (int32_t)take_u32(&r);
	ids = take_u32(&r);
	transposed = take_u32(&r);
	layers = take_u32(&r);
	if (!r.ok || cells != 1 || ids || transposed || out->pos < 0)
		return LC_BLOB_UNKNOWN;
	if (!take_rows(&r, out) || out->n_rows / 2 > layers)
		return LC_BLOB_UNKNOWN;
	return LC_BLOB_SOUND;
}
