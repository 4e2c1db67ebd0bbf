/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Decodes single instructions of the host's processor: their length, their target, what they may
 * change that a probe after them needs, what they do to the frame, and whether the kernel can
 * emulate them under a uprobe. One implementation per processor, disasm_<processor>.c, has the
 * decoder. */
#ifndef ALLOCPROF_DISASM_H
#define ALLOCPROF_DISASM_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

enum disasm_class {
	DISASM_OTHER, /* continues with the next instruction */
	DISASM_NOP,
	DISASM_CALL,
	DISASM_CALL_INDIRECT,
	DISASM_JUMP,
	DISASM_JUMP_CONDITIONAL,
	DISASM_JUMP_INDIRECT,
	DISASM_RET,
	DISASM_TRAP, /* control does not continue behind it: ud2, hlt, int3 */
};

/* Mask of what an instruction may change, in case of doubt too much. An instruction without any of
 * these changes at most the flags and the registers of struct disasm_insn.written. */
enum disasm_effect {
	DISASM_WRITES_MEMORY = 1 << 0,
	DISASM_WRITES_SP = 1 << 1,
	DISASM_UNKNOWN_EFFECT = 1 << 2, /* unknown; anything may have changed */
};

/* Numbers of general registers are below this one. */
#define DISASM_REGISTERS 32
/* How many integer arguments registers carry, numbered from 1, and the number that stands for the
 * register of results. */
#define DISASM_ARGUMENTS 6
#define DISASM_RESULT	 7

/* The stack pointer's value after an instruction; for a call, after its return. */
enum disasm_sp {
	DISASM_SP_MOVED,   /* moved by @sp_offset, which may be 0 */
	DISASM_SP_FROM_FP, /* the frame pointer + @sp_offset */
	DISASM_SP_UNKNOWN,
};

/* What the instruction does to the frame pointer. */
enum disasm_fp {
	DISASM_FP_KEPT,
	DISASM_FP_PUSHED,  /* kept, and stored where sp points to afterwards */
	DISASM_FP_POPPED,  /* loaded from the top of the stack, after DISASM_SP_FROM_FP */
	DISASM_FP_FROM_SP, /* set to the stack pointer */
	DISASM_FP_UNKNOWN,
};

struct disasm_insn {
	__u64 vaddr;
	const void *code;    /* borrowed from the caller of disasm__decode() */
	unsigned int length; /* bytes */
	enum disasm_class class;
	unsigned int effects; /* mask of enum disasm_effect */
	unsigned int written; /* mask of general registers that it may write, in part or whole */
	bool is_copy;	      /* it only copies all of register @from to register @to */
	unsigned char from, to;
	/* The instruction writes @frame_bytes at sp + @frame_offset and nothing else to memory,
	 * and does not change sp. */
	bool writes_frame;
	__s64 frame_offset;
	unsigned int frame_bytes;
	enum disasm_sp sp;
	__s64 sp_offset; /* bytes */
	enum disasm_fp fp;
	bool emulated;	 /* every supported kernel emulates it under a uprobe: one trap instead
			  * of two */
	bool refused;	 /* some supported kernel sets no probe there, or one that does harm */
	bool has_target; /* @target is valid */
	__u64 target;	 /* address of the target, of direct calls and jumps */
	bool has_slot;	 /* @slot is valid */
	__u64 slot;	 /* address of the memory operand of an indirect call or jump */
};

/* Decodes the instruction at @code, of which @size bytes are available and whose address is
 * @vaddr. Returns 0, or -EILSEQ if it is invalid, or longer than @size. */
int disasm__decode(const void *code, size_t size, __u64 vaddr, struct disasm_insn *out);

/* Returns the register that carries integer argument @number of a function, or with DISASM_RESULT
 * its result. */
unsigned int disasm__argument_register(unsigned int number);

/* Returns whether the next instruction may run after this one, for a call after its return. */
static inline bool disasm_insn__continues(const struct disasm_insn *insn)
{
	return insn->class != DISASM_JUMP && insn->class != DISASM_JUMP_INDIRECT &&
	       insn->class != DISASM_RET && insn->class != DISASM_TRAP;
}

/* Writes the instruction in AT&T syntax, truncated to @size. Its code must still be there. */
void disasm_insn__text(const struct disasm_insn *insn, char *text, size_t size);

/* Returns whether a stub of the PLT begins at @code, which jumps through a slot, and stores that slot's address. */
bool disasm__stub_slot(const void *code, size_t size, __u64 vaddr, __u64 *slot);

/* Returns whether the last bytes of @code, which has DISASM_CALL_BYTES of them, may be a call. */
#define DISASM_CALL_BYTES 7
bool disasm__ends_with_call(const unsigned char code[DISASM_CALL_BYTES]);

/*
 * Calls @fn with each address in @code (@size bytes at @vaddr) that looks like a direct call or
 * jump with a 32-bit displacement, at any byte: these include all real ones, and are found without
 * decoding.
 */
struct disasm_branch {
	__u64 next; /* address of the next instruction, to which a call returns */
	__u64 target;
	bool is_call;
};

typedef void (*disasm_branch_fn)(const struct disasm_branch *branch, void *arg);

void disasm__scan_branches(const void *code, size_t size, __u64 vaddr, disasm_branch_fn fn,
			   void *arg);

/*
 * Calls @fn with each place in @code whose bytes, as the last operand of an instruction, are the
 * address @target or the distance to it, for targets from @low to @high. Such bytes may be anything
 * else, too.
 */
enum disasm_operand_kind {
	/* Four bytes: the distance from the next instruction, behind bytes that look like a call or
	 * jump, or what stores an address in a register. */
	DISASM_DISTANCE,
	DISASM_SHORT_DISTANCE, /* one byte, of a jump */
	DISASM_ADDRESS,	       /* four bytes: the address itself */
};

struct disasm_operand {
	__u64 next; /* address of the next instruction, behind the bytes */
	__u64 target;
	enum disasm_operand_kind kind;
};

typedef void (*disasm_operand_fn)(const struct disasm_operand *operand, void *arg);

void disasm__scan_operands(const void *code, size_t size, __u64 vaddr, __u64 low, __u64 high,
			   disasm_operand_fn fn, void *arg);

/* Returns whether the last four bytes of the instruction are the distance from its end to the
 * target of a branch, or to an address that it stores in a register. */
bool disasm_insn__has_distance(const struct disasm_insn *insn);

#endif
