/* SPDX-License-Identifier: GPL-3.0-or-later */
/* With PROVIDES an allocator with functions of its own, which are called by their names; without, a library that calls them. */
#include <stddef.h>

void *mi_malloc(size_t size);
void mi_free(void *block);
void *mi_zalloc(size_t size);
void *mi_calloc(size_t n, size_t size);
void *mi_realloc(void *block, size_t size);
int mi_posix_memalign(void **out, size_t alignment, size_t size);
char *mi_strdup(const char *text);
void *mi_unknown_malloc(size_t size);
void use_allocator(void);

#ifdef PROVIDES
static char room[1 << 16];
static size_t used;

__attribute__((noinline)) static void *take(size_t size)
{
	char *block = room + used;

	used += (size + 15) & ~(size_t)15;
	return used <= sizeof(room) ? block : NULL;
}

void *mi_malloc(size_t size)
{
	return take(size);
}

void mi_free(void *block)
{
}

void *mi_zalloc(size_t size)
{
	return mi_malloc(size);
}

void *mi_calloc(size_t n, size_t size)
{
	return take(n * size);
}

void *mi_realloc(void *block, size_t size)
{
	return take(size);
}

int mi_posix_memalign(void **out, size_t alignment, size_t size)
{
	*out = take(size);
	return 0;
}

char *mi_strdup(const char *text)
{
	char *copy = take(16);

	for (size_t i = 0; i < 15 && text[i]; i++)
		copy[i] = text[i];
	return copy;
}

void *mi_unknown_malloc(size_t size)
{
	return take(size);
}
#else
void use_allocator(void)
{
	void *block = mi_malloc(100), *other = NULL;

	block = mi_realloc(block, 200);
	mi_free(block);
	mi_free(mi_zalloc(7));
	mi_calloc(3, 5);
	mi_posix_memalign(&other, 16, 11);
	mi_free(other);
	mi_strdup("three");
	mi_unknown_malloc(1);
}
#endif
