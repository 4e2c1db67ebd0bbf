/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Decodes single instructions of the host's processor: how long they are, where they lead, what a
 * probe behind them could no longer see, and whether the kernel can emulate them under a probe.
 */
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
	DISASM_TRAP, /* execution does not continue behind it: ud2, hlt, int3 */
};

/*
 * What an instruction may change. Conservative: an instruction without any of these is known to
 * change at most registers that carry no argument, and the flags.
 */
enum disasm_effect {
	DISASM_WRITES_ARGUMENT = 1 << 0, /* a register that carries an integer argument */
	DISASM_WRITES_MEMORY = 1 << 1,
	DISASM_WRITES_SP = 1 << 2,
	DISASM_UNKNOWN_EFFECT = 1 << 3, /* nothing is known; anything may have changed */
};

struct disasm_insn {
	__u64 vaddr;
	unsigned int length; /* bytes */
	enum disasm_class class;
	unsigned int effects; /* mask of enum disasm_effect */
	bool emulated;	 /* every supported kernel emulates it under a uprobe: one trap, not two */
	bool has_target; /* @target is known */
	__u64 target;	 /* of direct calls and jumps */
	bool has_slot;	 /* @slot is known */
	__u64 slot;	 /* address that an indirect call or jump loads its target from */
	char text[96];	 /* AT&T syntax, single blanks, no comment; cut where it is longer */
};

struct disasm;

/* A decoder, for one thread at a time; any number may exist. -ENOTSUP: libopcodes lacks the host's
 * processor. */
int disasm__new(struct disasm **out);
void disasm__free(struct disasm *disasm);

/* Decodes the instruction that starts at @code, of which @size bytes are known and which runs at
 * @vaddr. -EILSEQ: no instruction, or one that is longer than @size. */
int disasm__decode(struct disasm *disasm, const void *code, size_t size, __u64 vaddr,
		   struct disasm_insn *out);

/*
 * Below the generic part: completes @insn, whose vaddr, length and text are set, from its bytes and
 * text. One implementation per processor, disasm_<processor>.c.
 */
void disasm_arch__classify(const unsigned char *code, struct disasm_insn *insn);

/*
 * Calls @fn with every address in @code (@size bytes at @vaddr) that looks like a direct call or
 * jump with a 32-bit displacement, at any byte: a superset of the real ones, found without
 * decoding. @is_call tells calls from jumps.
 */
struct disasm_branch {
	__u64 next; /* behind the instruction, where a call returns to */
	__u64 target;
	bool is_call;
};

typedef void (*disasm_branch_fn)(const struct disasm_branch *branch, void *arg);

void disasm_arch__scan_branches(const void *code, size_t size, __u64 vaddr, disasm_branch_fn fn,
				void *arg);

#endif
