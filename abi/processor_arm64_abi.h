/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of processor_abi.h for arm64. */
#ifndef ALLOCPROF_PROCESSOR_ARM64_ABI_H
#define ALLOCPROF_PROCESSOR_ARM64_ABI_H

#include <linux/types.h>

/* The size of the largest pages that a kernel may have. */
#define AP_MOST_PAGE 65536

/* The function of the kernel without which programs at traced functions load and cannot be attached, as before
 * Linux 6.4. */
#define AP_FENTRY_FUNCTION "register_ftrace_direct"

/* Registers of a hit in DWARF numbering (DWARF for the Arm 64-bit architecture, 4.1): x0 to x30 and
 * sp; the last one is the pc of the hit. */
#define AP_DUMP_REGISTERS 33

/* Calls leave the return address in x30, the link register. A function that calls no other may not
 * save it: UNWIND_SAME for the return address. */
#define AP_HAS_LINK 1
/* Where the interrupted code's x30 is in the frame of a signal, from its pc (struct sigcontext). */
#define AP_SIGNAL_LINK_OFFSET (-16)

/* Whether @code, the next 8 bytes, is that to which signal handlers return, which has no call frame information since
 * Linux 5.8: mov x8, #139 (rt_sigreturn); svc #0. */
#define AP_IS_SIGNAL_RETURN(code) ((code) == 0xd4000001d2801168)
/* From sp: the interrupted code's registers in struct rt_sigframe, of which struct siginfo has 128 bytes, and struct
 * ucontext 176 in front of struct sigcontext. */
#define AP_SIGNAL_FP_OFFSET 544
#define AP_SIGNAL_SP_OFFSET 560
#define AP_SIGNAL_PC_OFFSET 568

/* Parts of the result of ap_code__epilogue(): how many bytes are popped, of which x29 and x30 are
 * the first two words. */
#define AP_EPILOGUE_POPPED 0x1ff
#define AP_EPILOGUE_FP	   0x200

/*
 * Returns what an epilogue pops, as AP_EPILOGUE_ bits, if @code, the next 8 bytes of a function,
 * is only an epilogue (ldp x29, x30, [sp], #n; ret); else -1.
 */
static inline __attribute__((always_inline)) int ap_code__epilogue(__u64 code)
{
	__u32 load = code, words = load >> 15 & 0x7f;

	if ((load & 0xffc07fff) != 0xa8c07bfd || code >> 32 != 0xd65f03c0 || !words || words > 63)
		return -1;
	return words * 8 | AP_EPILOGUE_FP;
}

/* How many bytes before the return address ap_code__is_context_end() has to be given. */
#define AP_CONTEXT_END_BYTES 0

/*
 * Returns whether @code, which is at the return address, is the end of a context that Boost's
 * make_fcontext() made (PHP and others have copies): mov x0, #0; bl _exit. This code has no call
 * frame information.
 */
static inline __attribute__((always_inline)) int ap_code__is_context_end(__u64 code)
{
	return (code & 0xffffffff) == 0xd2800000 && code >> 58 == 0x25;
}

/* Where an epilogue finds the saved frame pointer and the return address, and by how much it raises
 * sp; @popped has AP_EPILOGUE_ bits. */
#define AP_EPILOGUE_FP_OFFSET(popped) 0
#define AP_EPILOGUE_RA_OFFSET(popped) 8
#define AP_EPILOGUE_BYTES(popped)     ((popped)&AP_EPILOGUE_POPPED)

#endif
