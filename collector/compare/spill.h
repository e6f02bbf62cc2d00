/* SPDX-License-Identifier: Apache-2.0
 *
 * spill.h: a file without a name, for what a comparison need not have in memory all the time.
 *
 * It lies in TMPDIR, or in /var/tmp where that is not set (/tmp is memory on many machines). Nothing of it is left, however the
 * program ends; and it leaves others some of the disk, for a recording that is written there meanwhile stops where the disk fills up.
 */
#ifndef COMPARE_SPILL_H
#define COMPARE_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* All zero is one that is not open. */
struct spill {
	bool open;
	int fd;
	uint64_t bytes;
};

/* false: no file can be made there. */
bool spill_open(struct spill *spill);
/* Whether so many bytes more leave so many of the disk free. */
bool spill_has_room(const struct spill *spill, uint64_t bytes, uint64_t leave_free);
/* Appends n pieces, whose list it uses up. false: not all of it, the disk is full. */
bool spill_write(struct spill *spill, struct iovec *piece, size_t n);
bool spill_read(const struct spill *spill, void *to, size_t bytes, uint64_t offset);
void spill_close(struct spill *spill);

#endif
