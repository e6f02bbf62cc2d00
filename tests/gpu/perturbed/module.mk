# SPDX-License-Identifier: Apache-2.0
# What counts driver calls on a real driver, and what stands in for CUPTI to try it.

PERTURBED_OUT := $(BUILD)/tests/perturbed
TEST_BUILDS += $(PERTURBED_OUT)/calls.so $(PERTURBED_OUT)/played.so

$(PERTURBED_OUT)/%.so: tests/gpu/perturbed/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -fvisibility=hidden -shared -MF $(@:.so=.d) -o $@ $< -ldl
