# SPDX-License-Identifier: Apache-2.0
# The fingerprint and the checksum as a library that Python can call. `make random` runs 1,000 seeds of the randomised comparison.

RANDOM_LIB := $(BUILD)/tests/random/libprints.so
TEST_BUILDS += $(RANDOM_LIB)

$(BUILD)/tests/random/%.o: tests/random/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -c $< -o $@

$(BUILD)/tests/random/fingerprint_%.o: probes/core/kernel/fingerprint_%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -c $< -o $@

$(RANDOM_LIB): $(addprefix $(BUILD)/tests/random/,prints.o fingerprint_host.o fingerprint_chunks.o)
	$(CC) $(OPT) -shared -o $@ $^ -lm

-include $(wildcard $(BUILD)/tests/random/*.d)

.PHONY: random
random: tests-programs
	SLOTPROBE_SEEDS=1000 $(PYTHON) -B -m pytest -p no:cacheprovider -q tests/random $(PYTEST_ARGS)
