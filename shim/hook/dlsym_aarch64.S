/* SPDX-License-Identifier: Apache-2.0
 *
 * dlsym_aarch64.S: our dlsym; see dlsym_x86_64.S. The return address is in the link register, so it must be back there
 * at the jump.
 */
#if defined(__aarch64__)

	.macro keep_arguments
	stp x29, x30, [sp, #-80]!
	.cfi_adjust_cfa_offset 80
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	.endm

	.macro restore_arguments
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldp x6, x7, [sp, #64]
	ldp x29, x30, [sp], #80
	.cfi_adjust_cfa_offset -80
	.cfi_restore x29
	.cfi_restore x30
	.endm

	.hidden shim_dlsym_real
	.hidden shim_dlsym_next
	.hidden shim_dlsym_resolve
	.hidden shim_dlsym_wants
	.hidden shim_dlsym_named

	.text
	.globl dlsym
	.type dlsym, %function
	.p2align 4
dlsym:
	.cfi_startproc
	hint #34			/* bti c */
	cmn x0, #1			/* RTLD_NEXT */
	b.eq .Lreal
	cbz x1, .Lnext
	ldrb w16, [x1]
	cmp w16, #'c'
	b.ne .Lnext
	ldrb w16, [x1, #1]
	cmp w16, #'u'
	b.ne .Lnext
	keep_arguments
	mov x0, x1
	bl shim_dlsym_wants
	and w16, w0, #0xff
	restore_arguments
	cbz w16, .Lnext
	b shim_dlsym_named
.Lnext:
	adrp x16, shim_dlsym_next
	ldr x16, [x16, #:lo12:shim_dlsym_next]
	cbz x16, .Lresolve_next
	br x16
.Lreal:
	adrp x16, shim_dlsym_real
	ldr x16, [x16, #:lo12:shim_dlsym_real]
	cbz x16, .Lresolve_real
	br x16
.Lresolve_next:
	keep_arguments
	bl shim_dlsym_resolve
	restore_arguments
	adrp x16, shim_dlsym_next
	ldr x16, [x16, #:lo12:shim_dlsym_next]
	b .Ljump
.Lresolve_real:
	keep_arguments
	bl shim_dlsym_resolve
	restore_arguments
	adrp x16, shim_dlsym_real
	ldr x16, [x16, #:lo12:shim_dlsym_real]
.Ljump:
	cbz x16, .Lnothing
	br x16
.Lnothing:				/* a libc without a dlsym that we could find */
	mov x0, #0
	ret
	.cfi_endproc
	.size dlsym, .-dlsym
	.hidden shim_dlsym_ours		/* not preemptible */
	.globl shim_dlsym_ours
	.set shim_dlsym_ours, dlsym

#endif
	.section .note.GNU-stack, "", %progbits
