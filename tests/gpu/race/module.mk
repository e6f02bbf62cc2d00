# SPDX-License-Identifier: Apache-2.0
# The race that any wait of the host hides.

RACE := $(BUILD)/tests/race
TEST_BUILDS += $(RACE)

$(RACE): tests/gpu/race/race.c tests/toyserver/toy_cuda.c tests/toyserver/toy_cuda.h probes/core/slotprobe.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ tests/gpu/race/race.c tests/toyserver/toy_cuda.c -ldl
