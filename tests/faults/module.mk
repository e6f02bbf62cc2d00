# SPDX-License-Identifier: Apache-2.0
# Faults put into libslotprobe.so while it records: a preload that makes single calls of it fail, and a server that takes every road
# through it.

INJECT := $(BUILD)/faults/inject.so
FAULTS_SERVER := $(BUILD)/faults/server
TEST_BUILDS += $(INJECT) $(FAULTS_SERVER)

$(INJECT): tests/faults/inject.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -shared -MF $(@:.so=.d) -o $@ $< -ldl

$(FAULTS_SERVER): tests/faults/server.c $(BUILD)/cpudriver/libcuda.so
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $< -L$(BUILD)/cpudriver -lcuda -ldl

-include $(INJECT:.so=.d) $(FAULTS_SERVER).d

# Every call of every server, one run each: several minutes. `make check` fails a spread sample of the toy's.
.PHONY: faults
faults: tests-programs
	FAULTS=all $(PYTHON) -B -m pytest -p no:cacheprovider -q tests/faults/test_each_call.py $(PYTEST_ARGS)
