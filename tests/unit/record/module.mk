# SPDX-License-Identifier: Apache-2.0
# Unit tests of shim/record: each binary is the recording code, a source of our own and one file of tests.

REC_T := tests/unit/record
REC_T_O := $(patsubst %.c,$(BUILD)/lib/%.o,$(wildcard shim/record/*.c)) \
	$(patsubst %,$(BUILD)/$(REC_T)/%.o,harness reader)
REC_T_BIN := $(patsubst $(REC_T)/test_%.c,$(BUILD)/tests/unit/record-%,$(wildcard $(REC_T)/test_*.c))
UNIT_TESTS += $(REC_T_BIN)

$(BUILD)/$(REC_T)/%.o: $(REC_T)/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c $< -o $@

# The faults come in through pwritev; dlopen'ed, for a caller with frames of its own.
$(BUILD)/tests/unit/record-caller.so: $(REC_T)/caller.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -shared -fno-optimize-sibling-calls $< -o $@

$(REC_T_BIN): $(BUILD)/tests/unit/record-%: $(BUILD)/$(REC_T)/test_%.o $(REC_T_O) $(BUILD)/tests/unit/record-caller.so
	@mkdir -p $(@D)
	$(CC) $(OPT) -o $@ $(filter %.o,$^) $(LDFLAGS) -Wl,--wrap=pwritev -lcmocka -ljansson -llz4 -ldl -lpthread

.PRECIOUS: $(BUILD)/$(REC_T)/%.o
-include $(wildcard $(BUILD)/$(REC_T)/*.d)
