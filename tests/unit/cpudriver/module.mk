# SPDX-License-Identifier: Apache-2.0
# Unit tests of the CPU driver: programs linked with it, and their kernels in a shared object.

CPUT := tests/unit/cpudriver
CPUT_BIN := $(patsubst $(CPUT)/test_%.c,$(BUILD)/tests/unit/cpudriver-%,$(wildcard $(CPUT)/test_*.c))
CPUT_KERNELS := $(BUILD)/tests/unit/cpudriver-kernels.so
CPUT_INCLUDE := $(if $(wildcard /usr/local/cuda/include/cuda.h),-isystem /usr/local/cuda/include)
UNIT_TESTS += $(CPUT_BIN)

$(BUILD)/$(CPUT)/%.o: $(CPUT)/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CPUT_INCLUDE) $(CFLAGS_ALL) -pthread -c $< -o $@

$(CPUT_KERNELS): $(CPUT)/kernels.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -fvisibility=hidden -shared -MF $(@:.so=.d) -o $@ $<

$(CPUT_BIN): $(BUILD)/tests/unit/cpudriver-%: $(BUILD)/$(CPUT)/test_%.o $(BUILD)/$(CPUT)/device.o $(BUILD)/cpudriver/libcuda.so.1 $(CPUT_KERNELS)
	@mkdir -p $(@D)
	$(CC) $(OPT) -pthread -o $@ $(filter %.o,$^) $(BUILD)/cpudriver/libcuda.so.1 -Wl,-rpath,'$$ORIGIN/../../cpudriver' -lcmocka -ldl

.PRECIOUS: $(BUILD)/$(CPUT)/%.o
-include $(wildcard $(BUILD)/$(CPUT)/*.d) $(CPUT_KERNELS:.so=.d)
