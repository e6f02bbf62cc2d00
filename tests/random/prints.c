/* SPDX-License-Identifier: Apache-2.0
 *
 * prints.c: what a recording computes from bytes, for a simulator in Python: a plane's fingerprint and the checksum.
 */
#include "probes/core/kernel/fingerprint.h"
#include "shim/record/log_format.h"

uint32_t prints_crc32c(const void *data, uint64_t bytes);
void prints_plane(const void *data, uint64_t bytes, uint64_t elems, uint32_t dtype, struct fp_print *out);

uint32_t prints_crc32c(const void *data, uint64_t bytes)
{
	return log_crc32c(0, data, bytes);
}

void prints_plane(const void *data, uint64_t bytes, uint64_t elems, uint32_t dtype, struct fp_print *out)
{
	fp_host_plane(data, bytes, elems, dtype, out);
}
