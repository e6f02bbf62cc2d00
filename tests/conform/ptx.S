/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx.S: the texts of the module images that conform loads, NUL-terminated.
 */
	.section .rodata
	.globl conform_ptx, conditional_ptx, fingerprint_ptx, toy_ptx
conform_ptx:
	.incbin "tests/conform/kernels.ptx"
	.byte 0
conditional_ptx:
	.incbin "tests/conform/conditional.ptx"
	.byte 0
fingerprint_ptx:
	.incbin "probes/core/kernel/fingerprint.ptx"
	.byte 0
toy_ptx:
	.incbin "tests/toyserver/kernels.ptx"
	.byte 0
	.section .note.GNU-stack, "", %progbits
