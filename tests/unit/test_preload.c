// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The reader of the shared memory trusts no process that writes to it: it counts invalid values as damaged, and
 * passes on none that is out of bounds.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "file.h"
#include "preload_internal.h"
#include "random.h"
#include "sample_abi.h"

#define ROUNDS	   40
#define USED_BYTES (1 << 20)

static struct preload *make_sampling(enum inside_mode mode, __u64 sample_bytes)
{
	struct preload_options options = {
		.library = "/proc/self/exe",
		.settings = { .mode = mode, .max_depth = 127 },
	};
	struct preload *preload = NULL;
	struct error error = { "" };

	if (sample_bytes)
		ap_sample__configure(sample_bytes, &options.settings.sampling);
	if (preload__new(&options, &preload, &error))
		fail_msg("%s", error.text);
	return preload;
}

static struct preload *make(enum inside_mode mode)
{
	return make_sampling(mode, 0);
}

static void test_empty(void **state)
{
	struct preload *preload = make(INSIDE_LIVE);
	struct preload_results results;
	struct preload_live live;

	assert_int_equal(preload__read(preload, &results), 0);
	assert_int_equal(results.n_programs + results.n_threads + results.n_refused, 0);
	assert_int_equal(results.n_damaged + results.n_unfinished, 0);
	preload_results__free(&results);
	assert_int_equal(preload__read_live(preload, &live), 0);
	assert_int_equal(live.n_records, 0);
	preload_live__free(&live);
	preload__free(preload);
}

static void test_directory_is_removed(void **state)
{
	struct preload *preload = make(INSIDE_LIVE);
	char directory[INSIDE_PATH_BYTES];

	strcpy(directory, preload->directory);
	assert_int_equal(access(directory, F_OK), 0);
	preload__free(preload);
	assert_int_not_equal(access(directory, F_OK), 0);
}

static void test_environment(void **state)
{
	char a[] = "A=1", b[] = "B=2", set[] = "LD_PRELOAD=/x/y.so";
	char *with[] = { a, set, b, NULL }, *without[] = { a, NULL };
	struct preload *preload = make(INSIDE_COUNT);
	char **environment, expected[512];

	environment = preload__environment(preload, with, false);
	snprintf(expected, sizeof(expected), "LD_PRELOAD=%s/inside.so:/x/y.so", preload->directory);
	assert_string_equal(environment[0], "A=1");
	assert_string_equal(environment[1], expected);
	assert_string_equal(environment[2], "B=2");
	assert_null(environment[3]);
	free(environment);
	environment = preload__environment(preload, without, true);
	snprintf(expected, sizeof(expected), "LD_PRELOAD=%s/other.so", preload->directory);
	assert_string_equal(environment[1], expected);
	assert_null(environment[2]);
	free(environment);
	preload__free(preload);
}

/* Offsets, numbers and states that are right now and then. */
static bool take_first(void *context, const struct preload_refused *refused)
{
	int *asked = context;

	assert_string_equal(refused->path, "/x/program");
	assert_int_equal(refused->pid, 7);
	return !(*asked)++;
}

/* Each process that waits is asked about and answered once. */
static void test_refused_are_answered(void **state)
{
	struct inside_refused list[3] = {
		{ .state = INSIDE_READY,
		  .reason = INSIDE_REFUSES_STATIC,
		  .pid = 7,
		  .path = "/x/program" },
		{ .state = INSIDE_EMPTY },
		{ .state = INSIDE_READY,
		  .reason = INSIDE_REFUSES_SECURE,
		  .pid = 7,
		  .path = "/x/program" },
	};
	const enum inside_answer answers[3] = { INSIDE_BY_OTHER, INSIDE_NO_ANSWER,
						INSIDE_NOT_BY_OTHER };
	struct preload *preload = make(INSIDE_COUNT);
	struct preload_results results;
	struct inside_header header;
	int asked = 0;

	assert_int_equal(pread(preload->memory_fd, &header, sizeof(header), 0), sizeof(header));
	header.refused.n = 3;
	header.refused.chunks[0] = header.next;
	header.next += INSIDE_FIRST * sizeof(list[0]);
	assert_int_equal(fd__write_all_at(preload->memory_fd, &header, sizeof(header), 0), 0);
	assert_int_equal(
		fd__write_all_at(preload->memory_fd, list, sizeof(list), header.refused.chunks[0]),
		0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(preload__take_refused(preload, take_first, &asked), 0);
	assert_int_equal(asked, 2);
	assert_int_equal(pread(preload->memory_fd, list, sizeof(list), header.refused.chunks[0]),
			 sizeof(list));
	for (int i = 0; i < 3; i++)
		assert_int_equal(list[i].answer, answers[i]);
	assert_int_equal(preload__read(preload, &results), 0);
	assert_int_equal(results.n_refused, 2);
	assert_true(results.refused[0].by_other_engine);
	assert_false(results.refused[1].by_other_engine);
	preload_results__free(&results);
	preload__free(preload);
}

/* Writes the first elements of an array, for which it takes room. */
static void write_array(const struct preload *preload, struct inside_header *header,
			struct inside_array *array, const void *elements, __u32 n, size_t size)
{
	__u32 begins = 0;

	array->n = n;
	for (int chunk = 0; begins < n; chunk++) {
		__u32 room = INSIDE_FIRST << chunk;
		__u32 part = n - begins < room ? n - begins : room;

		array->chunks[chunk] = header->next;
		header->next += room * size;
		assert_int_equal(fd__write_all_at(preload->memory_fd,
						  (const char *)elements + begins * size,
						  part * size, array->chunks[chunk]),
				 0);
		begins += room;
	}
	assert_int_equal(fd__write_all_at(preload->memory_fd, header, sizeof(*header), 0), 0);
}

static void read_header(const struct preload *preload, struct inside_header *out)
{
	assert_int_equal(pread(preload->memory_fd, out, sizeof(*out), 0), sizeof(*out));
}

/* The programs that came before, by numbers of processes, which are used again. */
static void test_order_of_programs(void **state)
{
	const struct {
		__u32 pid, parent;
		enum inside_birth birth;
		__u32 forked_from; /* number */
		enum inside_end end;
		int before, parent_program; /* expected */
		__u64 pid_namespace;
	} cases[] = {
		{ 10, 1, INSIDE_BORN_EXEC, 0, INSIDE_EXECED, -1, -1 },
		{ 10, 1, INSIDE_BORN_EXEC, 0, INSIDE_RUNS, 0, -1 },
		{ 11, 10, INSIDE_BORN_FORK, 2, INSIDE_EXITED, 1, 1 },
		{ 12, 11, INSIDE_BORN_EXEC, 0, INSIDE_RUNS, -1, 2 },
		{ 11, 10, INSIDE_BORN_EXEC, 0, INSIDE_EXECED, -1, 1 },
		{ 11, 10, INSIDE_BORN_EXEC, 0, INSIDE_EXITED, 4, 1 },
		{ 11, 12, INSIDE_BORN_EXEC, 0, INSIDE_RUNS, -1, 3 }, /* the number is used again */
		{ 13, 0, INSIDE_BORN_FORK, 9, INSIDE_RUNS, -1, -1 }, /* its own number, and more */
		/* In other PID namespaces. */
		{ 10, 0, INSIDE_BORN_EXEC, 0, INSIDE_RUNS, -1, -1, 5 },
		{ 10, 0, INSIDE_BORN_EXEC, 0, INSIDE_RUNS, -1, -1, 6 },
		{ 10, 0, INSIDE_BORN_EXEC, 0, INSIDE_RUNS, 8, -1, 5 },
		{ 14, 10, INSIDE_BORN_EXEC, 0, INSIDE_RUNS, -1, 9, 6 },
	};
	struct inside_program programs[ARRAY_SIZE(cases)] = { 0 };
	struct preload *preload = make(INSIDE_COUNT);
	struct preload_results results;
	struct inside_header header;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		programs[i] = (struct inside_program){
			.state = INSIDE_READY,
			.pid = cases[i].pid,
			.parent = cases[i].parent,
			.birth = cases[i].birth,
			.forked_from = cases[i].forked_from,
			.ended = cases[i].end,
			.pid_namespace = cases[i].pid_namespace,
		};
	read_header(preload, &header);
	write_array(preload, &header, &header.programs, programs, ARRAY_SIZE(cases),
		    sizeof(programs[0]));
	assert_int_equal(preload__read(preload, &results), 0);
	assert_int_equal(results.n_programs, ARRAY_SIZE(cases));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(results.programs[i].before, cases[i].before);
		assert_int_equal(results.programs[i].parent_program, cases[i].parent_program);
	}
	assert_int_equal(results.n_damaged, 1);
	preload_results__free(&results);
	preload__free(preload);
}

static int refuse_count(void *context, __u32 thread, const struct ap_count_key *key,
			const struct ap_count *count)
{
	fail_msg("a count of program %u", key->process);
	return 0;
}

static int refuse_stack(void *context, const struct ap_stack_record *record)
{
	fail_msg("a stack of program %u", record->process);
	return 0;
}

#define FORGED_PROGRAMS UINT32_MAX

/* A number of programs for which there is no memory: who believed it would make room for as many. */
static void test_forged_number_of_programs(void **state)
{
	const struct inside_program program = { .state = INSIDE_READY, .pid = 10 };
	const struct inside_count count = { .stack = 1, .calls = 1 };
	const struct ap_stack_record record = {
		.type = AP_RECORD_STACK,
		.stack = 1,
		.process = FORGED_PROGRAMS - 1,
	};
	struct inside_thread thread = { .state = INSIDE_READY, .program = FORGED_PROGRAMS - 1 };
	struct inside_stack slot = { .hash = record.stack };
	struct preload *preload = make(INSIDE_LIVE);
	struct preload_results results;
	struct inside_header header;
	struct preload_live live;
	bool has_python;
	__u64 offset;

	read_header(preload, &header);
	write_array(preload, &header, &header.programs, &program, 1, sizeof(program));
	offset = header.next;
	thread.counts = offset + INSIDE_PAGE;
	slot.offset = offset + 2 * INSIDE_PAGE;
	header.stacks[0] = offset + 3 * INSIDE_PAGE;
	header.next += (4 + (sizeof(slot) << INSIDE_FIRST_STACKS) / INSIDE_PAGE) * INSIDE_PAGE;
	header.programs.n = FORGED_PROGRAMS;
	write_array(preload, &header, &header.threads, &offset, 1, sizeof(offset));
	assert_int_equal(fd__write_all_at(preload->memory_fd, &thread, sizeof(thread), offset), 0);
	assert_int_equal(fd__write_all_at(preload->memory_fd, &count, sizeof(count), thread.counts),
			 0);
	assert_int_equal(fd__write_all_at(preload->memory_fd, &record, sizeof(record), slot.offset),
			 0);
	assert_int_equal(
		fd__write_all_at(preload->memory_fd, &slot, sizeof(slot), header.stacks[0]), 0);
	assert_int_equal(preload__read_counts(preload, refuse_count, NULL), 0);
	assert_int_equal(preload__read_stacks(preload, refuse_stack, NULL, &has_python), 0);
	assert_int_equal(preload__read_live(preload, &live), 0);
	preload_live__free(&live);
	assert_int_equal(preload__read(preload, &results), 0);
	assert_int_equal(results.n_programs, INSIDE_FIRST);
	assert_int_equal(results.n_damaged, 1);
	/* All of which an array can have elements, but one. */
	assert_int_equal(results.n_unfinished,
			 ((INSIDE_FIRST << INSIDE_CHUNKS) - INSIDE_FIRST) - 1);
	preload_results__free(&results);
	preload__free(preload);
}

#define MANY_PROGRAMS 200000

/* Processes that have nothing to do with each other, and are looked for. */
static void test_many_programs(void **state)
{
	struct inside_program *programs = calloc(MANY_PROGRAMS, sizeof(*programs));
	struct preload *preload = make(INSIDE_COUNT);
	struct preload_results results;
	struct inside_header header;
	clock_t begin;

	assert_non_null(programs);
	for (__u32 i = 0; i < MANY_PROGRAMS; i++)
		programs[i] = (struct inside_program){
			.state = INSIDE_READY,
			.pid = 1000 + i,
			.parent = 1,
		};
	read_header(preload, &header);
	write_array(preload, &header, &header.programs, programs, MANY_PROGRAMS, sizeof(*programs));
	begin = clock();
	assert_int_equal(preload__read(preload, &results), 0);
	/* Were each compared with all that were before it, it would be 20 times as much. */
	assert_true(clock() - begin < 5 * CLOCKS_PER_SEC);
	assert_int_equal(results.n_programs, MANY_PROGRAMS);
	assert_int_equal(results.n_damaged + results.n_unfinished, 0);
	preload_results__free(&results);
	preload__free(preload);
	free(programs);
}

static __u64 random_word(void)
{
	switch (below(8)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return below(64);
	case 3:
		return (__u64)below(USED_BYTES / 4096) << 12;
	case 4:
		return (__u64)below(USED_BYTES / 4096) << 12 | below(64);
	case 5:
		return (__u64)below(USED_BYTES / 64) << 6;
	case 6:
		return ~0ULL >> below(64);
	default:
		return random_u64();
	}
}

static int check_stack(void *context, const struct ap_stack_record *record)
{
	const struct ap_frame *frames = (const struct ap_frame *)(record + 1);

	assert_true(record->n_frames <= AP_MAX_DEPTH && record->end < AP_STACK_ENDS);
	assert_true(record->process);
	for (__u32 i = 0; i < record->n_frames; i++)
		assert_true(frames[i].module < UNWIND_MAX_MODULES);
	return 0;
}

static int check_python(void *context, const struct ap_python_record *record)
{
	assert_true(record->n_name <= AP_PYTHON_NAME_BYTES &&
		    record->n_file <= AP_PYTHON_FILE_BYTES);
	assert_int_equal(record->id >> 63, 0);
	return 0;
}

static int check_count(void *context, __u32 thread, const struct ap_count_key *key,
		       const struct ap_count *count)
{
	assert_true(key->function < AP_DEFINED && key->process);
	assert_true(count->calls <= AP_MAX_SUM && count->size_bytes <= AP_MAX_SUM);
	assert_int_equal(key->thread[AP_COMM_LEN - 1], 0);
	return 0;
}

static int check_block(void *context, const struct ap_block_key *key, const struct ap_block *block)
{
	assert_true(block->record && key->space && block->weight);
	return 0;
}

static int check_lifetime(void *context, const struct ap_lifetime_key *key,
			  const struct ap_lifetime *lifetime)
{
	assert_true(key->born <= key->died && key->shift < 64 && key->died < AP_MAX_EPOCHS &&
		    lifetime->blocks);
	return 0;
}

static int check_module(void *context, const struct ap_module_record *record, const char *path)
{
	assert_true(record->id > AP_MODULE_VDSO && record->id < UNWIND_MAX_MODULES);
	assert_true(strlen(path) <= INSIDE_PATH_BYTES);
	return 0;
}

static bool check_refused(void *context, const struct preload_refused *refused)
{
	assert_true(refused->reason < INSIDE_REFUSALS);
	assert_true(strlen(refused->path) < sizeof(refused->path));
	return below(2);
}

static int check_event(void *context, __u32 program, const struct inside_event *event)
{
	struct inside_record_key key;

	assert_true(event->number && event->number <= AP_MAX_SUM);
	if (preload__read_record_key(context, event->record, &key))
		preload__read_stack(context, &key, check_stack, NULL);
	return 0;
}

static void read_events(struct preload *preload)
{
	struct preload_events *events = preload_events__new(preload, check_event, preload);
	size_t n;

	assert_non_null(events);
	if (!preload_events__look(events, &n))
		preload_events__read(events, 0, &n);
	for (__u32 i = 0; i < 20; i++)
		preload_events__finish(events, i, false);
	assert_true(preload_events__lost(events) <= AP_MAX_SUM);
	preload_events__free(events);
}

static void read_all(struct preload *preload)
{
	struct preload_results results;
	struct inside_regions regions;
	struct preload_live live;
	bool has_python;

	if (!preload__read_regions(preload, &regions))
		for (int i = 0; i < AP_MAX_REGIONS; i++)
			assert_true(strlen(regions.list[i].name) <= AP_REGION_NAME_BYTES);
	if (!preload__read(preload, &results)) {
		for (size_t i = 0; i < results.n_programs; i++)
			assert_true(results.programs[i].before < (int)i &&
				    results.programs[i].parent_program < (int)i);
		for (size_t i = 0; i < results.n_refused; i++)
			assert_true(results.refused[i].program < (int)results.n_programs);
		for (int i = 0; i < AP_DEFINED; i++)
			assert_true(results.functions[i].calls <= AP_MAX_SUM);
		for (int i = 0; i < AP_MAX_REGIONS && results.regions; i++)
			assert_true(results.regions->begins[i] <= AP_MAX_SUM);
		preload_results__free(&results);
	}
	if (!preload__read_live(preload, &live)) {
		for (size_t i = 0; i < live.n_records; i++)
			assert_true(live.records[i].key.function < AP_DEFINED);
		preload_live__free(&live);
	}
	preload__take_refused(preload, check_refused, NULL);
	preload__take_modules(preload, check_module, NULL);
	preload__read_stacks(preload, check_stack, NULL, &has_python);
	preload__read_python(preload, check_python, NULL);
	preload__read_counts(preload, check_count, NULL);
	preload__read_blocks(preload, check_block, NULL, NULL);
	preload__read_lifetimes(preload, check_lifetime, NULL);
	read_events(preload);
}

static void make_nonsense(struct preload *preload, __u64 *words)
{
	struct inside_header *header = (struct inside_header *)words;
	struct inside_array *arrays[] = { &header->programs,   &header->threads,
					  &header->refused,    &header->modules,
					  &header->histograms, &header->record_keys };

	for (size_t i = 0; i < USED_BYTES / sizeof(*words); i++)
		words[i] = random_word();
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++)
		arrays[i]->n = below(4) ? below(300) : random_word();
	header->live.n_records = below(4) ? below(2000) : random_word();
	header->next = below(4) ? USED_BYTES : random_word();
	assert_int_equal(fd__write_all_at(preload->memory_fd, words, USED_BYTES, 0), 0);
}

#define PROGRAMS_AT   (1 << 16)
#define EVENTS_AT     (2 << 16)
#define PART_AT	      (3 << 16)
#define OTHER_PART_AT (8 << 16)

/* One program with a part of chunks. */
static void write_part(struct preload *preload, const __u32 states[INSIDE_FIRST_EVENT_CHUNKS],
		       const struct inside_event_chunk chunks[INSIDE_FIRST_EVENT_CHUNKS], __u64 n,
		       __u64 n_lost)
{
	const struct inside_program program = { .state = INSIDE_READY, .events = EVENTS_AT };
	const struct inside_events events = { .n = n, .n_lost = n_lost, .parts[0] = PART_AT };
	struct inside_header header;

	assert_int_equal(fd__read_all_at(preload->memory_fd, &header, sizeof(header), 0), 0);
	header.programs = (struct inside_array){ .chunks[0] = PROGRAMS_AT, .n = 1 };
	header.next = 16 << 16;
	fd__write_all_at(preload->memory_fd, &header, sizeof(header), 0);
	fd__write_all_at(preload->memory_fd, &program, sizeof(program), PROGRAMS_AT);
	fd__write_all_at(preload->memory_fd, &events, sizeof(events), EVENTS_AT);
	fd__write_all_at(preload->memory_fd, states, INSIDE_FIRST_EVENT_CHUNKS * sizeof(*states),
			 PART_AT);
	fd__write_all_at(preload->memory_fd, chunks, INSIDE_FIRST_EVENT_CHUNKS * sizeof(*chunks),
			 PART_AT + INSIDE_PAGE);
}

struct seen {
	__u64 numbers[8];
	int n;
};

static int note_event(void *context, __u32 program, const struct inside_event *event)
{
	struct seen *seen = context;

	assert_int_equal(program, 0);
	assert_true(seen->n < (int)ARRAY_SIZE(seen->numbers));
	seen->numbers[seen->n++] = event->number;
	return 0;
}

/* Events of two threads come by their numbers. One that is not complete holds up those behind it, and is lost when its
 * process has ended. */
static void test_events(void **state)
{
	static const struct inside_event_chunk chunks[INSIDE_FIRST_EVENT_CHUNKS] = {
		/* Events with a lower number than the first are of the chunk's last use. */
		{ .first = 2, .events = { { .number = 2 }, { .number = 5 }, { .number = 1 } } },
		{ .first = 1,
		  .events = { { .number = 1 }, { .number = 3 }, { 0 }, { .number = 7 } } },
	};
	static const __u32 states[INSIDE_FIRST_EVENT_CHUNKS] = { INSIDE_CHUNK_FULL,
								 INSIDE_CHUNK_USED };
	struct preload *preload = make(INSIDE_LIVE);
	struct seen seen = { 0 };
	struct preload_events *events = preload_events__new(preload, note_event, &seen);
	__u32 left[2], n_freed;
	size_t n;

	assert_non_null(events);
	write_part(preload, states, chunks, 7, 2);
	assert_int_equal(preload_events__look(events, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(preload_events__read(events, 0, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(preload_events__lost(events), 2);
	assert_int_equal(preload_events__finish(events, 0, false), 0);
	assert_int_equal(seen.n, 5);
	assert_memory_equal(seen.numbers, ((__u64[]){ 1, 2, 3, 5, 7 }), 5 * sizeof(__u64));
	assert_int_equal(preload_events__lost(events), 4);
	/* The chunk of the second thread may get more events. */
	assert_int_equal(fd__read_all_at(preload->memory_fd, left, sizeof(left), PART_AT), 0);
	assert_int_equal(left[0], INSIDE_CHUNK_FREE);
	assert_int_equal(left[1], INSIDE_CHUNK_USED);
	assert_int_equal(fd__read_all_at(preload->memory_fd, &n_freed, sizeof(n_freed),
					 EVENTS_AT + offsetof(struct inside_events, n_freed)),
			 0);
	assert_int_equal(n_freed, 1);
	preload_events__free(events);
	preload__free(preload);
}

/* A part is where it was when it was first read, whatever a process writes later. */
static void test_moved_part(void **state)
{
	static const struct inside_event_chunk
		chunks[INSIDE_FIRST_EVENT_CHUNKS] = { { .first = 1, .events[0].number = 1 } },
		others[INSIDE_FIRST_EVENT_CHUNKS] = { { .first = 3, .events[0].number = 3 } };
	static const __u32 used = INSIDE_CHUNK_USED, full = INSIDE_CHUNK_FULL;
	const __u32 states[INSIDE_FIRST_EVENT_CHUNKS] = { used };
	const __u64 parts_at = EVENTS_AT + offsetof(struct inside_events, parts);
	const __u64 moved[] = { 1ULL << 63, 1ULL << 45 };
	struct inside_event more[] = { { .number = 2 }, { .number = 3 } };

	for (size_t i = 0; i < ARRAY_SIZE(moved); i++) {
		struct preload *preload = make(INSIDE_LIVE);
		struct seen seen = { 0 };
		struct preload_events *events = preload_events__new(preload, note_event, &seen);
		const int fd = preload->memory_fd;
		__u64 other_at = OTHER_PART_AT;
		__u32 left;
		size_t n;

		assert_non_null(events);
		write_part(preload, states, chunks, 3, 0);
		fd__write_all_at(fd, &other_at, sizeof(other_at), parts_at + sizeof(__u64));
		fd__write_all_at(fd, &full, sizeof(full), OTHER_PART_AT);
		fd__write_all_at(fd, others, sizeof(others),
				 OTHER_PART_AT + inside_event_part__chunks_at(1));
		assert_int_equal(preload_events__look(events, &n), 0);
		assert_int_equal(preload_events__read(events, 0, &n), 0);
		assert_int_equal(seen.n, 1);
		/* Both parts claim to have event 3, so that the other one is not needed for it. */
		fd__write_all_at(fd, more, sizeof(more),
				 PART_AT + INSIDE_PAGE +
					 offsetof(struct inside_event_chunk, events[1]));
		fd__write_all_at(fd, &moved[i], sizeof(moved[i]), parts_at + sizeof(__u64));
		assert_int_equal(preload_events__read(events, 0, &n), 0);
		assert_int_equal(seen.n, 3);
		assert_int_equal(fd__read_all_at(fd, &left, sizeof(left), OTHER_PART_AT), 0);
		assert_int_equal(left, INSIDE_CHUNK_FREE);
		preload_events__free(events);
		preload__free(preload);
	}
}

struct endless {
	int fd;
	__u64 n;
};

static int add_event(void *context, __u32 program, const struct inside_event *event)
{
	const struct inside_event next = { .number = event->number + 1 };
	struct endless *endless = context;

	endless->n++;
	assert_in_range(next.number, 2, INSIDE_CHUNK_EVENTS);
	fd__write_all_at(endless->fd, &next, sizeof(next),
			 PART_AT + INSIDE_PAGE +
				 offsetof(struct inside_event_chunk, events[event->number]));
	fd__write_all_at(endless->fd, &next.number, sizeof(next.number), EVENTS_AT);
	return 0;
}

/* Only the events that a program has now are waited for. */
static void test_events_that_never_end(void **state)
{
	static const struct inside_event_chunk chunks[INSIDE_FIRST_EVENT_CHUNKS] = {
		{ .first = 1, .events[0].number = 1 }
	};
	static const __u32 states[INSIDE_FIRST_EVENT_CHUNKS] = { INSIDE_CHUNK_USED };
	struct preload *preload = make(INSIDE_LIVE);
	struct endless endless = { .fd = preload->memory_fd };
	struct preload_events *events = preload_events__new(preload, add_event, &endless);

	assert_non_null(events);
	write_part(preload, states, chunks, 1, 0);
	assert_int_equal(preload_events__finish(events, 0, true), 0);
	assert_int_equal(endless.n, 1);
	assert_int_equal(preload_events__lost(events), 0);
	preload_events__free(events);
	preload__free(preload);
}

static void test_nonsense(void **state)
{
	__u64 *words = malloc(USED_BYTES);

	assert_non_null(words);
	for (int round = 0; round < ROUNDS; round++) {
		/* Sampling makes entries larger. */
		struct preload *preload =
			make_sampling(INSIDE_LIVE, round % 3 ? 0 : 1 << round % 31);

		seed(round);
		make_nonsense(preload, words);
		/* A process may cut the file off. */
		if (!below(4))
			assert_int_equal(ftruncate(preload->memory_fd, below(USED_BYTES)), 0);
		read_all(preload);
		preload__free(preload);
	}
	free(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_directory_is_removed),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_refused_are_answered),
		cmocka_unit_test(test_order_of_programs),
		cmocka_unit_test(test_forged_number_of_programs),
		cmocka_unit_test(test_many_programs),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_moved_part),
		cmocka_unit_test(test_events_that_never_end),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
