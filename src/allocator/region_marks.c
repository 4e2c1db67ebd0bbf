// SPDX-License-Identifier: GPL-3.0-or-later
#include "region_marks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "debug_file.h"
#include "elf_file.h"
#include "elf_headers.h"
#include "function_code.h"
#include "parser.h"
#include "text.h"
#include "usdt.h"

/* State of the search, in the worker. */
struct search {
	struct elf_file *elf;
	struct region_marks marks;
	size_t room;
	int err;
};

static int kind_of(const struct usdt_probe *probe)
{
	if (!strcmp(probe->provider, "allocprof_begin")) {
		if (!strcmp(probe->arguments, "-4@$2"))
			return AP_REGION_RESUME;
		return strcmp(probe->arguments, "-4@$1") != 0 ? AP_REGION_BEGIN : AP_REGION_ENTER;
	}
	if (!strcmp(probe->provider, "allocprof_end"))
		return AP_REGION_END;
	if (!strcmp(probe->provider, "allocprof_leave"))
		return AP_REGION_LEAVE;
	return strcmp(probe->provider, "allocprof_read") != 0 ? -ENOENT : AP_REGION_READ;
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

static bool mark_is_sound(const void *object, const void *context)
{
	const struct executable_parts *parts = context;
	const struct region_mark *mark = object;

	return parts->n && mark->kind <= AP_REGION_READ &&
	       (!region_mark__is_named(mark->kind) || region_name__is_good(mark->name)) &&
	       (!mark->is_at_nop || executable_parts__have_offset(parts, mark->offset));
}

static const struct wire_struct mark_type = {
	.is_sound = mark_is_sound,
	.fields = {
		{ WIRE_NUMBER(struct region_mark, kind) },
		{ WIRE_FLAG(struct region_mark, is_at_nop) },
		{ WIRE_NUMBER(struct region_mark, offset) },
		{ WIRE_TEXT(struct region_mark, name) },
	},
};

static const struct wire_struct marks_type = {
	.fields = {
		{ WIRE_STRUCTS(struct region_marks, list, n, REGION_MARKS_MAX, &mark_type) },
		{ WIRE_NUMBER(struct region_marks, n_unnamed) },
		{ WIRE_FLAG(struct region_marks, has_more) },
		{ WIRE_FLAG(struct region_marks, has_calls) },
	},
};

/* Where lld discards a function that nobody calls, its notes stay, with addresses as if the section began at 0. */
static bool is_discarded(const struct search *search, const struct usdt_probe *probe)
{
	__u64 start, end;

	return !elf_file__text_range(search->elf, &start, &end) && probe->vaddr < start;
}

static int add_mark(const struct usdt_probe *probe, void *arg)
{
	struct search *search = arg;
	struct region_marks *marks = &search->marks;
	struct region_mark mark = { 0 };
	int kind = kind_of(probe);

	if (kind < 0 || is_discarded(search, probe))
		return 0;
	if (region_mark__is_named(kind) && !region_name__is_good(probe->name)) {
		marks->n_unnamed++;
		return 0;
	}
	if (marks->n == REGION_MARKS_MAX)
		return 1;
	search->err =
		array__reserve(&marks->list, &search->room, marks->n + 1, sizeof(*marks->list));
	if (search->err)
		return 1;
	mark.kind = kind;
	mark.is_at_nop = !function_code__nop_offset(search->elf, probe->vaddr, &mark.offset);
	if (region_mark__is_named(kind))
		snprintf(mark.name, sizeof(mark.name), "%s", probe->name);
	marks->list[marks->n++] = mark;
	return 0;
}

static int read_marks(struct parser_task *task, Elf *notes, struct elf_file *elf)
{
	struct search search = { .elf = elf };

	search.marks.has_more = usdt__for_each(notes, add_mark, &search);
	search.marks.has_calls = elf_file__imports(elf, AP_REGION_MARK_FUNCTION) ||
				 elf_file__imports(elf, AP_REGION_READ_FUNCTION);
	wire__put_struct(task->result, &marks_type, &search.marks, NULL);
	region_marks__release(&search.marks);
	return search.err;
}

static int read_file(struct parser_task *task)
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

int region_marks__parse(struct parser *parser, int fd, const char *path, struct region_marks *out,
			struct error *error)
{
	const struct parser_call call = { .run = read_file, .fd = fd, .path = path };
	struct executable_parts parts;
	struct region_marks marks = { 0 };
	int err;

	/* A mark outside of executable segments is refused, so without such segments all marks
	 * are. */
	if (executable_parts__read(fd, &parts))
		parts.n = 0;
	err = parser__call_struct(parser, &call, &marks_type, &marks, &parts, error);
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
