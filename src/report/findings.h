/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds what is to be said of a recording first: who leaks, who holds the peak, who churns. */
#ifndef ALLOCPROF_FINDINGS_H
#define ALLOCPROF_FINDINGS_H

#include <linux/types.h>
#include <stddef.h>

#include "advice.h"
#include "profile.h"
#include "report.h"
#include "selection.h"

struct stack_groups;

/* The function to which stacks are charged: of each the innermost that is own code and has a
 * name, or else that of a library, own code without a name, or the innermost. */
struct charged_function {
	__u32 label; /* its label in the groups */
	__u64 allocations, size_bytes;
	__u64 live, live_bytes;
	__u64 peak, peak_bytes;
	__u64 lost, lost_bytes; /* also those that are lost indirectly */
};

struct charges {
	struct charged_function *functions;
	size_t n;
	__u32 *of_groups; /* by group: index of the function + 1; 0: nothing is charged to it */
	__u32 *depths;	  /* by group: frames that are further inside */
};

/*
 * Charges the blocks of @profile, whose stacks have the groups @groups: those of @counts, by
 * count's id - 1, or all where that is NULL. Leaves out mappings and page faults, where blocks are
 * again. Returns 0 or -ENOMEM. The caller releases *@charges in either case.
 */
int charges__make(const struct profile *profile, const struct stack_groups *groups,
		  const struct selection *counts, struct charges *charges);
void charges__release(struct charges *charges);

/* In the order in which they are said. */
enum finding_kind {
	FINDING_INCOMPLETE, /* calls are missing in the recording */
	FINDING_LOST,	    /* a function's blocks to which no pointer leads, by --reachable */
	FINDING_GROWING,    /* a function's blocks still grew at the end */
	FINDING_PEAK,	    /* a function has most of the peak */
	FINDING_CHURN,	    /* a function has most of the blocks that were freed */
	FINDING_RESIDENT,   /* what resident memory is beside live blocks, by --resident */
	FINDING_ADVICE,	    /* the advice that saves most */
	FINDING_KINDS,
};

#define FINDINGS_MOST 5

struct finding {
	enum finding_kind kind;
	/* Index of the charged function + 1; 0: it is of none. For FINDING_ADVICE it is the
	 * function of the advice's entry. */
	__u32 function;
	__u64 blocks, bytes; /* its blocks, or calls that are missing, and bytes */
	__u64 whole;	     /* all of the same, of which these are a part */
	double bytes_per_second;
	__u64 lifetime_ns;  /* FINDING_CHURN: nine of ten were freed within this time */
	enum rss_kind part; /* FINDING_RESIDENT: the largest part that is no live blocks */
	__u64 part_bytes;   /* its bytes */
	struct advice advice;
};

struct findings {
	struct charges charges;
	struct finding list[FINDING_KINDS];
	size_t n; /* at most FINDINGS_MOST */
	struct advice *advice;
	size_t n_advice;
};

/* Returns the name of a kind in JSON. */
const char *finding__name(enum finding_kind kind);

/*
 * Finds what is to be said of the blocks of @report, which has to have the growth of its entries,
 * and to be of all blocks. @counts are those of its filter. @is_complete: nothing is missing in
 * the recording. Returns 0, -ENOMEM, or -EINVAL for a
 * damaged file. The caller releases *@findings in either case.
 */
int findings__find(const struct report *report, const struct selection *counts, bool is_complete,
		   struct findings *findings);
void findings__release(struct findings *findings);

/* A cost that moved from one recording to the other. */
struct moved {
	enum cost cost;
	__u64 before, after;
	char *function; /* the function that moved most of it; NULL: none did */
	double change;	/* of this function */
};

#define MOVED_COSTS 4

/* A recording that is compared with another one. */
struct moved_side {
	const struct profile *profile;
	const struct stack_groups *groups;
	const struct selection *counts; /* NULL: all */
	__u64 peak_bytes;		/* the counted peak; 0: not known */
};

/*
 * Finds the costs that moved by a hundredth or more, in descending order of the share by which
 * they did. Both recordings have to be of one run, and not sampled. Returns 0 or -ENOMEM. The caller releases
 * @list in either case.
 */
int moved__find(const struct moved_side *before, const struct moved_side *after,
		struct moved list[MOVED_COSTS], size_t *n);
void moved__release(struct moved list[MOVED_COSTS], size_t n);

#endif
