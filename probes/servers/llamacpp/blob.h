/* SPDX-License-Identifier: Apache-2.0
 *
 * blob.h: the layout of a state blob: where the recurrent rows of one sequence lie in it.
 *
 *     u32 magic, i32 sequence, [attention part, unless the partial flag was given], recurrent part
 *
 * The recurrent part is last: u32 cells, per cell {i32 position, u32 0}, u32 0 (transposed), u32 layers of the model,
 * then rows {i32 type, u64 bytes, data}: first one R row (convolution) for each recurrent layer, then one S row (state).
 * With one cell, which is what a sequence has, everything lies at a fixed distance from its start.
 */
#ifndef LLAMACPP_BLOB_H
#define LLAMACPP_BLOB_H

#include <stddef.h>
#include <stdint.h>

#define LC_BLOB_HEADER 8u
#define LC_ROWS_MAX    1024u /* as many planes as a pool takes */

enum lc_blob_status {
	LC_BLOB_SOUND,
	LC_BLOB_EMPTY,   /* of a sequence without state */
	LC_BLOB_UNKNOWN, /* not what is described above */
};

struct lc_row {
	int32_t type;
	uint64_t offset, bytes; /* from the start of the recurrent part */
};

struct lc_part {
	int32_t pos;   /* of the last token that the state has seen */
	uint64_t size; /* of the whole part */
	uint32_t n_rows;
	struct lc_row row[LC_ROWS_MAX];
};

/* Sequence that the blob was taken from. */
enum lc_blob_status lc_blob_sequence(const uint8_t *blob, size_t size, int32_t *seq);
/* `part` is to be a recurrent part, whole and nothing else. */
enum lc_blob_status lc_blob_part(const uint8_t *part, size_t size, struct lc_part *out);

#endif
