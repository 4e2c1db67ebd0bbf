/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Aligns the frames of two stacks and computes their similarity. */
#ifndef ALLOCPROF_DIFF_ALIGN_H
#define ALLOCPROF_DIFF_ALIGN_H

#include "diff.h"
#include "hash_table.h"

/* Limit of the table's cells between the first and the last frame that differ. Stacks that need
 * more count as different. */
#define DIFF_ALIGN_CELLS 65536

/* In thousandths. The comparison of less similar stacks is aborted. */
#define DIFF_ALIGN_LEAST 550

/* A cached comparison of two names. */
struct diff_align_known {
	__u32 names[2];
	__u32 similarity; /* thousandths */
};

/* A name's pairs of neighbouring characters. */
struct diff_align_name {
	__u16 *pairs; /* owned; NULL until needed */
	size_t n_pairs;
};

struct diff_aligner {
	const struct diff *diff;
	bool *is_known[DIFF_SIDES]; /* by canonical id: the side has a name of it */
	__u32 *cells;
	struct diff_align_known *known;
	size_t n_known, known_room;
	struct hash_table known_index; /* index + 1 */
	struct diff_align_name *names;
	size_t n_canonical;
	__u64 work; /* work units so far; does not depend on the sides */
};

struct diff_alignment {
	unsigned int similarity; /* in thousandths */
	/* Frames are replaced by names that both sides have: probably another stack. */
	bool is_doubtful;
	/* Only names differ, and these are similar. */
	bool is_by_name;
};

enum diff_edit {
	DIFF_EDIT_SAME, /* or a similar name at the same index */
	DIFF_EDIT_A_ONLY,
	DIFF_EDIT_B_ONLY,
};

/* @diff must outlive it. NULL on ENOMEM. */
struct diff_aligner *diff_aligner__new(const struct diff *diff);
void diff_aligner__free(struct diff_aligner *aligner);

/* Compares stacks @a and @b (indexes), in any order. False if they are too different. @edits, if
 * not NULL, has room for the frames of both and gets *@n_edits, innermost first. */
bool diff_aligner__align(struct diff_aligner *aligner, __u32 a, __u32 b,
			 struct diff_alignment *alignment, enum diff_edit *edits, size_t *n_edits);

#endif
