// SPDX-License-Identifier: GPL-3.0-or-later
/* The tables of the data file, with the description that `query --schema` prints. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "data_file_db.h"
#include "data_file_query.h"
#include "data_file_schema.h"

/* As man/allocprof-data.5 has them; tests/unit/test_query.c holds both together. */
const struct data_table data_tables[] = {
	{ "meta", "Text about the recording. This table is the same in every version.", false },
	{ "run_meta",
	  "What meta would say if there were this run alone, such as its "
	  "elapsed_seconds and epoch_ns. Empty without record -r; so is the next.",
	  false },
	{ "run_ledger", "The same for the ledger, which has the sums.", false },
	{ "gaps",
	  "What the recording lacks or has counted wrongly, besides what the ledger has; without rows, and with nothing "
	  "lost there, it is complete. run is 0 for the recording as a whole; with record -r there are those of each run, "
	  "too. number is of calls, processes, mappings or what else the kind is of. bytes and pid are of programs. "
	  "Recordings of before lack this table and have lines of text in meta.",
	  false },
	{ "ledger", "What happened to each event, a call that the recording was to count.", false },
	{ "modules",
	  "Files that code was mapped from. build_id is in hexadecimal, empty where "
	  "there is none; two rows may then have one path, of a file that was replaced "
	  "by another. symbols says where the names of the file's functions came from, "
	  "or why there are none.",
	  false },
	{ "processes",
	  "Process images: an exec begins a new one under the same pid. parent is the "
	  "id of the image that forked or executed it, 0 for the first. Times are in "
	  "nanoseconds of CLOCK_MONOTONIC; end_ns is 0 where it outlived the recording."
	  " execed is 1 where it ended by an exec, which discards its memory. run "
	  "numbers the runs that one recording made, from 1 (record -r). Threads, "
	  "counts, blocks and lifetimes are of the run of their process; places and "
	  "stacks are shared.",
	  false },
	{ "threads", "Threads of a process image that had the same name when they called.", false },
	{ "functions",
	  "Functions by the names that the linker knows, demangled in short (no "
	  "parameters, no default template arguments) and in full. No two have one "
	  "symbol.",
	  false },
	{ "files", "Source files.", false },
	{ "frames",
	  "Distinct places in code. offset is an ELF virtual address of module; where "
	  "that is 0, no file is known and offset is an address of the process. It is "
	  "signed as all integers of SQL are. One address may be several places, with "
	  "other code in each run. It is a return address, so the call is at the byte "
	  "before, unless interrupted is 1: then a signal came just there. With "
	  "tail_call 1 the function did not wait for a call to return but had jumped to"
	  " the next function, with which it ended: offset is the end of the jump. Such"
	  " a frame was not on the stack and was inserted, see allocprof-record(1).",
	  false },
	{ "lines",
	  "What a place in code belongs to. depth 0 is the innermost of functions that "
	  "were inlined into one another; the last one has inlined 0: it is the "
	  "function that has the code. file and line are 0 where they are not known. A "
	  "frame without a name has no rows.",
	  false },
	{ "stacks",
	  "Distinct stacks. end is complete or the reason why not, as in the ledger. frames "
	  "is a JSON array of the frames, of which the first is the caller of the allocator.",
	  false },
	{ "counts",
	  "How often threads of one name of a process called the allocator's function "
	  "(malloc, calloc, ..., free) from a stack, and how many bytes these calls "
	  "requested. Sums stop at 2^63-1.",
	  false },
	{ "blocks",
	  "What became of the memory that the calls of a count got. failed calls got "
	  "none. frees are those of these blocks, by whichever thread and function. "
	  "discarded blocks went with their address space at an exec. temporary blocks "
	  "were freed before the same thread's next allocation. peak is what was live "
	  "at the moment when all processes together had most. oldest_ns is the time "
	  "from the start of the recording, or of the run, to the birth of the oldest "
	  "block that is live. Live blocks are allocations - frees - discarded. A "
	  "realloc() frees one block and allocates another, of its own stack.",
	  false },
	{ "samples",
	  "How good the numbers of a count are, where bytes were sampled. what is "
	  "calls, or with --live also allocations, live and temporary; the number of "
	  "these comes from so many samples. variance is the estimated square of its "
	  "standard deviation, and bytes_variance that of their bytes. Those of several"
	  " counts add up to that of their sum. A count that has no samples of a kind "
	  "has no row.",
	  false },
	{ "size_histogram",
	  "Allocations by size: bucket n has those of 2^(n-1) to 2^n-1 bytes, bucket 0 "
	  "those of 0.",
	  false },
	{ "lifetime_histogram",
	  "Freed blocks by nanoseconds from the allocator's return to the free, in the "
	  "same buckets.",
	  false },
	{ "lifetimes",
	  "Blocks by the epochs of their birth and death. An epoch is as long as meta's"
	  " epoch_ns says, or that of run_meta where there is one; the first, with "
	  "which the run starts, is 0. died is NULL for blocks that were not freed; of "
	  "these exited is the epoch in which the last process of their address space "
	  "ended, where that was before the command ended, or the process that was "
	  "attached to. Several rows may be of the same count and epochs: their blocks "
	  "add up.",
	  false },
	{ "timeline",
	  "Moments since the start of the recording, or of its run: what was live, what"
	  " had been allocated until then, and how much anonymous memory of all "
	  "followed processes was resident, 0 once none is left. The first is at 0 "
	  "where a command was launched, and else when a process's memory was measured "
	  "first.",
	  false },
	{ "stack_frames",
	  "The frames of stacks, a row each. depth 0 is the caller of the allocator.", true },
	{ "frame_names",
	  "A printable name for each line of each frame: name of the function, "
	  "[libfoo.so.1+0x1234] or [unknown]; and the path of its module.",
	  true },
	{ "stack_texts", "The names of a stack's frames, outermost first, with \";\" between them.",
	  true },
	{ "calls",
	  "counts in words. caller is the name of the innermost frame, frames the text "
	  "of the stack.",
	  true },
	{ "memory", "blocks in words.", true },
	{ 0 },
};

int data_table__columns(const struct data_table *table, char **columns)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	_cleanup_(close_db) sqlite3 *db = NULL;
	const char *names;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(data_file_schema); i++)
		if (run(db, data_file_schema[i]))
			return -ENOMEM;
	if (prepare(db, "SELECT group_concat(name, ', ') FROM pragma_table_info(?)", &statement) ||
	    bind_text(statement, 1, table->name) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW)
		return -ENOMEM;
	names = (const char *)sqlite3_column_text(statement, 0);
	*columns = names ? strdup(names) : NULL;
	return *columns ? 0 : -ENOMEM;
}
