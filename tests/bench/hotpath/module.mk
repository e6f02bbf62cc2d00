# SPDX-License-Identifier: Apache-2.0
# The hot path, for counters of instructions.

HOTPATH := $(BUILD)/bench/hotpath
TEST_BUILDS += $(HOTPATH)

$(HOTPATH): tests/bench/hotpath/hotpath.c $(BUILD)/cpudriver/libcuda.so
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $< -L$(BUILD)/cpudriver -lcuda -ldl

-include $(HOTPATH).d
