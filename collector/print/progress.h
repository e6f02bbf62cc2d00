/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.h: how far a long reading is, on stderr, when somebody looks at it.
 */
#ifndef COLLECTOR_PROGRESS_H
#define COLLECTOR_PROGRESS_H

#include <stdint.h>

/* Cheap enough for every record: looks at the clock once in a few thousand calls. Prints only when stderr is a terminal and
 * a second has passed since the first call. */
void progress(const char *what, uint64_t done, uint64_t all);
/* Wipes the line. */
void progress_end(void);

#endif
