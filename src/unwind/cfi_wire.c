// SPDX-License-Identifier: GPL-3.0-or-later
/* Tables that a worker compiles, and their way to this process. */
#include "cfi.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "error.h"
#include "parser.h"

/* A table says nothing of what is not in its file. */
static bool table_is_sound(const void *object, const void *context)
{
	const struct cfi_table *table = object;
	__u64 file_bytes = *(const __u64 *)context;

	if (!table->segments || !table->blocks || !table->rows || !table->rules ||
	    !cfi_table__is_sound(table))
		return false;
	for (__u32 i = 0; i < table->segment_count; i++)
		if (table->segments[i].file_offset > file_bytes ||
		    table->segments[i].size > file_bytes - table->segments[i].file_offset)
			return false;
	return true;
}

static const struct wire_struct cfi_table_type = {
	.is_sound = table_is_sound,
	.fields = {
		{ WIRE_ARRAY(struct cfi_table, segments, segment_count, UINT32_MAX) },
		{ WIRE_ARRAY(struct cfi_table, blocks, block_count, UINT32_MAX) },
		{ WIRE_ARRAY(struct cfi_table, rows, row_count, UINT32_MAX) },
		{ WIRE_ARRAY(struct cfi_table, rules, rule_count, UINT32_MAX) },
	},
};

void cfi_table__write(const struct cfi_table *table, struct wire_writer *to)
{
	wire__put_struct(to, &cfi_table_type, table, NULL);
}

int cfi_table__read(struct wire_reader *from, __u64 file_bytes, struct cfi_table **out)
{
	struct cfi_table *table = calloc(1, sizeof(*table));
	int err;

	if (!table)
		return -ENOMEM;
	err = wire__get_struct(from, &cfi_table_type, table, &file_bytes);
	if (!err && !wire__is_read(from))
		err = -EPROTO;
	if (err)
		cfi_table__free(table);
	else
		*out = table;
	return err;
}

static int compile_table(struct parser_task *task)
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
	const struct parser_call call = { .run = compile_table, .fd = fd, .path = path };
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
