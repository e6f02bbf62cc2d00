# SPDX-License-Identifier: Apache-2.0
# Unit tests of the fingerprint: the host twin, the protocol, and the device source run on the CPU by an emulator.

CXX ?= g++
KERNEL_UNIT := $(BUILD)/unit/kernel
KERNEL_UNIT_TESTS := plane hash launch image chunks
# Sanitizers lose track of the emulator's coroutines.
ifeq ($(SAN),)
KERNEL_UNIT_TESTS += emulated
endif
UNIT_TESTS += $(KERNEL_UNIT_TESTS:%=$(KERNEL_UNIT)/test_%)

$(KERNEL_UNIT)/%.o: tests/unit/kernel/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c $< -o $@

$(KERNEL_UNIT)/fingerprint_%.o: probes/core/kernel/fingerprint_%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c $< -o $@

$(KERNEL_UNIT)/image.o: probes/core/kernel/image.S probes/core/kernel/fingerprint.ptx
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -c $< -o $@

$(KERNEL_UNIT)/test_emulated.o: tests/unit/kernel/test_launch.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -DWITH_EMULATOR -c $< -o $@

# Misaligned loads trap, as on the device.
$(KERNEL_UNIT)/emulate.o: tests/unit/kernel/emulate.cpp
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS_ALL) -std=gnu++17 $(OPT) -Wall -Wextra -Werror -Wno-unknown-pragmas -ffp-contract=off \
		-fsanitize=alignment -fsanitize-undefined-trap-on-error -MMD -MP -c $< -o $@

$(KERNEL_UNIT)/test_plane: $(addprefix $(KERNEL_UNIT)/,test_plane.o reference.o fingerprint_chunks.o)
$(KERNEL_UNIT)/test_chunks: $(addprefix $(KERNEL_UNIT)/,test_chunks.o fingerprint_chunks.o)
$(KERNEL_UNIT)/test_hash: $(addprefix $(KERNEL_UNIT)/,test_hash.o reference.o fingerprint_host.o fingerprint_chunks.o)
$(KERNEL_UNIT)/test_launch: $(addprefix $(KERNEL_UNIT)/,test_launch.o world.o reference.o fingerprint_host.o fingerprint_chunks.o fingerprint_read.o)
$(KERNEL_UNIT)/test_image: $(addprefix $(KERNEL_UNIT)/,test_image.o image.o)
$(KERNEL_UNIT)/test_emulated: $(addprefix $(KERNEL_UNIT)/,test_emulated.o world.o reference.o emulate.o fingerprint_host.o fingerprint_chunks.o fingerprint_read.o)
$(KERNEL_UNIT)/bench_host: $(addprefix $(KERNEL_UNIT)/,bench_host.o fingerprint_host.o fingerprint_chunks.o)
$(KERNEL_UNIT)/bench_host $(KERNEL_UNIT_TESTS:%=$(KERNEL_UNIT)/test_%):
	$(if $(findstring emulate,$^),$(CXX),$(CC)) $(OPT) -o $@ $^ $(LDFLAGS) -lcmocka -lm

.PHONY: bench-host
bench-host: $(KERNEL_UNIT)/bench_host
	$<

-include $(wildcard $(KERNEL_UNIT)/*.d)
