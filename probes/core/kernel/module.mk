# SPDX-License-Identifier: Apache-2.0
# The fingerprint kernel: its PTX is committed and embedded.

.PHONY: ptx ptx-check
ptx:
	probes/core/kernel/ptx.sh build

ptx-check:
	probes/core/kernel/ptx.sh check

# .incbin leaves no trace in the dependency file
$(BUILD)/lib/probes/core/kernel/image.o: probes/core/kernel/fingerprint.ptx
