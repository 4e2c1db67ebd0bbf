// SPDX-License-Identifier: GPL-3.0-or-later
/* Input and output of targets that state exactly what they allocate: stdio would allocate too. */
#ifndef TARGETS_RAW_H
#define TARGETS_RAW_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void say(const char *text)
{
	size_t length = strlen(text);

	while (length) {
		ssize_t n = write(1, text, length);

		if (n < 0)
			_exit(100);
		text += n;
		length -= n;
	}
}

static inline void say_number(const char *before, unsigned long number, const char *after)
{
	char digits[32];
	char *p = digits + sizeof(digits);

	*--p = '\0';
	do {
		*--p = '0' + number % 10;
	} while (number /= 10);
	say(before);
	say(p);
	say(after);
}

static inline unsigned long number_or(const char *text, unsigned long otherwise)
{
	return text ? strtoul(text, NULL, 10) : otherwise;
}

/* Where a result goes that the compiler must believe is used. */
extern void *volatile sink;

#define DEFINE_SINK void *volatile sink

/* Reads one line of stdin, byte by byte so that nothing behind it is taken. 0 at its end. */
static inline int read_line(char *line, size_t size)
{
	size_t used = 0;
	char c;

	while (read(0, &c, 1) == 1) {
		if (c == '\n') {
			line[used] = '\0';
			return 1;
		}
		if (used + 1 < size)
			line[used++] = c;
	}
	return 0;
}

#endif
