/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How alike two stacks are, and which frame of the one is which of the other. */
#ifndef ALLOCPROF_DIFF_ALIGN_H
#define ALLOCPROF_DIFF_ALIGN_H

#include "diff.h"
#include "hash_table.h"

/* What may lie between the first and the last frame that differ, of one stack times of the other. Stacks
 * with more are not alike. */
#define DIFF_ALIGN_CELLS 65536

/* In thousandths. Stacks that are less alike are not looked at to the end. */
#define DIFF_ALIGN_LEAST 550

/* Two names that were compared. */
struct diff_align_known {
	__u32 names[2];
	__u32 similarity; /* thousandths */
};

/* A name's pairs of neighbouring characters. */
struct diff_align_name {
	__u16 *pairs; /* owned; NULL until asked for */
	size_t n_pairs;
};

struct diff_aligner {
	const struct diff *diff;
	bool *is_known[DIFF_SIDES]; /* by canonical id: some name of it is on that side */
	__u32 *cells;
	struct diff_align_known *known;
	size_t n_known, known_room;
	struct hash_table known_index; /* index + 1 */
	struct diff_align_name *names;
	size_t n_canonical;
	__u64 work; /* grows with what was looked at; does not depend on which side is which */
};

struct diff_alignment {
	unsigned int similarity; /* in thousandths */
	/* Frames take the place of others that are still there: rather another stack than a new name. */
	bool is_doubtful;
	/* All that differs is names, and these are alike. */
	bool is_by_name;
};

enum diff_edit {
	DIFF_EDIT_SAME, /* or another name in the same place, where names differ */
	DIFF_EDIT_A_ONLY,
	DIFF_EDIT_B_ONLY,
};

/* For @diff, which must outlive it, or NULL without memory. */
struct diff_aligner *diff_aligner__new(const struct diff *diff);
void diff_aligner__free(struct diff_aligner *aligner);

/*
 * Compares stacks @a and @b (indexes); the answer does not depend on their order. False where they are
 * too different to say. @edits, if not NULL, has room for the frames of both and gets *@n_edits,
 * innermost first.
 */
bool diff_aligner__align(struct diff_aligner *aligner, __u32 a, __u32 b,
			 struct diff_alignment *alignment, enum diff_edit *edits, size_t *n_edits);

#endif
