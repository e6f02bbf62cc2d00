# SPDX-License-Identifier: Apache-2.0
# A writer of large runs, for the tests of pages and exports.

BIGLOG := $(BUILD)/tests/export/biglog
TEST_BUILDS += $(BIGLOG)

$(BIGLOG): tests/export/biglog.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MF $@.d -o $@ $< -llz4

-include $(BIGLOG).d

# The page of a run with a million donations: how large it is, and how long a browser takes to open it.
.PHONY: html-size
html-size: all $(BIGLOG)
	@tests/deps.sh check
	@$(PYTHON) -B tests/html/size.py $(BUILD)
