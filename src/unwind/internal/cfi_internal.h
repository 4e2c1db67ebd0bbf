/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Interfaces between the cfi_*.c files and their unit test. */
#ifndef ALLOCPROF_CFI_INTERNAL_H
#define ALLOCPROF_CFI_INTERNAL_H

#include "cfi.h"
#include <gelf.h>

#include "cfi_rules.h"
#include "dwarf_cursor.h"
#include "go_table.h"

/* An executable segment. */
struct cfi_text {
	__u64 vaddr;
	__u64 file_offset;
	__u64 size; /* bytes that the file has */
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

/* The processor-specific parts that read instructions. */
struct cfi_code_arch {
	/* Finds the stack switches of a function of Go's runtime. */
	void (*find_go_switches)(struct cfi_go *go, enum go_runtime which,
				 const struct go_function *function, const __u8 *code, size_t size);
	/*
	 * Returns whether an indirect call returns to @code[@at], @at > 0, where its result is given to the system call that ends
	 * the thread, or to one of @bare's ends. @code has @size bytes, the first at @vaddr.
	 */
	bool (*ends_thread)(const __u8 *code, size_t size, size_t at, __u64 vaddr,
			    const struct cfi_bare *bare);
	/* The code to which signal handlers return, where it has no call frame information, its size, and the rule for it and the
	 * byte before it, which is looked up as that of a call; NULL: it has such information. */
	const __u8 *signal_return;
	size_t signal_return_bytes;
	struct unwind_rule signal_rule;
};

extern const struct cfi_code_arch cfi_code_host;

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
	const struct cfi_code_arch *code_arch;
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

/* Reads the CIEs, and the FDEs whose code starts in @texts. The caller frees them by
 * cfi_entries__free(). */
int cfi_entries__read(const struct cfi_arch *arch, const struct cfi_section *section,
		      const struct cfi_text *texts, __u32 text_count, struct cfi_stats *stats,
		      struct cfi_entries *out);
void cfi_entries__free(struct cfi_entries *entries);

/* Makes one FDE for each function of Go's table. The caller frees them by cfi_entries__free(). */
int cfi_go__entries(const struct cfi_section *section, const struct cfi_text *texts,
		    __u32 text_count, struct cfi_entries *out);

/* Receives the rule that applies from @pc on; UNWIND_CFA_NONE if there is none. A nonzero result
 * stops, and is returned. */
typedef int (*cfi_rule_fn)(void *ctx, __u64 pc, const struct unwind_rule *rule);

/* Emits all rules of such an FDE, in order of addresses. Returns 0, or the result of @rule. */
int cfi_go__run(const struct cfi_go *go, const struct cfi_fde *fde, cfi_rule_fn rule, void *ctx);

/* Returns the rule where a function of Go's has pushed @depth_bytes after the return address, or where the processor keeps
 * that in a register, all that its frame has. */
struct unwind_rule cfi_go__depth_rule(const struct go_function *function, __s64 depth_bytes);

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

/* Compiles all @sections; where they overlap, earlier ones win. @texts are sorted by vaddr and
 * disjoint. */
int cfi_table__compile(const struct cfi_arch *arch, const struct cfi_section *sections,
		       __u32 section_count, const struct cfi_text *texts, __u32 text_count,
		       struct cfi_table **out);

#endif
