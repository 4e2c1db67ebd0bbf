// SPDX-License-Identifier: GPL-3.0-or-later
/* Tests which parts of glibc's heaps count as in use, on heaps that glibc's malloc has made in this
 * process, and on memory with chunks as each case writes them. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap_chunks.h"
#include "memory_mappings.h"
#include "remote.h"

/* glibc's malloc, also where a sanitizer has another one. */
void *__libc_malloc(size_t size);
void __libc_free(void *block);

#define WORD  sizeof(__u64)
#define WORDS 512 /* of a written heap */
#define MOST  4000

struct part {
	__u64 begin, end;
	bool only_begins;
};

struct state {
	__u64 *words; /* a written heap */
	struct reach_range range;
	struct reach_blocks blocks;
	__u64 begins[MOST], sizes[MOST];
	struct part parts[4 * MOST];
	size_t n;
	pid_t pid;    /* which has the heap: this process, or a copy that stands still */
	__u64 thread; /* address of the data of the thread that made the heap */
};

static int set_up(void **out)
{
	struct state *state = calloc(1, sizeof(*state));

	assert_non_null(state);
	state->words = mmap(NULL, WORDS * WORD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	assert_ptr_not_equal(state->words, MAP_FAILED);
	state->range = (struct reach_range){ .begin = (__u64)state->words,
					     .end = (__u64)(state->words + WORDS),
					     .is_heap = true };
	state->blocks = (struct reach_blocks){ state->begins, state->sizes, 0, MOST };
	state->pid = getpid();
	*out = state;
	return 0;
}

static int tear_down(void **out)
{
	struct state *state = *out;

	munmap(state->words, WORDS * WORD);
	free(state);
	return 0;
}

static void add_part(void *context, const struct heap_part *part)
{
	struct state *state = context;

	assert_true(state->n < sizeof(state->parts) / sizeof(*state->parts));
	assert_true(part->begin < part->end && part->begin % WORD == 0 && part->end % WORD == 0);
	assert_true(part->begin >= state->range.begin && part->end <= state->range.end);
	if (part->words && state->pid == getpid())
		assert_memory_equal(part->words, (void *)part->begin, part->end - part->begin);
	state->parts[state->n++] = (struct part){ part->begin, part->end, part->only_begins };
}

static void visit(struct state *state)
{
	struct reach_roots roots;
	struct reach_ranges own = { 0 }, *ranges = &roots.memory;
	struct heap_lists lists;
	char path[64];
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", state->pid);
	memory = open(path, O_RDONLY);

	assert_true(memory >= 0);
	assert_int_equal(reach_roots__read(state->pid, NULL, 0, &own, &roots), 0);
	roots.threads = realloc(roots.threads, (roots.n_threads + 1) * sizeof(*roots.threads));
	roots.threads[roots.n_threads++] = state->thread;
	/* A written heap is among the ranges as if it had been found there. */
	for (size_t i = 0; i < ranges->n; i++)
		if (ranges->ranges[i].begin == state->range.begin)
			ranges->ranges[i] = state->range;
	state->n = 0;
	assert_int_equal(heap_lists__read(&roots, memory, &lists), 0);
	assert_int_equal(
		heap_chunks__visit_used(&state->range, &state->blocks, &lists, add_part, state), 0);
	heap_lists__release(&lists);
	reach_roots__release(&roots);
	close(memory);
}

static bool is_visited(const struct state *state, __u64 begin, __u64 end)
{
	for (size_t i = 0; i < state->n; i++) {
		if (state->parts[i].end <= begin || state->parts[i].begin > begin)
			continue;
		if (state->parts[i].end >= end)
			return true;
		begin = state->parts[i].end;
	}
	return false;
}

static void add_block(struct state *state, __u64 begin, __u64 size)
{
	assert_true(state->blocks.n < MOST);
	state->begins[state->blocks.n] = begin;
	state->sizes[state->blocks.n++] = size;
}

/* Writes a chunk's header at word @at. Returns the index of the word behind the chunk. */
static size_t put_chunk(struct state *state, size_t at, size_t n_words, int flags)
{
	state->words[at + 1] = n_words * WORD | flags;
	return at + n_words;
}

static __u64 address(const struct state *state, size_t word)
{
	return (__u64)(state->words + word);
}

/* Asserts the words that were visited, as "begin-end" each. */
static void assert_visited(const struct state *state, const char *expected)
{
	char text[1024] = "";

	for (size_t i = 0; i < state->n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%llu-%llu%s",
			 i ? " " : "", (state->parts[i].begin - address(state, 0)) / WORD,
			 (state->parts[i].end - address(state, 0)) / WORD,
			 state->parts[i].only_begins ? "b" : "");
	assert_string_equal(text, expected);
}

/* A chunk of a known block, a free one, one in use of which nothing is known, and the top. */
static void test_kinds(void **out)
{
	struct state *state = *out;
	size_t at = put_chunk(state, 0, 8, 1);

	add_block(state, address(state, 2), 50);
	at = put_chunk(state, at, 10, 1);
	state->words[at] = 10 * WORD; /* behind the free one */
	state->words[10] = state->words[11] = ~0ULL;
	at = put_chunk(state, at, 6, 0);
	put_chunk(state, at, WORDS - at, 1);
	visit(state);
	assert_visited(state, "20-25");
}

/* A chunk is not free whose size is not behind it, or is another's. */
static void test_not_free(void **out)
{
	struct state *state = *out;
	size_t at = put_chunk(state, put_chunk(state, 0, 8, 1), 10, 0);

	state->words[at] = 8 * WORD;
	put_chunk(state, at, WORDS - at, 0);
	visit(state);
	assert_visited(state, "2-9 10-19");
}

/* A program has taken memory by itself: there are no chunks until the next block. */
static void test_foreign_memory(void **out)
{
	struct state *state = *out;
	size_t at = put_chunk(state, 0, 8, 1);

	add_block(state, address(state, 2), 40);
	at = put_chunk(state, put_chunk(state, at, 2, 1), 2, 1); /* fenceposts */
	for (; at < 100; at++)
		state->words[at] = address(state, 2);
	at = put_chunk(state, at, 8, 1);
	add_block(state, address(state, 102), 56);
	put_chunk(state, at, WORDS - at, 1);
	visit(state);
	assert_true(is_visited(state, address(state, 12), address(state, 100)));
	assert_true(state->parts[state->n - 1].end == address(state, 100));
}

/* No header of glibc's is before the block, so that memory behind the block may be in use. */
static void test_other_blocks(void **out)
{
	struct state *state = *out;

	state->words[21] = 400 * WORD | 1;
	add_block(state, address(state, 22), 40);
	visit(state);
	assert_visited(state, "0-20 27-512");
}

/* Whatever is written, the walk ends within the heap, and blocks that it does not know lie in what
 * it visits. */
static void test_random_words(void **out)
{
	struct state *state = *out;

	srandom(7);
	for (int round = 0; round < 2000; round++) {
		state->blocks.n = 0;
		state->range.is_arena = round % 2;
		for (size_t i = 0; i < WORDS; i++)
			state->words[i] =
				random() % 3 ? (__u64)random() % 600 : (__u64)random() << 33;
		for (size_t at = 2 + random() % 40; at < WORDS - 40; at += 20 + random() % 60)
			add_block(state, address(state, at) + random() % 9, random() % 200);
		visit(state);
	}
}

/* Blocks of glibc's malloc: some that are known, some that are not, and some that were freed. */
struct drawn {
	void *block;
	size_t size;
	bool is_freed, is_known;
};

struct copy {
	pid_t pid;
	__u64 thread;
	struct drawn drawn[MOST];
};

static int compare_drawn(const void *a, const void *b)
{
	const struct drawn *first = a, *second = b;

	return first->block < second->block ? -1 : first->block > second->block;
}

static void draw_blocks(struct drawn *drawn)
{
	for (int i = 0; i < MOST; i++) {
		size_t size = random() % 10 ? random() % 300 : random() % 9000;

		drawn[i] = (struct drawn){
			.block = __libc_malloc(size),
			.size = size,
			.is_freed = random() % 3 == 0,
			.is_known = random() % 2,
		};
		assert_non_null(drawn[i].block);
	}
	for (int i = 0; i < MOST; i++)
		if (drawn[i].is_freed)
			__libc_free(drawn[i].block);
	qsort(drawn, MOST, sizeof(*drawn), compare_drawn);
}

static bool is_in(const struct memory_mapping *mapping, const struct drawn *drawn)
{
	return (__u64)drawn->block >= mapping->begin && (__u64)drawn->block < mapping->end;
}

/* Returns the number of blocks in the mapping that were freed. */
static size_t assert_heap(struct state *state, const struct memory_mapping *mapping,
			  const struct drawn *drawn)
{
	size_t n_freed = 0;

	state->blocks.n = 0;
	state->range = (struct reach_range){ .begin = mapping->begin,
					     .end = mapping->end,
					     .is_heap = true,
					     .is_arena = mapping->kind == MEMORY_ARENA };
	for (int i = 0; i < MOST; i++)
		if (is_in(mapping, &drawn[i]) && drawn[i].is_known && !drawn[i].is_freed)
			add_block(state, (__u64)drawn[i].block, drawn[i].size);
	visit(state);
	for (int i = 0; i < MOST; i++) {
		__u64 begin = (__u64)drawn[i].block & ~7ULL;

		if (!is_in(mapping, &drawn[i]))
			continue;
		n_freed += drawn[i].is_freed;
		if (drawn[i].is_freed || drawn[i].is_known)
			assert_false(is_visited(state, begin, begin + WORD));
		else
			assert_true(is_visited(state, begin, begin + (drawn[i].size & ~7ULL)));
	}
	return n_freed;
}

/* Draws blocks, and makes a copy of the process in which nothing is allocated any more. Runs in a
 * thread of its own for another arena than the main one. */
static void *draw_copy(void *context)
{
	struct copy *copy = context;
	pid_t parent = getpid();

	draw_blocks(copy->drawn);
	copy->thread = remote__variables_end((__u64)__builtin_thread_pointer());
	copy->pid = fork();
	while (!copy->pid && getppid() == parent)
		usleep(1000);
	if (!copy->pid)
		_exit(0);
	for (int i = 0; i < MOST; i++)
		if (!copy->drawn[i].is_freed)
			__libc_free(copy->drawn[i].block);
	return NULL;
}

static void assert_heaps(struct state *state, const struct copy *copy, enum memory_kind kind)
{
	struct memory_mappings memory;
	size_t n_freed = 0;

	assert_true(copy->pid > 0);
	state->pid = copy->pid;
	state->thread = copy->thread;
	assert_int_equal(memory_mappings__read(copy->pid, false, &memory), 0);
	for (size_t i = 0; i < memory.n; i++)
		if (memory.mappings[i].kind == kind)
			n_freed += assert_heap(state, &memory.mappings[i], copy->drawn);
	assert_true(n_freed > MOST / 4);
	memory_mappings__release(&memory);
	kill(copy->pid, SIGKILL);
	waitpid(copy->pid, NULL, 0);
}

static void test_heap_of_break(void **out)
{
	static struct copy copy;

	draw_copy(&copy);
	assert_heaps(*out, &copy, MEMORY_BREAK);
}

static void test_heap_of_arena(void **out)
{
	static struct copy copy;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, draw_copy, &copy), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_heaps(*out, &copy, MEMORY_ARENA);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_kinds),	  CASE(test_not_free),	   CASE(test_foreign_memory),
		CASE(test_other_blocks),  CASE(test_random_words), CASE(test_heap_of_break),
		CASE(test_heap_of_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
