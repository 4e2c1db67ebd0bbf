/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds what is to be said of a recording first: who leaks, who holds the peak, who churns. */
#ifndef ALLOCPROF_FINDINGS_H
#define ALLOCPROF_FINDINGS_H

#include <linux/types.h>
#include <stddef.h>

#include "advice.h"
#include "charges.h"
#include "profile.h"
#include "report.h"
#include "selection.h"

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

#endif
