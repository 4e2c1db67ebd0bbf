// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The library of src/inside in a process that ran before: allocprof has mapped it, stopped all threads, and has one of them call
 * allocprof_attach(). Here the test's program is the library, and is not in the list that the dynamic linker is said to have; what
 * allocprof does by ptrace(2), the process does itself.
 */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inside_host.h"
#include "measured_process.h"
#include "sys.h"

#define N_CALLS 10

void allocprof_attach(void);
extern struct inside_request allocprof_request;

/* The library has a function that another one of the process has, too. */
int unit_number(void);
int unit_number(void)
{
	return 2;
}

static const struct preload *preload;
static void *memory;
static size_t memory_bytes;

/* NULL if the measurement does not have the file. */
static void *map_file(const char *name, int protection, size_t size)
{
	char path[PATH_MAX];
	void *mapped;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", preload->directory, name);
	fd = open(path, (protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	mapped = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
	CHECK(mapped != MAP_FAILED);
	close(fd);
	return mapped;
}

/* The dynamic linker, as a debugger sees it. */
static struct r_debug linker;

static void prepare(void)
{
	linker = _r_debug;
	linker.r_map = linker.r_map->l_next;
	linker.r_state = RT_CONSISTENT;
	memory_bytes = INSIDE_HEADER_BYTES;
	memory = map_file(INSIDE_MEMORY, PROT_READ | PROT_WRITE, memory_bytes);
	CHECK(memory);
	allocprof_request = (struct inside_request){
		.memory = (__u64)memory,
		.tables = (__u64)map_file(INSIDE_TABLES, PROT_READ, INSIDE_PAGE),
		.linker = (__u64)&linker,
	};
}

static int request(enum inside_action action)
{
	allocprof_request.action = action;
	allocprof_request.stage = INSIDE_STAGE_CALLED;
	allocprof_request.result = 0;
	allocprof_attach();
	/* Nobody takes the thread back. */
	CHECK(allocprof_request.stage == INSIDE_STAGE_RETURNS);
	return allocprof_request.result;
}

static void *allocate(void *unused)
{
	for (int i = 0; i < N_CALLS; i++) {
		void *block = inside_malloc(24);

		CHECK(block);
		inside_free(block);
	}
	return NULL;
}

static void allocate_in_thread(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, allocate, NULL));
	CHECK(!pthread_join(thread, NULL));
}

static bool is_mapped(void *address)
{
	return !msync(address, 4096, MS_ASYNC);
}

static void attach_and_leave(void)
{
	prepare();
	CHECK(!request(INSIDE_ATTACH));
	CHECK(allocprof_request.has_keys && allocprof_request.tid_offset);
	allocate(NULL);
	allocate_in_thread();
	allocate_in_thread();
	CHECK(!request(INSIDE_DETACH));
	CHECK(!allocprof_request.n_lost && is_mapped(memory));
	allocate(NULL);
	allocate_in_thread();
	CHECK(!request(INSIDE_CLEAN) && !is_mapped(memory));
	allocate(NULL);
}

static void measure_attached(enum inside_mode mode, void (*program)(void), struct measured *out)
{
	const struct inside_settings settings = { .mode = mode, .stacks = 1 };

	measured__new(&settings, out);
	preload = out->preload;
	measured__run_alone(out, program);
	measured__read(out);
}

static void test_calls_count_until_allocprof_leaves(void **state)
{
	for (int mode = INSIDE_COUNT; mode <= INSIDE_LIVE; mode++) {
		struct measured measured;

		measure_attached(mode, attach_and_leave, &measured);
		assert_int_equal(measured.results.n_programs, 1);
		assert_int_equal(measured.results.functions[AP_MALLOC].calls, 3 * N_CALLS);
		assert_int_equal(measured.results.functions[AP_FREE].calls, 3 * N_CALLS);
		if (mode != INSIDE_COUNT)
			assert_int_equal(measured.results.stats[AP_STAT_EVENTS], 3 * N_CALLS);
		measured__finish(&measured);
	}
}

static void *load(const char *name)
{
	char path[PATH_MAX];
	void *library;

	snprintf(path, sizeof(path), "%s/%s", getenv("ALLOCPROF_UNIT_DATA"), name);
	library = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
	CHECK(library);
	return library;
}

/* The words of a library have the addresses that the dynamic linker would have found. */
static void bind_words(void)
{
	void *provider = load("libunit_bound.so"), *caller = load("libunit_bound_caller.so");
	int (**pointer)(void) = dlsym(caller, "unit_number_pointer");
	void (**mark)(int, const char *) = dlsym(caller, "unit_mark_pointer");
	int (*call)(void) = dlsym(caller, "call_unit_number");
	int (*provided)(void) = dlsym(provider, "unit_number");

	CHECK(pointer && mark && call && provided && provided != unit_number);
	*pointer = provided;
	*mark = NULL;
	prepare();
	CHECK(!request(INSIDE_ATTACH) && allocprof_request.n_words >= 3);
	CHECK(*pointer == unit_number && *mark == allocprof_mark_);
	CHECK(call() == 2);
	CHECK(!request(INSIDE_DETACH) && !allocprof_request.n_lost);
	/* A thread may have seen that there is a mark, and call it. */
	CHECK(*pointer == provided && *mark == allocprof_mark_);
}

static void test_words_are_changed_and_put_back(void **state)
{
	struct measured measured;

	measure_attached(INSIDE_COUNT, bind_words, &measured);
	measured__finish(&measured);
}

static void change_words_meanwhile(void)
{
	void *provider = load("libunit_bound.so"), *caller = load("libunit_bound_caller.so");
	int (**pointer)(void) = dlsym(caller, "unit_number_pointer");
	int (*provided)(void) = dlsym(provider, "unit_number");

	*pointer = provided;
	prepare();
	CHECK(!request(INSIDE_ATTACH));
	CHECK(*pointer == unit_number);
	*pointer = provided;
	CHECK(!request(INSIDE_DETACH) && allocprof_request.n_lost > 0 && *pointer == provided);
}

/* Somebody else has put another value there, by which calls have led past the library. */
static void test_changed_words_are_lost(void **state)
{
	struct measured measured;

	measure_attached(INSIDE_COUNT, change_words_meanwhile, &measured);
	measured__finish(&measured);
}

static void come_while_linker_works(void)
{
	prepare();
	linker.r_state = RT_ADD;
	CHECK(request(INSIDE_ATTACH) == -EAGAIN);
	linker.r_state = RT_CONSISTENT;
	CHECK(!request(INSIDE_ATTACH));
	linker.r_state = RT_DELETE;
	CHECK(request(INSIDE_DETACH) == -EAGAIN);
	allocate(NULL);
	linker.r_state = RT_CONSISTENT;
	CHECK(!request(INSIDE_DETACH));
}

static void test_linker_at_work(void **state)
{
	struct measured measured;

	measure_attached(INSIDE_COUNT, come_while_linker_works, &measured);
	assert_int_equal(measured.results.functions[AP_MALLOC].calls, N_CALLS);
	measured__finish(&measured);
}

static void fail_to_attach(void)
{
	struct link_map *first;

	prepare();
	/* The C library comes first: as if the program itself had malloc. */
	for (first = linker.r_map; first && !strstr(first->l_name, "/libc.so");
	     first = first->l_next)
		;
	CHECK(first);
	linker.r_map = first;
	CHECK(request(INSIDE_ATTACH) == -EEXIST);
	linker.r_map = _r_debug.r_map->l_next;
	/* Memory of another version. */
	((struct inside_header *)memory)->version++;
	CHECK(request(INSIDE_ATTACH) == -ENOMEM);
	((struct inside_header *)memory)->version--;
	allocate(NULL);
}

static void test_cannot_be_attached_to(void **state)
{
	struct measured measured;

	measure_attached(INSIDE_COUNT, fail_to_attach, &measured);
	assert_int_equal(measured.results.n_programs, 0);
	measured__finish(&measured);
}

/* The kernel has lifted the filter for the thread that attaches; for others it holds. */
static void attach_to_confined(void)
{
	const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog *filters =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(filters != MAP_FAILED);
	*filters = (struct sock_fprog){ ARRAY_SIZE(filter), (struct sock_filter *)(filters + 1) };
	memcpy(filters->filter, filter, sizeof(filter));
	prepare();
	allocprof_request.filters = (__u64)filters;
	allocprof_request.filters_bytes = 4096;
	allocprof_request.n_filters = 1;
	CHECK(!request(INSIDE_ATTACH) && !is_mapped(filters));
	CHECK(!sys__may(__NR_process_vm_readv) && sys__may(__NR_getpid));
	allocate(NULL);
	CHECK(!request(INSIDE_DETACH));
}

static void test_filters_of_the_process(void **state)
{
	struct measured measured;

	measure_attached(INSIDE_LIVE, attach_to_confined, &measured);
	assert_int_equal(measured.results.functions[AP_MALLOC].calls, N_CALLS);
	measured__finish(&measured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_count_until_allocprof_leaves),
		cmocka_unit_test(test_words_are_changed_and_put_back),
		cmocka_unit_test(test_changed_words_are_lost),
		cmocka_unit_test(test_linker_at_work),
		cmocka_unit_test(test_cannot_be_attached_to),
		cmocka_unit_test(test_filters_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
