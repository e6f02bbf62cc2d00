# SPDX-License-Identifier: Apache-2.0
# The example adapters of docs/write-a-probe.md with the servers that they are tried on, and a stand-in for llama.cpp's library.

ADAPTERS_DIR := tests/adapters
ADAPTERS_OUT := $(BUILD)/tests/adapters
TEST_BUILDS += $(addprefix $(ADAPTERS_OUT)/,libkvstore.so kvserver kvprobe.so kvprobe.points libstandin.so standin llama-static floating)

$(ADAPTERS_OUT)/libkvstore.so: $(ADAPTERS_DIR)/kvstore/kvstore.c $(ADAPTERS_DIR)/kvstore/kvstore.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $(@:.so=.d) -fPIC -shared -o $@ $<

$(ADAPTERS_OUT)/kvserver: $(ADAPTERS_DIR)/kvstore/kvserver.c $(ADAPTERS_OUT)/libkvstore.so
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $^ '-Wl,-rpath,$$ORIGIN'

$(ADAPTERS_OUT)/kvprobe.so: $(ADAPTERS_DIR)/kvprobe.c $(ADAPTERS_OUT)/libkvstore.so probes/core/slotprobe.h
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $(@:.so=.d) -fPIC -shared -o $@ $< -ldl

$(ADAPTERS_OUT)/kvprobe.points: $(ADAPTERS_DIR)/kvprobe.points
	@mkdir -p $(@D)
	cp $< $@

$(ADAPTERS_OUT)/libstandin.so: $(ADAPTERS_DIR)/llama/standin.c $(ADAPTERS_DIR)/llama/standin.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $(@:.so=.d) -fPIC -shared -o $@ $<

$(ADAPTERS_OUT)/standin: $(ADAPTERS_DIR)/llama/driver.c $(ADAPTERS_OUT)/libstandin.so
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $^ '-Wl,-rpath,$$ORIGIN' -ldl

# Like a server that was built with static libraries: its calls reach no symbol that a preload could take.
$(ADAPTERS_OUT)/llama-static: $(ADAPTERS_DIR)/llama/driver.c $(ADAPTERS_DIR)/llama/standin.c $(ADAPTERS_DIR)/llama/standin.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $(filter %.c,$^) -ldl

$(ADAPTERS_OUT)/floating: $(ADAPTERS_DIR)/floating.c probes/core/slotprobe.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $< -ldl

-include $(wildcard $(ADAPTERS_OUT)/*.d)

# The parser of state blobs and the token histories, with sanitizers too.
LLAMACPP_TEST := $(BUILD)/unit/adapters/test_llamacpp
LLAMACPP_TESTED := $(addprefix $(BUILD)/lib/probes/servers/llamacpp/,blob.o history.o batch.o)
UNIT_TESTS += $(LLAMACPP_TEST)

$(LLAMACPP_TEST): $(ADAPTERS_DIR)/llama/test_llamacpp.c $(LLAMACPP_TESTED)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $^ $(LDFLAGS) -lcmocka
