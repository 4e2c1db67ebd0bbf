// SPDX-License-Identifier: GPL-3.0-or-later
/* Tables that a worker compiles, and their way to this process. */
#include "cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "error.h"
#include "parser.h"

static void put_array(struct wire_writer *to, const void *array, size_t n, size_t size)
{
	wire__put_u64(to, n);
	wire__put_bytes(to, array, n * size);
}

void cfi_table__write(const struct cfi_table *table, struct wire_writer *to)
{
	put_array(to, table->segments, table->segment_count, sizeof(*table->segments));
	put_array(to, table->blocks, table->block_count, sizeof(*table->blocks));
	put_array(to, table->rows, table->row_count, sizeof(*table->rows));
	put_array(to, table->rules, table->rule_count, sizeof(*table->rules));
}

/* A copy of the array, or NULL: it is empty, not whole, or there is no memory. */
static void *get_array(struct wire_reader *from, __u32 *n, size_t size)
{
	size_t count = wire__get_count(from, size);
	const void *array = wire__get_bytes(from, count * size);

	*n = count;
	return array && count && count == *n ? array__copy(array, count, size) : NULL;
}

/* A table says nothing of what is not in its file. */
static bool is_within(const struct cfi_table *table, __u64 file_bytes)
{
	for (__u32 i = 0; i < table->segment_count; i++)
		if (table->segments[i].file_offset > file_bytes ||
		    table->segments[i].size > file_bytes - table->segments[i].file_offset)
			return false;
	return true;
}

int cfi_table__read(struct wire_reader *from, __u64 file_bytes, struct cfi_table **out)
{
	struct cfi_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->segments = get_array(from, &table->segment_count, sizeof(*table->segments));
	table->blocks = get_array(from, &table->block_count, sizeof(*table->blocks));
	table->rows = get_array(from, &table->row_count, sizeof(*table->rows));
	table->rules = get_array(from, &table->rule_count, sizeof(*table->rules));
	if (!table->segments || !table->blocks || !table->rows || !table->rules ||
	    !wire__is_read(from) || !cfi_table__is_sound(table) || !is_within(table, file_bytes)) {
		cfi_table__free(table);
		return -EPROTO;
	}
	*out = table;
	return 0;
}

static int compile(struct parser_task *task)
{
	struct cfi_table *table;
	int err = cfi_table__build(task->fd, task->path, &table, task->error);

	if (err)
		return err;
	cfi_table__write(table, task->result);
	cfi_table__free(table);
	return 0;
}

int cfi_table__build_by(struct parser *parser, int fd, const char *path, struct cfi_table **out,
			struct error *error)
{
	const struct parser_call call = { .run = compile, .fd = fd, .path = path };
	struct wire_reader result;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	err = parser__call(parser, &call, &result, error);
	if (!err && cfi_table__read(&result, st.st_size, out))
		err = parser__refuse(parser, path, error);
	return err;
}
