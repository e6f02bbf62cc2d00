# SPDX-License-Identifier: Apache-2.0
# What counts driver calls on a real driver, and what stands in for CUPTI to try it. No sanitizers: both come into Python too.

PERTURBED_OUT := $(BUILD)/tests/perturbed
TEST_BUILDS += $(PERTURBED_OUT)/calls.so $(PERTURBED_OUT)/played.so

$(PERTURBED_OUT)/%.so: tests/gpu/perturbed/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu11 -O2 -g $(WARN) -MMD -MP $(CFLAGS) -fPIC -fvisibility=hidden -shared -MF $(@:.so=.d) -o $@ $< -ldl
