/* SPDX-License-Identifier: Apache-2.0
 *
 * dlsym_x86_64.S: our dlsym. It ends in a jump, with the caller's return address and argument registers untouched,
 * because libc finds out from the return address whose RTLD_NEXT and RTLD_DEFAULT are meant. RTLD_NEXT goes to libc, a
 * name that is none of ours to whom the caller would have reached without us, and only our names to C (route.c).
 */
#if defined(__x86_64__)

	.macro keep_arguments
	push %rdi
	.cfi_adjust_cfa_offset 8
	push %rsi
	.cfi_adjust_cfa_offset 8
	push %rdx
	.cfi_adjust_cfa_offset 8
	push %rcx
	.cfi_adjust_cfa_offset 8
	push %r8
	.cfi_adjust_cfa_offset 8
	push %r9
	.cfi_adjust_cfa_offset 8
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	.endm

	.macro restore_arguments
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	pop %r9
	.cfi_adjust_cfa_offset -8
	pop %r8
	.cfi_adjust_cfa_offset -8
	pop %rcx
	.cfi_adjust_cfa_offset -8
	pop %rdx
	.cfi_adjust_cfa_offset -8
	pop %rsi
	.cfi_adjust_cfa_offset -8
	pop %rdi
	.cfi_adjust_cfa_offset -8
	.endm

	.hidden shim_dlsym_real
	.hidden shim_dlsym_next
	.hidden shim_dlsym_resolve
	.hidden shim_dlsym_wants
	.hidden shim_dlsym_named

	.text
	.globl dlsym
	.type dlsym, @function
	.p2align 4
dlsym:
	.cfi_startproc
	endbr64
	cmp $-1, %rdi			/* RTLD_NEXT */
	je .Lreal
	test %rsi, %rsi
	jz .Lnext
	cmpb $'c', (%rsi)
	jne .Lnext
	cmpb $'u', 1(%rsi)
	jne .Lnext
	keep_arguments
	mov %rsi, %rdi
	call shim_dlsym_wants
	restore_arguments
	test %al, %al
	jz .Lnext
	jmp shim_dlsym_named
.Lnext:
	mov shim_dlsym_next(%rip), %r11
	test %r11, %r11
	jz .Lresolve_next
	jmp *%r11
.Lreal:
	mov shim_dlsym_real(%rip), %r11
	test %r11, %r11
	jz .Lresolve_real
	jmp *%r11
.Lresolve_next:
	keep_arguments
	call shim_dlsym_resolve
	restore_arguments
	mov shim_dlsym_next(%rip), %r11
	jmp .Ljump
.Lresolve_real:
	keep_arguments
	call shim_dlsym_resolve
	restore_arguments
	mov shim_dlsym_real(%rip), %r11
.Ljump:
	test %r11, %r11
	jz .Lnothing
	jmp *%r11
.Lnothing:				/* a libc without a dlsym that we could find */
	xor %eax, %eax
	ret
	.cfi_endproc
	.size dlsym, .-dlsym
	.hidden shim_dlsym_ours		/* not preemptible */
	.globl shim_dlsym_ours
	.set shim_dlsym_ours, dlsym

#endif
	.section .note.GNU-stack, "", %progbits
