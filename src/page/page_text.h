/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints text in HTML and XML. */
#ifndef ALLOCPROF_PAGE_TEXT_H
#define ALLOCPROF_PAGE_TEXT_H

#include <stdio.h>

/*
 * Prints @text as the content of an element, or of an attribute in double quotes. Control
 * characters, bytes that are not UTF-8 and characters that XML 1.0 lacks become '?'; characters
 * that change the direction of the following text are left out.
 */
void page_text__print(const char *text, FILE *to);
/* Works like page_text__print(), but replaces each newline by @newline, which is printed
 * unchanged. In attributes that is "&#10;", since XML parsers turn newlines there into spaces. */
void page_text__print_lines(const char *text, const char *newline, FILE *to);

#endif
