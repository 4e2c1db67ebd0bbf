/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwind tables, which user space compiles from a file's call frame information and BPF reads.
 *
 * A table has four arrays. To find the rule for an address:
 *
 *	the segment with offset = file_offset - segment.file_offset < segment.size; none: no CFI
 *	block = segment.first_block + (offset >> UNWIND_BLOCK_SHIFT)
 *	among rows[blocks[block]] … rows[blocks[block + 1] - 1] the last one whose
 *	pc_lo <= (offset & 0xffff); if there is none, the row just before rows[blocks[block]]
 *	rules[row.rule]
 *
 * The row before always exists, since a segment's first row is at its offset 0. A block has at most
 * UNWIND_BLOCK_SIZE rows, which bounds the binary search.
 */
#ifndef ALLOCPROF_UNWIND_ABI_H
#define ALLOCPROF_UNWIND_ABI_H

#include <linux/types.h>

#define UNWIND_BLOCK_SHIFT 8
#define UNWIND_BLOCK_SIZE  (1 << UNWIND_BLOCK_SHIFT)

/* Steps of the binary search for a row inside its block, which has 0 … UNWIND_BLOCK_SIZE rows. */
#define UNWIND_SEARCH_STEPS (UNWIND_BLOCK_SHIFT + 1)

/* Maximum number of rules of one table; struct unwind_row has 16 bits for the index. */
#define UNWIND_MAX_RULES 65535

/* Maximum number of segments of one table. Linkers make one; BOLT and others a few. */
#define UNWIND_MAX_SEGMENTS 16

/* The canonical frame address, which is also the caller's sp. fp is rbp or x29. */
enum unwind_cfa {
	UNWIND_CFA_NONE,	/* no call frame information here; every other field is 0 */
	UNWIND_CFA_UNSUPPORTED, /* cfa_offset is an enum unwind_unsupported */
	UNWIND_CFA_SP,		/* sp + cfa_offset */
	UNWIND_CFA_FP,		/* fp + cfa_offset */
	UNWIND_CFA_AT_SP,	/* *(sp + cfa_offset) + cfa_add */
	UNWIND_CFA_AT_FP,	/* *(fp + cfa_offset) + cfa_add */
	UNWIND_CFA_PLT,		/* sp + cfa_offset + ((pc & UNWIND_PLT_MASK) >= cfa_add ? 8 : 0) */
	/* The caller is on a goroutine's stack, this code on the thread's C stack: the struct g is
	 * at g = *(sp + cfa_offset), the end of its stack at *(g + UNWIND_GO_STACK_END); the CFA is
	 * that - *(sp + fp_offset) + cfa_add, and the caller's fp is still in its register. */
	UNWIND_CFA_GOROUTINE,
	/* The caller is on the stack that this walk's last UNWIND_CFA_GOROUTINE step left: the CFA
	 * is the sp from before that step, rounded up to cfa_add modulo 16, + cfa_offset. */
	UNWIND_CFA_LEFT,
	/* The caller is on the stack of the thread's goroutine: a struct g is at *(thread pointer +
	 * cfa_offset), the thread's struct m at *(g + UNWIND_GO_M), the goroutine's g at *(m +
	 * fp_offset), and the CFA is *(g + UNWIND_GO_SCHED_SP) + cfa_add. */
	UNWIND_CFA_SYSTEMSTACK,
	UNWIND_CFA_OTHER_STACK, /* the caller is on another stack, whose address is unknown */
};

/* x86-64's PLT entries push 8 bytes at some pc of each 16-byte slot. */
#define UNWIND_PLT_MASK 15

/* Offsets in Go's struct g: the end of its stack, its thread's struct m, and its saved sp. */
#define UNWIND_GO_STACK_END 0x08
#define UNWIND_GO_M	    0x30
#define UNWIND_GO_SCHED_SP  0x38

/* Where the caller's fp or the return address is. */
enum unwind_where {
	UNWIND_SAME,	  /* still in its register */
	UNWIND_UNDEFINED, /* nowhere; for the return address: this frame is the outermost */
	UNWIND_AT_CFA,	  /* *(cfa + offset) */
	UNWIND_AT_SP,	  /* *(sp + offset) */
	UNWIND_AT_FP,	  /* *(fp + offset), fp before this step changes it */
};

/* Why a rule cannot express the call frame information. */
enum unwind_unsupported {
	UNWIND_UNSUPPORTED_CFA_MISSING,	   /* the CFI program never defines the CFA */
	UNWIND_UNSUPPORTED_CFA_EXPRESSION, /* a DWARF expression of unknown form */
	UNWIND_UNSUPPORTED_CFA_REGISTER,   /* not sp or fp; cfa_add is the DWARF register */
	UNWIND_UNSUPPORTED_SP,		   /* the caller's sp is not the CFA */
	UNWIND_UNSUPPORTED_FP_EXPRESSION,  /* a DWARF expression of unknown form */
	UNWIND_UNSUPPORTED_FP_REGISTER,	   /* fp is saved in the register cfa_add */
	UNWIND_UNSUPPORTED_RA_EXPRESSION,  /* a DWARF expression of unknown form */
	UNWIND_UNSUPPORTED_RA_REGISTER,	   /* the return address is in the register cfa_add */
	UNWIND_UNSUPPORTED_RA_UNKNOWN,	   /* no rule for the return address */
	UNWIND_UNSUPPORTED_OFFSET,	   /* an offset does not fit its field */
	UNWIND_UNSUPPORTED_BAD_FDE,	   /* the FDE that covers this code is broken */
	UNWIND_UNSUPPORTED_RULES,	   /* more rules than UNWIND_MAX_RULES */
	UNWIND_UNSUPPORTED_KINDS,
};

/* The kernel built this frame for a signal: its pc is the interrupted instruction, not a return
 * address, and is looked up unchanged. */
#define UNWIND_SIGNAL_FRAME 1
/* The rule comes from the code's instructions, or from Go's pclntab, instead of call frame information. */
#define UNWIND_OF_CODE 2

/* One unwind step. rules[0] always has UNWIND_CFA_NONE. */
struct unwind_rule {
	__u8 cfa;      /* enum unwind_cfa */
	__u8 fp_where; /* enum unwind_where */
	__u8 ra_where; /* enum unwind_where */
	__u8 flags;    /* UNWIND_SIGNAL_FRAME, UNWIND_OF_CODE */
	__s32 cfa_offset;
	__s32 fp_offset;
	__s16 ra_offset;
	__s16 cfa_add;
};

/* A row of a segment, valid up to the next row's pc. */
struct unwind_row {
	__u16 pc_lo; /* low 16 bits of the offset in the segment */
	__u16 rule;  /* index in rules */
};

/* Code of one linear mapping of the file, from its first FDE to the end of its last. */
struct unwind_segment {
	__u64 file_offset;
	/* ELF virtual address of file_offset, from the program headers; BPF does not use it. */
	__u64 vaddr;
	__u32 size; /* bytes */
	/* Index of its first block in blocks; it has ((size - 1) >> UNWIND_BLOCK_SHIFT) + 2
	 * blocks. */
	__u32 first_block;
};

/*
 * Layout of the tables in BPF maps. Blocks and rows are 32-bit words in chunks. A slice is the part
 * of a segment that fits in one chunk, so that a look-up reads only one map value. Most files have
 * one slice.
 */
#define UNWIND_CHUNK_WORDS	(1 << 18)
#define UNWIND_MAX_CHUNKS	1024
#define UNWIND_MAX_SLICES	16384
#define UNWIND_MAX_MODULES	16384
#define UNWIND_MAX_RULES_LOADED 262144

struct unwind_chunk {
	__u32 words[UNWIND_CHUNK_WORDS];
};

/* The word of a block: the index of its first row in the slice, and its number of rows. */
#define UNWIND_BLOCK_COUNT_SHIFT 18
#define UNWIND_BLOCK_ROW_MASK	 ((1 << UNWIND_BLOCK_COUNT_SHIFT) - 1)

struct unwind_slice {
	__u64 file_offset; /* segment.file_offset + a multiple of 64 KiB */
	__u32 size;	   /* bytes of code */
	__u32 chunk;
	__u32 first_block; /* index of a word in the chunk */
	__u32 first_row;   /* index of a word in the chunk; this row is at the slice's offset 0 */
	__u32 first_rule;  /* index of the table's rule 0 in unwind_rules */
	__u32 pad;	   /* 0 */
};

/* Returns the index in unwind_rules of the rule at @offset inside @slice, which is in @chunk. */
static inline __attribute__((always_inline)) __u32
unwind_slice__rule_index(const struct unwind_slice *slice, const struct unwind_chunk *chunk,
			 __u32 offset)
{
	__u32 block = slice->first_block + (offset >> UNWIND_BLOCK_SHIFT), row, n, word;
	__u16 pc_lo = offset;

	word = chunk->words[block & (UNWIND_CHUNK_WORDS - 1)];
	n = word >> UNWIND_BLOCK_COUNT_SHIFT;
	row = slice->first_row + (word & UNWIND_BLOCK_ROW_MASK);
	/* The search finds the first row of the block behind the offset; the result is the row
	 * before it. */
	for (int i = 0; i < UNWIND_SEARCH_STEPS; i++) {
		__u32 half = n / 2;

		if (!n)
			break;
		word = chunk->words[(row + half) & (UNWIND_CHUNK_WORDS - 1)];
		if ((__u16)word <= pc_lo) {
			row += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	word = chunk->words[(row - 1) & (UNWIND_CHUNK_WORDS - 1)];
	return slice->first_rule + (word >> 16);
}

enum unwind_table_state {
	UNWIND_TABLE_AWAITED, /* user space has not compiled it yet */
	UNWIND_TABLE_READY,
	UNWIND_TABLE_NONE, /* the file has no usable call frame information */
};

/* The table of a module, indexed by module id. Slices are sorted by file offset and do not
 * overlap. */
struct unwind_table {
	__u32 state; /* enum unwind_table_state; stored last */
	__u32 first_slice;
	__u32 n_slices;
	/* Code at the file's entry point that has no call frame information: its size in bytes,
	 * and its file offset. */
	__u32 entry_size;
	__u64 entry_offset;
};

_Static_assert(sizeof(struct unwind_slice) == 32, "unwind_slice is ABI");
_Static_assert(sizeof(struct unwind_rule) == 16, "unwind_rule is ABI");
_Static_assert(sizeof(struct unwind_row) == 4, "unwind_row is ABI");
_Static_assert(sizeof(struct unwind_segment) == 24, "unwind_segment is ABI");

#endif
