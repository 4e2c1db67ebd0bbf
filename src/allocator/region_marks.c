// SPDX-License-Identifier: GPL-3.0-or-later
#include "region_marks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug_file.h"
#include "elf_file.h"
#include "executable_parts.h"
#include "function_code.h"
#include "parser.h"
#include "text.h"
#include "usdt.h"

/* In the worker. */
struct search {
	struct elf_file *elf;
	struct wire_writer *result;
	__u32 n, n_unnamed;
};

static int kind_of(const struct usdt_probe *probe)
{
	if (!strcmp(probe->provider, "allocprof_begin"))
		return strcmp(probe->arguments, "-4@$1") != 0 ? AP_REGION_BEGIN : AP_REGION_ENTER;
	if (!strcmp(probe->provider, "allocprof_end"))
		return AP_REGION_END;
	return strcmp(probe->provider, "allocprof_leave") != 0 ? -ENOENT : AP_REGION_LEAVE;
}

bool region_name__is_good(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > AP_REGION_NAME_BYTES)
		return false;
	while (*name) {
		size_t size = utf8__printable(name);

		if (!size)
			return false;
		name += size;
	}
	return true;
}

static int look_at(const struct usdt_probe *probe, void *arg)
{
	struct search *search = arg;
	int kind = kind_of(probe);
	__u64 offset = 0;

	if (kind < 0)
		return 0;
	if (kind != AP_REGION_LEAVE && !region_name__is_good(probe->name)) {
		search->n_unnamed++;
		return 0;
	}
	if (search->n == REGION_MARKS_MAX)
		return 1;
	search->n++;
	wire__put_u32(search->result, kind);
	wire__put_u32(search->result,
		      !function_code__nop_offset(search->elf, probe->vaddr, &offset));
	wire__put_u64(search->result, offset);
	wire__put_string(search->result, kind != AP_REGION_LEAVE ? probe->name : "");
	return 0;
}

static int read_marks(struct parser_task *task, Elf *notes, struct elf_file *elf)
{
	struct wire_writer marks = { 0 };
	struct search search = { .elf = elf, .result = &marks };
	int has_more = usdt__for_each(notes, look_at, &search);
	int err = marks.has_failed ? -ENOMEM : 0;

	wire__put_u32(task->result, search.n_unnamed);
	wire__put_u32(task->result, has_more);
	wire__put_u32(task->result, elf_file__imports(elf, AP_REGION_MARK_FUNCTION));
	wire__put_u64(task->result, search.n);
	if (marks.size)
		wire__put_bytes(task->result, marks.bytes, marks.size);
	wire__release(&marks);
	return err;
}

static int run(struct parser_task *task)
{
	struct debug_file notes = DEBUG_FILE_NONE;
	int own = fcntl(task->fd, F_DUPFD_CLOEXEC, 0);
	struct elf_file *elf;
	int err;

	if (own < 0)
		return -errno;
	err = debug_file__open(own, task->path, &notes, NULL);
	if (!err)
		err = elf_file__open(task->fd, task->path, &elf, NULL);
	if (!err) {
		err = read_marks(task, notes.elf, elf);
		elf_file__free(elf);
	}
	debug_file__close(&notes);
	return err;
}

static void take_mark(struct wire_reader *reader, const struct executable_parts *parts,
		      struct region_mark *mark)
{
	const char *name;

	mark->kind = wire__get_u32(reader);
	mark->is_at_nop = wire__get_u32(reader);
	mark->offset = wire__get_u64(reader);
	name = wire__get_string(reader, sizeof(mark->name));
	if (!name || mark->kind > AP_REGION_LEAVE ||
	    (mark->kind != AP_REGION_LEAVE && !region_name__is_good(name)) ||
	    (mark->is_at_nop && !executable_parts__have_offset(parts, mark->offset))) {
		wire__refuse(reader);
		return;
	}
	snprintf(mark->name, sizeof(mark->name), "%s", name);
}

/* Whether the reply is valid. */
static int take(struct wire_reader *reader, int fd, struct region_marks *marks)
{
	struct executable_parts parts = { 0 };

	marks->n_unnamed = wire__get_u32(reader);
	marks->has_more = wire__get_u32(reader);
	marks->has_calls = wire__get_u32(reader);
	marks->n = wire__get_count(reader, 20);
	if (marks->n > REGION_MARKS_MAX)
		wire__refuse(reader);
	if (reader->is_bad || !marks->n)
		return wire__is_read(reader) ? 0 : -EPROTO;
	marks->list = calloc(marks->n, sizeof(*marks->list));
	if (!marks->list)
		return -ENOMEM;
	if (executable_parts__read(fd, &parts))
		return -EPROTO;
	for (size_t i = 0; i < marks->n; i++)
		take_mark(reader, &parts, &marks->list[i]);
	return wire__is_read(reader) ? 0 : -EPROTO;
}

int region_marks__parse(struct parser *parser, int fd, const char *path, struct region_marks *out,
			struct error *error)
{
	const struct parser_call call = { .run = run, .fd = fd, .path = path };
	struct region_marks marks = { 0 };
	struct wire_reader result;
	int err = parser__call(parser, &call, &result, error);

	if (!err)
		err = take(&result, fd, &marks);
	if (err == -EPROTO)
		err = parser__refuse(parser, path, error);
	if (err)
		region_marks__release(&marks);
	else
		*out = marks;
	return err;
}

void region_marks__release(struct region_marks *marks)
{
	free(marks->list);
	*marks = (struct region_marks){ 0 };
}
