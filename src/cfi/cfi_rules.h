/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes unwind rules of call frame information, one entry at a time: for tables of whole files (src/unwind), and within a
 * process, for the code that is on its stacks (src/inside). Nothing is allocated, and no C library is needed.
 * Formats: LSB 5.0 core, chapter 10 (.eh_frame); DWARF 5, section 6.4.
 */
#ifndef ALLOCPROF_CFI_RULES_H
#define ALLOCPROF_CFI_RULES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "dwarf_cursor.h"
#include "unwind_abi.h"

struct cfi_bare;
struct cfi_go;

/* Why an FDE, or a CIE with all its FDEs, is missing from the table or marked unsupported. */
enum cfi_reject {
	CFI_OK,
	CFI_REJECT_LENGTH,	 /* an entry exceeds its section; the rest is not read */
	CFI_REJECT_TRUNCATED,	 /* a field or an instruction exceeds its entry */
	CFI_REJECT_CIE,		 /* the CIE is missing or broken */
	CFI_REJECT_VERSION,	 /* CIE version, address size or segment size */
	CFI_REJECT_AUGMENTATION, /* unknown augmentation letter */
	CFI_REJECT_ENCODING,	 /* pointer encoding invalid, or for running processes only */
	CFI_REJECT_RANGE,	 /* empty, or wraps around the address space */
	CFI_REJECT_OUTSIDE,	 /* does not start in an executable segment of the file */
	CFI_REJECT_OVERLAP,	 /* another FDE describes the same code */
	CFI_REJECT_OPCODE,	 /* an unknown instruction */
	CFI_REJECT_PROGRAM,	 /* instructions invalid in their context */
	CFI_REJECTS,
};

/* A section of call frame information. */
struct cfi_section {
	const __u8 *data;
	size_t size;
	const struct cfi_go *go; /* not NULL: Go's table; the other fields are unset */
	const struct cfi_bare
		*bare; /* not NULL: functions without a table; the other fields are unset */
	__u64 vaddr;   /* address of data[0], the base of pc-relative pointers */
	bool debug_frame;
	/*
	 * Without section headers .eh_frame ends at a zero length, after that many FDEs; in a
	 * section of known size, ld leaves zero lengths in the middle if there were several
	 * crtend.o.
	 */
	bool ends_at_zero;
	__u64 fdes_expected;
};

/* A value computed by DWARF from the frame's registers, in the forms that rules can express. */
enum cfi_value_kind {
	CFI_VALUE_UNKNOWN, /* anything else */
	CFI_VALUE_CONST,   /* add */
	CFI_VALUE_REG,	   /* reg + add */
	CFI_VALUE_MEM,	   /* *(reg + offset) + add */
	CFI_VALUE_PLT,	   /* UNWIND_CFA_PLT: offset is cfa_offset, add is cfa_add */
	CFI_VALUE_UNSET,   /* never defined */
};

/* Pseudo register number of the CFA. */
#define CFI_REG_CFA 0xffff
/* Pseudo register number for numbers that are too large. */
#define CFI_REG_OTHER 0xfffe

/* Converts a register number of a file; never yields CFI_REG_CFA. */
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
	CFI_SAVED_AT, /* in memory at that address */
	CFI_SAVED_IS, /* the address itself is the value */
};

struct cfi_saved {
	__u32 how; /* enum cfi_saved_how */
	struct cfi_value value;
};

/* The registers that unwinding needs; others are parsed and ignored. */
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

/* The processor-specific parts. */
struct cfi_arch {
	__u16 machine;		      /* EM_* */
	__u16 registers[CFI_COLUMNS]; /* DWARF numbers */
	/* Calls leave the return address in a register (link register). */
	bool ra_in_register;
	/* Recognises a CFA expression as a whole; if so sets *@out and returns true. */
	bool (*match_cfa)(const __u8 *ops, size_t size, struct cfi_value *out);
	/* Returns whether the instruction, which has no operands, changes nothing that rules express; NULL: none is. */
	bool (*is_ignored)(__u8 op);
};

extern const struct cfi_arch cfi_arch_host;

/* Returns the column of the register; CFI_COLUMNS if it is not needed. */
enum cfi_column cfi_arch__column(const struct cfi_arch *arch, __u64 reg);

struct cfi_cie {
	__u64 offset; /* offset in its section */
	__u64 code_align;
	__s64 data_align;
	__u8 fde_encoding;
	bool sized_augmentation;
	bool signal_frame;
	bool readable; /* the ranges of its FDEs can be read, even if it is rejected */
	__u8 reject;   /* enum cfi_reject; not CFI_OK: it yields no rules */
	const __u8 *program;
	__u32 program_size;
	struct cfi_state initial;
};

struct cfi_fde {
	__u64 lo;
	__u64 hi;
	const __u8 *program;
	__u32 program_size;
	__u32 cie; /* index in cfi_entries.cies */
};

/* How deep states may be remembered; compilers nest one level. */
#define CFI_REMEMBER_DEPTH 32

/* Receives the state that applies from @pc on. A nonzero result stops the program, which returns
 * it. */
typedef int (*cfi_row_fn)(void *ctx, __u64 pc, const struct cfi_state *state);

/* The memory of a program that runs. The caller has it where it has room, and need not initialise it. */
struct cfi_machine {
	const struct cfi_arch *arch;
	const struct cfi_cie *cie;
	const struct cfi_section *section;
	const struct cfi_fde *fde; /* NULL while the CIE's instructions run */
	struct dwarf_cursor c;
	struct cfi_state *state;
	cfi_row_fn row;
	void *ctx;
	__u64 pc;
	unsigned int depth;
	struct cfi_state remembered[CFI_REMEMBER_DEPTH];
};

/*
 * Runs the instructions of @cie (@fde NULL, @state starts unset) or of an FDE. @row, NULL for a
 * CIE, receives every row of the FDE in order of addresses, the first at fde->lo and none at or
 * after fde->hi. Returns an enum cfi_reject, or the negative errno of @row.
 */
int cfi_program__run(struct cfi_machine *m, const struct cfi_arch *arch, const struct cfi_cie *cie,
		     const struct cfi_section *section, const struct cfi_fde *fde,
		     struct dwarf_cursor program, struct cfi_state *state, cfi_row_fn row,
		     void *ctx);

/* Reads a CIE. @c is behind the CIE id. The other members of the zeroed @cie are left alone. */
enum cfi_reject cfi_cie__read(struct dwarf_cursor *c, const struct cfi_arch *arch,
			      const struct cfi_section *section, struct cfi_machine *machine,
			      struct cfi_cie *cie);

/* Reads an FDE. @c is behind the CIE pointer. Leaves fde->cie alone. */
enum cfi_reject cfi_fde__read(struct dwarf_cursor *c, const struct cfi_section *section,
			      const struct cfi_cie *cie, struct cfi_fde *fde);

/* Reads a DW_EH_PE_* pointer (LSB 5.0 core, 10.5.1) of @section. @data_base is the base of
 * DW_EH_PE_datarel. */
enum cfi_reject cfi_pointer__read(struct dwarf_cursor *c, __u8 encoding,
				  const struct cfi_section *section, __u64 data_base, __u64 *out);

/* Evaluates a DWARF expression; @initial, or NULL, is on the stack at its start. */
struct cfi_value cfi_expression__value(const __u8 *ops, size_t size,
				       const struct cfi_value *initial);

/* Converts a DWARF row to a rule, CFA_UNSUPPORTED if none can express it. */
struct unwind_rule cfi_state__rule(const struct cfi_arch *arch, const struct cfi_state *state,
				   bool signal_frame);

#endif
