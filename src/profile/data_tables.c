// SPDX-License-Identifier: GPL-3.0-or-later
#include "data_tables.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A column, and the field of ROW that has its value. */
#define COLUMN(kind, name, field)                                                                  \
	{                                                                                          \
#name, kind, sizeof(((ROW *)NULL)->field), offsetof(ROW, field)                    \
	}
#define ID(name)	    COLUMN(DATA_ID, name, name)
#define NUMBER(name)	    COLUMN(DATA_NUMBER, name, name)
#define NUMBER_AT(name, at) COLUMN(DATA_NUMBER, name, at)
#define NAME(name)	    COLUMN(DATA_NAME, name, name)
#define BYTES		    COLUMN(DATA_NUMBER, bytes, size_bytes)

/* clang-format off */
#define COLUMNS(table) static const struct data_column table[]

#define ROW struct data_meta_row
COLUMNS(meta) = { COLUMN(DATA_KEY, key, meta.key), COLUMN(DATA_TEXT, value, meta.value), { 0 } };
COLUMNS(run_meta) = { NUMBER(run), COLUMN(DATA_NAME, key, meta.key), COLUMN(DATA_TEXT, value, meta.value), { 0 } };
#undef ROW
#define ROW struct data_ledger_row
COLUMNS(ledger) = { COLUMN(DATA_KEY, name, entry.name), NUMBER_AT(value, entry.value), { 0 } };
COLUMNS(run_ledger) = { NUMBER(run), COLUMN(DATA_NAME, name, entry.name), NUMBER_AT(value, entry.value), { 0 } };
#undef ROW
#define ROW struct data_gap_row
COLUMNS(gaps) = {
	NUMBER_AT(run, gap.run), NAME(kind), NUMBER_AT(number, gap.number), NUMBER_AT(bytes, gap.size_bytes),
	NUMBER_AT(pid, gap.pid), COLUMN(DATA_NAME, object, gap.object), COLUMN(DATA_NAME, detail, gap.detail), { 0 },
};
#undef ROW
#define ROW struct profile_module
COLUMNS(modules) = { ID(id), NAME(path), NAME(build_id), NAME(symbols), { 0 } };
#undef ROW
#define ROW struct profile_process
COLUMNS(processes) = {
	ID(id), NUMBER(parent), NUMBER(pid), NUMBER(start_ns), NUMBER(end_ns), NUMBER(execed), NUMBER(run),
	NAME(comm), { 0 },
};
#undef ROW
#define ROW struct data_group_row
COLUMNS(control_groups) = { NUMBER(process), NAME(path), NAME(name), { 0 } };
#undef ROW
#define ROW struct data_arguments_row
COLUMNS(arguments) = { NUMBER(process), NAME(text), { 0 } };
#undef ROW
#define ROW struct profile_thread
COLUMNS(threads) = { ID(id), NUMBER(process), NAME(name), { 0 } };
#undef ROW
#define ROW struct profile_function
COLUMNS(functions) = { ID(id), NAME(symbol), NAME(name), NAME(full_name), { 0 } };
#undef ROW
#define ROW struct profile_file
COLUMNS(files) = { ID(id), NAME(path), { 0 } };
#undef ROW
#define ROW struct profile_frame
COLUMNS(frames) = {
	ID(id), NUMBER(module), COLUMN(DATA_ADDRESS, offset, offset), NUMBER_AT(interrupted, place), NUMBER(tail_call), { 0 },
};
#undef ROW
#define ROW struct data_line_row
COLUMNS(lines) = {
	NUMBER(frame), NUMBER(depth), NUMBER_AT(function, line.function), NUMBER_AT(file, line.file),
	NUMBER_AT(line, line.line), NUMBER_AT(inlined, line.inlined), { 0 },
};
#undef ROW
#define ROW struct data_stack_row
COLUMNS(stacks) = { ID(id), NAME(end), NAME(frames), { 0 } };
#undef ROW
#define ROW struct data_count_row
COLUMNS(counts) = {
	COLUMN(DATA_ID, id, count.id), NUMBER_AT(process, count.process), NUMBER_AT(thread, count.thread),
	NUMBER_AT(stack, count.stack), NAME(function), NUMBER_AT(calls, count.calls),
	NUMBER_AT(bytes, count.size_bytes), { 0 },
};
#undef ROW
#define ROW struct profile_blocks
COLUMNS(blocks) = {
	ID(count), NUMBER(failed), NUMBER(allocations), BYTES, NUMBER(frees), NUMBER(freed_bytes),
	NUMBER(discarded), NUMBER(discarded_bytes), NUMBER(temporary), NUMBER(temporary_bytes), NUMBER(peak),
	NUMBER(peak_bytes), NUMBER(oldest_ns), { 0 },
};
COLUMNS(ends) = { ID(count), NUMBER(grown), NUMBER(grown_bytes), NUMBER(freed_by_others), { 0 } };
COLUMNS(resident) = {
	ID(count), NUMBER(resident_bytes), NUMBER(pages), NUMBER(unique_pages), NUMBER(unique_slack_bytes), { 0 },
};
COLUMNS(rounding) = { ID(count), NUMBER(rounding_bytes), { 0 } };
#define REACHED(name, reach) NUMBER_AT(name, reached[reach].blocks), NUMBER_AT(name##_bytes, reached[reach].size_bytes)
COLUMNS(reach) = {
	ID(count), REACHED(lost, PROFILE_LOST), REACHED(indirectly_lost, PROFILE_INDIRECTLY_LOST),
	REACHED(possibly_lost, PROFILE_POSSIBLY_LOST), REACHED(reachable, PROFILE_REACHABLE), { 0 },
};
#undef ROW
#define ROW struct data_rss_row
COLUMNS(rss) = { NUMBER_AT(process, rss.process), NAME(kind), NUMBER_AT(bytes, rss.size_bytes), { 0 } };
#undef ROW
#define ROW struct data_mark_row
COLUMNS(marks) = { NUMBER(time_ns), NAME(kind), NAME(name), { 0 } };
#undef ROW
#define ROW struct profile_rss_sample
#define PART(name, kind) NUMBER_AT(name, bytes[kind])
COLUMNS(rss_samples) = {
	NUMBER(time_ns), PART(blocks, RSS_BLOCKS), PART(slack, RSS_SLACK), PART(free, RSS_FREE),
	PART(before, RSS_BEFORE), PART(mappings, RSS_MAPPINGS), PART(inherited, RSS_INHERITED),
	PART(stacks, RSS_STACKS), PART(data, RSS_DATA), PART(files, RSS_FILES), PART(shared, RSS_SHARED),
	PART(allocprof, RSS_OWN), PART(changed, RSS_CHANGED), NUMBER(torn_ms), { 0 },
};
#undef PART
#undef ROW
#define ROW struct data_heap_row
COLUMNS(heaps) = {
	NUMBER_AT(process, heap.process), NAME(kind), COLUMN(DATA_ADDRESS, address, heap.address),
	NUMBER_AT(mappings, heap.mappings), NUMBER_AT(resident_bytes, heap.resident_bytes),
	NUMBER_AT(block_bytes, heap.block_bytes), NUMBER_AT(slack_bytes, heap.slack_bytes),
	NUMBER_AT(free_bytes, heap.free_bytes), NUMBER_AT(blocks, heap.blocks), NUMBER_AT(bytes, heap.size_bytes), { 0 },
};
#undef ROW
#define ROW struct data_size_class_row
COLUMNS(size_classes) = {
	NAME(rule), NUMBER_AT(most_bytes, sizes.most_bytes), NUMBER_AT(blocks, sizes.blocks),
	NUMBER_AT(bytes, sizes.size_bytes), NUMBER_AT(usable_bytes, sizes.usable_bytes), { 0 },
};
#undef ROW
#define ROW struct data_mapping_row
COLUMNS(mappings) = {
	NUMBER_AT(count, mapping.count), COLUMN(DATA_ADDRESS, address, mapping.address),
	NUMBER_AT(bytes, mapping.size_bytes), NAME(kind), NUMBER_AT(given_back, mapping.was_given_back), { 0 },
};
#undef ROW
#define ROW struct data_sample_row
COLUMNS(samples) = {
	NUMBER(count), NAME(what), NUMBER_AT(samples, estimate.samples),
	COLUMN(DATA_REAL, variance, estimate.variance), COLUMN(DATA_REAL, bytes_variance, estimate.bytes_variance), { 0 },
};
#undef ROW
#define ROW struct data_histogram_row
COLUMNS(histogram) = { NUMBER(count), NUMBER(bucket), NUMBER(blocks), { 0 } };
#undef ROW
#define ROW struct profile_lifetime
COLUMNS(lifetimes) = {
	NUMBER(count), NUMBER(born), COLUMN(DATA_EPOCH, died, died), COLUMN(DATA_EPOCH, exited, exited),
	NUMBER(blocks), BYTES, { 0 },
};
#undef ROW
#define ROW struct timeline_sample
COLUMNS(timeline) = {
	NUMBER(run), NUMBER(time_ns), NUMBER(live), NUMBER(live_bytes), NUMBER(allocations), BYTES,
	NUMBER(rss_bytes), { 0 },
};
#undef ROW
/* clang-format on */

/* man/allocprof-data.5 describes the same tables and columns; tests/unit/test_query.c compares
 * them. */
const struct data_table data_tables[] = {
	{ "meta", "Text about the recording. This table is the same in every version.",
	  .columns = meta },
	{ "run_meta",
	  "What meta would say if there were this run alone, such as its "
	  "elapsed_seconds and epoch_ns. Empty without record -r; so is the next.",
	  .columns = run_meta, .key = "run, key" },
	{ "run_ledger", "The same for the ledger, which has the sums.", .columns = run_ledger,
	  .key = "run, name" },
	{ "gaps",
	  "What the recording lacks or has counted wrongly, besides what the ledger has; without rows, and with nothing "
	  "lost there, it is complete. run is 0 for the recording as a whole; with record -r there are those of each run, "
	  "too. number is of calls, processes, mappings or what else the kind is of. bytes and pid are of programs. "
	  "Recordings of before lack this table and have lines of text in meta.",
	  .columns = gaps, .may_lack = true },
	{ "ledger", "What happened to each event, a call that the recording was to count.",
	  .columns = ledger },
	{ "modules",
	  "Files that code was mapped from. build_id is in hexadecimal, empty where "
	  "there is none; two rows may then have one path, of a file that was replaced "
	  "by another. symbols says where the names of the file's functions came from, "
	  "or why there are none.",
	  .columns = modules },
	{ "processes",
	  "Programs that processes run: an exec begins a new one under the same pid. parent is the "
	  "id of the program that forked or executed it, 0 for the first. Times are in "
	  "nanoseconds of CLOCK_MONOTONIC; end_ns is 0 where it outlived the recording."
	  " execed is 1 where it ended by an exec, which discards its memory. run "
	  "numbers the runs that one recording made, from 1 (record -r). Threads, "
	  "counts, blocks and lifetimes are of the run of their process; addresses and "
	  "stacks are shared.",
	  .columns = processes },
	{ "control_groups",
	  "Control groups in which programs began, as far as they could be read: the path in the hierarchy, "
	  "and as name what reports call it, which is the container, the unit or the last part of the path. Of a program "
	  "that ended before it is what its parent had.",
	  .columns = control_groups, .key = "process", .may_lack = true },
	{ "arguments",
	  "Command lines of programs as a shell would take them, or titles that they have given themselves, as far as they "
	  "could be read: the first 256 bytes, and ... where there is more. Empty after record --no-arguments. A forked process "
	  "has those of its parent. With the engine uprobes those of a program that ends within some milliseconds may not have been "
	  "read in time.",
	  .columns = arguments, .key = "process", .may_lack = true },
	{ "threads", "Threads of a program that had the same name when they called.",
	  .columns = threads },
	{ "functions",
	  "Functions by the names that the linker knows, demangled in short (no "
	  "parameters, no default template arguments) and in full. No two have one "
	  "symbol.",
	  .columns = functions },
	{ "files", "Source files.", .columns = files },
	{ "frames",
	  "Distinct addresses of code. offset is an ELF virtual address of module; where "
	  "that is 0, no file is known and offset is an address of the process. It is "
	  "signed as all integers of SQL are. In the module [Python] it is a number that "
	  "functions of Python have by their names, files and lines; 0 is of frames that "
	  "are missing. One address may be there several times, with "
	  "other code in each run. It is a return address, so the call is at the byte "
	  "before, unless interrupted is 1: then a signal came just there; or 2: then it "
	  "is no frame of the stack, but an async function of Swift that awaits the next "
	  "inner one, and goes on there. With "
	  "tail_call 1 the function did not wait for a call to return but had jumped to"
	  " the next function, with which it ended: offset is the end of the jump. Such"
	  " a frame was not on the stack and was inserted, see allocprof-record(1).",
	  .columns = frames },
	{ "lines",
	  "What an address of code belongs to. depth 0 is the innermost of functions that "
	  "were inlined into one another; the last one has inlined 0: it is the "
	  "function that has the code. file and line are 0 where they are not known. A "
	  "frame without a name has no rows.",
	  .columns = lines, .key = "frame, depth" },
	{ "stacks",
	  "Distinct stacks. end is complete or the reason why not, as in the ledger. frames "
	  "is a JSON array of the frames, of which the first is the caller of the allocator.",
	  .columns = stacks },
	{ "counts",
	  "How often threads of one name of a process called the allocator's function "
	  "(malloc, calloc, ..., free) from a stack, and how many bytes these calls "
	  "requested. Sums stop at 2^63-1.",
	  .columns = counts },
	{ "blocks",
	  "What became of the memory that the calls of a count got. failed calls got "
	  "none. frees are those of these blocks, by whichever thread and function. "
	  "discarded blocks went with their address space at an exec. temporary blocks "
	  "were freed before the same thread's next allocation. peak is what was live "
	  "at the moment when all processes together had most. oldest_ns is the time "
	  "from the start of the recording, or of the run, to the birth of the oldest "
	  "block that is live. Live blocks are allocations - frees - discarded. A "
	  "realloc() frees one block and allocates another, of its own stack.",
	  .columns = blocks },
	{ "samples",
	  "How good the numbers of a count are, where bytes were sampled. what is "
	  "calls, or with --live also allocations, live and temporary; the number of "
	  "these comes from so many samples. variance is the estimated square of its "
	  "standard deviation, and bytes_variance that of their bytes. Those of several"
	  " counts add up to that of their sum. A count that has no samples of a kind "
	  "has no row.",
	  .columns = samples, .key = "count, what" },
	{ "size_histogram",
	  "Allocations by size: bucket n has those of 2^(n-1) to 2^n-1 bytes, bucket 0 "
	  "those of 0.",
	  .columns = histogram, .key = "count, bucket" },
	{ "lifetime_histogram",
	  "Freed blocks by nanoseconds from the allocator's return to the free, in the "
	  "same buckets.",
	  .columns = histogram, .key = "count, bucket" },
	{ "lifetimes",
	  "Blocks by the epochs of their birth and death. An epoch is as long as meta's"
	  " epoch_ns says, or that of run_meta where there is one; the first, with "
	  "which the run starts, is 0. died is NULL for blocks that were not freed; of "
	  "these exited is the epoch in which the last process of their address space "
	  "ended, where that was before the command ended, or the process that was "
	  "attached to. Several rows may be of the same count and epochs: their blocks "
	  "add up. A mapping that was unmapped in parts is a block of the last of them; "
	  "the others have 0 blocks.",
	  .columns = lifetimes },
	{ "timeline",
	  "Samples since the start of the recording, or of its run: what was live, what"
	  " had been allocated until then, and how much anonymous memory of all "
	  "followed processes was resident, 0 once none is left. The first is at 0 "
	  "where a command was launched, and else when a process's memory was measured "
	  "first.",
	  .columns = timeline, .key = "run, time_ns" },
	{ "ends",
	  "With record --live: how freed blocks of a count have ended, where any did in one of these ways. grown: a "
	  "realloc by the same thread from the same stack has returned a larger block for them, grown_bytes are the "
	  "bytes that they had; freed_by_others: another thread has freed them than the one that has allocated them.",
	  .columns = ends, .may_lack = true },
	{ "resident",
	  "With record --resident: what the live blocks of a count have of the resident memory at the end of the "
	  "recording, or of their process. resident_bytes are those of the blocks, pages the pages of 4 KiB on which "
	  "they are, unique_pages those of them without a block of another stack, and unique_slack_bytes the bytes of "
	  "these that are of no block. A page on which several counts of a stack have blocks is one of these counts' "
	  "pages. With --allocator mmap a count that maps has the pages of its mappings that are kinds mappings and "
	  "stacks of rss.",
	  .columns = resident, .may_lack = true },
	{ "rss",
	  "With record --resident: what the resident memory of a process consists of, a row each. kind is blocks (live "
	  "ones), slack (what else is on pages with live blocks), free (an allocator's pages without a live block), "
	  "before (an allocator's pages that were resident before the recording began), mappings (other private "
	  "anonymous mappings), inherited (of a forked process, without a live block of its own), stacks (of threads), "
	  "data (of programs), files, shared (shared mappings, and pages that a fork shares), allocprof (what it has mapped "
	  "there) or changed (counted and then gone). huge and highest are no parts of the sum: transparent huge pages among all of that, and the most that the process ever had.",
	  .columns = rss, .key = "process, kind", .may_lack = true },
	{ "rss_samples",
	  "With record --resident, of one run: the parts of rss of all processes together whenever a copy of the recording was "
	  "made (ctl dump, --dump-at, checkpoints), and at its end. time_ns is since the start. Processes could change the memory for torn_ms "
	  "milliseconds while it was read, 0 if they did not.",
	  .columns = rss_samples, .key = "time_ns", .may_lack = true },
	{ "marks",
	  "What happened to a recording of one run while it went on, the first 1,000 of it: dump, where a copy was written by ctl dump, "
	  "or at a limit of --dump-at, which name is; stop and start by ctl, and start at the end of --delay. time_ns is since the start.",
	  .columns = marks, .key = "time_ns, kind", .may_lack = true },
	{ "heaps",
	  "With record --resident: what heaps have of the resident memory of a process at its end, or that of the recording. kind is main "
	  "(of glibc, by brk), brk (of another allocator there), arena (of glibc for threads, by the address of its "
	  "struct malloc_state), mapped (mappings that glibc makes for one block each, together) or other (all other "
	  "mappings with live blocks). resident_bytes are block_bytes (of live blocks), slack_bytes (what else is on "
	  "their pages), free_bytes (on pages without one) and what was there before the recording. blocks and bytes "
	  "are those of live blocks, resident or not. address is signed as all integers of SQL are.",
	  .columns = heaps, .key = "process, kind, address", .may_lack = true },
	{ "size_classes",
	  "With record --resident: the live blocks by the usable bytes that their allocator gives them: most_bytes of each, or "
	  "at most, from 1,024 on in four classes to a doubling. rule is glibc, whose blocks may have 16 bytes more where a "
	  "remainder was too small, jemalloc, or unknown; then most_bytes are requested ones, and usable_bytes is 0. "
	  "bytes are the requested ones.",
	  .columns = size_classes, .key = "rule, most_bytes", .may_lack = true },
	{ "rounding",
	  "With record --resident: what the rules of size_classes give the live blocks of a count beside the requested bytes, "
	  "with what is before each. Blocks of which the rule is unknown have nothing of it.",
	  .columns = rounding, .may_lack = true },
	{ "reach",
	  "With record --reachable: the live blocks of a count, and their bytes, by whether pointers led to them at the "
	  "end of the recording, or of their process. lost: none did; indirectly_lost: only lost blocks had some; "
	  "possibly_lost: each way passes a pointer to the inside of a block; reachable. Live blocks of processes whose "
	  "memory was not searched are in none of these.",
	  .columns = reach, .may_lack = true },
	{ "mappings",
	  "With record --live --allocator mmap: ranges of addresses that were mapped at the end of the recording, or "
	  "when their process ended, by a call of count. kind is heap (of brk), stack (of a thread), code (it is or "
	  "was executable, as what a JIT makes), reserved (it cannot be accessed, PROT_NONE) or other. given_back is 1 "
	  "where madvise has given the pages back, which may have been touched since. address is signed as all "
	  "integers of SQL are.",
	  .columns = mappings, .may_lack = true },
	{ "stack_frames",
	  "The frames of stacks, a row each. depth 0 is the caller of the allocator.",
	  .view = "SELECT s.id AS stack, f.key AS depth, f.value AS frame "
		  "FROM stacks s JOIN json_each(s.frames) f" },
	{ "frame_names",
	  "A printable name for each line of each frame: name of the function, "
	  "[libfoo.so.1+0x1234] or [unknown]; and the path of its module.",
	  .view = "SELECT f.id AS frame, coalesce(l.depth, 0) AS depth, "
		  "coalesce(u.name, '[' || replace(m.path, rtrim(m.path, replace(m.path, '/', '')), '') "
		  "|| printf('+0x%x]', f.offset), '[unknown]') AS name, coalesce(l.inlined, 0) AS inlined, "
		  "s.path AS file, nullif(l.line, 0) AS line, m.path AS module "
		  "FROM frames f LEFT JOIN modules m ON m.id = f.module LEFT JOIN lines l ON l.frame = f.id "
		  "LEFT JOIN functions u ON u.id = l.function LEFT JOIN files s ON s.id = l.file" },
	{ "stack_texts", "The names of a stack's frames, outermost first, with \";\" between them.",
	  .view = "SELECT s.id AS stack, coalesce((SELECT group_concat(name, ';') "
		  "FROM (SELECT n.name AS name FROM stack_frames sf JOIN frame_names n ON n.frame = sf.frame "
		  "WHERE sf.stack = s.id ORDER BY sf.depth DESC, n.depth DESC)), '') AS text FROM stacks s" },
	{ "calls",
	  "counts in words. caller is the name of the innermost frame, frames the text "
	  "of the stack.",
	  .view = "SELECT c.id AS count, p.id AS process, p.pid AS pid, p.comm AS comm, "
		  "t.name AS thread, c.function AS function, c.calls AS calls, c.bytes AS bytes, "
		  "s.id AS stack, s.end AS end, "
		  "(SELECT n.name FROM stack_frames sf JOIN frame_names n ON n.frame = sf.frame "
		  "WHERE sf.stack = s.id AND sf.depth = 0 ORDER BY n.depth LIMIT 1) AS caller, "
		  "(SELECT text FROM stack_texts x WHERE x.stack = s.id) AS frames "
		  "FROM counts c JOIN processes p ON p.id = c.process JOIN threads t ON t.id = c.thread "
		  "JOIN stacks s ON s.id = c.stack" },
	{ "memory", "blocks in words.",
	  .view = "SELECT c.count AS count, c.process AS process, c.pid AS pid, "
		  "c.comm AS comm, c.thread AS thread, c.function AS function, "
		  "b.allocations AS allocations, b.bytes AS bytes, b.failed AS failed, b.frees AS frees, "
		  "b.freed_bytes AS freed_bytes, b.allocations - b.frees - b.discarded AS live, "
		  "b.bytes - b.freed_bytes - b.discarded_bytes AS live_bytes, b.temporary AS temporary, "
		  "b.temporary_bytes AS temporary_bytes, b.peak AS peak, b.peak_bytes AS peak_bytes, "
		  "b.oldest_ns AS oldest_ns, c.stack AS stack, c.end AS end, c.caller AS caller, "
		  "c.frames AS frames FROM blocks b JOIN calls c ON c.count = b.count" },
	{ 0 },
};

const struct data_table *data_table__find(const char *name)
{
	const struct data_table *table = data_tables;

	while (table->name && strcmp(table->name, name) != 0)
		table++;
	return table->name ? table : NULL;
}

static void print_definition(const struct data_table *table, FILE *to)
{
	static const char *const types[] = {
		[DATA_ID] = "INTEGER PRIMARY KEY",   [DATA_NUMBER] = "INTEGER NOT NULL",
		[DATA_ADDRESS] = "INTEGER NOT NULL", [DATA_EPOCH] = "INTEGER",
		[DATA_REAL] = "REAL NOT NULL",	     [DATA_KEY] = "TEXT PRIMARY KEY",
		[DATA_NAME] = "TEXT NOT NULL",	     [DATA_TEXT] = "TEXT NOT NULL",
	};

	if (table->view) {
		fprintf(to, "CREATE VIEW %s AS %s", table->name, table->view);
		return;
	}
	fprintf(to, "CREATE TABLE %s(", table->name);
	for (const struct data_column *column = table->columns; column->name; column++)
		fprintf(to, "%s%s %s", column == table->columns ? "" : ", ", column->name,
			types[column->kind]);
	if (table->key)
		fprintf(to, ", PRIMARY KEY(%s)", table->key);
	fprintf(to, ")%s",
		table->key || table->columns[0].kind == DATA_KEY ? " WITHOUT ROWID" : "");
}

char *data_table__definition(const struct data_table *table)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	print_definition(table, to);
	if (!fclose(to))
		return text;
	free(text);
	return NULL;
}
