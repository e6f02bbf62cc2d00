# SPDX-License-Identifier: Apache-2.0
# Faults put into libslotprobe.so while it records and into the command: preloads that make single calls of theirs fail, and a server that
# takes every road.

INJECT := $(BUILD)/faults/inject.so
FAULTS_SERVER := $(BUILD)/faults/server
COMMAND_FAULTS := $(BUILD)/faults/command.so
TEST_BUILDS += $(INJECT) $(COMMAND_FAULTS) $(FAULTS_SERVER)

$(INJECT) $(COMMAND_FAULTS): $(BUILD)/faults/%.so: tests/faults/%.c tests/faults/plan.c tests/faults/plan.h shim/hook/driver.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -fPIC -fvisibility=hidden -shared -o $@ $< tests/faults/plan.c -ldl

$(FAULTS_SERVER): tests/faults/server.c $(BUILD)/cpudriver/libcuda.so
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $< -L$(BUILD)/cpudriver -lcuda -ldl

-include $(FAULTS_SERVER).d

# Every call of every server and of the command, one run each: several minutes. `make check` fails a spread sample.
.PHONY: faults
faults: tests-programs
	FAULTS=all $(PYTHON) -B -m pytest -p no:cacheprovider -q tests/faults/test_each_call.py tests/faults/test_command.py $(PYTEST_ARGS)
