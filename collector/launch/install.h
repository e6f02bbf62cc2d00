/* SPDX-License-Identifier: Apache-2.0
 *
 * install.h: where the parts of slotprobe lie, seen from the command: next to it (a build folder) or under its PREFIX.
 */
#ifndef COLLECTOR_INSTALL_H
#define COLLECTOR_INSTALL_H

#include <limits.h>
#include <stddef.h>

#include "error.h"

/* Folder of the running command. 0, or -1. */
int install_folder(char *folder, size_t size, struct error *error);

/* libslotprobe.so. 0, or -1 and where it was looked for. */
int install_library(char *path, size_t size, struct error *error);

/* libslotprobe-audit.so, likewise. */
int install_audit(char *path, size_t size, struct error *error);

/* A part of the self-test: "toyserver/toyserver", "cpudriver/libcuda.so.1". */
int install_helper(const char *name, char *path, size_t size, struct error *error);

/* The i-th folder in which an adapter given by name is looked for: SLOTPROBE_PROBE_PATH, then ours. 0, or -1: no more. */
int install_probe_folder(size_t i, char *path, size_t size);

#endif
