# SPDX-License-Identifier: Apache-2.0
# Unit tests of probes/core: all of it, linked with a driver and a recorder of the tests' own.

CORE_TEST_NAMES := claims pools graphs points kept
CORE_TESTS := $(CORE_TEST_NAMES:%=$(BUILD)/unit/core/test_%)
CORE_TEST_SHARED := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/unit/core/fake_*.c))
CORE_TEST_O := $(CORE_TEST_NAMES:%=$(BUILD)/obj/tests/unit/core/test_%.o)
CORE_LIB_O := $(filter $(BUILD)/lib/probes/core/%,$(LIB_O))

$(BUILD)/obj/tests/unit/core/%.o: tests/unit/core/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c $< -o $@

$(CORE_TESTS): $(BUILD)/unit/core/%: $(BUILD)/obj/tests/unit/core/%.o $(CORE_TEST_SHARED) $(CORE_LIB_O)
	@mkdir -p $(@D)
	$(CC) $(OPT) -o $@ $^ $(LDFLAGS) -lcmocka -lpthread -lm

UNIT_TESTS += $(CORE_TESTS)
-include $(CORE_TEST_O:.o=.d) $(CORE_TEST_SHARED:.o=.d)
