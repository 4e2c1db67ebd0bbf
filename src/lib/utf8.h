/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_UTF8_H
#define ALLOCPROF_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the well-formed UTF-8 sequence at @text, 0 where it is none. A '\0' is one of 1. */
size_t utf8__sequence(const char *text);
/* The same, and 0 too for control characters: what can be shown to a person as it is. */
size_t utf8__printable(const char *text);
bool utf8__is_valid(const char *text);
/* Puts '?' in @text for each byte that can not. */
void utf8__clean(char *text);

#endif
