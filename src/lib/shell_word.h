/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_SHELL_WORD_H
#define ALLOCPROF_SHELL_WORD_H

#include <stdio.h>

/* Writes @word so that a shell reads it as one word: in quotes where it takes them. */
void shell_word__print(const char *word, FILE *to);

#endif
