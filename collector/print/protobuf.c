/* SPDX-License-Identifier: Apache-2.0
 *
 * protobuf.c: the wire format of protocol buffers.
 */
#include <stdlib.h>
#include <string.h>

#include "print/protobuf.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2 };

static void put(struct pb *pb, const void *bytes, size_t n)
{
	if (pb->n + n > pb->room) {
		size_t room = (pb->n + n) * 2;
		unsigned char *at = realloc(pb->at, room);

		if (!at) {
			pb->no_memory = true;
			return;
		}
		pb->at = at;
		pb->room = room;
	}
	memcpy(pb->at + pb->n, bytes, n);
	pb->n += n;
}

static void varint(struct pb *pb, uint64_t value)
{
	unsigned char bytes[10];
	size_t n = 0;

	do {
		bytes[n] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
		n++;
	} while (value);
	put(pb, bytes, n);
}

static void tag(struct pb *pb, uint32_t field, enum wire wire)
{
	varint(pb, (uint64_t)field << 3 | wire);
}

void pb_clear(struct pb *pb)
{
	pb->n = 0;
}

void pb_free(struct pb *pb)
{
	free(pb->at);
	*pb = (struct pb) { 0 };
}

void pb_uint(struct pb *pb, uint32_t field, uint64_t value)
{
	tag(pb, field, WIRE_VARINT);
	varint(pb, value);
}

void pb_int(struct pb *pb, uint32_t field, int64_t value)
{
	pb_uint(pb, field, (uint64_t)value);
}

void pb_fixed64(struct pb *pb, uint32_t field, uint64_t value)
{
	tag(pb, field, WIRE_64);
	put(pb, &value, sizeof value); /* little endian, as the machines that we run on */
}

void pb_double(struct pb *pb, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	pb_fixed64(pb, field, bits);
}

void pb_text(struct pb *pb, uint32_t field, const char *text)
{
	size_t n = strlen(text);

	tag(pb, field, WIRE_BYTES);
	varint(pb, n);
	put(pb, text, n);
}

void pb_message(struct pb *pb, uint32_t field, const struct pb *inner)
{
	tag(pb, field, WIRE_BYTES);
	varint(pb, inner->n);
	if (inner->n)
		put(pb, inner->at, inner->n);
	pb->no_memory |= inner->no_memory;
}
