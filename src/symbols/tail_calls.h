/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Frames that tail calls removed, put back where it is certain what they were. */
#ifndef ALLOCPROF_TAIL_CALLS_H
#define ALLOCPROF_TAIL_CALLS_H

struct profile;
struct symbols;

/*
 * Adds to @profile's stacks the functions that ended by a jump to the next one: a call names a function that is not the
 * one whose frame comes next inside, and the machine code has exactly one way from one to the other. @symbols knows the
 * modules' files. What is there already stays. 0 or -ENOMEM.
 */
int profile__add_tail_calls(struct profile *profile, const struct symbols *symbols);

#endif
