/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_UTF8_H
#define ALLOCPROF_UTF8_H

#include <stddef.h>

/* Bytes of the well-formed sequence at @at that is no ASCII and no control character, or 0. */
size_t utf8__sequence(const char *at);

/* Puts '?' where @text (in place) is not UTF-8 and for each control character. */
void utf8__clean(char *text);

#endif
