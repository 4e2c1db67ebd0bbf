// SPDX-License-Identifier: GPL-3.0-or-later
#include "sentences.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "array.h"

int sentences__add(struct sentences *sentences, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int length;

	if (array__reserve(&sentences->list, &sentences->room, sentences->n + 1,
			   sizeof(*sentences->list)))
		return -ENOMEM;
	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return -ENOMEM;
	sentences->list[sentences->n++] = text;
	return 0;
}

void sentences__release(struct sentences *sentences)
{
	for (size_t i = 0; i < sentences->n; i++)
		free(sentences->list[i]);
	free(sentences->list);
	*sentences = (struct sentences){ 0 };
}
