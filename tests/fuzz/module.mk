# SPDX-License-Identifier: Apache-2.0
# Fuzzing of everything that the collector reads: one program a target, built by clang with libFuzzer and sanitizers, and
# `truncate`, which cuts a run at every byte.

FUZZ_CC ?= clang
FUZZ_DIR := $(BUILD)/fuzz
FUZZ_TARGETS := log page manifest points run
FUZZ_BIN := $(FUZZ_TARGETS:%=$(FUZZ_DIR)/fuzz_%)
FUZZ_FLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_CFLAGS := -std=gnu11 $(WARN) -MMD -MP -Wno-gnu-case-range -Wno-missing-field-initializers $(CFLAGS)
FUZZ_O := $(patsubst %.c,$(FUZZ_DIR)/%.o,$(filter-out collector/main.c,$(CMD_C))) $(CMD_S:%.S=$(BUILD)/cmd/%.o)
FUZZ_SHARED := $(patsubst %,$(FUZZ_DIR)/tests/fuzz/%.o,input mutate mutate_log ask)

$(FUZZ_DIR)/%.o: %.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(CPPFLAGS_ALL) $(FUZZ_CFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -Icollector -c $< -o $@

$(FUZZ_BIN): $(FUZZ_DIR)/fuzz_%: $(FUZZ_DIR)/tests/fuzz/fuzz_%.o $(FUZZ_SHARED) $(FUZZ_O)
	$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(LDFLAGS) -ljansson -llz4 -lm

# As the collector itself is built: the memory limit means nothing under a sanitizer.
TRUNCATE := $(BUILD)/tests/fuzz/truncate
$(BUILD)/tests/fuzz/%.o: tests/fuzz/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -Icollector -c $< -o $@

$(TRUNCATE): $(patsubst %,$(BUILD)/tests/fuzz/%.o,truncate input ask) $(filter-out $(BUILD)/cmd/collector/main.o,$(CMD_O))
	$(CC) $(OPT) -o $@ $^ $(LDFLAGS) -ljansson -llz4 -lm

.PHONY: fuzz-programs
fuzz-programs: $(FUZZ_BIN) $(TRUNCATE)

.PRECIOUS: $(FUZZ_DIR)/tests/fuzz/%.o
-include $(patsubst %.o,%.d,$(FUZZ_O)) $(wildcard $(FUZZ_DIR)/tests/fuzz/*.d $(BUILD)/tests/fuzz/*.d)
