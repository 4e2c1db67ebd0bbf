/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads jit-PID.dump, in which JIT compilers write the names, lines and times of their code, in the format of perf's
 * jitdump-specification.txt. */
#ifndef ALLOCPROF_JIT_DUMP_H
#define ALLOCPROF_JIT_DUMP_H

#include <stddef.h>

struct arena;
struct jit_query;

/*
 * Answers @n queries, which are sorted by address, from the dump @fd; their texts are in @texts. Of several pieces of
 * code that were at an address, the last one that was there at the query's time counts, or else the first one after it.
 * If the dump's times are of another clock, the last one counts. Memory does not grow with the dump, and a record
 * that is being written ends it. Returns 0, -ENOMEM, or -ENOEXEC if it is no dump of this processor.
 */
int jit_dump__look_up(int fd, struct jit_query *queries, size_t n, struct arena *texts);

#endif
