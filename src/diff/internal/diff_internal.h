/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The steps of a comparison: which names and files correspond, and which stacks are pairs
 * (allocprof-diff(1), PAIRING). */
#ifndef ALLOCPROF_DIFF_INTERNAL_H
#define ALLOCPROF_DIFF_INTERNAL_H

#include "diff.h"
#include "hash_table.h"

struct diff_key;

/* Compares two stacks by the texts of their names: <0, 0 or >0. The result does not depend on the
 * sides of the stacks. */
int diff__compare_stacks(const struct diff *diff, __u32 a, __u32 b);

/* Works like profile__add_up(), but notes in @diff if a sum has reached the greatest number. */
__u64 diff__add_up(struct diff *diff, __u64 a, __u64 b);

/* Fills names, stacks and profiles of @diff. Returns 0 or -ENOMEM. */
int diff__read_stacks(struct diff *diff, const struct diff_input inputs[DIFF_SIDES]);

/* Sorts the names and fills in their other fields. Frames then have indexes instead of index + 1.
 * Returns 0 or -ENOMEM. */
int diff__order_names(struct diff *diff);

/* The largest number of pairs for a name; longer names are compared by their beginnings. */
#define DIFF_NAME_PAIRS 256

/* Names that are less similar, in thousandths, are different ones. */
#define DIFF_NAMES_ALIKE 500

/* Stores the sorted pairs of adjacent characters of @name. Returns how many there are. */
size_t diff_name__pairs(const char *name, __u16 pairs[DIFF_NAME_PAIRS]);
/* Returns Dice's coefficient of two names by their pairs of characters, in thousandths. */
unsigned int diff_name__shared_pairs(const __u16 *a, size_t n_a, const __u16 *b, size_t n_b);
/* Returns whether the similarity of the two names' texts says anything. */
bool diff_name__is_comparable(const struct diff_name *a, const struct diff_name *b);

/* The largest number of cells of the table between the first and the last frame that differ.
 * Stacks that need more count as different. */
#define DIFF_ALIGN_CELLS 65536

/* Least similarity of a pair in thousandths. The comparison of less similar stacks is aborted. */
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
	bool *is_known[DIFF_SIDES]; /* by canonical id: the side has a name with it */
	__u32 *cells;
	struct diff_align_known *known;
	size_t n_known, known_room;
	struct hash_table known_index; /* index + 1 */
	struct diff_align_name *names;
	size_t n_canonical;
	__u64 work; /* units of work so far; does not depend on the sides */
};

struct diff_alignment {
	unsigned int similarity; /* similarity in thousandths */
	/* Some frames are replaced by names that both sides have, so this is probably another
	 * stack. */
	bool is_doubtful;
	/* Only names differ, and they are similar. */
	bool is_by_name;
};

enum diff_edit {
	DIFF_EDIT_SAME, /* the same name, or a similar one at the same index */
	DIFF_EDIT_A_ONLY,
	DIFF_EDIT_B_ONLY,
};

/* Makes an aligner; @diff must outlive it. Returns NULL if there is no memory. */
struct diff_aligner *diff_aligner__new(const struct diff *diff);
void diff_aligner__free(struct diff_aligner *aligner);

/* Compares stacks @a and @b (indexes), in any order. Returns false if they are too different.
 * @edits, if not NULL, must have room for the frames of both, and gets *@n_edits edits, innermost
 * first. */
bool diff_aligner__align(struct diff_aligner *aligner, __u32 a, __u32 b,
			 struct diff_alignment *alignment, enum diff_edit *edits, size_t *n_edits);

/* Which frames the stacks of a group share, apart from frames whose names one side lacks. */
enum diff_key_kind {
	DIFF_KEYS_WHOLE,   /* all frames */
	DIFF_KEYS_BUT_ONE, /* all frames, or all but one frame of either stack */
	DIFF_KEYS_ENDS,	   /* some frames at both ends, at least half of all */
};

struct diff_key_group {
	__u32 key;
	const __u32 *ranks[DIFF_SIDES]; /* ranks, ascending */
	__u32 n[DIFF_SIDES];
};

struct diff_keys {
	const struct diff *diff;
	const bool *is_stable; /* by canonical id: both sides have the name; owned */
	const __u32 *stacks[DIFF_SIDES];
	size_t n_stacks[DIFF_SIDES];
	enum diff_key_kind kind;
	__u32 *ranks[DIFF_SIDES]; /* ranks of the current group */
	__u64 *sums;		  /* keys of a stack's first frames */
	__u64 *inverses;
	struct diff_key *keys;
	size_t n_keys, room;
};

/* Prepares @keys. @stacks has @n stacks of @diff by side, in the order of their ranks; the
 * arguments must outlive @keys. Returns 0 or -ENOMEM. The caller releases @keys in either case. */
int diff_keys__init(struct diff_keys *keys, const struct diff *diff,
		    __u32 *const stacks[DIFF_SIDES], const size_t n[DIFF_SIDES]);
void diff_keys__release(struct diff_keys *keys);

/* Computes the keys of all stacks that are not @is_paired (by side and rank). Returns 0 or
 * -ENOMEM. */
int diff_keys__fill(struct diff_keys *keys, enum diff_key_kind kind,
		    const bool *const is_paired[DIFF_SIDES]);

/* Calls @visit for each key that both sides have, until it returns nonzero, which is returned
 * then. The order does not depend on the sides. */
int diff_keys__for_each_group(struct diff_keys *keys,
			      int (*visit)(void *context, const struct diff_key_group *group),
			      void *context);

/* A file's base name on one side. */
struct diff_module {
	const char *base; /* owned by the profile */
	char *name;	  /* name for both sides: the base name, or both if they differ; owned */
	bool is_matched;
};

struct diff_modules {
	struct diff_module *modules[DIFF_SIDES]; /* base names are unique per side */
	size_t n[DIFF_SIDES];
	__u32 *by_id[DIFF_SIDES]; /* indexes of a profile's modules, by the module's id - 1 */
};

/* Matches files by base name, then the programs of the two commands, then files whose names are at
 * least half similar, the best match first. Returns 0 or -ENOMEM. The caller releases @modules in
 * either case. */
int diff_modules__match(struct diff_modules *modules, const struct diff_input inputs[DIFF_SIDES]);
void diff_modules__release(struct diff_modules *modules);

struct diff_pair {
	__u32 stacks[DIFF_SIDES]; /* indexes of the stacks */
	__u16 similarity;	  /* thousandths */
};

/* Pairs stacks that are on one side of @diff only, each at most once. The result does not depend
 * on the sides. The caller frees *@pairs. *@stopped: not all candidates were compared. Returns 0
 * or -ENOMEM. */
int diff_pair__find(const struct diff *diff, struct diff_pair **pairs, size_t *n_pairs,
		    bool *stopped);

#endif
