// SPDX-License-Identifier: GPL-3.0-or-later
#include "linker_cache.h"

#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "file.h"
#include "linker_x86.h"

/* A desktop's has 0.2 MB. */
#define MAX_BYTES (64U << 20)

/* glibc's sysdeps/generic/dl-cache.h. Strings are at offsets from the header. */
struct cache_header {
	char magic[20]; /* with the version */
	__u32 n;
	__u32 string_bytes;
	__u8 flags, padding[3];
	__u32 extensions; /* offset; 0: none */
	__u32 unused[3];
};

struct cache_entry {
	__s32 flags;
	__u32 name, path;
	__u32 os_version;
	__u64 hwcap;
};

/* The format before glibc 2.2, which ldconfig can write in front of the other. */
struct old_header {
	char magic[12];
	__u32 n;
};

#define OLD_ENTRY_BYTES 12

struct extension_header {
	__u32 magic, n;
};

struct extension {
	__u32 tag, flags, offset, size;
};

#define EXTENSION_MAGIC	 0xeaa42174
#define EXTENSION_HWCAPS 1 /* offsets of the names of subdirectories of glibc-hwcaps */

/* A hwcap with this bit, and none else above, has in its lower half an index into EXTENSION_HWCAPS. */
#define HWCAP_EXTENSION (1ULL << 62)

struct linker_cache {
	char *bytes; /* with a NUL behind */
	size_t size;
	size_t start; /* of the header */
	__u32 n;
	size_t levels; /* where the offsets of names of levels are */
	__u32 n_levels;
};

/* Copies @size bytes at @offset from the header. */
static bool get(const struct linker_cache *cache, __u64 offset, void *out, size_t size)
{
	if (offset > cache->size - cache->start || size > cache->size - cache->start - offset)
		return false;
	memcpy(out, cache->bytes + cache->start + offset, size);
	return true;
}

/* "" if there is none. */
static const char *string(const struct linker_cache *cache, __u32 offset)
{
	return offset < cache->size - cache->start ? cache->bytes + cache->start + offset : "";
}

static void find_levels(struct linker_cache *cache, __u32 offset)
{
	struct extension_header header;
	struct extension extension;

	if (!offset || !get(cache, offset, &header, sizeof(header)) ||
	    header.magic != EXTENSION_MAGIC)
		return;
	for (__u64 i = 0, at = offset + sizeof(header); i < header.n;
	     i++, at += sizeof(extension)) {
		if (!get(cache, at, &extension, sizeof(extension)))
			return;
		if (extension.tag != EXTENSION_HWCAPS)
			continue;
		cache->levels = extension.offset;
		cache->n_levels = extension.size / sizeof(__u32);
		return;
	}
}

static int check(struct linker_cache *cache)
{
	static const char magic[] = "glibc-ld.so.cache1.1", old_magic[] = "ld.so-1.7.0";
	struct cache_header header;
	struct old_header old;

	if (get(cache, 0, &old, sizeof(old)) &&
	    !memcmp(old.magic, old_magic, sizeof(old_magic) - 1)) {
		__u64 end = sizeof(old) + (__u64)old.n * OLD_ENTRY_BYTES;

		end = (end + 7) & ~7ULL;
		if (end > cache->size)
			return -EINVAL;
		cache->start = end;
	}
	if (!get(cache, 0, &header, sizeof(header)) ||
	    memcmp(header.magic, magic, sizeof(header.magic)) != 0)
		return -EINVAL;
	if (header.n > (cache->size - cache->start - sizeof(header)) / sizeof(struct cache_entry))
		return -EINVAL;
	cache->n = header.n;
	find_levels(cache, header.extensions);
	return 0;
}

static int read_file(int fd, struct linker_cache *cache)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size > MAX_BYTES)
		return -EFBIG;
	cache->bytes = malloc(st.st_size + 1);
	if (!cache->bytes)
		return -ENOMEM;
	cache->size = st.st_size;
	cache->bytes[cache->size] = '\0';
	return fd__read_all_at(fd, cache->bytes, cache->size, 0);
}

int linker_cache__open(const char *path, struct linker_cache **out)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	struct linker_cache *cache;
	int err;

	if (fd < 0)
		return fd;
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return -ENOMEM;
	err = read_file(fd, cache);
	if (!err)
		err = check(cache);
	if (err) {
		linker_cache__free(cache);
		return err;
	}
	*out = cache;
	return 0;
}

void linker_cache__free(struct linker_cache *cache)
{
	if (!cache)
		return;
	free(cache->bytes);
	free(cache);
}

/* How good an entry is for this processor: 0 if it cannot run it, 1 for any processor. */
static unsigned int rank(const struct linker_cache *cache, const struct cache_entry *entry)
{
	const char *const *levels = linker__processor_levels();
	unsigned int n = 0;
	const char *name;
	__u32 offset;

	if (!entry->hwcap)
		return 1;
	/* Directories such as "haswell", which glibc 2.37 dropped. */
	if ((entry->hwcap & ~(__u64)UINT32_MAX) != HWCAP_EXTENSION)
		return 0;
	if ((__u32)entry->hwcap >= cache->n_levels ||
	    !get(cache, cache->levels + (entry->hwcap & UINT32_MAX) * sizeof(offset), &offset,
		 sizeof(offset)))
		return 0;
	name = string(cache, offset);
	while (levels[n])
		n++;
	for (unsigned int i = 0; i < n; i++)
		if (!strcmp(levels[i], name))
			return 1 + n - i;
	return 0;
}

const char *linker_cache__find(const struct linker_cache *cache, const char *name)
{
	const char *found = NULL;
	unsigned int best = 0;

	for (__u32 i = 0; cache && i < cache->n; i++) {
		struct cache_entry entry;
		unsigned int of_entry;

		if (!get(cache, sizeof(struct cache_header) + (__u64)i * sizeof(entry), &entry,
			 sizeof(entry)))
			break;
		if (entry.flags != LINKER_CACHE_FLAGS ||
		    strcmp(string(cache, entry.name), name) != 0)
			continue;
		of_entry = rank(cache, &entry);
		if (of_entry <= best)
			continue;
		best = of_entry;
		found = string(cache, entry.path);
	}
	return found;
}
