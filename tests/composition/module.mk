# SPDX-License-Identifier: Apache-2.0
# What slotprobe is composed with: another preload, a static launcher, a program under torch_memory_saver.

COMPOSITION_DIR := tests/composition
COMPOSITION_OUT := $(BUILD)/tests/composition
TEST_BUILDS += $(addprefix $(COMPOSITION_OUT)/,other.so launcher libcudart.so.13 saver)

$(COMPOSITION_OUT)/other.so: $(COMPOSITION_DIR)/other.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(OPT) $(WARN) $(CFLAGS) -fPIC -fvisibility=hidden -shared -o $@ $< -ldl

$(COMPOSITION_OUT)/launcher: $(COMPOSITION_DIR)/launcher.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 $(WARN) -static -o $@ $<

$(COMPOSITION_OUT)/libcudart.so.13: $(COMPOSITION_DIR)/cudart.c $(COMPOSITION_DIR)/cudart.map $(BUILD)/cpudriver/libcuda.so
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(OPT) $(WARN) $(CFLAGS) -fPIC -shared -o $@ $< -Wl,-soname,$(@F) \
		-Wl,--version-script=$(COMPOSITION_DIR)/cudart.map -L$(BUILD)/cpudriver -lcuda

$(COMPOSITION_OUT)/saver: $(COMPOSITION_DIR)/saver.c $(addprefix tests/routes/,work.c cuda.c work.h cuda.h) $(COMPOSITION_OUT)/libcudart.so.13
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(OPT) $(WARN) $(CFLAGS) -pthread -o $@ $(filter %.c,$^) $(COMPOSITION_OUT)/libcudart.so.13 \
		-L$(BUILD)/cpudriver -lcuda -ldl
