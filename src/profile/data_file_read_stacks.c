// SPDX-License-Identifier: GPL-3.0-or-later
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

	while (!err && (err = data_reader__next(reader, statement)) > 0) {
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

	while (!err && (err = data_reader__next(reader, statement)) > 0) {
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

	while (!err && (err = data_reader__next(reader, statement)) > 0) {
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

	while (!err && (err = data_reader__next(reader, statement)) > 0) {
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

	while (!err && (err = data_reader__next(reader, statement)) > 0) {
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

	while (!err && (err = data_reader__next(reader, statement)) > 0) {
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
	while (!err && (err = data_reader__next(reader, statement)) > 0) {
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

/* Reads the frames of stack @id, which must be the next rows of @statement. */
static int read_stack_frames(struct data_reader *reader, sqlite3_stmt *statement, __u64 id,
			     __u64 n_frames, __u32 *frames)
{
	for (__u64 depth = 0; depth < n_frames; depth++) {
		__u64 stack, row_depth, frame;
		int err = data_reader__next(reader, statement);

		if (err <= 0)
			return err ? err : -EINVAL;
		if (data_reader__get_row(reader, statement, "nnn", &stack, &row_depth, &frame) ||
		    stack != id || row_depth != depth || frame > reader->profile->n_frames)
			return -EINVAL;
		frames[depth] = frame;
	}
	return 0;
}

int data_reader__read_stacks(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *stacks = NULL;
	_cleanup_(finalize) sqlite3_stmt *stack_frames = NULL;
	__u32 frames[AP_MAX_DEPTH], id;
	const char *end_name;
	__u64 stack, n_frames;
	int err, end;

	err = prepare(reader->db, "SELECT * FROM stacks NOT INDEXED ORDER BY id", &stacks);
	if (!err)
		err = prepare(reader->db,
			      "SELECT * FROM stack_frames NOT INDEXED ORDER BY stack, depth",
			      &stack_frames);
	while (!err && (err = data_reader__next(reader, stacks)) > 0) {
		size_t n_before = reader->profile->n_stacks;

		err = data_reader__get_row(reader, stacks, "ntn", &stack, &end_name, &n_frames);
		if (err)
			break;
		end = profile__stack_end_by_name(end_name);
		if (end < 0 || n_frames > AP_MAX_DEPTH)
			return -EINVAL;
		err = read_stack_frames(reader, stack_frames, n_before + 1, n_frames, frames);
		if (!err)
			err = profile__add_stack(reader->profile, frames, n_frames, end, &id);
		if (!err)
			err = data_reader__expect_new(stack, n_before, id);
	}
	if (err)
		return err;
	err = data_reader__next(reader, stack_frames);
	return err > 0 ? -EINVAL : err;
}
