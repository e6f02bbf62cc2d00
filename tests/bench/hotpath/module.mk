# SPDX-License-Identifier: Apache-2.0
# The hot path, for counters of instructions; and a library with faults planted in it, on which the same test must fail.

HOTPATH := $(BUILD)/bench/hotpath
HOTPATH_PLANTED := $(BUILD)/bench/planted/libslotprobe.so
HOTPATH_O := $(filter-out %/probes/core/launch.o %/probes/core/usual.o,$(LIB_O)) \
	$(patsubst %,$(BUILD)/bench/planted/%.o,launch usual planted)
TEST_BUILDS += $(HOTPATH) $(HOTPATH_PLANTED)

$(HOTPATH): tests/bench/hotpath/hotpath.c $(BUILD)/cpudriver/libcuda.so
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $< -L$(BUILD)/cpudriver -lcuda -ldl

$(BUILD)/bench/planted/planted.o: tests/bench/hotpath/planted.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CFLAGS_PRELOAD) -c $< -o $@

$(BUILD)/bench/planted/launch.o: probes/core/launch.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CFLAGS_PRELOAD) -Dprobe_launch_end=planted_launch_end -Dprobe_own_launch_end=planted_own_launch_end -c $< -o $@

$(BUILD)/bench/planted/usual.o: probes/core/usual.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CFLAGS_PRELOAD) -Dprobe_claim_usual=planted_claim_usual -c $< -o $@

$(HOTPATH_PLANTED): $(HOTPATH_O)
	$(CC) $(OPT) -shared -o $@ $^ -Wl,-soname,libslotprobe.so -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete $(LDFLAGS) $(LIB_LIBS)

-include $(HOTPATH).d $(wildcard $(BUILD)/bench/planted/*.d)
