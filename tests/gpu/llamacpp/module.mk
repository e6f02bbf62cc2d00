# SPDX-License-Identifier: Apache-2.0
# What the test of llama.cpp's server needs of its own: the planted faults, and the speed of the host fingerprint.

LLAMA_TEST_DIR := tests/gpu/llamacpp
LLAMA_TEST_OUT := $(BUILD)/tests/llamacpp
TEST_BUILDS += $(LLAMA_TEST_OUT)/fault.so $(LLAMA_TEST_OUT)/fault.points $(LLAMA_TEST_OUT)/host_bench

$(LLAMA_TEST_OUT)/fault.so: $(LLAMA_TEST_DIR)/fault.c probes/core/slotprobe.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $(@:.so=.d) -fPIC -shared -o $@ $< -ldl

$(LLAMA_TEST_OUT)/fault.points:
	@mkdir -p $(@D)
	echo fault.done >$@

$(LLAMA_TEST_OUT)/host_bench: $(LLAMA_TEST_DIR)/host_bench.c probes/core/slotprobe.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $< -ldl
