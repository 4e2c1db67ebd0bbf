/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text for people and for the shell. */
#ifndef ALLOCPROF_TEXT_H
#define ALLOCPROF_TEXT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Returns the length of the valid UTF-8 sequence at @text in bytes, or 0 if it is invalid. '\0'
 * has the length 1. */
size_t utf8__sequence(const char *text);
/* Does the same, but also returns 0 for control characters, so that only text is accepted that is
 * safe to print. */
size_t utf8__printable(const char *text);
bool utf8__is_valid(const char *text);
/* Replaces each byte of @text that is not printable by '?'. */
void utf8__clean(char *text);
/*
 * Returns a copy of @text, which the caller frees, as UTF-8: unless all of the text is valid
 * UTF-8, its bytes are taken for Latin-1. It is for formats that can hold nothing but UTF-8.
 * Returns NULL on ENOMEM.
 */
char *utf8__from_bytes(const char *text);

/* A sentence about one thing or several. */
struct plural_text {
	char text[320];
};

/* Returns @sentence with each "{was|were}" replaced by its first part if @n is 1, else by its
 * second. A sentence that is too long is truncated. */
struct plural_text plural__of(const char *sentence, __u64 n);

/* Writes @word as one word of a shell command, quoted if necessary. */
void shell_word__print(const char *word, FILE *to);

/* Returns whether @text matches @pattern, in which '*' matches any text. */
bool text__matches(const char *pattern, const char *text);

#endif
