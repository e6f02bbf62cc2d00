/* SPDX-License-Identifier: Apache-2.0
 *
 * protobuf.h: writes protocol buffer messages, the wire format alone: https://protobuf.dev/programming-guides/encoding/
 *
 * A message that holds another is built after it: fill the inner one, then put it into the outer one.
 */
#ifndef PRINT_PROTOBUF_H
#define PRINT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb { /* all zero: an empty message */
	unsigned char *at;
	size_t n, room;
	bool no_memory;
};

void pb_clear(struct pb *pb); /* empty, and its memory is kept */
void pb_free(struct pb *pb);

void pb_uint(struct pb *pb, uint32_t field, uint64_t value);
void pb_int(struct pb *pb, uint32_t field, int64_t value); /* int32, int64: not the zigzag types */
void pb_double(struct pb *pb, uint32_t field, double value);
void pb_fixed64(struct pb *pb, uint32_t field, uint64_t value);
void pb_text(struct pb *pb, uint32_t field, const char *text); /* must be UTF-8 */
void pb_message(struct pb *pb, uint32_t field, const struct pb *inner);

#endif
