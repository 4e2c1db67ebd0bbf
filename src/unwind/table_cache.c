// SPDX-License-Identifier: GPL-3.0-or-later
#include "table_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "cfi.h"
#include "cleanup.h"
#include "clock.h"
#include "elf_file.h"
#include "error.h"
#include "file.h"
#include "hash_table.h"
#include "mapped_file.h"

/* Limit of all files together. libLLVM's table has 4.5 MiB, most have less than one. */
#define MAX_CACHE_BYTES (128ULL << 20)
#define MAX_FILE_BYTES	(32ULL << 20)

/* Smaller tables are built faster than they are read. */
#define MIN_TABLE_BYTES 32768

/* Least age in nanoseconds of a file's last change: within one tick of its timestamp the file may
 * change again unnoticed. */
#define SETTLED_NS 2000000000ULL

/* Prefix of files that are being written. */
#define NEW_PREFIX ".new-"

#define MAKER_BYTES 48

struct header {
	char magic[8];
	char maker[MAKER_BYTES]; /* padded with zeros */
	struct table_key key;
	__u32 segment_count, block_count, row_count, rule_count;
	/* Checksum of everything after the header, seeded with everything before this field. */
	__u64 checksum;
};

static const char magic[sizeof(((struct header *)NULL)->magic)] = "APTABLE";

struct table_cache {
	int directory;
	char *path;
	char maker[MAKER_BYTES];
	__u64 max_bytes;
	/* Size of all files; an estimate, since other processes may use the cache, too. */
	__u64 size_bytes;
};

static __u64 time_ns(const struct timespec *time)
{
	return time->tv_sec * NS_PER_S + time->tv_nsec;
}

int table_key__of(int fd, const char *build_id, struct table_key *key)
{
	struct file_identity identity;
	struct stat st;
	int err = file_identity__of(fd, &identity);

	if (!err && fstat(fd, &st))
		err = -errno;
	if (err)
		return err;
	*key = (struct table_key){
		.device = identity.device,
		.inode = identity.inode,
		.generation = identity.generation,
		.size_bytes = st.st_size,
		.modified_ns = time_ns(&st.st_mtim),
		.changed_ns = time_ns(&st.st_ctim),
	};
	memcpy(key->build_id, build_id, strnlen(build_id, sizeof(key->build_id)));
	return 0;
}

/* Opens @path, which must not contain links, since another user may have made them. */
static int open_base(const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd < 0)
		return -errno;
	if (directory__is_safe(fd, geteuid(), true))
		return fd;
	close(fd);
	return -EPERM;
}

static int open_below(int base, const char *name, mode_t mode)
{
	int fd;

	if (mkdirat(base, name, mode) && errno != EEXIST)
		return -errno;
	fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (directory__is_safe(fd, geteuid(), false))
		return fd;
	close(fd);
	return -EPERM;
}

/* Calls @fn with the name and stat of each file. */
static void for_each_file(const struct table_cache *cache,
			  void (*fn)(const char *name, const struct stat *st, void *context),
			  void *context)
{
	_cleanup_(close_directory) DIR *directory = NULL;
	int fd = openat(cache->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	struct stat st;

	directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		close_fd(&fd);
		return;
	}
	while ((entry = readdir(directory)))
		if (!fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
			fn(entry->d_name, &st, context);
}

static void add_size(const char *name, const struct stat *st, void *context)
{
	__u64 *sum = context;

	*sum += st->st_size;
}

static int refused(const char *base, int err, struct error *error)
{
	if (err == -EPERM || err == -ELOOP || err == -ENOTDIR)
		return error__set(error, err,
				  "%s/allocprof/tables is not used: a part of it is a link, or "
				  "another user's, or open to others",
				  base);
	return error__set(error, err, "cannot open %s/allocprof/tables: %s", base, strerror(-err));
}

int table_cache__open_at(const char *directory, const char *maker, __u64 max_bytes,
			 struct table_cache **out, struct error *error)
{
	_cleanup_(close_fd) int base = open_base(directory), ours = -1;
	struct table_cache *cache;
	int tables;

	if (base >= 0)
		ours = open_below(base, "allocprof", 0755);
	tables = base < 0 ? base : ours < 0 ? ours : open_below(ours, "tables", 0700);
	if (tables < 0)
		return refused(directory, tables, error);
	cache = calloc(1, sizeof(*cache));
	if (!cache || asprintf(&cache->path, "%s/allocprof/tables", directory) < 0) {
		free(cache);
		close(tables);
		return -ENOMEM;
	}
	cache->directory = tables;
	cache->max_bytes = max_bytes;
	memcpy(cache->maker, maker, strnlen(maker, sizeof(cache->maker)));
	for_each_file(cache, add_size, &cache->size_bytes);
	*out = cache;
	return 0;
}

/* Finds the build id of allocprof, since another build may make different tables. */
static int find_maker(char maker[MAKER_BYTES + 1])
{
	_cleanup_(close_fd) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_file *elf;
	int err;

	if (fd < 0)
		return -errno;
	err = elf_file__open(fd, "/proc/self/exe", &elf, NULL);
	if (err)
		return err;
	snprintf(maker, MAKER_BYTES + 1, "%s", elf_file__build_id(elf));
	elf_file__free(elf);
	return *maker ? 0 : -ENODATA;
}

int table_cache__open(struct table_cache **out, struct error *error)
{
	const char *chosen = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	_cleanup_(free_ptr) char *base = NULL;
	char maker[MAKER_BYTES + 1];
	int err = find_maker(maker);

	if (err == -ENODATA)
		return error__set(error, err, "allocprof was built without a build id");
	if (err)
		return error__set(error, err, "cannot read /proc/self/exe: %s", strerror(-err));
	if (chosen && *chosen == '/')
		base = strdup(chosen);
	else if (!geteuid())
		base = strdup("/var/cache");
	else if (!home || *home != '/')
		return error__set(error, -ENOENT, "there is no directory for it; set HOME");
	else if (asprintf(&base, "%s/.cache", home) < 0)
		base = NULL;
	return base ? table_cache__open_at(base, maker, MAX_CACHE_BYTES, out, error) : -ENOMEM;
}

void table_cache__close(struct table_cache *cache)
{
	if (!cache)
		return;
	close(cache->directory);
	free(cache->path);
	free(cache);
}

const char *table_cache__path(const struct table_cache *cache)
{
	return cache->path;
}

__u64 table_cache__size_bytes(const struct table_cache *cache)
{
	return cache->size_bytes;
}

static void file_name(const struct table_key *key, char name[33])
{
	snprintf(name, 33, "%016llx%016llx", hash_bytes(1, key, sizeof(*key)),
		 hash_bytes(2, key, sizeof(*key)));
}

static void fill_header(const struct table_cache *cache, const struct table_key *key,
			const struct cfi_table *table, struct header *header)
{
	memset(header, 0, sizeof(*header));
	memcpy(header->magic, magic, sizeof(magic));
	memcpy(header->maker, cache->maker, sizeof(header->maker));
	header->key = *key;
	header->segment_count = table->segment_count;
	header->block_count = table->block_count;
	header->row_count = table->row_count;
	header->rule_count = table->rule_count;
}

/* The arrays of a table, in the order of the file. */
#define PARTS 4

struct part {
	void *at;
	size_t size;
};

static void table_parts(const struct cfi_table *table, struct part parts[PARTS])
{
	parts[0] =
		(struct part){ table->segments, table->segment_count * sizeof(*table->segments) };
	parts[1] = (struct part){ table->blocks, table->block_count * sizeof(*table->blocks) };
	parts[2] = (struct part){ table->rows, table->row_count * sizeof(*table->rows) };
	parts[3] = (struct part){ table->rules, table->rule_count * sizeof(*table->rules) };
}

static __u64 checksum(const struct header *header, const struct part parts[PARTS])
{
	__u64 sum = hash_bytes(3, header, offsetof(struct header, checksum));

	for (int i = 0; i < PARTS; i++)
		sum = hash_bytes(sum, parts[i].at, parts[i].size);
	return sum;
}

/* Reads the table that @header describes; @size bytes follow the header in the file. */
static int read_table(int fd, const struct header *header, __u64 size, struct cfi_table **out)
{
	struct cfi_table *table = calloc(1, sizeof(*table));
	struct part parts[PARTS];
	int err = -EINVAL;

	if (!table)
		return -ENOMEM;
	table->segment_count = header->segment_count;
	table->block_count = header->block_count;
	table->row_count = header->row_count;
	table->rule_count = header->rule_count;
	table_parts(table, parts);
	for (int i = 0; i < PARTS; i++) {
		/* No array of a table is empty. */
		if (!parts[i].size || parts[i].size > size)
			goto out;
		size -= parts[i].size;
	}
	if (size)
		goto out;
	table->segments = malloc(parts[0].size);
	table->blocks = malloc(parts[1].size);
	table->rows = malloc(parts[2].size);
	table->rules = malloc(parts[3].size);
	table_parts(table, parts);
	err = -ENOMEM;
	if (!parts[0].at || !parts[1].at || !parts[2].at || !parts[3].at)
		goto out;
	for (int i = 0; i < PARTS; i++) {
		err = fd__read_all(fd, parts[i].at, parts[i].size);
		if (err)
			goto out;
	}
	err = -EINVAL;
	if (checksum(header, parts) != header->checksum || !cfi_table__is_sound(table))
		goto out;
	*out = table;
	return 0;
out:
	cfi_table__free(table);
	return err;
}

static int read_file(const struct table_cache *cache, int fd, const struct table_key *key,
		     struct cfi_table **out)
{
	struct header header;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022 ||
	    st.st_size < (off_t)sizeof(header) || st.st_size > (off_t)MAX_FILE_BYTES)
		return -EINVAL;
	if (fd__read_all(fd, &header, sizeof(header)) ||
	    memcmp(header.magic, magic, sizeof(magic)) ||
	    memcmp(header.maker, cache->maker, sizeof(header.maker)) ||
	    memcmp(&header.key, key, sizeof(*key)))
		return -EINVAL;
	return read_table(fd, &header, st.st_size - sizeof(header), out);
}

int table_cache__get(struct table_cache *cache, const struct table_key *key, struct cfi_table **out)
{
	_cleanup_(close_fd) int fd = -1;
	char name[33];

	file_name(key, name);
	fd = openat(cache->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || read_file(cache, fd, key, out))
		return -ENOENT;
	/* This marks the file as used now. */
	(void)futimens(fd, NULL);
	return 0;
}

struct cached_file {
	char *name;
	__u64 used_ns, size_bytes;
};

struct listing {
	struct cached_file *files;
	size_t n, room;
};

static void list_file(const char *name, const struct stat *st, void *context)
{
	struct listing *listing = context;
	struct cached_file file = { strdup(name), time_ns(&st->st_mtim), st->st_size };

	if (!file.name || array__reserve(&listing->files, &listing->room, listing->n + 1,
					 sizeof(*listing->files))) {
		free(file.name);
		return;
	}
	listing->files[listing->n++] = file;
}

static int compare_used(const void *a, const void *b)
{
	const struct cached_file *left = a, *right = b;

	return (left->used_ns > right->used_ns) - (left->used_ns < right->used_ns);
}

/* Deletes the least recently used quarter of the files, so that this is not needed for each new
 * table. */
static void make_room(struct table_cache *cache)
{
	struct listing listing = { 0 };
	__u64 sum = 0;

	for_each_file(cache, list_file, &listing);
	for (size_t i = 0; i < listing.n; i++)
		sum += listing.files[i].size_bytes;
	if (listing.n > 1)
		qsort(listing.files, listing.n, sizeof(*listing.files), compare_used);
	for (size_t i = 0; i < listing.n; i++) {
		if (sum > cache->max_bytes / 4 * 3 &&
		    !unlinkat(cache->directory, listing.files[i].name, 0))
			sum -= listing.files[i].size_bytes;
		free(listing.files[i].name);
	}
	free(listing.files);
	cache->size_bytes = sum;
}

static int write_file(int fd, const struct header *header, const struct part parts[PARTS])
{
	int err = fd__write_all(fd, header, sizeof(*header));

	for (int i = 0; i < PARTS && !err; i++)
		err = fd__write_all(fd, parts[i].at, parts[i].size);
	return err;
}

/* Returns whether the file still matches @key and cannot change without a change of its timestamp. */
static bool is_settled(const struct table_key *key, int fd)
{
	struct table_key now;
	struct timespec clock;

	clock_gettime(CLOCK_REALTIME, &clock);
	if (table_key__of(fd, key->build_id, &now))
		return false;
	memcpy(now.build_id, key->build_id, sizeof(now.build_id));
	return !memcmp(&now, key, sizeof(now)) && key->changed_ns + SETTLED_NS < time_ns(&clock);
}

void table_cache__put(struct table_cache *cache, const struct table_key *key, int fd,
		      const struct cfi_table *table)
{
	size_t size = sizeof(struct header) + cfi_table__size_bytes(table);
	_cleanup_(close_fd) int new = -1;
	struct part parts[PARTS];
	struct header header;
	char name[33], new_name[64];

	if (size < MIN_TABLE_BYTES || size > MAX_FILE_BYTES || !is_settled(key, fd) ||
	    !cfi_table__is_sound(table))
		return;
	if (cache->size_bytes + size > cache->max_bytes)
		make_room(cache);
	fill_header(cache, key, table, &header);
	table_parts(table, parts);
	header.checksum = checksum(&header, parts);
	file_name(key, name);
	snprintf(new_name, sizeof(new_name), NEW_PREFIX "%d", getpid());
	/* A process that was killed while writing may have left its file. */
	(void)unlinkat(cache->directory, new_name, 0);
	new = openat(cache->directory, new_name,
		     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (new < 0)
		return;
	if (write_file(new, &header, parts) ||
	    renameat(cache->directory, new_name, cache->directory, name))
		(void)unlinkat(cache->directory, new_name, 0);
	else
		cache->size_bytes += size;
}
