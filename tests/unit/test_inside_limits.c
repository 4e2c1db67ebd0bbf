// SPDX-License-Identifier: GPL-3.0-or-later
/* The library of src/inside reports calls and blocks as lost for which its memory has no room or that reach one of its limits. */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "allocprof.h"
#include "inside_host.h"
#include "measured_process.h"
#include "memory.h"

#define N_BLOCKS 20000

/* The process never frees these blocks. */
static void *blocks[N_BLOCKS];

static void allocate_blocks(void)
{
	for (int i = 0; i < N_BLOCKS; i++) {
		blocks[i] = inside_malloc(24);
		CHECK(blocks[i]);
	}
}

static __u64 n_live(const struct measured *measured)
{
	__u64 sums[2] = { 0 };

	assert_int_equal(preload__read_blocks(measured->preload, sum_block, sums, NULL), 0);
	return sums[0];
}

/* Asserts that the table has @least to @most of the blocks, and that all others count as untracked for the reason @why. */
static void check_untracked(const struct measured *measured, enum ap_untracked why, __u64 least,
			    __u64 most)
{
	__u64 live = n_live(measured);

	assert_true(live >= least && live <= most);
	assert_int_equal(measured->results.functions[AP_MALLOC].calls, N_BLOCKS);
	assert_int_equal(measured->results.stats[AP_STAT_ALLOCATIONS], live);
	assert_int_equal(measured->results.stats[AP_STAT_UNTRACKED + why], N_BLOCKS - live);
}

static void test_limits_of_live_blocks(void **state)
{
	const struct inside_settings few = { .mode = INSIDE_LIVE, .max_blocks = 1000 };
	const struct inside_settings small = { .mode = INSIDE_LIVE, .max_live_shift = 13 };
	struct measured measured;

	measure(&few, allocate_blocks, &measured);
	check_untracked(&measured, AP_UNTRACKED_LIVE_FULL, 1000, 1000);
	measured__finish(&measured);
	measure(&small, allocate_blocks, &measured);
	check_untracked(&measured, AP_UNTRACKED_LIVE_FULL, 1 << 12, 1 << 13);
	measured__finish(&measured);
}

/* From now on the file has no bytes left that nobody has taken. */
static void fill_memory(void)
{
	struct inside_header *header = memory__header();

	header->next = header->size_bytes;
}

static void allocate_in_full_memory(void)
{
	inside_free(inside_malloc(1));
	fill_memory();
	allocate_blocks();
}

static void test_full_memory(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_LIVE };
	struct measured measured;

	measure(&settings, allocate_in_full_memory, &measured);
	assert_true(n_live(&measured) > 0 && n_live(&measured) < N_BLOCKS);
	assert_int_equal(measured.results.functions[AP_MALLOC].calls, N_BLOCKS + 1);
	assert_int_equal(measured.results.stats[AP_STAT_UNTRACKED + AP_UNTRACKED_LIVE_FULL],
			 N_BLOCKS - n_live(&measured));
	measured__finish(&measured);
}

/* The file system has no page for what is mapped from now on. */
static long refuse_pages(long number, const long arguments[6])
{
	return number == __NR_madvise && arguments[2] == MADV_POPULATE_WRITE
		       ? -ENOSPC
		       : host__ask_kernel(number, arguments);
}

static void allocate_without_room(void)
{
	inside_free(inside_malloc(1));
	memory__header()->is_tight = 1;
	host__answer_by(refuse_pages);
	allocate_blocks();
}

static void test_full_file_system(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_LIVE };
	struct measured measured;

	measure(&settings, allocate_without_room, &measured);
	assert_true(n_live(&measured) > 0 && n_live(&measured) < N_BLOCKS);
	assert_int_equal(measured.results.stats[AP_STAT_UNTRACKED + AP_UNTRACKED_NO_ROOM],
			 N_BLOCKS - n_live(&measured));
	measured__finish(&measured);
}

#define OWN_BYTES (64ULL << 20)

static char own_path[] = "own-XXXXXX/file";

static void make_own(void)
{
	const struct inside_settings settings = { .mode = INSIDE_COUNT };

	own_path[10] = '/';
	CHECK(!memory__make(own_path, &settings, OWN_BYTES));
}

/* Runs @fn in a process with a file of its own. */
static void in_own(void (*fn)(void))
{
	int status;
	pid_t pid;

	strcpy(own_path, "own-XXXXXX");
	assert_non_null(mkdtemp(own_path));
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		make_own();
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	own_path[10] = '/';
	assert_int_equal(unlink(own_path), 0);
	own_path[10] = '\0';
	assert_int_equal(rmdir(own_path), 0);
	assert_int_equal(status, 0);
}

static void take_what_is_left(void)
{
	struct mapped_array mapped = { 0 };
	struct inside_array array = { 0 };
	__u64 offset;
	__u32 index;

	CHECK(!memory__take_pages(OWN_BYTES, &offset));
	CHECK(memory__take_pages(OWN_BYTES / 2, &offset));
	CHECK(!mapped_array__add(&mapped, &array, OWN_BYTES, &index));
	CHECK(memory__take_pages(INSIDE_PAGE, &offset));
	CHECK(memory__take(100, &offset));
}

/* A request that does not fit leaves the room to those that do. */
static void test_request_that_does_not_fit(void **state)
{
	in_own(take_what_is_left);
}

static __u64 passed_s;

/* Time passes only where the test says so. */
static long refuse_pages_for_some_time(long number, const long arguments[6])
{
	if (number == __NR_clock_gettime) {
		((struct timespec *)arguments[1])->tv_sec = 1000 + passed_s;
		((struct timespec *)arguments[1])->tv_nsec = 0;
		return 0;
	}
	return passed_s ? host__ask_kernel(number, arguments) : refuse_pages(number, arguments);
}

static void try_full_disk(void)
{
	__u64 before = memory__header()->next, offset;

	host__answer_by(refuse_pages_for_some_time);
	for (int i = 0; i < 10000; i++)
		CHECK(!memory__take_pages(INSIDE_PAGE, &offset) && !memory__take(100, &offset));
	CHECK(memory__is_full() && memory__header()->next == before);
	passed_s = 3600;
	for (int i = 0; i < 1000 && memory__is_full(); i++)
		memory__take_pages(INSIDE_PAGE, &offset);
	CHECK(!memory__is_full() && memory__take(100, &offset));
}

static void test_full_disk_that_gets_room(void **state)
{
	in_own(try_full_disk);
}

/* As older kernels do, and where a limit of address space is near: pages are asked for by the path. */
static long need_path(long number, const long arguments[6])
{
	if (number == __NR_madvise && arguments[2] == MADV_POPULATE_WRITE)
		return -EINVAL;
	return number == __NR_mremap ? -ENOMEM : host__ask_kernel(number, arguments);
}

static void replace_file(void)
{
	__u64 offset;
	int fd;

	host__answer_by(need_path);
	CHECK(memory__take_pages(INSIDE_PAGE, &offset));
	CHECK(!unlink(own_path));
	CHECK(!memory__take_pages(INSIDE_PAGE, &offset));
	fd = open(own_path, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, OWN_BYTES));
	CHECK(!memory__map(INSIDE_PAGE, INSIDE_PAGE));
}

/* What is mapped later is never another file that has come to the path. */
static void test_replaced_file(void **state)
{
	in_own(replace_file);
}

/* All functions that the library stands in front of, each with a key of its own. */
static void allocate_by_other_functions(void)
{
	void *block;

	inside_free(inside_malloc(1));
	inside_free(inside_calloc(1, 8));
	block = inside_realloc(inside_valloc(8), 9000);
	inside_free(inside_reallocarray(block, 2, 9000));
	CHECK(!inside_posix_memalign(&block, 64, 8));
	inside_free(block);
}

/* Calls with a key for which there is no room. */
static void test_records(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_LIVE, .max_records = 2 };
	struct measured measured;
	__u64 lost;

	measure(&settings, allocate_by_other_functions, &measured);
	lost = measured.results.stats[AP_STAT_LOST + AP_LOST_COUNTS_FULL];
	assert_int_equal(lost, 4);
	assert_int_equal(measured.results.stats[AP_STAT_EVENTS], 6);
	measured__finish(&measured);
}

#define N_OWN	   520
#define N_PATTERNS 100

/* 512 names are counted by, then 64 that may have a * for digits. The thread's first name is one of them. */
static void take_many_names(void)
{
	char name[16];

	for (int i = 0; i < N_OWN + N_PATTERNS; i++) {
		if (i < N_OWN)
			snprintf(name, sizeof(name), "own-%d", i);
		else
			snprintf(name, sizeof(name), "name-%c%c", 'a' + i / 26, 'a' + i % 26);
		CHECK(!inside_prctl(PR_SET_NAME, name));
		inside_free(inside_malloc(1));
	}
}

struct names {
	__u64 own, pattern, others;
};

static int count_name(void *context, __u32 thread, const struct ap_count_key *key,
		      const struct ap_count *count)
{
	struct names *names = context;

	if (!strncmp(key->thread, "own-*", AP_COMM_LEN))
		names->pattern += count->calls;
	else if (!strncmp(key->thread, INSIDE_OTHER_NAMES, AP_COMM_LEN))
		names->others += count->calls;
	else
		names->own += count->calls;
	return 0;
}

static void test_names_of_threads(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_RECORD };
	struct names names = { 0 };
	struct measured measured;

	measure(&settings, take_many_names, &measured);
	assert_int_equal(preload__read_counts(measured.preload, count_name, &names), 0);
	assert_int_equal(names.own, 511 + 63);
	assert_int_equal(names.pattern, N_OWN - 511);
	assert_int_equal(names.others, N_PATTERNS - 63);
	/* The first of those with a common name are looked up twice. */
	assert_in_range(measured.results.gaps[INSIDE_GAP_NAMES], N_OWN - 511 + N_PATTERNS,
			N_OWN - 511 + N_PATTERNS + 2);
	measured__finish(&measured);
}

/* An array whose elements are all taken, for the time being. */
static __u32 fill_array(struct inside_array *array)
{
	__u32 before = array->n;

	array->n = INSIDE_FIRST << INSIDE_CHUNKS;
	return before;
}

static void *allocate_some(void *unused)
{
	for (int i = 0; i < 10; i++)
		inside_free(inside_malloc(24));
	return NULL;
}

static void fill_arrays(void)
{
	struct inside_header *header = memory__header();
	char name[] = "none", *const argv[] = { name, NULL };
	pthread_t thread;
	__u32 n;
	int pid;

	allocate_some(NULL);
	n = fill_array(&header->threads);
	CHECK(!pthread_create(&thread, NULL, allocate_some, NULL));
	CHECK(!pthread_join(thread, NULL));
	header->threads.n = n;
	n = fill_array(&header->programs);
	pid = inside_fork();
	if (!pid) {
		allocate_some(NULL);
		leave();
	}
	wait_for(pid);
	header->programs.n = n;
	n = fill_array(&header->refused);
	CHECK(inside_execve("valgrind", argv, NULL) == -1);
	header->refused.n = n;
	allocate_some(NULL);
}

static void test_arrays(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_COUNT, .follow = 1 };
	struct measured measured;

	measure(&settings, fill_arrays, &measured);
	assert_int_equal(measured.results.functions[AP_MALLOC].calls, 20);
	/* Each call tries again to find room for its thread, and is a gap each time. */
	assert_int_equal(measured.results.gaps[INSIDE_GAP_THREADS], 20);
	assert_int_equal(measured.results.gaps[INSIDE_GAP_PROGRAMS], 1);
	assert_int_equal(measured.results.gaps[INSIDE_GAP_EXECS], 1);
	assert_int_equal(measured.results.n_refused, 0);
	measured__finish(&measured);
}

static void call_from_other_library(void)
{
	struct inside_header *header = memory__header();
	void *(*call)(void *(*function)(size_t), size_t size);
	char path[PATH_MAX];
	__u32 n = header->modules.n;
	void *library;

	snprintf(path, sizeof(path), "%s/libunit_bound_caller.so", getenv("ALLOCPROF_UNIT_DATA"));
	library = dlopen(path, RTLD_LAZY);
	CHECK(library);
	call = (void *(*)(void *(*)(size_t), size_t))dlsym(library, "call_with_size");
	CHECK(call);
	header->modules.n = UNWIND_MAX_MODULES;
	inside_free(call(inside_malloc, 8));
	header->modules.n = n;
	inside_free(call(inside_malloc, 8));
}

static void test_modules(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_RECORD, .wait_ms = 1 };
	struct measured measured;

	measure(&settings, call_from_other_library, &measured);
	assert_int_equal(measured.results.functions[AP_MALLOC].calls, 2);
	assert_int_equal(measured.results.stats[AP_STAT_EVENTS], 2);
	assert_int_equal(measured.results.gaps[INSIDE_GAP_MODULES], 1);
	measured__finish(&measured);
}

#define N_FURTHER 6
#define N_DEEP	  4

static char names_of_regions[AP_MAX_REGIONS + N_FURTHER][8];

static const char *name_of(int i)
{
	snprintf(names_of_regions[i], sizeof(names_of_regions[i]), "r%d", i);
	return names_of_regions[i];
}

static void open_regions(void)
{
	static char long_name[AP_REGION_NAME_BYTES + 2];

	for (int i = 0; i < AP_MAX_REGIONS + N_FURTHER; i++) {
		allocprof_mark_(AP_REGION_BEGIN, name_of(i));
		inside_free(inside_malloc(1));
		allocprof_mark_(AP_REGION_END, name_of(i));
	}
	memset(long_name, 'a', sizeof(long_name) - 1);
	allocprof_mark_(AP_REGION_BEGIN, long_name);
	/* There are 63 sets, each of one region; none is left for others. */
	for (int i = 0; i < AP_MAX_OPEN_REGIONS + N_DEEP; i++)
		allocprof_mark_(AP_REGION_BEGIN, name_of(i));
	inside_free(inside_malloc(1));
	for (int i = 0; i < AP_MAX_OPEN_REGIONS + N_DEEP; i++)
		allocprof_mark_(AP_REGION_END, name_of(i));
	inside_free(inside_malloc(1));
}

static void test_regions(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_COUNT, .regions = 1 };
	static struct inside_regions regions;
	struct measured measured;
	const __u64 *gaps = &measured.results.stats[AP_STAT_REGION_GAP];
	__u64 n = 0;

	measure(&settings, open_regions, &measured);
	assert_int_equal(preload__read_regions(measured.preload, &regions), 0);
	assert_int_equal(regions.unnumbered, N_FURTHER);
	assert_int_equal(regions.unnamed, 1);
	assert_int_equal(gaps[AP_REGION_GAP_DEPTH], N_DEEP);
	/* malloc and free, with the last of the regions and with many. */
	assert_int_equal(gaps[AP_REGION_GAP_SETS], 4);
	assert_non_null(measured.results.regions);
	for (int i = 0; i < AP_MAX_REGION_SETS; i++)
		n += measured.results.regions->sets[i].functions[AP_MALLOC].calls;
	assert_int_equal(n, AP_MAX_REGION_SETS - 1);
	measured__finish(&measured);
}

static void fork_in_region(void)
{
	int pid;

	inside_free(inside_malloc(1));
	allocprof_mark_(AP_REGION_BEGIN, "before");
	pid = inside_fork();
	if (!pid) {
		inside_free(inside_malloc(1));
		leave();
	}
	wait_for(pid);
	allocprof_mark_(AP_REGION_END, "before");
}

/* A child has the regions open that its parent had. */
static void test_regions_of_child(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_COUNT, .regions = 1, .follow = 1 };
	struct measured measured;

	measure(&settings, fork_in_region, &measured);
	assert_non_null(measured.results.regions);
	assert_int_equal(measured.results.regions->begins[0], 1);
	assert_int_equal(measured.results.regions->sets[1].functions[AP_MALLOC].calls, 1);
	assert_int_equal(measured.results.functions[AP_MALLOC].calls, 2);
	measured__finish(&measured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits_of_live_blocks),
		cmocka_unit_test(test_full_memory),
		cmocka_unit_test(test_full_file_system),
		cmocka_unit_test(test_request_that_does_not_fit),
		cmocka_unit_test(test_full_disk_that_gets_room),
		cmocka_unit_test(test_replaced_file),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_names_of_threads),
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_regions_of_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
