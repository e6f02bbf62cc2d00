# SPDX-License-Identifier: Apache-2.0
# What the server's threads pay. `make bench` prints ratios; figures that count come from a machine with a GPU.

BENCH_OUT := $(BUILD)/tests/bench
TEST_BUILDS += $(BENCH_OUT)/costs $(BUILD)/cpudriver/kernels/bench.so

$(BENCH_OUT)/costs: tests/bench/costs.c tests/toyserver/toy_cuda.c tests/toyserver/toy_cuda.h probes/core/slotprobe.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ tests/bench/costs.c tests/toyserver/toy_cuda.c -ldl -lpthread

$(BUILD)/cpudriver/kernels/bench.so: tests/bench/empty_kernel.c tests/cpudriver/cpukernel.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -fvisibility=hidden -shared -MF $(@:.so=.d) -o $@ $<

.PHONY: bench
bench: tests-programs
	$(PYTHON) tests/bench/run.py --build $(BUILD) $(BENCH_ARGS)
	$(PYTHON) tests/bench/collector.py --build $(BUILD)
	$(PYTHON) -B tests/bench/scheduler.py --build $(BUILD)

# What the collector costs at size.
TEST_BUILDS += $(BENCH_OUT)/spend

$(BENCH_OUT)/spend: tests/bench/spend.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $<

# What must not be perturbed, and a probe that does so all the same.
TEST_BUILDS += $(BENCH_OUT)/storm $(BENCH_OUT)/perturb.so

$(BENCH_OUT)/storm: tests/bench/storm.c tests/toyserver/toy_cuda.c tests/toyserver/toy_cuda.h probes/core/slotprobe.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ tests/bench/storm.c tests/toyserver/toy_cuda.c -ldl -lpthread

$(BENCH_OUT)/perturb.so: tests/bench/perturb.c probes/core/slotprobe.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -fvisibility=hidden -shared -MF $(@:.so=.d) -o $@ $< -ldl

TEST_BUILDS += $(BENCH_OUT)/donate_loop.so

$(BENCH_OUT)/donate_loop.so: tests/bench/donate_loop.c probes/core/slotprobe.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fPIC -fvisibility=default -shared -MF $(@:.so=.d) -o $@ $< -ldl
