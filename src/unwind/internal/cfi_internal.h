/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the cfi_*.c files share. Nobody else includes this but their unit test. */
#ifndef ALLOCPROF_CFI_INTERNAL_H
#define ALLOCPROF_CFI_INTERNAL_H

#include "cfi.h"
#include "go_table.h"

/*
 * A reader that never passes its end: a read that would sets @bad, gives 0 and leaves nothing more
 * to read, so that callers check once after a run of reads and loops end by themselves.
 */
struct cfi_cursor {
	const __u8 *pos;
	const __u8 *end;
	bool bad;
};

__u8 cfi_cursor__u8(struct cfi_cursor *c);
__u16 cfi_cursor__u16(struct cfi_cursor *c);
__u32 cfi_cursor__u32(struct cfi_cursor *c);
__u64 cfi_cursor__u64(struct cfi_cursor *c);
__u64 cfi_cursor__uleb128(struct cfi_cursor *c);
__s64 cfi_cursor__sleb128(struct cfi_cursor *c);
/* Steps over @size bytes and returns where they start. */
const __u8 *cfi_cursor__skip(struct cfi_cursor *c, __u64 size);

struct cfi_go;

/* Call frame information as it lies in the file. */
struct cfi_section {
	const __u8 *data;
	size_t size;
	const struct cfi_go *go; /* not NULL: it is Go's table, and the rest is not set */
	__u64 vaddr;		 /* of data[0], the base of pc-relative pointers */
	bool debug_frame;
	/* .eh_frame found without section headers ends at a zero length, once that many FDEs were
	 * seen; where a section has a size, a zero length in its midst is only what ld made of
	 * several crtend.o. */
	bool ends_at_zero;
	__u64 fdes_expected;
};

/* An executable segment. */
struct cfi_text {
	__u64 vaddr;
	__u64 file_offset;
	__u64 size; /* bytes that are in the file */
};

/*
 * A value that DWARF computes out of the frame's registers, in the few forms that rules can take.
 */
enum cfi_value_kind {
	CFI_VALUE_UNKNOWN, /* anything else */
	CFI_VALUE_CONST,   /* add */
	CFI_VALUE_REG,	   /* reg + add */
	CFI_VALUE_MEM,	   /* *(reg + offset) + add */
	CFI_VALUE_PLT,	   /* UNWIND_CFA_PLT: offset is cfa_offset, add is cfa_add */
	CFI_VALUE_UNSET,   /* never defined */
};

/* Stands for the CFA where a register number is asked for. */
#define CFI_REG_CFA 0xffff
/* Stands for register numbers too large to be one. */
#define CFI_REG_OTHER 0xfffe

/* A register number as the file has it; no number of a file can pass for the CFA. */
static inline __u16 cfi_reg(__u64 reg)
{
	return reg < CFI_REG_OTHER ? (__u16)reg : CFI_REG_OTHER;
}

struct cfi_value {
	__u16 kind; /* enum cfi_value_kind */
	__u16 reg;
	__s64 offset;
	__s64 add;
};

enum cfi_saved_how {
	CFI_SAVED_UNSPECIFIED,
	CFI_SAVED_UNDEFINED,
	CFI_SAVED_SAME,
	CFI_SAVED_AT, /* in memory at the value */
	CFI_SAVED_IS, /* it is the value */
};

struct cfi_saved {
	__u32 how; /* enum cfi_saved_how */
	struct cfi_value value;
};

/* The registers that unwinding needs; all others are parsed and forgotten. */
enum cfi_column {
	CFI_COLUMN_SP,
	CFI_COLUMN_FP,
	CFI_COLUMN_RA,
	CFI_COLUMNS
};

/* One row of the virtual unwind table of DWARF 5, section 6.4.1. */
struct cfi_state {
	struct cfi_value cfa;
	struct cfi_saved columns[CFI_COLUMNS];
};

/* Functions of Go's runtime that change the stack, in the order in which they are looked at. */
enum go_runtime {
	GO_ASMCGOCALL,
	GO_CROSSCALL2,
	GO_CGOCALLBACK,
	GO_SYSTEMSTACK,
	GO_MCALL,
	GO_MORESTACK,
	GO_RUNTIME_FUNCTIONS,
};

/* Addresses [lo, hi) with a rule that Go's table does not have. */
struct go_switch {
	__u64 lo, hi;
	struct unwind_rule
		rule; /* with UNWIND_CFA_NONE: only the frame pointer's place is taken from it */
};

#define MAX_GO_SWITCHES 16

/* Go's table of one file, and what is to be said of its runtime beside it. */
struct cfi_go {
	struct go_table table;
	/* The file's code at @vaddr, borrowed; NULL: it has less than @size bytes there. */
	const __u8 *(*code)(void *file, __u64 vaddr, __u64 size);
	void *file;
	struct go_switch switches[MAX_GO_SWITCHES];
	__u32 switch_count;
	/* While switches are looked for: how far asmcgocall moves the sp of the stack that C code runs on, and what
	 * crosscall2 has pushed where it calls cgocallback. */
	__s64 system_bytes, crosscall_bytes;
};

/* What differs between processors. */
struct cfi_arch {
	__u16 machine;		      /* EM_* */
	__u16 registers[CFI_COLUMNS]; /* DWARF numbers */
	/* True if calls leave the return address in a register, so that it may still be there. */
	bool ra_in_register;
	/* Finds where a function of Go's runtime leaves its stack. NULL: not known for this processor. */
	void (*find_go_switches)(struct cfi_go *go, enum go_runtime which,
				 const struct go_function *function, const __u8 *code, size_t size);
	/* Recognises a CFA expression that is known as a whole; sets *@out and returns true. */
	bool (*match_cfa)(const __u8 *ops, size_t size, struct cfi_value *out);
};

extern const struct cfi_arch cfi_arch_x86_64;

/* CFI_COLUMNS if nobody needs the register. */
enum cfi_column cfi_arch__column(const struct cfi_arch *arch, __u64 reg);

struct cfi_cie {
	__u64 offset; /* in its section */
	__u64 code_align;
	__s64 data_align;
	__u8 fde_encoding;
	bool sized_augmentation;
	bool signal_frame;
	bool readable; /* its FDEs say what code they are for, though */
	__u8 reject;   /* enum cfi_reject; not CFI_OK: no rule can be had from it */
	struct cfi_state initial;
};

struct cfi_fde {
	__u64 lo;
	__u64 hi;
	const __u8 *program;
	__u32 program_size;
	__u32 cie; /* index in cfi_entries.cies */
};

struct cfi_entries {
	struct cfi_cie *cies; /* by offset */
	struct cfi_fde *fdes; /* by lo, not overlapping */
	__u32 cie_count;
	__u32 fde_count;
};

/*
 * Reads a DW_EH_PE_* pointer (LSB 5.0 core, 10.5.1) that lies in @section. @data_base is what
 * DW_EH_PE_datarel counts from.
 */
enum cfi_reject cfi_pointer__read(struct cfi_cursor *c, __u8 encoding,
				  const struct cfi_section *section, __u64 data_base, __u64 *out);

/* All CIEs and FDEs of a section whose code starts in @texts. Freed by cfi_entries__free(). */
int cfi_entries__read(const struct cfi_arch *arch, const struct cfi_section *section,
		      const struct cfi_text *texts, __u32 text_count, struct cfi_stats *stats,
		      struct cfi_entries *out);
void cfi_entries__free(struct cfi_entries *entries);

/* What a DWARF expression computes; @initial, or NULL, is on the stack when it starts. */
struct cfi_value cfi_expression__value(const __u8 *ops, size_t size,
				       const struct cfi_value *initial);

struct cfi_builder;

/* Takes the state from @pc on. Nonzero stops the program and is returned by it. */
typedef int (*cfi_row_fn)(void *ctx, __u64 pc, const struct cfi_state *state);

/*
 * Runs the instructions of @cie's own program (@fde NULL, @state starts unset) or of an FDE.
 * @row, NULL for a CIE, sees every row of the FDE in order of addresses, the first at fde->lo and
 * none at or past fde->hi. Returns an enum cfi_reject, or the negative errno that @row returned.
 */
int cfi_program__run(const struct cfi_arch *arch, const struct cfi_cie *cie,
		     const struct cfi_section *section, const struct cfi_fde *fde,
		     struct cfi_cursor program, struct cfi_state *state, cfi_row_fn row, void *ctx);

/* One FDE for each function of Go's table, whose program are its depths. Freed by cfi_entries__free(). */
int cfi_go__entries(const struct cfi_section *section, const struct cfi_text *texts,
		    __u32 text_count, struct cfi_entries *out);

/* Takes the rule from @pc on; one with UNWIND_CFA_NONE where there is none. Nonzero stops and is returned. */
typedef int (*cfi_rule_fn)(void *ctx, __u64 pc, const struct unwind_rule *rule);

/* All rules of such an FDE, in order of addresses. 0, or what @rule returned. */
int cfi_go__run(const struct cfi_go *go, const struct cfi_fde *fde, cfi_rule_fn rule, void *ctx);

/* Adds a switch; those that do not fit are left out, and stacks end there. */
void cfi_go__add_switch(struct cfi_go *go, __u64 lo, __u64 hi, const struct unwind_rule *rule);

/*
 * The same for a function of which nothing but its machine code is known: how far sp is below the caller's at each
 * instruction, found by following its pushes, subtractions and jumps. There is no rule where paths disagree.
 */
int cfi_code__run(__u64 lo, const __u8 *code, size_t size, cfi_rule_fn rule, void *ctx);

/* What the function has pushed at @pc; -1: not known. */
__s64 go_function__depth(const struct go_function *function, __u64 pc);

void cfi_go__find_switches_x86_64(struct cfi_go *go, enum go_runtime which,
				  const struct go_function *function, const __u8 *code,
				  size_t size);

/* Turns a row of DWARF's table into a rule, CFA_UNSUPPORTED if none can say it. */
struct unwind_rule cfi_state__rule(const struct cfi_arch *arch, const struct cfi_state *state,
				   bool signal_frame);

/*
 * The table of all @sections; where they overlap, earlier ones win. @texts are sorted by vaddr and
 * do not overlap.
 */
int cfi_table__compile(const struct cfi_arch *arch, const struct cfi_section *sections,
		       __u32 section_count, const struct cfi_text *texts, __u32 text_count,
		       struct cfi_table **out);

#endif
