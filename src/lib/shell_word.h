/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_SHELL_WORD_H
#define ALLOCPROF_SHELL_WORD_H

#include <stdio.h>

/* Writes @word as one word of a shell, quoted if necessary. */
void shell_word__print(const char *word, FILE *to);

#endif
