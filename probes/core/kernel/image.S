/* SPDX-License-Identifier: Apache-2.0
 *
 * image.S: the fingerprint kernel's PTX as a string in the library. The driver compiles it for its GPU when it is loaded.
 */
	.section .rodata
	.globl	fp_image
	.hidden	fp_image
	.type	fp_image, %object
	.balign	16
fp_image:
	.incbin	"probes/core/kernel/fingerprint.ptx"
	.byte	0
	.size	fp_image, . - fp_image

	.section .note.GNU-stack, "", %progbits
