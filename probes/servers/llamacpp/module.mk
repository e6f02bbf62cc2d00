# SPDX-License-Identifier: Apache-2.0
# The adapter for llama.cpp's server: a library of its own, on slotprobe.h alone.

LLAMACPP_DIR := probes/servers/llamacpp
LLAMACPP := $(BUILD)/probes/llamacpp.so
LLAMACPP_O := $(patsubst %.c,$(BUILD)/lib/%.o,$(wildcard $(LLAMACPP_DIR)/*.c))

# Old glibc too, as the preload.
$(LLAMACPP_O): CPPFLAGS_ALL += -include shim/compat.h

all: $(LLAMACPP) $(BUILD)/probes/llamacpp.points

$(LLAMACPP): $(LLAMACPP_O)
	@mkdir -p $(@D)
	$(CC) $(OPT) -shared -o $@ $^ -Wl,-soname,llamacpp.so -Wl,-z,defs -Wl,-z,relro -Wl,-z,nodelete $(LDFLAGS) \
		-Wl,--no-as-needed -l:libdl.so.2 -Wl,--as-needed

$(BUILD)/probes/llamacpp.points: $(LLAMACPP_DIR)/points.h
	@mkdir -p $(@D)
	sed -n 's/^\tX([A-Z_]*, "\([a-z_.]*\)").*/\1/p' $< >$@

-include $(LLAMACPP_O:.o=.d)

install: install-llamacpp
.PHONY: install-llamacpp
install-llamacpp: $(LLAMACPP) $(BUILD)/probes/llamacpp.points
	install -d $(LIBDIR)/probes
	install -m 755 $(LLAMACPP) $(LIBDIR)/probes/
	install -m 644 $(BUILD)/probes/llamacpp.points $(LIBDIR)/probes/
