// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "maps.h"

#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

/* /proc/self/maps is empty once the main thread has ended. */
#define MAPS "/proc/thread-self/maps"

/* PROCMAP_QUERY of Linux 6.11 reads one mapping without reading the others. */
struct query {
	__u64 size, flags, address;
	__u64 start, end, vma_flags, page_bytes, offset, inode;
	__u32 major, minor, name_bytes, build_id_bytes;
	__u64 name, build_id;
};

#define QUERY_COMMAND	 0xc0686611
#define QUERY_ACCESS	 7
#define QUERY_READABLE	 1
#define QUERY_EXECUTABLE 4
#define QUERY_OR_NEXT	 16

_Static_assert(sizeof(struct query) == 104, "the command has the structure's size");

#define PAGE_MASK (~(__u64)(LEAST_PAGE - 1))

static long query(int fd, __u64 address, struct mapping *out, char *path, __u32 path_bytes)
{
	struct query query = {
		.size = sizeof(query),
		.flags = QUERY_OR_NEXT,
		.address = address,
		.name_bytes = path ? path_bytes : 0,
		.name = (__u64)path,
	};
	long err = sys(__NR_ioctl, fd, QUERY_COMMAND, (long)&query, 0, 0, 0);

	/* For a path that is too long the kernel returns nothing, so the mapping is read without a
	 * path. */
	if (err == -ENAMETOOLONG) {
		query.name_bytes = 0;
		query.name = 0;
		err = sys(__NR_ioctl, fd, QUERY_COMMAND, (long)&query, 0, 0, 0);
	}
	if (err == -ENOENT || (!err && query.start > address)) {
		*out = (struct mapping){ .start = address & PAGE_MASK,
					 .end = err ? ~0ULL : query.start };
		return -ENOENT;
	}
	if (err)
		return err;
	*out = (struct mapping){
		.start = query.start,
		.end = query.end,
		.offset = query.offset,
		.inode = query.inode,
		.device = query.major << 20 | query.minor,
		.is_executable = query.vma_flags & QUERY_EXECUTABLE,
		.is_readable = query.vma_flags & QUERY_READABLE,
		.is_closed = !(query.vma_flags & QUERY_ACCESS),
		.path = path,
	};
	if (path && !query.name_bytes)
		*path = 0;
	return 0;
}

/* Reads /proc/self/maps as text. */
struct reader {
	int fd;
	char *buffer;
	__u32 size;
	long at, end;
	int err; /* result of the last read that failed */
};

/* Returns the next character, or -1 at the end. */
static int next(struct reader *reader)
{
	if (reader->at == reader->end) {
		reader->end = sys__read(reader->fd, reader->buffer, reader->size);
		reader->at = 0;
		if (reader->end <= 0) {
			reader->err = reader->end;
			reader->end = 0;
			return -1;
		}
	}
	return (unsigned char)reader->buffer[reader->at++];
}

/* Reads a number, and stores the first character behind it in *@stop. */
static __u64 number(struct reader *reader, int base, int *stop)
{
	__u64 value = 0;
	int c;

	while ((c = next(reader)) >= 0) {
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
						   : 16;

		if (digit >= base)
			break;
		value = value * base + digit;
	}
	*stop = c;
	return value;
}

/* Reads a line; false at the end of the list. */
static bool read_line(struct reader *reader, struct mapping *out, char *path, __u32 path_bytes)
{
	__u32 length = 0;
	int c;

	*out = (struct mapping){ .is_closed = true, .path = path };
	out->start = number(reader, 16, &c);
	if (c < 0)
		return false;
	out->end = number(reader, 16, &c);
	for (int i = 0; i < 5; i++) {
		c = next(reader);
		out->is_executable |= c == 'x';
		out->is_readable |= c == 'r';
		out->is_closed &= c != 'r' && c != 'w' && c != 'x';
	}
	out->offset = number(reader, 16, &c);
	out->device = number(reader, 16, &c) << 20;
	out->device |= number(reader, 16, &c);
	out->inode = number(reader, 10, &c);
	while (c == ' ')
		c = next(reader);
	for (; c >= 0 && c != '\n'; c = next(reader))
		if (path && length < path_bytes - 1)
			path[length++] = c;
	if (path)
		path[length] = 0;
	return true;
}

/* Does what query() does, on kernels without PROCMAP_QUERY: searches /proc/self/maps. */
static int search(struct reader *reader, __u64 address, struct mapping *out, char *path,
		  __u32 path_bytes)
{
	__u64 free_from = 0;

	while (read_line(reader, out, path, path_bytes)) {
		if (address < out->start) {
			*out = (struct mapping){ .start = free_from, .end = out->start };
			return -ENOENT;
		}
		if (address < out->end)
			return 0;
		free_from = out->end;
	}
	if (reader->err || !free_from)
		return reader->err ? reader->err : -EIO;
	*out = (struct mapping){ .start = free_from, .end = ~0ULL };
	return -ENOENT;
}

int maps__find(__u64 address, struct mapping *out, char *path, __u32 path_bytes, void *buffer,
	       __u32 size)
{
	struct reader reader = { .buffer = buffer, .size = size };
	int err;

	reader.fd = sys__open(MAPS, O_RDONLY);
	if (reader.fd < 0)
		return reader.fd;
	err = query(reader.fd, address, out, path, path_bytes);
	if (err == -ENOTTY || err == -EINVAL)
		err = search(&reader, address, out, path, path_bytes);
	sys__close(reader.fd);
	return err;
}
