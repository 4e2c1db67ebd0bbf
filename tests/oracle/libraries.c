// SPDX-License-Identifier: GPL-3.0-or-later
/* libraries INTERPRETER [VARIABLE=VALUE...] PROGRAM...: prints "PROGRAM LIBRARY" for each library that the program will
 * start with in this environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "libraries.h"
#include "parser.h"

static void print(const char *path, void *context)
{
	printf("%s %s\n", (const char *)context, path);
}

int main(int argc, char *argv[])
{
	struct error error = { 0 };
	struct parser *parser;

	if (parser__new(&parser, &error)) {
		fprintf(stderr, "libraries: %s\n", error.text);
		return 1;
	}
	for (int i = 2; i < argc; i++)
		if (strncmp(argv[i], "LD_", 3) == 0)
			putenv(argv[i]);
		else
			libraries__list(parser, argv[1], argv[i], NULL, print, argv[i]);
	parser__free(parser);
	return 0;
}
