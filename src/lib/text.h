/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text for people and for the shell. */
#ifndef ALLOCPROF_TEXT_H
#define ALLOCPROF_TEXT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Length of the valid UTF-8 sequence at @text, 0 if it is invalid. '\0' has length 1. */
size_t utf8__sequence(const char *text);
/* The same, but 0 also for control characters: only what is safe to print. */
size_t utf8__printable(const char *text);
bool utf8__is_valid(const char *text);
/* Replaces each byte of @text that is not printable by '?'. */
void utf8__clean(char *text);
/*
 * A copy of @text, to be freed, in which the bytes are taken as Latin-1 unless all of them are valid
 * UTF-8: for formats that can hold nothing else. NULL on ENOMEM.
 */
char *utf8__from_bytes(const char *text);

/* A sentence about one thing or several. */
struct plural_text {
	char text[320];
};

/* Returns @sentence with the first part of each "{was|were}" where @n is 1, else with the second; cut where it is too long. */
struct plural_text plural__of(const char *sentence, __u64 n);

/* Writes @word as one word of a shell, quoted if necessary. */
void shell_word__print(const char *word, FILE *to);

#endif
