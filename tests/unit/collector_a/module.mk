# SPDX-License-Identifier: Apache-2.0
# Unit tests of the collector's base: options, escaping, reasons, counters pages, manifests. Each binary is the whole
# collector without its main and one file of tests.

COL_A := tests/unit/collector_a
COL_A_BIN := $(patsubst $(COL_A)/test_%.c,$(BUILD)/tests/unit/collector_a-%,$(wildcard $(COL_A)/test_*.c))
UNIT_TESTS += $(COL_A_BIN)

$(BUILD)/$(COL_A)/%.o: $(COL_A)/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -Icollector -c $< -o $@

$(COL_A_BIN): $(BUILD)/tests/unit/collector_a-%: $(BUILD)/$(COL_A)/test_%.o $(filter-out $(BUILD)/cmd/collector/main.o,$(CMD_O))
	@mkdir -p $(@D)
	$(CC) $(OPT) -o $@ $^ $(LDFLAGS) -lcmocka -ljansson -llz4 -lm -lpthread

.PRECIOUS: $(BUILD)/$(COL_A)/%.o
-include $(wildcard $(BUILD)/$(COL_A)/*.d)
