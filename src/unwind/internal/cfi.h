/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compiles an ELF file's call frame information (.eh_frame, .debug_frame), and the table that Go's runtime unwinds by
 * (.gopclntab), into unwind tables that BPF can read. Formats: LSB 5.0 core, chapter 10 (.eh_frame); DWARF 5, section
 * 6.4; go_table.h.
 */
#ifndef ALLOCPROF_CFI_H
#define ALLOCPROF_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "unwind_abi.h"

struct error;

/* Why an FDE, or a CIE with all its FDEs, is not in the table or only as unsupported. */
enum cfi_reject {
	CFI_OK,
	CFI_REJECT_LENGTH,	 /* an entry ends past its section: the rest of it is not read */
	CFI_REJECT_TRUNCATED,	 /* a field or an instruction ends past its entry */
	CFI_REJECT_CIE,		 /* the CIE is missing or broken */
	CFI_REJECT_VERSION,	 /* CIE version, address size or segment size */
	CFI_REJECT_AUGMENTATION, /* a letter with unknown meaning */
	CFI_REJECT_ENCODING,	 /* a pointer encoding that is invalid or needs a running process */
	CFI_REJECT_RANGE,	 /* empty, or wraps around the address space */
	CFI_REJECT_OUTSIDE,	 /* does not start in an executable segment of the file */
	CFI_REJECT_OVERLAP,	 /* another FDE describes the same code */
	CFI_REJECT_OPCODE,	 /* an unknown instruction */
	CFI_REJECT_PROGRAM,	 /* instructions that make no sense where they are */
	CFI_REJECTS,
};

/* What a build met. Broken FDEs of known range are both in rejected and unsupported rows. */
struct cfi_stats {
	__u64 eh_frame_bytes;
	__u64 debug_frame_bytes; /* uncompressed */
	__u64 go_table_bytes;
	__u32 cies;
	__u32 fdes;		     /* used ones */
	__u32 rejected[CFI_REJECTS]; /* entries, by reason */
	__u32 rows_none;	     /* rows that mark gaps between FDEs */
	__u32 rows_unsupported[UNWIND_UNSUPPORTED_KINDS];
};

/* One file's tables; unwind_abi.h says how they hang together. Read-only once built. */
struct cfi_table {
	struct unwind_segment *segments; /* by vaddr, not overlapping */
	__u32 *blocks;			 /* indices in rows */
	struct unwind_row *rows;
	struct unwind_rule *rules; /* no two alike */
	__u32 segment_count;
	__u32 block_count;
	__u32 row_count;
	__u32 rule_count;
	struct cfi_stats stats;
};

/*
 * Builds the table of the executable or shared object behind @fd, which stays the caller's and
 * whose file position does not matter. @path is for messages only. Work and memory are linear in
 * the file's size; broken entries are counted in stats and the others used. The caller frees *@out.
 * Errors: -ENOEXEC (no ELF file of a supported kind), -EOPNOTSUPP (processor), -ENODATA (no call
 * frame information), -EFBIG (sizes beyond all reason), -ENOMEM.
 */
int cfi_table__build(int fd, const char *path, struct cfi_table **out, struct error *error);

/* The same for a file in memory, such as the vDSO. @image is read during the call only. */
int cfi_table__build_image(const void *image, size_t size_bytes, const char *name,
			   struct cfi_table **out, struct error *error);

/* Whether everything in @table, whose arrays have as many elements as it says, is within its bounds, so that all
 * that is done with a table that was built can be done with it; stats are not looked at. */
bool cfi_table__is_sound(const struct cfi_table *table);

/* Accepts NULL. */
void cfi_table__free(struct cfi_table *table);

/*
 * The rule for the address @vaddr as the file's program headers count it. Sets *@out to the rule
 * and returns true, or returns false where there is no call frame information, be it outside of
 * the segments or in a gap.
 */
bool cfi_table__lookup(const struct cfi_table *table, __u64 vaddr, struct unwind_rule *out);

/* The addresses [@lo, @hi) that one row describes, gaps included. */
struct cfi_range {
	__u64 lo;
	__u64 hi;
	struct unwind_rule rule;
};

/* The row that covers @vaddr. Returns false, with *@out not set, outside of the segments. */
bool cfi_table__range(const struct cfi_table *table, __u64 vaddr, struct cfi_range *out);

/* Bytes of the four arrays. */
size_t cfi_table__size_bytes(const struct cfi_table *table);

/* One or two words for reports and test output. */
const char *cfi__reject_name(enum cfi_reject reject);
const char *cfi__unsupported_name(enum unwind_unsupported kind);

#endif
