/* SPDX-License-Identifier: Apache-2.0
 *
 * points.h: the adapter's counted points. llamacpp.points is made from this table, which is why each row is on one line.
 */
#ifndef LLAMACPP_POINTS_H
#define LLAMACPP_POINTS_H

#include <stdint.h>

/* clang-format off */
#define LC_POINTS(X) \
	X(DONATE, "llamacpp.donate") /* states written for the server; filtered: no recurrent state in it, or kept on the device */ \
	X(RESTORE, "llamacpp.restore") /* states read back; filtered alike */ \
	X(CHECKPOINT, "llamacpp.checkpoint") /* lengths claimed for a checkpoint */ \
	X(DECODE, "llamacpp.decode") /* batches run */ \
	X(SEQ_RM, "llamacpp.seq_rm") /* positions removed; filtered: the server's memory refused */ \
	X(SEQ_CP, "llamacpp.seq_cp") /* sequences copied */ \
	X(SEQ_EDIT, "llamacpp.seq_edit") /* sequences changed in another way: cleared, shifted, loaded from a file */ \
	X(SYMBOLS, "llamacpp.symbols") /* functions that are needed; errors: not in this process, so not to be seen */
/* clang-format on */

enum lc_point {
#define LC_ENUM(id, name) LC_##id,
	LC_POINTS(LC_ENUM)
#undef LC_ENUM
		LC_POINT_COUNT
};

/* One attempt at a point; `outcome` is SLOTPROBE_HIT_*. */
void lc_hit(enum lc_point point, uint32_t outcome);

#endif
