/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Marks of regions whose names are known at run time alone, since Swift has no macros of C. */
#ifndef ALLOCPROF_SWIFT_MARKS_H
#define ALLOCPROF_SWIFT_MARKS_H

#include <allocprof.h>

/* These have no note, so that only the engine preload sees them. No frame ends the region. */
static inline void allocprof_swift_begin(const char *name)
{
	(void)name;
#ifdef ALLOCPROF_CALL_
	ALLOCPROF_CALL_(4, name);
#endif
}

static inline void allocprof_swift_end(const char *name)
{
	(void)name;
#ifdef ALLOCPROF_CALL_
	ALLOCPROF_CALL_(2, name);
#endif
}

#endif
