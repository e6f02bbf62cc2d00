# SPDX-License-Identifier: Apache-2.0
# The Python package: nothing to build. `pip install probes/python` does as well.

PYTHON_PACKAGE := $(wildcard probes/python/slotprobe/*.py)

install: install-python
.PHONY: install-python
install-python: $(PYTHON_PACKAGE)
	install -d $(LIBDIR)/python/slotprobe
	install -m 644 $(PYTHON_PACKAGE) $(LIBDIR)/python/slotprobe/
