// SPDX-License-Identifier: GPL-3.0-or-later
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void fuzz__fail(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
	abort();
}

int fuzz__file(const void *bytes, size_t size, const char **path)
{
	static char name[64];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	}
	FUZZ_CHECK(fd >= 0 && !ftruncate(fd, 0));
	FUZZ_CHECK(pwrite(fd, bytes, size, 0) == (ssize_t)size);
	FUZZ_CHECK(!lseek(fd, 0, SEEK_SET));
	if (path)
		*path = name;
	return fd;
}

char *fuzz__text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	FUZZ_CHECK(text);
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

uint32_t fuzz__take(const uint8_t *data, size_t *size)
{
	uint32_t value = 0;

	for (int i = 0; i < 4 && *size; i++)
		value = value << 8 | data[--*size];
	return value;
}

static volatile uint8_t sink;

void fuzz__read(const void *bytes, size_t size)
{
	uint8_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum += ((const uint8_t *)bytes)[i];
	sink = sum;
}

void fuzz__read_text(const char *text)
{
	if (text)
		fuzz__read(text, strlen(text));
}
