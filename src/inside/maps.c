// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "maps.h"

#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

/* /proc/self/maps is empty once the main thread has ended. */
#define MAPS "/proc/thread-self/maps"

/* PROCMAP_QUERY of Linux 6.11: one mapping, without reading the others. */
struct query {
	__u64 size, flags, address;
	__u64 start, end, vma_flags, page_bytes, offset, inode;
	__u32 major, minor, name_bytes, build_id_bytes;
	__u64 name, build_id;
};

#define QUERY_COMMAND	 0xc0686611
#define QUERY_EXECUTABLE 4

_Static_assert(sizeof(struct query) == 104, "the command has the structure's size");

static long query(int fd, __u64 address, struct mapping *out, char *path)
{
	struct query query = {
		.size = sizeof(query),
		.address = address,
		.name_bytes = path ? INSIDE_PATH_BYTES : 0,
		.name = (__u64)path,
	};
	long err = sys(__NR_ioctl, fd, QUERY_COMMAND, (long)&query, 0, 0, 0);

	/* A longer path does not come at all. */
	if (err == -ENAMETOOLONG) {
		query.name_bytes = 0;
		query.name = 0;
		err = sys(__NR_ioctl, fd, QUERY_COMMAND, (long)&query, 0, 0, 0);
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
		.path = path,
	};
	if (path && !query.name_bytes)
		*path = 0;
	return 0;
}

/* Reads the list as text. */
struct reader {
	int fd;
	char *buffer;
	__u32 size;
	long at, end;
};

/* The next character, or -1. */
static int next(struct reader *reader)
{
	if (reader->at == reader->end) {
		reader->end = sys__read(reader->fd, reader->buffer, reader->size);
		reader->at = 0;
		if (reader->end <= 0) {
			reader->end = 0;
			return -1;
		}
	}
	return (unsigned char)reader->buffer[reader->at++];
}

/* A number up to the first other character, which is stored in *@stop. */
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
static bool read_line(struct reader *reader, struct mapping *out, char *path)
{
	__u32 length = 0;
	int c;

	*out = (struct mapping){ .path = path };
	out->start = number(reader, 16, &c);
	if (c < 0)
		return false;
	out->end = number(reader, 16, &c);
	for (int i = 0; i < 5; i++)
		out->is_executable |= next(reader) == 'x';
	out->offset = number(reader, 16, &c);
	out->device = number(reader, 16, &c) << 20;
	out->device |= number(reader, 16, &c);
	out->inode = number(reader, 10, &c);
	while (c == ' ')
		c = next(reader);
	for (; c >= 0 && c != '\n'; c = next(reader))
		if (path && length < INSIDE_PATH_BYTES - 1)
			path[length++] = c;
	if (path)
		path[length] = 0;
	return true;
}

bool maps__find(__u64 address, struct mapping *out, char *path, void *buffer, __u32 size)
{
	struct reader reader = { .buffer = buffer, .size = size };
	bool found = false;
	long err;

	reader.fd = sys__open(MAPS, O_RDONLY);
	if (reader.fd < 0)
		return false;
	err = query(reader.fd, address, out, path);
	if (err == -ENOTTY || err == -EINVAL)
		while (!found && read_line(&reader, out, path) && out->start <= address)
			found = address < out->end;
	sys__close(reader.fd);
	return !err || found;
}
