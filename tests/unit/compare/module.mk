# SPDX-License-Identifier: Apache-2.0
# Unit tests of what the comparisons stand on: the log reader, its checksums, digests of planes, the hash table, and questions to one that are put off.

CMP_T := tests/unit/compare
CMP_T_O := $(patsubst %,$(BUILD)/cmd/collector/%.o,read/log read/map read/bigmap compare/deferred compare/spill error trouble print/text)
CMP_T_BIN := $(patsubst $(CMP_T)/test_%.c,$(BUILD)/tests/unit/compare-%,$(wildcard $(CMP_T)/test_*.c))
UNIT_TESTS += $(CMP_T_BIN)

$(BUILD)/$(CMP_T)/%.o: $(CMP_T)/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -Icollector -c $< -o $@

$(CMP_T_BIN): $(BUILD)/tests/unit/compare-%: $(BUILD)/$(CMP_T)/test_%.o $(CMP_T_O)
	@mkdir -p $(@D)
	$(CC) $(OPT) -o $@ $^ -lcmocka -ljansson -llz4

.PRECIOUS: $(BUILD)/$(CMP_T)/%.o
-include $(wildcard $(BUILD)/$(CMP_T)/*.d)
