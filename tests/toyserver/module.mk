# SPDX-License-Identifier: Apache-2.0
# The toy server, and its kernels for the CPU driver.

TOY_DIR := tests/toyserver
TOY := $(BUILD)/toyserver/toyserver
TOY_KERNELS := $(BUILD)/cpudriver/kernels/toy.so
TOY_O := $(patsubst $(TOY_DIR)/%.c,$(BUILD)/toyserver/%.o,$(filter-out %/kernels_cpu.c,$(wildcard $(TOY_DIR)/*.c)))
# A fused multiply-add rounds once where the model rounds twice.
TOY_CFLAGS := $(CFLAGS_ALL) -ffp-contract=off
TEST_BUILDS += $(TOY) $(TOY_KERNELS)

$(BUILD)/toyserver/%.o: $(TOY_DIR)/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(TOY_CFLAGS) -c $< -o $@

$(BUILD)/toyserver/ptx.o: $(TOY_DIR)/ptx.S $(TOY_DIR)/kernels.ptx
	@mkdir -p $(@D)
	$(CC) -c $< -o $@

$(TOY): $(TOY_O) $(BUILD)/toyserver/ptx.o
	$(CC) $(OPT) -rdynamic -o $@ $^ -ldl

$(TOY_KERNELS): $(TOY_DIR)/kernels_cpu.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(TOY_CFLAGS) -fPIC -fvisibility=hidden -shared -MF $(@:.so=.d) -o $@ $<

# The PTX stays in the tree, for machines without a toolkit.
.PHONY: toy-ptx toy-ptx-check
toy-ptx:
	$(TOY_DIR)/ptx.sh build
toy-ptx-check:
	$(TOY_DIR)/ptx.sh check

-include $(TOY_O:.o=.d) $(TOY_KERNELS:.so=.d)
