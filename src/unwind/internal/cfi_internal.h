/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Interfaces between the cfi_*.c files and their unit test. */
#ifndef ALLOCPROF_CFI_INTERNAL_H
#define ALLOCPROF_CFI_INTERNAL_H

#include "cfi.h"
#include <gelf.h>

#include "dwarf_cursor.h"
#include "go_table.h"

struct cfi_go;
struct cfi_bare;

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

/* An executable segment. */
struct cfi_text {
	__u64 vaddr;
	__u64 file_offset;
	__u64 size; /* bytes that the file has */
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

/* Functions of Go's runtime that switch stacks, in the order of the search. */
enum go_runtime {
	GO_ASMCGOCALL,
	GO_CROSSCALL2,
	GO_CGOCALLBACK,
	GO_SYSTEMSTACK,
	GO_MCALL,
	GO_MORESTACK,
	GO_RUNTIME_FUNCTIONS,
};

/* Addresses [lo, hi) with a rule that is not in Go's table. */
struct go_switch {
	__u64 lo, hi;
	/* With UNWIND_CFA_NONE the rule only has the frame pointer's location. */
	struct unwind_rule rule;
};

#define MAX_GO_SWITCHES 16

/* Go's table of one file, and the stack switches of its runtime. */
struct cfi_go {
	struct go_table table;
	/* Returns code of the file at @vaddr, borrowed; NULL if it has less than @size bytes
	 * there. */
	const __u8 *(*code)(void *file, __u64 vaddr, __u64 size);
	void *file;
	struct go_switch switches[MAX_GO_SWITCHES];
	__u32 switch_count;
	/* During the search for switches: by how many bytes asmcgocall moves sp on the system
	 * stack, and how many crosscall2 has pushed when it calls cgocallback. */
	__s64 system_bytes, crosscall_bytes;
};

#define CFI_BARE_ENDS 8

/* Functions that have to be unwound by their instructions (cfi_code.c). */
struct cfi_bare {
	/* The callback and its argument are the same as in struct cfi_go. */
	const __u8 *(*code)(void *file, __u64 vaddr, __u64 size);
	void *file;
	struct cfi_fde *fdes; /* sorted, disjoint; owned by the cfi_file */
	__u32 n, n_ends;
	__u64 ends[CFI_BARE_ENDS]; /* vaddrs of exit(3) and pthread_exit(3) */
};

/* The processor-specific parts. */
struct cfi_arch {
	__u16 machine;		      /* EM_* */
	__u16 registers[CFI_COLUMNS]; /* DWARF numbers */
	/* Calls leave the return address in a register (link register). */
	bool ra_in_register;
	/* Finds the stack switches of a function of Go's runtime. NULL: not supported. */
	void (*find_go_switches)(struct cfi_go *go, enum go_runtime which,
				 const struct go_function *function, const __u8 *code, size_t size);
	/*
	 * Returns whether an indirect call returns to @code[@at], @at > 0, where its result is given to the system call that ends
	 * the thread, or to one of @bare's ends. @code has @size bytes, the first at @vaddr. NULL: not supported.
	 */
	bool (*ends_thread)(const __u8 *code, size_t size, size_t at, __u64 vaddr,
			    const struct cfi_bare *bare);
	/* Recognises a CFA expression as a whole; if so sets *@out and returns true. */
	bool (*match_cfa)(const __u8 *ops, size_t size, struct cfi_value *out);
};

extern const struct cfi_arch cfi_arch_x86_64;

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

struct cfi_entries {
	struct cfi_cie *cies; /* sorted by offset */
	struct cfi_fde *fdes; /* sorted by lo, disjoint */
	__u32 cie_count;
	__u32 fde_count;
};

/* The unwind information of one file, while it is read. */
struct cfi_file {
	Elf *elf;
	const char *name; /* of the file, for messages; borrowed */
	__u64 size;
	struct error *error;
	const struct cfi_arch *arch;
	struct cfi_text texts[UNWIND_MAX_SEGMENTS];
	__u32 text_count;
	struct cfi_go go;
	struct cfi_bare bare;
	struct cfi_section
		/* .eh_frame, .gopclntab, .debug_frame, then code without any of these. */
		sections[4];
	__u32 section_count;
};

/* Reads the sections of the file behind @fd, which stays the caller's. Fails with the errors of
 * cfi_table__build(). */
int cfi_file__open(int fd, struct cfi_file **out);
/* Accepts NULL. */
void cfi_file__close(struct cfi_file *file);

/* Reads a DW_EH_PE_* pointer (LSB 5.0 core, 10.5.1) of @section. @data_base is the base of
 * DW_EH_PE_datarel. */
enum cfi_reject cfi_pointer__read(struct dwarf_cursor *c, __u8 encoding,
				  const struct cfi_section *section, __u64 data_base, __u64 *out);

/* Reads the CIEs, and the FDEs whose code starts in @texts. The caller frees them by
 * cfi_entries__free(). */
int cfi_entries__read(const struct cfi_arch *arch, const struct cfi_section *section,
		      const struct cfi_text *texts, __u32 text_count, struct cfi_stats *stats,
		      struct cfi_entries *out);
void cfi_entries__free(struct cfi_entries *entries);

/* Evaluates a DWARF expression; @initial, or NULL, is on the stack at its start. */
struct cfi_value cfi_expression__value(const __u8 *ops, size_t size,
				       const struct cfi_value *initial);

struct cfi_builder;

/* Receives the state that applies from @pc on. A nonzero result stops the program, which returns
 * it. */
typedef int (*cfi_row_fn)(void *ctx, __u64 pc, const struct cfi_state *state);

/*
 * Runs the instructions of @cie (@fde NULL, @state starts unset) or of an FDE. @row, NULL for a
 * CIE, receives every row of the FDE in order of addresses, the first at fde->lo and none at or
 * after fde->hi. Returns an enum cfi_reject, or the negative errno of @row.
 */
int cfi_program__run(const struct cfi_arch *arch, const struct cfi_cie *cie,
		     const struct cfi_section *section, const struct cfi_fde *fde,
		     struct dwarf_cursor program, struct cfi_state *state, cfi_row_fn row,
		     void *ctx);

/* Makes one FDE for each function of Go's table. The caller frees them by cfi_entries__free(). */
int cfi_go__entries(const struct cfi_section *section, const struct cfi_text *texts,
		    __u32 text_count, struct cfi_entries *out);

/* Receives the rule that applies from @pc on; UNWIND_CFA_NONE if there is none. A nonzero result
 * stops, and is returned. */
typedef int (*cfi_rule_fn)(void *ctx, __u64 pc, const struct unwind_rule *rule);

/* Emits all rules of such an FDE, in order of addresses. Returns 0, or the result of @rule. */
int cfi_go__run(const struct cfi_go *go, const struct cfi_fde *fde, cfi_rule_fn rule, void *ctx);

/* Adds a stack switch; if there is no room it is dropped, and stacks end there. */
void cfi_go__add_switch(struct cfi_go *go, __u64 lo, __u64 hi, const struct unwind_rule *rule);

/* Emits the rules of a function without any table: computes the depth of sp at each instruction
 * from its pushes, subtractions and jumps. Where paths disagree there is no rule. */
int cfi_code__run(__u64 lo, const __u8 *code, size_t size, cfi_rule_fn rule, void *ctx);

/* Adds a section for functions without a table, of a C library or of a program into which it is
 * linked. Returns 0 or -ENOMEM. */
int cfi_bare__find(struct cfi_file *file);
/* Does for these functions what cfi_go__entries() does for those of Go's table. */
int cfi_bare__entries(const struct cfi_bare *bare, struct cfi_entries *out);
int cfi_bare__run(const struct cfi_bare *bare, const struct cfi_fde *fde, cfi_rule_fn rule,
		  void *ctx);

/* Returns how many bytes the function has pushed at @pc; -1: unknown. */
__s64 go_function__depth(const struct go_function *function, __u64 pc);

/* Converts a DWARF row to a rule, CFA_UNSUPPORTED if none can express it. */
struct unwind_rule cfi_state__rule(const struct cfi_arch *arch, const struct cfi_state *state,
				   bool signal_frame);

/* Compiles all @sections; where they overlap, earlier ones win. @texts are sorted by vaddr and
 * disjoint. */
int cfi_table__compile(const struct cfi_arch *arch, const struct cfi_section *sections,
		       __u32 section_count, const struct cfi_text *texts, __u32 text_count,
		       struct cfi_table **out);

#endif
