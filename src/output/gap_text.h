/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sentences for gaps. */
#ifndef ALLOCPROF_GAP_TEXT_H
#define ALLOCPROF_GAP_TEXT_H

#include "gaps.h"

struct profile_gap;

/* A sentence, in one line, without a point at its end. To be freed; NULL if there is no memory. */
char *gap_text__sentence(const struct profile_gap *gap);
/* Says, behind the sentence, what the gap does to the numbers, or that they are not complete. */
const char *gap_text__effect(enum gap kind);
/* Says the same in brief, before the sentence: "not complete". */
const char *gap_text__verdict(enum gap kind);

#endif
