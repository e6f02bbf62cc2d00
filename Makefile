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
# SAN=asan or SAN=tsan builds everything with sanitizers, in a folder of its own.
SANITIZERS_asan := address,undefined
SANITIZERS_tsan := thread
ifneq ($(SAN),)
BUILD := build-$(SAN)
OPT += -fsanitize=$(SANITIZERS_$(SAN)) -fno-omit-frame-pointer -fno-sanitize-recover=all
endif
ifeq ($(SAN),tsan)
OPT += -Wno-tsan # that it does not look at fences
endif
CPPFLAGS_ALL := -D_GNU_SOURCE -DSLOTPROBE_VERSION='"$(VERSION)"' -I. $(CPPFLAGS)
CFLAGS_ALL := -std=gnu11 $(OPT) $(WARN) -MMD -MP $(CFLAGS)
# The preload: hidden symbols, thread-local storage that never allocates, no lazy binding to surprise a signal handler.
CFLAGS_PRELOAD := -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt

LIB := $(BUILD)/libslotprobe.so
AUDIT := $(BUILD)/libslotprobe-audit.so
CMD := $(BUILD)/slotprobe

UNIT_TESTS :=
TEST_BUILDS :=

.PHONY: all clean
all: $(LIB) $(AUDIT) $(CMD)

# ---- libslotprobe.so: shim and probes/core ----
LIB_C := $(wildcard shim/hook/*.c shim/record/*.c probes/core/*.c probes/core/kernel/*.c)
LIB_S := $(wildcard shim/hook/*.S probes/core/kernel/*.S)
LIB_O := $(LIB_C:%.c=$(BUILD)/lib/%.o) $(LIB_S:%.S=$(BUILD)/lib/%.o)
# glibc before 2.34 keeps dlopen and threads in libraries of their own: naming them lets one binary serve both.
LIB_LIBS := -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--as-needed -l:liblz4.a -Wl,--exclude-libs,ALL

$(BUILD)/lib/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CFLAGS_PRELOAD) -c $< -o $@

# The sanitizers' runtimes look up their own interceptors through our dlsym, before they are able to take a call from us.
ifneq ($(SAN),)
$(BUILD)/lib/shim/hook/resolve.o: CFLAGS_PRELOAD += -fno-sanitize=all
endif

$(BUILD)/lib/%.o: %.S
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -fPIC -MMD -MP -c $< -o $@

$(LIB): $(LIB_O)
	$(CC) $(OPT) -shared -o $@ $(LIB_O) -Wl,-soname,libslotprobe.so -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete $(LDFLAGS) $(LIB_LIBS)

# ---- libslotprobe-audit.so: record --audit. No sanitizers: the loader calls it before anything is there. ----
AUDIT_O := $(BUILD)/audit/audit.o

$(AUDIT_O): shim/audit/audit.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu11 -O2 -g $(WARN) -MMD -MP $(CFLAGS) $(CFLAGS_PRELOAD) -c $< -o $@

$(AUDIT): $(AUDIT_O)
	$(CC) -shared -o $@ $< -Wl,-soname,libslotprobe-audit.so -Wl,-z,defs -Wl,-z,now -Wl,-z,relro $(LDFLAGS)

# ---- slotprobe: the collector ----
# Structures that are set or copied a record: what gcc takes for them by itself, rep stos and rep movs, waits for all stores before it.
STRUCTURES := -mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign -mmemcpy-strategy=vector_loop:512:noalign,libcall:-1:noalign
CFLAGS_CMD := $(shell $(CC) $(STRUCTURES) -fsyntax-only -xc /dev/null 2>/dev/null && echo '$(STRUCTURES)')
CMD_C := $(wildcard collector/*.c collector/*/*.c)
CMD_S := $(wildcard collector/*/*.S)
CMD_O := $(CMD_C:%.c=$(BUILD)/cmd/%.o) $(CMD_S:%.S=$(BUILD)/cmd/%.o)

$(BUILD)/cmd/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CFLAGS_CMD) -Icollector -c $< -o $@

$(BUILD)/cmd/%.o: %.S
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CPPFLAGS_ASSETS) -MMD -MP -c $< -o $@

# The HTML page's own policy names its style and script by their digests.
HTML_SOURCES := $(wildcard collector/print/html/page.*)
HTML_DIGESTS := $(patsubst collector/print/html/%,$(BUILD)/cmd/%.sha256,$(filter-out %.html,$(HTML_SOURCES)))
CPPFLAGS_ASSETS = -DHTML_STYLE_DIGEST='"$(BUILD)/cmd/page.css.sha256"' -DHTML_SCRIPT_DIGEST='"$(BUILD)/cmd/page.js.sha256"'
$(BUILD)/cmd/collector/print/html_assets.o: $(HTML_SOURCES) $(HTML_DIGESTS)
$(BUILD)/cmd/%.sha256: collector/print/html/%
	@mkdir -p $(@D)
	env printf "$$(sha256sum $< | cut -c1-64 | sed 's/../\\x&/g')" | base64 -w0 >$@

$(CMD): $(CMD_O)
	$(CC) $(OPT) -o $@ $(CMD_O) $(LDFLAGS) -ljansson -llz4 -lm

include $(wildcard */module.mk */*/module.mk */*/*/module.mk)
-include $(LIB_O:.o=.d) $(AUDIT_O:.o=.d) $(CMD_O:.o=.d)

# What `slotprobe selftest` and the tutorial run, with and without a GPU.
all: $(TOY) $(TOY_KERNELS) $(CPUDRIVER) $(CPUDRIVER_DIR)/libcuda.so $(FINGERPRINT_SO)

# ---- tests ----
.PHONY: tests check demo lint unit
tests: tests-programs $(UNIT_TESTS)
# without the unit tests, which need cmocka
.PHONY: tests-programs
tests-programs: all $(TEST_BUILDS)

.PHONY: unit-programs print-UNIT_TESTS
unit-programs: $(UNIT_TESTS)
print-UNIT_TESTS:
	@echo $(UNIT_TESTS)

unit: $(UNIT_TESTS)
	@for t in $(UNIT_TESTS); do echo "== $$t"; timeout 300 $$t || exit 1; done

# What `make check` runs: all but what has a target of its own below. The sanitizers' builds run the same tests.
PYTEST := $(PYTHON) -B -m pytest -p no:cacheprovider -q
OF_THEIR_OWN := --ignore=tests/fuzz --ignore=tests/valgrind --ignore=tests/aarch64

check:
	@tests/deps.sh check
	$(MAKE) --no-print-directory -s tests
	$(PYTEST) tests $(OF_THEIR_OWN) $(PYTEST_ARGS)

# Everything built with the address and undefined sanitizers, but the linters and what their runtime cannot do. CI, which has no hour to
# spare, runs a part: .ci/run.
# the runtime ends a program that opens something with RTLD_DEEPBIND
ASAN_CANNOT := DEEPBIND or bound_past_us
# they drop ASAN_OPTIONS, without which the runtime insists on being the first library
ASAN_CANNOT += or static_launcher or sudo or setuid
# the runtimes make calls of their own, and have their own memory in place of the C library's
FAILING_CALLS := --ignore=tests/faults/test_each_call.py --ignore=tests/faults/test_command.py
# tests/bench counts instructions and allocations, which would be the runtime's
ASAN_TESTS ?= tests $(OF_THEIR_OWN) --ignore=tests/lint --ignore=tests/bench $(FAILING_CALLS)
TSAN_TESTS ?= tests/unit tests/e2e tests/conform tests/random tests/faults $(FAILING_CALLS)
.PHONY: check-asan check-tsan check-fuzz check-valgrind check-aarch64 check-all
check-asan:
	@tests/deps.sh check
	$(MAKE) --no-print-directory -s SAN=asan tests
	$(MAKE) --no-print-directory -s $(RANDOM_LIB) # Python loads it, which is not built with a sanitizer
	SAN=asan $(PYTEST) $(ASAN_TESTS) -k "not ($(ASAN_CANNOT))" $(PYTEST_ARGS)

# Built with the thread sanitizer: what has threads, which are the unit tests and what records. Left out are the folders whose servers are
# Python and programs that are not built with it: there its runtime comes behind libc, whose own pthread_create has no room for the
# runtime's thread-local storage on the stacks that we ask for. The collector, in the e2e tests, has one thread.
check-tsan:
	@tests/deps.sh check
	$(MAKE) --no-print-directory -s SAN=tsan tests
	SAN=tsan $(PYTEST) $(TSAN_TESTS) $(PYTEST_ARGS)

# Hostile input to the collector; FUZZ_SECONDS for each target.
check-fuzz:
	@tests/deps.sh fuzz
	$(PYTEST) tests/fuzz $(PYTEST_ARGS)

check-valgrind:
	@tests/deps.sh check
	$(PYTEST) tests/valgrind $(PYTEST_ARGS)

# The preload built for aarch64, its unit tests under qemu-user; what the machine lacks is fetched into the build folder.
AARCH64_BUILD := build-aarch64
AARCH64_USR := $(CURDIR)/$(AARCH64_BUILD)/sysroot/usr
AARCH64_LIB := $(AARCH64_USR)/lib/aarch64-linux-gnu
AARCH64_CC := aarch64-linux-gnu-gcc
AARCH64_TESTS := $(patsubst $(BUILD)/%,$(AARCH64_BUILD)/%,$(filter $(BUILD)/tests/unit/record-% $(BUILD)/unit/core/% \
	$(addprefix $(BUILD)/unit/kernel/test_,hash launch image),$(UNIT_TESTS)))
check-aarch64:
	@tests/deps.sh aarch64 $(AARCH64_BUILD)/sysroot
	$(MAKE) --no-print-directory -s BUILD=$(AARCH64_BUILD) CC=$(AARCH64_CC) CPPFLAGS=-I$(AARCH64_USR)/include \
		LDFLAGS="-L$(AARCH64_LIB) -Wl,--disable-new-dtags,-rpath,$(AARCH64_LIB):$(AARCH64_USR)/../lib/aarch64-linux-gnu" $(AARCH64_BUILD)/libslotprobe.so $(AARCH64_TESTS)
	BUILD=$(AARCH64_BUILD) CC=$(AARCH64_CC) \
		TEST_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu" \
		$(PYTEST) tests/aarch64 tests/unit/hook $(PYTEST_ARGS)

check-all: check check-asan check-tsan check-fuzz check-valgrind check-aarch64

lint:
	@tests/deps.sh check
	$(PYTEST) tests/lint $(PYTEST_ARGS)

demo:
	@tests/deps.sh demo
	@echo "building..."
	@$(MAKE) --no-print-directory -s all $(TEST_BUILDS)
	@BUILD=$(BUILD) tests/demo.sh

# ---- install ----
.PHONY: install
LIBDIR := $(DESTDIR)$(PREFIX)/lib/slotprobe
LIBEXEC := $(DESTDIR)$(PREFIX)/libexec/slotprobe
install: all $(TEST_BUILDS)
	install -d $(DESTDIR)$(PREFIX)/bin $(LIBDIR)/probes $(LIBEXEC)/toyserver $(LIBEXEC)/cpudriver/kernels \
		$(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 755 $(CMD) $(DESTDIR)$(PREFIX)/bin/slotprobe
	install -m 755 $(LIB) $(LIBDIR)/libslotprobe.so
	install -m 755 $(AUDIT) $(LIBDIR)/libslotprobe-audit.so
	install -m 644 probes/core/slotprobe.h $(DESTDIR)$(PREFIX)/include/slotprobe.h
	install -m 755 $(BUILD)/toyserver/toyserver $(LIBEXEC)/toyserver/toyserver
	install -m 755 $(BUILD)/cpudriver/libcuda.so.1 $(LIBEXEC)/cpudriver/libcuda.so.1
	install -m 755 $(BUILD)/cpudriver/kernels/*.so $(LIBEXEC)/cpudriver/kernels/
	install -m 644 docs/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 docs/completions/slotprobe.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/slotprobe

clean:
	rm -rf build build-*
