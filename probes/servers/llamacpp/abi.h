/* SPDX-License-Identifier: Apache-2.0
 *
 * abi.h: what this adapter takes to be true of llama.cpp's C interface: the types that cross it, as their binary layout,
 * and nothing else. Read at v0.5.0. A build that differs here is recognised by its state blobs, not by its version.
 */
#ifndef LLAMACPP_ABI_H
#define LLAMACPP_ABI_H

#include <stddef.h>
#include <stdint.h>

enum {
	LC_FLAG_PARTIAL = 1,   /* recurrent state alone: a context checkpoint */
	LC_FLAG_ON_DEVICE = 2, /* the bytes stay on the device; the buffer holds a description */
};

enum { LC_PROCESS_ENCODE, LC_PROCESS_DECODE };

#define LC_BLOB_MAGIC 0xaf143cd8u

/* Types of rows in a blob, by llama.cpp's numbering. Others are hashed as bytes. */
enum { LC_TYPE_F32 = 0, LC_TYPE_F16 = 1, LC_TYPE_I8 = 24, LC_TYPE_I32 = 26, LC_TYPE_F64 = 28, LC_TYPE_BF16 = 30 };

struct lc_batch { /* llama_decode takes it by value */
	int32_t n_tokens;
	const int32_t *token;
	const float *embd;
	const int32_t *pos;
	const int32_t *n_seq_id;
	const int32_t *const *seq_id;
	const int8_t *logits;
};

struct lc_embd { /* by value too */
	const float *data;
	size_t n_rows, n_embd;
};

#endif
