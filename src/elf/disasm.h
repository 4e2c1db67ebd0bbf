/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Decodes single instructions of the host's processor: their length, their target, what they may
 * change that a probe after them needs, and whether the kernel can emulate them under a uprobe. */
#ifndef ALLOCPROF_DISASM_H
#define ALLOCPROF_DISASM_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

enum disasm_class {
	DISASM_OTHER, /* continues with the next instruction */
	DISASM_NOP,
	DISASM_PUSH, /* of one register */
	DISASM_CALL,
	DISASM_CALL_INDIRECT,
	DISASM_JUMP,
	DISASM_JUMP_CONDITIONAL,
	DISASM_JUMP_INDIRECT,
	DISASM_RET,
	DISASM_TRAP, /* control does not continue after it: ud2, hlt, int3 */
};

/* What an instruction may change; conservative. An instruction without any of these changes at most
 * the flags and registers that carry no argument. */
enum disasm_effect {
	DISASM_WRITES_ARGUMENT = 1 << 0, /* a register that carries an integer argument */
	DISASM_WRITES_MEMORY = 1 << 1,
	DISASM_WRITES_SP = 1 << 2,
	DISASM_UNKNOWN_EFFECT = 1 << 3, /* unknown; anything may have changed */
};

struct disasm_insn {
	__u64 vaddr;
	unsigned int length; /* bytes */
	enum disasm_class class;
	unsigned int effects; /* mask of enum disasm_effect */
	bool emulated;	      /* every supported kernel emulates it under a uprobe: one trap instead
			  * of two */
	bool has_target;      /* @target is valid */
	__u64 target;	      /* of direct calls and jumps */
	bool has_slot;	      /* @slot is valid */
	__u64 slot;	      /* memory operand of an indirect call or jump */
	char text[96];	      /* AT&T syntax, single blanks, no comment; truncated */
};

struct disasm;

/* A decoder, for one thread at a time. -ENOTSUP: libopcodes lacks the host's processor. */
int disasm__new(struct disasm **out);
void disasm__free(struct disasm *disasm);

/* Decodes the instruction at @code, of which @size bytes are available and whose address is @vaddr.
 * -EILSEQ: invalid, or longer than @size. */
int disasm__decode(struct disasm *disasm, const void *code, size_t size, __u64 vaddr,
		   struct disasm_insn *out);

/* Completes @insn from its bytes and text; vaddr, length and text are set. One implementation per
 * processor, disasm_<processor>.c. */
void disasm_arch__classify(const unsigned char *code, struct disasm_insn *insn);

/*
 * Calls @fn with each address in @code (@size bytes at @vaddr) that looks like a direct call or
 * jump with a 32-bit displacement, at any byte: a superset of the real ones, found without
 * decoding.
 */
struct disasm_branch {
	__u64 next; /* address of the next instruction, to which a call returns */
	__u64 target;
	bool is_call;
};

typedef void (*disasm_branch_fn)(const struct disasm_branch *branch, void *arg);

void disasm_arch__scan_branches(const void *code, size_t size, __u64 vaddr, disasm_branch_fn fn,
				void *arg);

#endif
