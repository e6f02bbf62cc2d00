/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c: escaping, so that nothing that came out of a file reaches a terminal or a JSON text as it was.
 */
#include <string.h>

#include "print/print.h"

/* Bytes of the valid, printable UTF-8 character at p; 0: there is none. */
static size_t utf8_printable(const unsigned char *p, size_t n)
{
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t bytes;
	uint32_t c;

	if (p[0] < 0x80)
		return p[0] >= 0x20 && p[0] != 0x7f;
	bytes = p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
	if (!bytes || p[0] >= 0xf5 || bytes > n)
		return 0;
	c = p[0] & (0xffu >> (bytes + 1));
	for (size_t i = 1; i < bytes; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[bytes] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	/* C1 controls, and the marks that reorder or hide text on a terminal. */
	if (c < 0xa0 || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
		return 0;
	return bytes;
}

char *text_safe(char *out, size_t size, const char *in, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = (const unsigned char *)in;
	size_t at = 0;

	n = strnlen(in, n);
	while (n) {
		size_t bytes = utf8_printable(p, n);
		size_t room = bytes ? bytes : 4;

		if (at + room + 1 > size)
			break;
		if (bytes) {
			memcpy(out + at, p, bytes);
		} else {
			out[at] = '\\';
			out[at + 1] = 'x';
			out[at + 2] = digits[*p >> 4];
			out[at + 3] = digits[*p & 15];
			bytes = 1;
		}
		at += room;
		p += bytes;
		n -= bytes;
	}
	out[at] = 0;
	return out;
}

const char *safe(const char *in)
{
	static char buffer[8][512];
	static unsigned turn;

	turn = (turn + 1) % 8;
	return text_safe(buffer[turn], sizeof(buffer[turn]), in ? in : "", sizeof(buffer[turn]));
}

const char *amount_bytes(uint64_t bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	static char buffer[4][32];
	static unsigned turn;
	double amount = (double)bytes;
	unsigned u = 0;

	turn = (turn + 1) % 4;
	while (amount >= 1024 && u < 6) {
		amount /= 1024;
		u++;
	}
	snprintf(buffer[turn], sizeof(buffer[turn]), u ? "%.1f %s" : "%.0f %s", amount, unit[u]);
	return buffer[turn];
}

const char *amount_of(uint64_t n, const char *one, const char *many)
{
	static char buffer[4][64];
	static unsigned turn;

	turn = (turn + 1) % 4;
	snprintf(buffer[turn], sizeof(buffer[turn]), "%llu %s", (unsigned long long)n, n == 1 ? one : many);
	return buffer[turn];
}
