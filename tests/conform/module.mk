# SPDX-License-Identifier: Apache-2.0
# conform: the same calls on every driver. Its kernels for the CPU driver come with it.

CONFORM_DIR := tests/conform
CONFORM := $(BUILD)/conform/conform
CONFORM_KERNELS := $(BUILD)/cpudriver/kernels/conform.so
CONFORM_O := $(patsubst $(CONFORM_DIR)/%.c,$(BUILD)/conform/%.o,$(filter-out %/kernels_cpu.c,$(wildcard $(CONFORM_DIR)/*.c)))
TEST_BUILDS += $(CONFORM) $(CONFORM_KERNELS)

$(BUILD)/conform/%.o: $(CONFORM_DIR)/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -pthread -c $< -o $@

$(BUILD)/conform/ptx.o: $(CONFORM_DIR)/ptx.S $(CONFORM_DIR)/kernels.ptx $(CONFORM_DIR)/conditional.ptx \
		probes/core/kernel/fingerprint.ptx tests/toyserver/kernels.ptx
	@mkdir -p $(@D)
	$(CC) -c $< -o $@

$(CONFORM): $(CONFORM_O) $(BUILD)/conform/ptx.o
	$(CC) $(OPT) -pthread -o $@ $^ $(LDFLAGS) -ljansson -ldl

$(CONFORM_KERNELS): $(CONFORM_DIR)/kernels_cpu.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -fvisibility=hidden -shared -MF $(@:.so=.d) -o $@ $<

-include $(CONFORM_O:.o=.d) $(CONFORM_KERNELS:.so=.d)
