# SPDX-License-Identifier: Apache-2.0
# What the CPU driver runs for the library's own kernels.

FINGERPRINT_SO := $(BUILD)/cpudriver/kernels/fingerprint.so
TEST_BUILDS += $(FINGERPRINT_SO)

$(FINGERPRINT_SO): tests/cpudriver_kernels/fingerprint_kernels.c probes/core/kernel/fingerprint_host.c probes/core/kernel/fingerprint_chunks.c \
		probes/core/kernel/fingerprint.h probes/core/kernel/fingerprint_ops.h tests/cpudriver/cpukernel.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(OPT) $(WARN) -fPIC -fvisibility=hidden -shared -o $@ $(filter %.c,$^) $(LDFLAGS)
