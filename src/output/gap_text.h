/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sentences for gaps. */
#ifndef ALLOCPROF_GAP_TEXT_H
#define ALLOCPROF_GAP_TEXT_H

#include "gaps.h"

struct profile_gap;

/* A sentence, in one line, without a point at its end. To be freed; NULL if there is no memory. */
char *gap_text__sentence(const struct profile_gap *gap);
/* What a gap does, after its sentence: to the numbers that were counted, or that they are not complete. */
const char *gap_text__effect(enum gap kind);
/* The same before its sentence, in brief: "not complete". */
const char *gap_text__verdict(enum gap kind);

#endif
