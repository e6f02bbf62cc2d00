# SPDX-License-Identifier: Apache-2.0
# The adapter for SGLang: a folder for PYTHONPATH with the package, the one it is written on, and the entry point that SGLang finds it by.

SGLANG_DIR := probes/servers/sglang
SGLANG := $(BUILD)/probes/sglang
SGLANG_SRC := $(wildcard $(SGLANG_DIR)/slotprobe_sglang/*.py) $(wildcard $(SGLANG_DIR)/dist-info/*)

all: $(SGLANG)/.made $(BUILD)/probes/sglang.points $(BUILD)/probes/sglang.doctor

# As a whole: a file that went from the sources must go here too.
$(SGLANG)/.made: $(SGLANG_SRC) $(PYTHON_PACKAGE) $(SGLANG_DIR)/module.mk
	rm -rf $(SGLANG)
	@mkdir -p $(SGLANG)/slotprobe $(SGLANG)/slotprobe_sglang $(SGLANG)/slotprobe_sglang-$(VERSION).dist-info
	cp $(PYTHON_PACKAGE) $(SGLANG)/slotprobe/
	cp $(SGLANG_DIR)/slotprobe_sglang/*.py $(SGLANG)/slotprobe_sglang/
	cp $(SGLANG_DIR)/dist-info/entry_points.txt $(SGLANG)/slotprobe_sglang-$(VERSION).dist-info/
	sed 's/@VERSION@/$(VERSION)/' $(SGLANG_DIR)/dist-info/METADATA >$(SGLANG)/slotprobe_sglang-$(VERSION).dist-info/METADATA
	touch $@

$(BUILD)/probes/sglang.points $(BUILD)/probes/sglang.doctor: $(BUILD)/probes/%: $(SGLANG_DIR)/%
	@mkdir -p $(@D)
	cp $< $@

install: install-sglang
.PHONY: install-sglang
install-sglang: $(SGLANG)/.made $(BUILD)/probes/sglang.points $(BUILD)/probes/sglang.doctor
	rm -rf $(LIBDIR)/probes/sglang
	cd $(SGLANG) && find . -type f ! -name .made -exec install -D -m 644 {} $(abspath $(LIBDIR))/probes/sglang/{} \;
	install -m 644 $(BUILD)/probes/sglang.points $(BUILD)/probes/sglang.doctor $(LIBDIR)/probes/

# Does the newest release still have what is hooked? The one target that uses the network.
.PHONY: drift
drift:
	@$(PYTHON) -B $(SGLANG_DIR)/drift.py $(SOURCES)
