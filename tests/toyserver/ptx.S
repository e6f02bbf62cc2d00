/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx.S: the text of kernels.ptx, NUL-terminated, as toy_ptx.
 */
	.section .rodata
	.globl toy_ptx
toy_ptx:
	.incbin "tests/toyserver/kernels.ptx"
	.byte 0
	.section .note.GNU-stack, "", %progbits
