/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints what heaps have of the resident memory, and live blocks by size class. */
#ifndef ALLOCPROF_HEAP_TEXT_H
#define ALLOCPROF_HEAP_TEXT_H

struct profile;
struct report_output;

void heap_text__print(const struct report_output *output);

/* Returns what makes the allocator give pages back that hold no live block. */
const char *heap_text__remedy(const struct profile *profile);

#endif
