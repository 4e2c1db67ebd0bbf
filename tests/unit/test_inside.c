// SPDX-License-Identifier: GPL-3.0-or-later
/* The library of src/inside counts calls in a process that allocates, forks, executes, maps and confines itself. */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wordexp.h>

#include "allocprof.h"
#include "preloadable.h"
#include "inside_host.h"
#include "measured_process.h"
#include "parser.h"
#include "preload_refusal.h"
#include "refusal_abi.h"
#include "sample_abi.h"

/* The process never frees these blocks. */
static void *left[32768];

static void call_everything(void)
{
	void *a = inside_malloc(100), *b, *c;

	CHECK(a);
	inside_free(a);
	inside_free(NULL);
	CHECK(inside_free != free);
	a = inside_calloc(3, 5);
	CHECK(a && !inside_calloc(SIZE_MAX, 2));
	b = inside_realloc(NULL, 10);
	b = inside_realloc(b, 1000);
	c = inside_reallocarray(NULL, 4, 8);
	c = inside_reallocarray(c, 400, 8);
	CHECK(b && c && !inside_reallocarray(NULL, SIZE_MAX, 2));
	inside_free_sized(a, 15);
	inside_free(b);
	inside_free(c);
	CHECK(!inside_posix_memalign(&a, 64, 7));
	b = inside_aligned_alloc(64, 128);
	c = inside_memalign(4096, 9);
	CHECK(b && c && !((uintptr_t)a & 63) && !((uintptr_t)c & 4095));
	inside_free_aligned_sized(b, 64, 128);
	inside_free(a);
	inside_free(c);
	a = inside_valloc(1);
	b = inside_pvalloc(1);
	CHECK(!((uintptr_t)a & 4095) && !((uintptr_t)b & 4095));
	inside_free(a);
	inside_free(b);
	CHECK(!strcmp(getenv("LD_PRELOAD"), "libc.so.6"));
}

static void check_everything(const struct measured *measured)
{
	static const struct {
		enum ap_function function;
		__u64 calls, size_bytes, fresh, null;
	} expected[] = {
		{ AP_MALLOC, 1, 100 },	     { AP_CALLOC, 2, 15 },
		{ AP_REALLOC, 2, 1010, 1 },  { AP_REALLOCARRAY, 3, 3232, 2 },
		{ AP_POSIX_MEMALIGN, 1, 7 }, { AP_ALIGNED_ALLOC, 1, 128 },
		{ AP_MEMALIGN, 1, 9 },	     { AP_VALLOC, 1, 1 },
		{ AP_PVALLOC, 1, 1 },	     { AP_FREE, 8, 0, 0, 1 },
		{ AP_FREE_SIZED, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		const struct ap_site_counts *counts =
			&measured->results.functions[expected[i].function];

		print_message("function %d\n", expected[i].function);
		assert_int_equal(counts->calls, expected[i].calls);
		assert_int_equal(counts->size_bytes, expected[i].size_bytes);
		assert_int_equal(counts->fresh, expected[i].fresh);
		assert_int_equal(counts->null, expected[i].null);
	}
	assert_int_equal(measured->results.stats[AP_STAT_IMPOSSIBLE], 2);
	assert_int_equal(measured->results.n_programs, 1);
	assert_int_equal(measured->results.n_threads, 1);
}

static void test_count(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_COUNT };
	struct measured measured;

	measure(&settings, call_everything, &measured);
	check_everything(&measured);
	measured__finish(&measured);
}

static int check_frames(void *context, const struct ap_stack_record *record)
{
	/* Nobody makes unwind tables: with them stacks are tested by test_unwind.c. */
	assert_true(record->n_frames <= AP_MAX_DEPTH);
	++*(int *)context;
	return 0;
}

/* 12 calls of functions that allocate, two of which ask for what nobody can have. */
static void test_record(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_RECORD };
	struct measured measured;
	__u64 sums[2] = { 0 };
	bool has_python;
	int n_stacks = 0;

	measure(&settings, call_everything, &measured);
	check_everything(&measured);
	assert_int_equal(preload__read_counts(measured.preload, sum_calls, sums), 0);
	assert_int_equal(sums[0], 13);
	assert_int_equal(sums[1], 100 + 15 + 1010 + 3232 + 7 + 128 + 9 + 1 + 1);
	assert_int_equal(
		preload__read_stacks(measured.preload, check_frames, &n_stacks, &has_python), 0);
	assert_true(n_stacks > 0);
	measured__finish(&measured);
}

static int sum_lifetime(void *context, const struct ap_lifetime_key *key,
			const struct ap_lifetime *lifetime)
{
	__u64 *sums = context;

	sums[0] += lifetime->blocks;
	sums[1] += lifetime->size_bytes;
	return 0;
}

#define N_LEFT 30000

/* Leaves N_LEFT / 2 blocks of 24 bytes, and one that has moved, of 5000. */
static void leave_blocks(void)
{
	call_everything();
	for (int i = 0; i < N_LEFT; i++)
		left[i] = inside_malloc(24);
	for (int i = 0; i < N_LEFT; i += 2)
		inside_free(left[i]);
	left[0] = inside_malloc(50);
	left[0] = inside_realloc(left[0], 5000);
	left[2] = inside_malloc(70);
	CHECK(left[0] && left[2]);
	left[2] = inside_realloc(left[2], 0);
}

static void check_left(const struct measured *measured)
{
	__u64 sums[2] = { 0 }, ended[2] = { 0 };
	struct preload_live live;

	assert_int_equal(preload__read_blocks(measured->preload, sum_block, sums, NULL), 0);
	assert_int_equal(sums[0], N_LEFT / 2 + 1);
	assert_int_equal(sums[1], N_LEFT / 2 * 24 + 5000);
	assert_int_equal(preload__read_lifetimes(measured->preload, sum_lifetime, ended), 0);
	assert_true(ended[0] >= N_LEFT / 2 + 2);
	assert_int_equal(preload__read_live(measured->preload, &live), 0);
	assert_true(live.n_records > 0);
	assert_true(live.max_bytes >= N_LEFT * 24);
	preload_live__free(&live);
	assert_int_equal(measured->results.programs[0].live_blocks, N_LEFT / 2 + 1);
	assert_int_equal(measured->results.programs[0].live_bytes, N_LEFT / 2 * 24 + 5000);
	assert_int_equal(measured->results.programs[0].end, INSIDE_EXITED);
}

static void test_live(void **state)
{
	for (int stacks = 0; stacks < 2; stacks++) {
		const struct inside_settings settings = { .mode = INSIDE_LIVE, .stacks = stacks };
		struct measured measured;

		measure(&settings, leave_blocks, &measured);
		check_left(&measured);
		measured__finish(&measured);
	}
}

/* Each call of these functions either weighs something or is counted as not sampled. */
static void test_sampled(void **state)
{
	struct inside_settings settings = { .follow = 1, .stacks = 1 };
	struct measured measured;
	const __u64 *stats;
	__u64 sums[2];

	ap_sample__configure(4096, &settings.sampling);
	for (settings.mode = INSIDE_RECORD; settings.mode <= INSIDE_LIVE; settings.mode++) {
		measure(&settings, leave_blocks, &measured);
		memset(sums, 0, sizeof(sums));
		assert_int_equal(preload__read_counts(measured.preload, sum_calls, sums), 0);
		stats = measured.results.stats;
		assert_true(stats[AP_STAT_NOT_SAMPLED] > N_LEFT * 9 / 10);
		assert_true(stats[AP_STAT_EVENTS] >= stats[AP_STAT_NOT_SAMPLED]);
		measured__finish(&measured);
	}
}

static void *allocate_in_thread(void *name)
{
	inside_pthread_setname_np(pthread_self(), name);
	for (int i = 0; i < 100; i++)
		inside_free(inside_malloc(40));
	return NULL;
}

static void run_threads(void)
{
	char names[4][8] = { "one", "two", "three", "one" };
	pthread_t threads[4];

	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 4; i++)
			CHECK(!pthread_create(&threads[i], NULL, allocate_in_thread, names[i]));
		for (int i = 0; i < 4; i++)
			CHECK(!pthread_join(threads[i], NULL));
	}
	CHECK(!inside_prctl(PR_SET_NAME, "renamed"));
	inside_free(inside_malloc(40));
	CHECK(!inside_prctl(PR_SET_NAME, "again"));
	inside_free(inside_malloc(40));
}

static void test_threads(void **state)
{
	for (int mode = INSIDE_COUNT; mode <= INSIDE_LIVE; mode++) {
		const struct inside_settings settings = { .mode = mode, .stacks = 1 };
		struct measured measured;

		measure(&settings, run_threads, &measured);
		assert_int_equal(measured.results.functions[AP_MALLOC].calls, 1602);
		assert_int_equal(measured.results.functions[AP_FREE].calls, 1602);
		/* With a thread of its own for each name of the first one. */
		assert_true(measured.results.n_threads <= 19);
		measured__finish(&measured);
	}
}

/* The library is interrupted by this as by a signal's handler, just when it asks the kernel for something. */
static int *n_handled, n_depth; /* the first is shared with the parent */

static long interrupt(long number, const long arguments[6])
{
	if (*n_handled < 6 && n_depth < 2) {
		++*n_handled;
		n_depth++;
		inside_free(inside_malloc(8));
		n_depth--;
	}
	return host__ask_kernel(number, arguments);
}

static void be_interrupted(void)
{
	host__answer_by(interrupt);
	inside_free(inside_malloc(1));
	for (int i = 0; i < N_LEFT; i++)
		left[i] = inside_malloc(24);
	host__answer_by(NULL);
	for (int i = 0; i < N_LEFT; i++)
		inside_free(left[i]);
	memset(left, 0, sizeof(left));
}

static void test_interrupted(void **state)
{
	for (int mode = INSIDE_RECORD; mode <= INSIDE_LIVE; mode++) {
		const struct inside_settings settings = { .mode = mode, .stacks = 1 };
		struct measured measured;
		__u64 sums[2] = { 0 };

		n_handled = mmap(NULL, sizeof(*n_handled), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		assert_true(n_handled != MAP_FAILED);
		measure(&settings, be_interrupted, &measured);
		assert_true(*n_handled > 0);
		assert_int_equal(measured.results.functions[AP_MALLOC].calls,
				 N_LEFT + 1 + *n_handled);
		assert_int_equal(measured.results.functions[AP_FREE].calls,
				 N_LEFT + 1 + *n_handled);
		munmap(n_handled, sizeof(*n_handled));
		assert_int_equal(preload__read_blocks(measured.preload, sum_block, sums, NULL), 0);
		assert_int_equal(sums[0], 0);
		measured__finish(&measured);
	}
}

static void run_children(void)
{
	int pid;

	inside_free(inside_malloc(1));
	for (int i = 0; i < 2; i++) {
		pid = i ? inside__Fork() : inside_fork();
		if (!pid) {
			left[0] = inside_malloc(2);
			inside_free(inside_malloc(2));
			leave();
		}
		wait_for(pid);
	}
	pid = fork();
	if (!pid)
		_exit(0);
	wait_for(pid);
}

static void test_children(void **state)
{
	for (int mode = INSIDE_COUNT; mode <= INSIDE_LIVE; mode++)
		for (int follow = 0; follow < 2; follow++) {
			const struct inside_settings settings = { .mode = mode, .follow = follow };
			struct measured measured;

			measure(&settings, run_children, &measured);
			assert_int_equal(measured.results.functions[AP_MALLOC].calls,
					 follow ? 5 : 1);
			assert_int_equal(measured.results.n_programs, follow ? 3 : 1);
			measured__finish(&measured);
		}
}

/* None of them is executed. */
static void fail_to_execute(void)
{
	char name[] = "true";
	char *argv[] = { name, NULL };

	inside_execve("/none", argv, NULL);
	inside_execve((const char *)1, argv, argv);
	inside_execv("/none", argv);
	inside_execvp("no program has this name", argv);
	inside_execl("/none", "true", "a", "b", NULL);
	inside_execlp("no program has this name", "true", NULL);
	inside_execle("/none", "true", NULL, argv);
	inside_fexecve(-1, argv, argv);
	inside_execveat(AT_FDCWD, "/none", argv, argv, 0);
	inside_execveat(-1, "none", argv, argv, 0);
	inside_syscall(__NR_execve, "/none", argv, argv);
	inside_syscall(__NR_execveat, AT_FDCWD, "/none", argv, argv, 0);
	CHECK(inside_posix_spawn(NULL, "/none", NULL, NULL, argv, argv) == ENOENT);
	CHECK(inside_posix_spawnp(NULL, "/none", NULL, NULL, argv, argv) == ENOENT);
}

static void execute(void)
{
	char name[] = "true", preload[] = "LD_PRELOAD=", other[] = "A=1";
	char *argv[] = { name, NULL }, *environment[] = { other, preload, NULL };
	wordexp_t words;
	void *stream;
	int pid;

	inside_free(inside_malloc(1));
	fail_to_execute();
	CHECK(!inside_posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environment));
	wait_for(pid);
	CHECK(!inside_posix_spawnp(&pid, "true", NULL, NULL, argv, environment));
	wait_for(pid);
	CHECK(!inside_system("exit 0"));
	CHECK(inside_system(NULL));
	stream = inside_popen("exit 0", "r");
	CHECK(stream && !pclose(stream));
	CHECK(!inside_wordexp("$(:) a", &words, 0) && words.we_wordc == 1);
	wordfree(&words);
	CHECK(!strcmp(getenv("LD_PRELOAD"), "libc.so.6"));
	for (int i = 0; i < 8; i++) {
		pid = inside_fork();
		if (!pid) {
			int fd = open("/bin/true", O_RDONLY);

			if (i == 0)
				inside_execve("/bin/true", argv, environment);
			if (i == 1)
				inside_execv("/bin/true", argv);
			if (i == 2)
				inside_execvp("true", argv);
			if (i == 3)
				inside_execl("/bin/true", "true", "a", NULL);
			if (i == 4)
				inside_execle("/bin/true", "true", NULL, environment);
			if (i == 5)
				inside_fexecve(fd, argv, environment);
			if (i == 6)
				inside_execveat(fd, "", argv, environment, AT_EMPTY_PATH);
			if (i == 7)
				inside_syscall(__NR_execve, "/bin/true", argv, environment);
			_exit(98);
		}
		wait_for(pid);
	}
}

/* As in each program that this process executes the library counts, which is the one of the build. */
static void test_executed(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_LIVE, .follow = 1 };
	struct measured measured;
	size_t n_true = 0, n_shells = 0;

	measure(&settings, execute, &measured);
	for (size_t i = 0; i < measured.results.n_programs; i++) {
		n_true += !strcmp(measured.results.programs[i].comm, "true");
		n_shells += !strcmp(measured.results.programs[i].comm, "sh");
	}
	assert_int_equal(n_true, 10);
	assert_int_equal(n_shells, 3);
	assert_int_equal(measured.results.n_refused, 0);
	measured__finish(&measured);
}

static __attribute__((noinline)) void work_in_region(void)
{
	ALLOCPROF_REGION("inner");
	inside_free(inside_malloc(10));
}

static void mark_regions(void)
{
	ALLOCPROF_BEGIN("outer");
	inside_free(inside_malloc(100));
	for (int i = 0; i < 3; i++)
		work_in_region();
	ALLOCPROF_END("outer");
	inside_free(inside_malloc(1000));
	ALLOCPROF_END("never begun");
	allocprof_mark_(AP_REGION_BEGIN, "");
	allocprof_mark_(99, "no such mark");
}

static void test_regions(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_COUNT, .regions = 1 };
	static struct inside_regions regions;
	struct measured measured;
	__u64 calls[2] = { 0 };

	measure(&settings, mark_regions, &measured);
	assert_non_null(measured.results.regions);
	assert_int_equal(preload__read_regions(measured.preload, &regions), 0);
	assert_string_equal(regions.list[0].name, "outer");
	assert_string_equal(regions.list[1].name, "inner");
	assert_int_equal(regions.unnamed, 1);
	assert_int_equal(measured.results.regions->begins[0], 1);
	assert_int_equal(measured.results.regions->begins[1], 3);
	for (int set = 1; set < AP_MAX_REGION_SETS; set++)
		for (int i = 0; i < 2; i++)
			if (regions.masks[set] >> i & 1)
				calls[i] += measured.results.regions->sets[set]
						    .functions[AP_MALLOC]
						    .calls;
	assert_int_equal(calls[0], 4);
	assert_int_equal(calls[1], 3);
	measured__finish(&measured);
}

/* Memory of the process, by functions and by numbers; and the library's own, which nobody takes away. */
static void map_memory(void)
{
	void *directory = inside_dlopen("libm.so.6", 2), *p, *q;

	CHECK(directory);
	inside_free(inside_malloc(1));
	p = inside_mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	CHECK(!inside_mprotect(p, 4096, PROT_NONE) && !inside_madvise(p, 8192, MADV_DONTNEED));
	CHECK(!inside_syscall(__NR_mprotect, p, 4096L, (long)(PROT_READ | PROT_WRITE)));
	CHECK(!inside_syscall(__NR_madvise, p, 8192L, (long)MADV_DONTNEED));
	q = inside_mremap(p, 8192, 16384, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED);
	q = (void *)inside_syscall(__NR_mremap, q, 16384L, 8192L, (long)MREMAP_MAYMOVE, NULL);
	CHECK(q != MAP_FAILED && !inside_munmap(q, 4096));
	CHECK(!inside_syscall(__NR_munmap, (char *)q + 4096, 4096L));
	p = (void *)inside_syscall(__NR_mmap, NULL, 4096L, (long)(PROT_READ | PROT_EXEC),
				   (long)(MAP_PRIVATE | MAP_ANONYMOUS), -1L, 0L);
	CHECK(p != MAP_FAILED);
	CHECK(inside_mmap(p, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
	CHECK(!inside_munmap(p, 4096));
	CHECK(inside_munmap((void *)1, 4096) == -1 && errno == EINVAL);
	CHECK(inside_syscall(__NR_getpid) == getpid());
	CHECK(!inside_dlopen("/none.so", 2) && inside_dlopen(NULL, 2));
	inside_dlmopen(0, "libm.so.6", 2);
	for (int i = 0; i < 100; i++)
		inside_free(inside_malloc(200000 + i));
}

static void test_mappings(void **state)
{
	for (int mode = INSIDE_COUNT; mode <= INSIDE_LIVE; mode++) {
		const struct inside_settings settings = { .mode = mode, .stacks = 1 };
		struct measured measured;

		measure(&settings, map_memory, &measured);
		assert_int_equal(measured.results.functions[AP_MALLOC].calls, 101);
		assert_int_equal(measured.results.gaps[INSIDE_GAP_REPLACED], 0);
		measured__finish(&measured);
	}
}

/* The library of an allocator is loaded with another one that calls its functions. */
static void use_allocator(void)
{
	char path[PATH_MAX];
	void (*use)(void);
	void *library;

	snprintf(path, sizeof(path), "%s/libunit_allocator_user.so", getenv("ALLOCPROF_UNIT_DATA"));
	library = inside_dlopen(path, RTLD_NOW);
	CHECK(library);
	use = (void (*)(void))dlsym(library, "use_allocator");
	CHECK(use);
	use();
}

static void test_own_functions(void **state)
{
	for (int mode = INSIDE_COUNT; mode <= INSIDE_LIVE; mode++) {
		const struct inside_settings settings = { .mode = mode, .stacks = 1 };
		const struct ap_site_counts *functions;
		struct measured measured;
		__u64 sums[2] = { 0 };

		measure(&settings, use_allocator, &measured);
		functions = measured.results.functions;
		/* mi_malloc and mi_strdup, which has no size. */
		assert_int_equal(functions[AP_MALLOC].calls, 2);
		assert_int_equal(functions[AP_MALLOC].size_bytes, 106);
		assert_int_equal(functions[AP_REALLOC].size_bytes, 200);
		/* mi_zalloc and mi_calloc. */
		assert_int_equal(functions[AP_CALLOC].calls, 2);
		assert_int_equal(functions[AP_CALLOC].size_bytes, 22);
		assert_int_equal(functions[AP_POSIX_MEMALIGN].size_bytes, 11);
		assert_int_equal(functions[AP_FREE].calls, 3);
		/* mi_unknown_malloc */
		assert_int_equal(measured.results.gaps[INSIDE_GAP_FUNCTIONS], 1);
		if (mode == INSIDE_LIVE) {
			assert_int_equal(
				preload__read_blocks(measured.preload, sum_block, sums, NULL), 0);
			assert_int_equal(sums[0], 2);
			assert_int_equal(sums[1], 15 + 6);
		}
		measured__finish(&measured);
	}
}

/* A filter that refuses what only the library asks for. */
static void confine_itself(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mremap, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(filter), filter };

	for (int i = 0; i < 10; i++)
		left[i] = inside_malloc(24);
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(inside_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1);
	CHECK(!inside_syscall(__NR_seccomp, (long)SECCOMP_SET_MODE_FILTER, 0L, &program));
	for (int i = 10; i < N_LEFT; i++)
		left[i] = inside_malloc(24);
}

static void test_confined(void **state)
{
	for (int mode = INSIDE_COUNT; mode <= INSIDE_LIVE; mode++) {
		const struct inside_settings settings = { .mode = mode, .follow = 1, .stacks = 1 };
		struct measured measured;

		measure(&settings, confine_itself, &measured);
		assert_int_equal(measured.results.functions[AP_MALLOC].calls, N_LEFT);
		measured__finish(&measured);
	}
}

/* allocprof decides of the command, and the library of what that executes. */
static void test_both_refuse_alike(void **state)
{
	static const struct {
		const char *name; /* in the directory of the data, or a path */
		int refusal;
	} cases[] = {
		{ "unit_program", INSIDE_REFUSES_STATIC },
		{ "unit_static_pie", INSIDE_REFUSES_STATIC },
		{ "unit_dynamic_malloc", -1 },
		{ "unit_dynamic___asan_init", INSIDE_REFUSES_SANITIZER },
		{ "unit_dynamic_sysv___asan_init", INSIDE_REFUSES_SANITIZER },
		{ "unit_needs_sanitizer", INSIDE_REFUSES_SANITIZER },
		{ "/bin/true", -1 },
		{ "/lib64/ld-linux-x86-64.so.2", -1 },
	};
	char path[PATH_MAX], *environment[] = { NULL };
	struct parser *parser;

	assert_int_equal(parser__new(&parser, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct program program = { AT_FDCWD, path };
		char *argv[] = { path, NULL };

		snprintf(path, sizeof(path), "%s%s%s",
			 cases[i].name[0] == '/' ? "" : getenv("ALLOCPROF_UNIT_DATA"),
			 cases[i].name[0] == '/' ? "" : "/", cases[i].name);
		print_message("%s\n", path);
		assert_int_equal(program__refusal(&program, false), cases[i].refusal);
		assert_int_equal(preload_refusal__of(parser, argv, environment), cases[i].refusal);
	}
	parser__free(parser);
}

static void test_rules_of_refusal(void **state)
{
	static const struct ap_program root = { 0 }, user = { .user = 5, .effective_user = 5 };
	struct ap_program program = root;

	assert_int_equal(ap_program__refusal(&root), -1);
	program.has_capabilities = true;
	assert_int_equal(ap_program__refusal(&program), -1);
	program = user;
	program.has_capabilities = true;
	assert_int_equal(ap_program__refusal(&program), INSIDE_REFUSES_SECURE);
	program.is_static = true;
	assert_int_equal(ap_program__refusal(&program), INSIDE_REFUSES_STATIC);
	program = user;
	program.mode = 04755;
	assert_int_equal(ap_program__refusal(&program), INSIDE_REFUSES_SECURE);
	program.owner = 5;
	assert_int_equal(ap_program__refusal(&program), -1);
	program.mode = 02755;
	assert_int_equal(ap_program__refusal(&program), -1);
	program.owning_group = 7;
	assert_int_equal(ap_program__refusal(&program), INSIDE_REFUSES_SECURE);
	program.mode = 02745;
	assert_int_equal(ap_program__refusal(&program), -1);
	program = user;
	program.effective_group = 1;
	program.has_sanitizer = program.has_malloc = true;
	assert_int_equal(ap_program__refusal(&program), INSIDE_REFUSES_SECURE);
	program.group = 1;
	assert_int_equal(ap_program__refusal(&program), INSIDE_REFUSES_SANITIZER);
	program.has_sanitizer = false;
	assert_int_equal(ap_program__refusal(&program), INSIDE_REFUSES_ALLOCATOR);
	program.is_foreign = true;
	assert_int_equal(ap_program__refusal(&program), INSIDE_REFUSES_MACHINE);
	for (int refusal = -1; refusal < INSIDE_REFUSALS; refusal++)
		assert_int_equal(ap_refusal__clears_environment(refusal),
				 refusal >= 0 && refusal != INSIDE_REFUSES_SECURE &&
					 refusal != INSIDE_REFUSES_UNREADABLE &&
					 refusal != INSIDE_REFUSES_ALLOCATOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_executed),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_confined),
		cmocka_unit_test(test_own_functions),
		cmocka_unit_test(test_both_refuse_alike),
		cmocka_unit_test(test_rules_of_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
