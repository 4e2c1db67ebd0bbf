/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text in HTML and XML. */
#ifndef ALLOCPROF_PAGE_TEXT_H
#define ALLOCPROF_PAGE_TEXT_H

#include <stdio.h>

/*
 * Prints @text as the content of an element or of an attribute in double quotes. Control characters,
 * bytes that are not UTF-8 and characters that XML 1.0 does not have become '?'; characters that
 * change the direction of what follows are left out.
 */
void page_text__print(const char *text, FILE *to);
/* The same, but replaces each newline by @newline, which is printed as it is. In attributes it is "&#10;", since XML
 * parsers turn newlines there into spaces. */
void page_text__print_lines(const char *text, const char *newline, FILE *to);

#endif
