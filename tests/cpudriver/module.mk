# SPDX-License-Identifier: Apache-2.0
# The CPU driver: $(BUILD)/cpudriver/libcuda.so.1, which takes its kernels from $(BUILD)/cpudriver/kernels/*.so.

CPUDRIVER_DIR := $(BUILD)/cpudriver
CPUDRIVER := $(CPUDRIVER_DIR)/libcuda.so.1
CPUDRIVER_C := $(wildcard tests/cpudriver/*.c)
CPUDRIVER_O := $(CPUDRIVER_C:%.c=$(BUILD)/obj/%.o)

$(BUILD)/obj/tests/cpudriver/%.o: tests/cpudriver/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -fvisibility=hidden -pthread -c $< -o $@

# -Bsymbolic: the driver's own uses of its functions are its own, whatever is preloaded. nodelete: its threads run on.
$(CPUDRIVER): $(CPUDRIVER_O)
	@mkdir -p $(@D)/kernels
	$(CC) $(OPT) -shared -pthread -o $@ $(CPUDRIVER_O) -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,-z,defs -Wl,-z,nodelete -ldl

$(CPUDRIVER_DIR)/libcuda.so: $(CPUDRIVER)
	ln -sf libcuda.so.1 $@

TEST_BUILDS += $(CPUDRIVER) $(CPUDRIVER_DIR)/libcuda.so
-include $(CPUDRIVER_O:.o=.d)
