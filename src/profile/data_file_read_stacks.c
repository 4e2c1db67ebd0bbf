// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the tables that name things: modules, processes, threads, functions, frames and stacks. */
#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "data_file_db.h"
#include "data_file_reader.h"
#include "data_file_schema.h"
#include "profile.h"
#include "profile_runs.h"

int data_reader__expect_new(__u64 id, size_t n_before, __u32 added)
{
	return id == n_before + 1 && added == id ? 0 : -EINVAL;
}

int data_reader__read_modules(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT * FROM modules NOT INDEXED ORDER BY id", &statement);
	const char *path, *build_id, *symbols;
	__u64 id;

	while (!err && (err = data_reader__next(reader, statement, "modules")) > 0) {
		size_t n_before = reader->profile->n_modules;
		__u32 added = 0;

		err = data_reader__get_row(reader, statement, "nttt", &id, &path, &build_id,
					   &symbols);
		if (!err && build_id[strspn(build_id, "0123456789abcdef")])
			err = -EINVAL;
		if (!err)
			err = profile__add_module_file(reader->profile, path, build_id, id, &added);
		if (!err)
			err = profile__set_module_symbols(reader->profile, added, symbols);
		if (!err)
			err = data_reader__expect_new(id, n_before, added);
	}
	return err;
}

bool data_reader__is_run(const struct profile *profile, __u64 run)
{
	return run && run <= (profile->n_runs ? profile->n_runs : PROFILE_MAX_RUNS);
}

int data_reader__read_processes(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err =
		prepare(reader->db, "SELECT * FROM processes NOT INDEXED ORDER BY id", &statement);
	__u64 id, parent, pid, start_ns, end_ns, execed, run;
	struct profile_process *process;
	const char *comm;

	while (!err && (err = data_reader__next(reader, statement, "processes")) > 0) {
		size_t n_before = reader->profile->n_processes;
		__u32 added = 0;

		err = data_reader__get_row(reader, statement, "nnnnnnnt", &id, &parent, &pid,
					   &start_ns, &end_ns, &execed, &run, &comm);
		if (!err && (parent > n_before || pid > INT32_MAX || execed > 1 ||
			     !data_reader__is_run(reader->profile, run)))
			err = -EINVAL;
		if (!err)
			err = profile__add_process(reader->profile, parent, pid, start_ns, comm,
						   &added);
		if (!err)
			err = data_reader__expect_new(id, n_before, added);
		if (err)
			break;
		process = &reader->profile->processes[n_before];
		process->end_ns = end_ns;
		process->execed = execed;
		process->run = run;
	}
	return err;
}

int data_reader__read_threads(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT * FROM threads NOT INDEXED ORDER BY id", &statement);
	__u64 id, process;
	const char *name;

	while (!err && (err = data_reader__next(reader, statement, "threads")) > 0) {
		size_t n_before = reader->profile->n_threads;
		__u32 added = 0;

		err = data_reader__get_row(reader, statement, "nnt", &id, &process, &name);
		if (!err && process > reader->profile->n_processes)
			err = -EINVAL;
		if (!err)
			err = profile__add_thread(reader->profile, process, name, &added);
		if (!err)
			err = data_reader__expect_new(id, n_before, added);
	}
	return err;
}

int data_reader__read_functions(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err =
		prepare(reader->db, "SELECT * FROM functions NOT INDEXED ORDER BY id", &statement);
	const char *symbol, *name, *full_name;
	__u64 id;

	while (!err && (err = data_reader__next(reader, statement, "functions")) > 0) {
		__u32 added;

		err = data_reader__get_row(reader, statement, "nttt", &id, &symbol, &name,
					   &full_name);
		if (!err && id != reader->n_functions + 1)
			err = -EINVAL;
		if (!err)
			err = profile__add_function(reader->profile, symbol, name, full_name,
						    &added);
		if (!err)
			err = array__reserve(&reader->functions, &reader->functions_room,
					     reader->n_functions + 1, sizeof(added));
		if (!err)
			reader->functions[reader->n_functions++] = added;
	}
	return err;
}

int data_reader__read_files(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT * FROM files NOT INDEXED ORDER BY id", &statement);
	const char *path;
	__u64 id;

	while (!err && (err = data_reader__next(reader, statement, "files")) > 0) {
		size_t n_before = reader->profile->n_files;
		__u32 added = 0;

		err = data_reader__get_row(reader, statement, "nt", &id, &path);
		if (!err)
			err = profile__add_file(reader->profile, path, &added);
		if (!err)
			err = data_reader__expect_new(id, n_before, added);
	}
	return err;
}

int data_reader__read_frames(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT * FROM frames NOT INDEXED ORDER BY id", &statement);
	__u64 id, module, offset, interrupted, tail_call;

	while (!err && (err = data_reader__next(reader, statement, "frames")) > 0) {
		size_t n_before = reader->profile->n_frames;
		__u32 added = 0;

		/* Addresses have 64 bits: that of the vsyscall page is negative in SQL. */
		err = data_reader__get_row(reader, statement, "nnann", &id, &module, &offset,
					   &interrupted, &tail_call);
		if (!err && (module > reader->profile->n_modules || interrupted > 1 ||
			     tail_call > 1 || (tail_call && (interrupted || !module))))
			err = -EINVAL;
		if (!err && tail_call)
			err = profile__add_tail_call(reader->profile, module, offset, &added);
		else if (!err)
			err = module ? profile__add_frame(reader->profile, module, offset,
							  interrupted, &added)
				     : profile__add_other_frame(reader->profile, offset,
								interrupted, &added);
		if (!err)
			err = data_reader__expect_new(id, n_before, added);
	}
	return err;
}

/* Limit of inlining levels, beyond what compilers do. */
#define MAX_LINES 1024

struct frame_lines {
	__u32 frame;
	__u32 n;
	struct profile_line lines[MAX_LINES];
};

static int set_lines(struct data_reader *reader, struct frame_lines *lines)
{
	int err = lines->n ? profile__set_frame_lines(reader->profile, lines->frame, lines->lines,
						      lines->n)
			   : 0;

	lines->n = 0;
	return err;
}

int data_reader__read_lines(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	_cleanup_(free_ptr) struct frame_lines *lines = calloc(1, sizeof(*lines));
	int err = prepare(reader->db, "SELECT * FROM lines NOT INDEXED ORDER BY frame, depth",
			  &statement);
	__u64 frame, depth, function, file, line, inlined;

	if (!lines)
		return -ENOMEM;
	while (!err && (err = data_reader__next(reader, statement, "lines")) > 0) {
		err = data_reader__get_row(reader, statement, "nnnnnn", &frame, &depth, &function,
					   &file, &line, &inlined);
		if (!err && (frame > UINT32_MAX || !function || function > reader->n_functions ||
			     file > UINT32_MAX || line > UINT32_MAX || inlined > 1))
			err = -EINVAL;
		if (!err && frame != lines->frame) {
			err = set_lines(reader, lines);
			lines->frame = frame;
		}
		if (!err && (depth != lines->n || lines->n == MAX_LINES))
			err = -EINVAL;
		if (!err)
			lines->lines[lines->n++] = (struct profile_line){
				.function = reader->functions[function - 1],
				.file = file,
				.line = line,
				.inlined = inlined,
			};
	}
	return err ? err : set_lines(reader, lines);
}

/*
 * Reads the frames of a stack, a JSON array as the writer has it: "[3,14]", without spaces or leading zeros. Returns how
 * many there are, or -EINVAL.
 */
static int parse_frames(const char *text, size_t n_known, __u32 frames[AP_MAX_DEPTH])
{
	int n = 0;

	if (*text++ != '[')
		return -EINVAL;
	if (text[0] == ']' && !text[1])
		return 0;
	while (n < AP_MAX_DEPTH && *text >= '1' && *text <= '9') {
		__u64 frame = 0;

		for (; *text >= '0' && *text <= '9' && frame <= n_known; text++)
			frame = 10 * frame + (*text - '0');
		if (frame > n_known)
			return -EINVAL;
		frames[n++] = frame;
		if (*text == ']' && !text[1])
			return n;
		if (*text++ != ',')
			return -EINVAL;
	}
	return -EINVAL;
}

int data_reader__read_stacks(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT * FROM stacks NOT INDEXED ORDER BY id", &statement);
	const char *end_name, *text;
	__u32 frames[AP_MAX_DEPTH];
	__u64 stack;

	while (!err && (err = data_reader__next(reader, statement, "stacks")) > 0) {
		size_t n_before = reader->profile->n_stacks;
		int end, n_frames;
		__u32 id;

		err = data_reader__get_row(reader, statement, "ntt", &stack, &end_name, &text);
		if (err)
			break;
		end = profile__stack_end_by_name(end_name);
		n_frames = parse_frames(text, reader->profile->n_frames, frames);
		if (end < 0 || n_frames < 0)
			return -EINVAL;
		err = profile__add_stack(reader->profile, frames, n_frames, end, &id);
		if (!err)
			err = data_reader__expect_new(stack, n_before, id);
	}
	return err;
}
