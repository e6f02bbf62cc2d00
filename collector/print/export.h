/* SPDX-License-Identifier: Apache-2.0
 *
 * export.h: the formats of slotprobe export, a file each: export_jsonl.c, export_csv.c, export_perfetto.c.
 */
#ifndef PRINT_EXPORT_H
#define PRINT_EXPORT_H

#include "print/print.h"
#include "read/run.h"

/* Each writes the whole run, counts logs that are damaged or missing, and gives -1 with *err set when it could not go on. */
typedef int export_run(FILE *f, const struct run *run, size_t *damaged, struct error *err);
export_run export_jsonl, export_csv, export_perfetto;

/* "HOST.PID.STARTTIME", with "-LIFE" for one that execed: the name of its files. In a rotating buffer. */
const char *export_process_name(const struct run_process *process);

#endif
