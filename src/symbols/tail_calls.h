/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Inserts the frames of functions that ended by a tail call. */
#ifndef ALLOCPROF_TAIL_CALLS_H
#define ALLOCPROF_TAIL_CALLS_H

struct profile;
struct symbols;

/*
 * Inserts into @profile's stacks the functions that ended by a tail call: where the called
 * function is not that of the next frame, and by the machine code exactly one path of jumps leads
 * from one to the other. @symbols has the modules' files. Existing frames stay. A worker reads the
 * code (worker.h); if that fails, profile__add_unread() notes it, and nothing is inserted. Returns
 * 0 or -ENOMEM.
 */
int profile__add_tail_calls(struct profile *profile, const struct symbols *symbols);

#endif
