/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compiles the call frame information of an ELF file (.eh_frame, .debug_frame), and Go's pc tables
 * (.gopclntab), to unwind tables for BPF. Formats: LSB 5.0 core, chapter 10 (.eh_frame); DWARF 5,
 * section 6.4; go_table.h.
 */
#ifndef ALLOCPROF_CFI_H
#define ALLOCPROF_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "cfi_rules.h"
#include "unwind_abi.h"

struct error;
struct parser;
struct wire_reader;
struct wire_writer;

/* Statistics of a build. Invalid FDEs of known range count in rejected and in unsupported rows. */
struct cfi_stats {
	__u64 eh_frame_bytes;
	__u64 debug_frame_bytes; /* uncompressed */
	__u64 go_table_bytes;
	__u32 cies;
	__u32 fdes;		     /* number of FDEs that are used */
	__u32 rejected[CFI_REJECTS]; /* numbers of entries by reason */
	__u32 rows_none;	     /* number of rows that mark gaps between FDEs */
	__u32 rows_unsupported[UNWIND_UNSUPPORTED_KINDS];
};

/* The tables of one file; unwind_abi.h describes their structure. Read-only once built. */
struct cfi_table {
	struct unwind_segment *segments; /* sorted by vaddr, disjoint */
	__u32 *blocks;			 /* indexes into rows */
	struct unwind_row *rows;
	struct unwind_rule *rules; /* unique */
	__u32 segment_count;
	__u32 block_count;
	__u32 row_count;
	__u32 rule_count;
	struct cfi_stats stats;
};

/*
 * Builds the table of the program or shared object behind @fd, which stays the caller's; its file
 * position is ignored. @path is for messages. Work and memory are linear in the file's size;
 * invalid entries are counted in stats and skipped. The caller frees *@out. Fails with -ENOEXEC
 * (no supported ELF file), -EOPNOTSUPP (processor), -ENODATA (no call frame information), -EFBIG
 * (too large), -ENOMEM.
 */
int cfi_table__build(int fd, const char *path, struct cfi_table **out, struct error *error);

/* Works like cfi_table__build(), in a worker, for a file of a target; stats are zeroed. Also
 * returns -ECHILD if the file cannot be read safely. */
int cfi_table__build_by(struct parser *parser, int fd, const char *path, struct cfi_table **out,
			struct error *error);

/* Writes a table's arrays. */
void cfi_table__write(const struct cfi_table *table, struct wire_writer *to);
/* Reads a table from a worker that is not trusted; the file has @file_bytes. Fails with -EPROTO if
 * it is no sound table of the file; or -ENOMEM. */
int cfi_table__read(struct wire_reader *from, __u64 file_bytes, struct cfi_table **out);

/* Works like cfi_table__build(), for an image in memory, such as the vDSO. @image is read only
 * during the call. */
int cfi_table__build_image(const void *image, size_t size_bytes, const char *name,
			   struct cfi_table **out, struct error *error);

/* Returns whether a table from a file, whose arrays have the sizes that it states, is as safe to
 * use as a built one. Ignores stats. */
bool cfi_table__is_sound(const struct cfi_table *table);

/* Accepts NULL. */
void cfi_table__free(struct cfi_table *table);

/* Looks up the rule for @vaddr. Returns false if there is no call frame information: outside of
 * the segments, or in a gap. */
bool cfi_table__lookup(const struct cfi_table *table, __u64 vaddr, struct unwind_rule *out);

/* Addresses [@lo, @hi) of one row; gaps have rows, too. */
struct cfi_range {
	__u64 lo;
	__u64 hi;
	struct unwind_rule rule;
};

/* Stores the row of @vaddr. Returns false outside of the segments. */
bool cfi_table__range(const struct cfi_table *table, __u64 vaddr, struct cfi_range *out);

/* Returns the size of the four arrays in bytes. */
size_t cfi_table__size_bytes(const struct cfi_table *table);

/* Returns one or two words for messages. */
const char *cfi__reject_name(enum cfi_reject reject);
const char *cfi__unsupported_name(enum unwind_unsupported kind);

#endif
