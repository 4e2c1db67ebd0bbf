/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of processor_abi.h for x86-64. */
#ifndef ALLOCPROF_PROCESSOR_X86_ABI_H
#define ALLOCPROF_PROCESSOR_X86_ABI_H

#include <linux/types.h>

/* The size of the largest pages that a kernel may have. */
#define AP_MOST_PAGE 4096

/* Registers of a hit in DWARF numbering (System V ABI, figure 3.36). The last one, the return
 * address column, is the pc of the hit. */
#define AP_DUMP_REGISTERS 17

/* Calls push the return address: no rule says that it is still in a register. */
#define AP_HAS_LINK	      0
#define AP_SIGNAL_LINK_OFFSET 0

/* The function of the kernel without which programs at traced functions load and cannot be attached; NULL:
 * where they cannot be attached, they do not load. */
#define AP_FENTRY_FUNCTION NULL

/* The code to which signal handlers return has call frame information. */
#define AP_IS_SIGNAL_RETURN(code) 0
#define AP_SIGNAL_FP_OFFSET	  0
#define AP_SIGNAL_SP_OFFSET	  0
#define AP_SIGNAL_PC_OFFSET	  0

/* Parts of the result of ap_code__epilogue(): the offset from sp of the first word that is popped,
 * and a flag that the saved frame pointer is in the word below the return address. */
#define AP_EPILOGUE_POPPED 0xff
#define AP_EPILOGUE_FP	   0x100

/*
 * Returns what an epilogue pops, as AP_EPILOGUE_ bits, if @code, the next 8 bytes of a function,
 * is only an epilogue ([add $n, %rsp;] [pop %rbp;] ret); else -1.
 */
static inline __attribute__((always_inline)) int ap_code__epilogue(__u64 code)
{
	int popped = 0;

	if ((code & 0xffffff) == 0xc48348) {
		popped = code >> 24 & 0xff;
		if (popped & 0x87) /* the number is negative, or no multiple of 8 */
			return -1;
		code >>= 32;
	}
	if ((code & 0xff) == 0x5d) {
		popped |= AP_EPILOGUE_FP;
		code >>= 8;
	}
	return (code & 0xff) == 0xc3 ? popped : -1;
}

/* How many bytes before the return address ap_code__is_context_end() has to be given. */
#define AP_CONTEXT_END_BYTES 3

/*
 * Returns whether the return address that follows @code's first 3 bytes is the outermost one of a
 * context that Boost's make_fcontext() made (PHP and others have copies): push %rbp; jmp *%rbx,
 * which starts the context's function; that returns to [endbr64;] xor %rdi, %rdi; call _exit. This
 * code has no call frame information.
 */
static inline __attribute__((always_inline)) int ap_code__is_context_end(__u64 code)
{
	__u64 behind = code >> 24 & 0xffffffff;

	return (code & 0xffffff) == 0xe3ff55 && (behind == 0xe8ff3148 || behind == 0xfa1e0ff3);
}

/* Where an epilogue finds the saved frame pointer and the return address, and by how much it raises
 * sp; @popped has AP_EPILOGUE_ bits. */
#define AP_EPILOGUE_FP_OFFSET(popped) ((popped)&AP_EPILOGUE_POPPED)
#define AP_EPILOGUE_RA_OFFSET(popped)                                                              \
	(((popped)&AP_EPILOGUE_POPPED) + ((popped)&AP_EPILOGUE_FP ? 8 : 0))
#define AP_EPILOGUE_BYTES(popped) (AP_EPILOGUE_RA_OFFSET(popped) + 8)

#endif
