// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints a word as the shell would have to be given it. */
#include "shell_word.h"

#include <stdbool.h>
#include <string.h>

void shell_word__print(const char *word, FILE *to)
{
	bool plain = word[0] && !word[strcspn(word, " \t\n\"'\\$`*?[]{}()<>|&;!~#")];

	if (plain) {
		fputs(word, to);
		return;
	}
	fputc('\'', to);
	for (const char *c = word; *c; c++) {
		if (*c == '\'')
			fputs("'\\''", to);
		else
			fputc(*c, to);
	}
	fputc('\'', to);
}
