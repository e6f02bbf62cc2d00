# SPDX-License-Identifier: Apache-2.0
# slotprobe. `make` builds, `make demo` shows it at work, `make check` runs every test. Folders with rules of their own bring a module.mk.

VERSION := 0.1.0
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= gcc
PYTHON ?= /usr/bin/python3
SAN ?=

WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
OPT ?= -O2 -g
ifneq ($(SAN),)
BUILD := build-$(SAN)
OPT += -fsanitize=$(SAN) -fno-omit-frame-pointer
endif
CPPFLAGS_ALL := -D_GNU_SOURCE -DSLOTPROBE_VERSION='"$(VERSION)"' -I. $(CPPFLAGS)
CFLAGS_ALL := -std=gnu11 $(OPT) $(WARN) -MMD -MP $(CFLAGS)
# The preload: hidden symbols, thread-local storage that never allocates, no lazy binding to surprise a signal handler.
CFLAGS_PRELOAD := -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt

LIB := $(BUILD)/libslotprobe.so
CMD := $(BUILD)/slotprobe

.PHONY: all clean
all: $(LIB) $(CMD)

# ---- libslotprobe.so: shim and probes/core ----
LIB_C := $(wildcard shim/hook/*.c shim/record/*.c probes/core/*.c probes/core/kernel/*.c)
LIB_S := $(wildcard shim/hook/*.S probes/core/kernel/*.S)
LIB_O := $(LIB_C:%.c=$(BUILD)/lib/%.o) $(LIB_S:%.S=$(BUILD)/lib/%.o)
# glibc before 2.34 keeps dlopen and threads in libraries of their own: naming them lets one binary serve both.
LIB_LIBS := -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--as-needed -l:liblz4.a -Wl,--exclude-libs,ALL

$(BUILD)/lib/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CFLAGS_PRELOAD) -c $< -o $@

$(BUILD)/lib/%.o: %.S
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -fPIC -MMD -MP -c $< -o $@

$(LIB): $(LIB_O)
	$(CC) $(OPT) -shared -o $@ $(LIB_O) -Wl,-soname,libslotprobe.so -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete $(LIB_LIBS)

# ---- slotprobe: the collector ----
CMD_C := $(wildcard collector/*.c collector/*/*.c)
CMD_O := $(CMD_C:%.c=$(BUILD)/cmd/%.o)

$(BUILD)/cmd/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -Icollector -c $< -o $@

$(CMD): $(CMD_O)
	$(CC) $(OPT) -o $@ $(CMD_O) -ljansson -llz4 -lm

include $(wildcard */module.mk */*/module.mk */*/*/module.mk)
-include $(LIB_O:.o=.d) $(CMD_O:.o=.d)

clean:
	rm -rf build build-*
