/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sentences for gaps. */
#ifndef ALLOCPROF_GAP_TEXT_H
#define ALLOCPROF_GAP_TEXT_H

#include "gaps.h"

struct profile_gap;

/* A sentence, in one line, without a point at its end. To be freed; NULL if there is no memory. */
char *gap_text__sentence(const struct profile_gap *gap);
/* What the gap does to the numbers that were counted, a clause; NULL where calls or blocks are missing. */
const char *gap_text__effect(enum gap kind);

#endif
