// SPDX-License-Identifier: GPL-3.0-or-later
/* What the library of src/inside reads in a process: files, the environment, filters, the list of mappings, objects in memory. */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"
#include "preloadable.h"
#include "environment.h"
#include "inside_abi.h"
#include "inside_host.h"
#include "maps.h"
#include "objects.h"
#include "stack.h"

static void data_path(const char *name, char path[PATH_MAX])
{
	const char *data = getenv("ALLOCPROF_UNIT_DATA");

	assert_non_null(data);
	snprintf(path, PATH_MAX, "%s/%s", data, name);
}

static int refusal_of(const char *path, bool looks)
{
	return program__refusal(&(struct program){ AT_FDCWD, path }, looks);
}

static void test_programs(void **state)
{
	static const struct {
		const char *name;
		int refusal, refusal_if_looked;
	} cases[] = {
		{ "unit_program", INSIDE_REFUSES_STATIC, INSIDE_REFUSES_STATIC },
		{ "unit_dynamic_malloc", -1, INSIDE_REFUSES_ALLOCATOR },
		{ "unit_dynamic_malloc_sysv", -1, INSIDE_REFUSES_ALLOCATOR },
		{ "unit_dynamic_je_malloc", -1, INSIDE_REFUSES_ALLOCATOR },
		{ "unit_dynamic_other", -1, -1 },
		{ "unit_dynamic___asan_init", INSIDE_REFUSES_SANITIZER, INSIDE_REFUSES_SANITIZER },
		{ "unit_dynamic_sysv___asan_init", INSIDE_REFUSES_SANITIZER,
		  INSIDE_REFUSES_SANITIZER },
		{ "no such program", -1, -1 },
		{ "valgrind", INSIDE_REFUSES_TRANSLATOR, INSIDE_REFUSES_TRANSLATOR },
		{ "lib/valgrind/memcheck", INSIDE_REFUSES_TRANSLATOR, INSIDE_REFUSES_TRANSLATOR },
	};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		data_path(cases[i].name, path);
		print_message("%s\n", path);
		assert_int_equal(refusal_of(path, false), cases[i].refusal);
		assert_int_equal(refusal_of(path, true), cases[i].refusal_if_looked);
	}
	assert_true(program__has_path(&(struct program){ AT_FDCWD, "" }));
	assert_false(program__has_path(&(struct program){ AT_FDCWD, (const char *)8 }));
}

static void write_file(const char *path, const void *bytes, size_t size, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_scripts(void **state)
{
	const char head_of_32_bits[64] = "\177ELF\1\1\1";
	char path[] = "/tmp/allocprof-unit-XXXXXX", program[PATH_MAX], script[PATH_MAX + 8];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(refusal_of(path, false), -1);
	data_path("unit_program", program);
	snprintf(script, sizeof(script), "#! \t%s -x\n", program);
	write_file(path, script, strlen(script), 0700);
	assert_int_equal(refusal_of(path, false), INSIDE_REFUSES_STATIC);
	snprintf(script, sizeof(script), "#!%s\n", path);
	write_file(path, script, strlen(script), 0700);
	assert_int_equal(refusal_of(path, false), -1);
	write_file(path, "#!/bin/sh", 9, 0700);
	assert_int_equal(refusal_of(path, false), -1);
	write_file(path, "#!\n\n", 4, 0700);
	assert_int_equal(refusal_of(path, false), -1);
	write_file(path, head_of_32_bits, sizeof(head_of_32_bits), 0700);
	assert_int_equal(refusal_of(path, false), INSIDE_REFUSES_MACHINE);
	unlink(path);
}

static void test_directory(void **state)
{
	assert_false(directory__is_reachable("/proc/self/none"));
	assert_false(directory__is_reachable("/proc"));
}

static void check_environment(char *const *entries, const char *name, char *const *expected)
{
	struct environment environment;
	char *out[8], text[256];
	size_t n = 0;

	assert_true(environment__look(&environment, entries, "/d"));
	assert_true(environment.n <= 5);
	assert_true(environment__text_bytes(&environment, "/d", name) <= sizeof(text));
	assert_true(environment__fill(&environment, "/d", name, out, text));
	for (; expected[n]; n++) {
		assert_non_null(out[n]);
		assert_string_equal(out[n], expected[n]);
	}
	assert_null(out[n]);
}

static void test_environment(void **state)
{
	static char a[] = "A=1", others[] = "LD_PRELOAD=/x.so", own[] = "LD_PRELOAD=/d/inside.so",
		    both[] = "LD_PRELOAD=/d/inside.so:/x.so", second[] = "LD_PRELOAD=/y.so",
		    similar[] = "LD_PRELOAD=/d/inside.sox",
		    before_similar[] = "LD_PRELOAD=/d/inside.so:/d/inside.sox",
		    other[] = "LD_PRELOAD=/d/other.so:/x.so";
	static const struct {
		char *before[4], *with[4], *without[4];
	} cases[] = {
		{ { NULL }, { own }, { NULL } },
		{ { a }, { a, own }, { a } },
		{ { others, a }, { both, a }, { others, a } },
		{ { a, both }, { a, both }, { a, others } },
		{ { a, own }, { a, own }, { a } },
		{ { other, a }, { both, a }, { others, a } },
		/* The dynamic linker takes the first. */
		{ { others, second, a }, { both, a }, { others, a } },
		{ { similar }, { before_similar }, { similar } },
	};
	const struct {
		char *const entry, *last;
	} unreadable = { (char *)8, NULL };
	struct environment environment;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		check_environment(cases[i].before, "inside.so", cases[i].with);
		check_environment(cases[i].before, NULL, cases[i].without);
	}
	check_environment(NULL, "inside.so", cases[0].with);
	assert_true(environment__has(cases[3].with + 1, "/d"));
	assert_false(environment__has(NULL, "/d"));
	/* What the kernel would answer with an error does not end the process. */
	assert_false(environment__look(&environment, (char *const *)8, "/d"));
	assert_true(environment__look(&environment, &unreadable.entry, "/d"));
	assert_true(sanitizer__is_preloaded("/a/libasan.so.8"));
	assert_false(sanitizer__is_preloaded("/a/xlibasan.so.8"));
}

static void check_filter(const struct sock_filter *filter, __u16 n, bool is_limited)
{
	struct sock_fprog program = { n, (struct sock_filter *)filter };
	struct sys_limits before = confine__by_filter((unsigned long)&program, 0);

	assert_int_equal(sys_limits.is_limited, is_limited);
	confine__take_back(&before);
	assert_false(sys_limits.is_limited);
}

/* Filters that the kernel refuses: the library must come to an end before the kernel has looked. */
static void test_filters_that_are_none(void **state)
{
	const struct sock_filter backwards[] = { BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff),
						 BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW) };
	const struct sock_filter to_the_first[] = { BPF_STMT(BPF_LD | BPF_IMM, 1),
						    BPF_STMT(BPF_JMP | BPF_JA, 0xfffffffe),
						    BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW) };
	const struct sock_filter beyond[] = { BPF_JUMP(BPF_JMP | BPF_JEQ, 0, 255, 255) };
	const struct sock_filter no_end[] = { BPF_STMT(BPF_LD | BPF_IMM, 1) };
	const struct sock_filter by_nothing[] = { BPF_STMT(BPF_ALU | BPF_DIV, 0),
						  BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW) };
	const struct sock_filter unknown[] = { BPF_STMT(BPF_ALU | 0xf0, 0),
					       BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW) };
	struct sys_limits before;

	alarm(30);
	check_filter(backwards, ARRAY_SIZE(backwards), true);
	check_filter(to_the_first, ARRAY_SIZE(to_the_first), true);
	check_filter(beyond, ARRAY_SIZE(beyond), true);
	check_filter(no_end, ARRAY_SIZE(no_end), true);
	check_filter(by_nothing, ARRAY_SIZE(by_nothing), true);
	check_filter(unknown, ARRAY_SIZE(unknown), true);
	check_filter(NULL, 0, true);
	check_filter((const struct sock_filter *)8, 3, true);
	before = confine__by_filter(8, 0);
	assert_true(sys_limits.is_limited);
	confine__take_back(&before);
	alarm(0);
}

/* What is asked of the kernel while the filter is worked out, which is not in force yet. */
static int n_mapped;

static long count_mapped(long number, const long arguments[6])
{
	n_mapped += (number == __NR_mmap) - (number == __NR_munmap);
	return host__ask_kernel(number, arguments);
}

static void test_filters(void **state)
{
	static const struct {
		__u16 operation;
		__u32 a, by, result;
	} cases[] = {
		{ BPF_ADD, 7, 5, 12 },	       { BPF_SUB, 7, 5, 2 },   { BPF_MUL, 7, 5, 35 },
		{ BPF_DIV, 35, 5, 7 },	       { BPF_OR, 6, 1, 7 },    { BPF_AND, 6, 2, 2 },
		{ BPF_XOR, 6, 2, 4 },	       { BPF_LSH, 1, 4, 16 },  { BPF_RSH, 16, 4, 1 },
		{ BPF_NEG, 1, 0, 0xffffffff }, { BPF_SUB, 0, 1, ~0U },
	};
	const struct sock_filter no_openat[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ, __NR_openat, 1, 0),
		BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET, SECCOMP_RET_TRAP),
	};
	const struct sock_filter fails[] = { BPF_STMT(BPF_RET, SECCOMP_RET_ERRNO | EPERM) };
	struct sock_fprog program = { ARRAY_SIZE(no_openat), (struct sock_filter *)no_openat };
	struct sys_limits before;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (int by_x = 0; by_x < 2; by_x++) {
			const struct sock_filter filter[] = {
				BPF_STMT(BPF_LDX | BPF_IMM, cases[i].by),
				BPF_STMT(BPF_STX, 3),
				BPF_STMT(BPF_LD | BPF_IMM, cases[i].a),
				BPF_STMT(BPF_ALU | cases[i].operation | (by_x ? BPF_X : BPF_K),
					 by_x ? 0 : cases[i].by),
				BPF_STMT(BPF_MISC | BPF_TAX, 0),
				BPF_STMT(BPF_ST, 0),
				BPF_STMT(BPF_LD | BPF_LEN, 0),
				BPF_STMT(BPF_LD | BPF_MEM, 0),
				BPF_JUMP(BPF_JMP | BPF_JGT, cases[i].result, 3, 0),
				BPF_JUMP(BPF_JMP | BPF_JGE | BPF_X, 0, 0, 2),
				BPF_JUMP(BPF_JMP | BPF_JEQ, cases[i].result, 0, 1),
				BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW),
				BPF_STMT(BPF_RET, SECCOMP_RET_KILL),
			};

			print_message("case %zu\n", i);
			check_filter(filter, ARRAY_SIZE(filter), false);
		}
	check_filter(fails, ARRAY_SIZE(fails), false);
	host__answer_by(count_mapped);
	before = confine__by_filter((unsigned long)&program, 0);
	host__answer_by(NULL);
	assert_int_equal(n_mapped, 0);
	assert_false(sys__permits(__NR_openat, O_RDONLY | O_CLOEXEC, 0));
	assert_true(sys__permits(__NR_read, 0, 0));
	assert_true(sys__open("/proc/self/maps", O_RDONLY) < 0);
	confine__take_back(&before);
	before = confine__strictly();
	assert_false(sys__permits(__NR_read, 0, 0));
	assert_true(sys_limits.no_ticks);
	assert_int_equal(sys__pid(), 0);
	confine__take_back(&before);
	assert_int_equal(sys__pid(), getpid());
}

/* Linux 6.11 answers for one mapping; here no kernel does. */
static long without_query(long number, const long arguments[6])
{
	return number == __NR_ioctl ? -ENOTTY : host__ask_kernel(number, arguments);
}

static void test_maps(void **state)
{
	void *const code = dlsym(RTLD_DEFAULT, "qsort");
	char path[2][PATH_MAX], buffer[4096];
	struct mapping found[2];

	for (int i = 0; i < 2; i++) {
		host__answer_by(i ? without_query : NULL);
		assert_int_equal(maps__find((__u64)code, &found[i], path[i], PATH_MAX, buffer,
					    i ? 64 : sizeof(buffer)),
				 0);
		assert_true(found[i].is_executable && !found[i].is_closed);
		assert_true(found[i].start <= (__u64)code && (__u64)code < found[i].end);
		assert_int_equal(maps__find(8, &found[i], NULL, 0, buffer, sizeof(buffer)),
				 -ENOENT);
		assert_true(found[i].end > 8);
		assert_int_equal(maps__find((__u64)code, &found[i], path[i], PATH_MAX, buffer,
					    sizeof(buffer)),
				 0);
	}
	host__answer_by(NULL);
	assert_string_equal(path[0], path[1]);
	assert_true(found[0].inode == found[1].inode && found[0].offset == found[1].offset);
	assert_int_equal(found[0].device, found[1].device);
}

static void count_function(void *context, const char *name, const struct definition *definition)
{
	++*(size_t *)context;
}

static void count_slot(void *context, const char *name, __u64 *slot, bool is_lazy)
{
	++*(size_t *)context;
}

static void test_objects(void **state)
{
	static const char *const names[] = { "qsort", "strlen", "getenv", "dlsym" };
	size_t n_functions = 0, n_slots = 0;
	struct definition found;
	struct object_span span;

	assert_ptr_equal(objects__first(), objects__own());
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		print_message("%s\n", names[i]);
		assert_true(objects__find_next(names[i], &found));
		assert_true(objects__span((__u64)found.address, &span));
		assert_true(span.start <= (__u64)found.address && (__u64)found.address < span.end);
	}
	assert_true(objects__find_next("qsort", &found));
	assert_ptr_equal(found.address, dlsym(RTLD_NEXT, "qsort"));
	object__each_function(found.object, count_function, &n_functions);
	object__each_slot(found.object, NULL, count_slot, &n_slots);
	assert_true(n_functions > 1000 && n_slots > 5);
	assert_false(object__is_symbolic(found.object));
	assert_false(objects__find_function("no function has this name", &found));
	assert_false(objects__is_preceded("qsort"));
	assert_non_null(objects__find("environ"));
	assert_null(objects__find("qsort"));
	/* The C library exports functions, so that its hash table says where the others end. ASan has a qsort() of its own. */
	assert_true(objects__find_next("gnu_get_libc_version", &found));
	assert_true(object__imports(found.object, "__tls_get_addr"));
	assert_false(object__imports(found.object, "no function has this name"));
	assert_false(objects__span(8, &span));
}

static void test_memory(void **state)
{
	char text[] = "12345678", copy[sizeof(text)];

	assert_true(memory__read((__u64)text, copy, sizeof(copy)));
	assert_string_equal(text, copy);
	assert_false(memory__read(8, copy, sizeof(copy)));
	assert_int_equal(memory__read_some(8, copy, 1), -EFAULT);
}

static int n_reads;

static long count_reads(long number, const long arguments[6])
{
	n_reads += number == __NR_process_vm_readv;
	return host__ask_kernel(number, arguments);
}

/* The kernel is asked once for each page, and again when something was unmapped. */
static void test_kept_memory(void **state)
{
	__u64 *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u64 value = 0;

	assert_true(page != MAP_FAILED);
	page[1] = 7;
	page[2] = 8;
	n_reads = 0;
	host__answer_by(count_reads);
	assert_true(memory__read_kept((__u64)&page[1], &value));
	assert_int_equal(value, 7);
	assert_true(memory__read_kept((__u64)&page[2], &value));
	assert_int_equal(value, 8);
	assert_int_equal(n_reads, 1);
	/* It may be in two pages. */
	assert_true(memory__read_kept((__u64)&page[1] + 1, &value));
	assert_int_equal(value, 8ULL << 56);
	assert_int_equal(n_reads, 2);
	assert_false(memory__read_kept(8, &value));
	assert_int_equal(inside_munmap(page, 4096), 0);
	assert_false(memory__read_kept((__u64)&page[1], &value));
	host__answer_by(NULL);
}

static void test_copied_stack(void **state)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u64 *words = (__u64 *)(pages + 4096) - 100, value = 0;
	struct stack_copy copy = { 0 };

	assert_true(pages != MAP_FAILED && !munmap(pages + 4096, 4096));
	for (int i = 0; i < 100; i++)
		words[i] = i;
	n_reads = 0;
	host__answer_by(count_reads);
	for (int i = 0; i < 100; i++) {
		assert_true(stack_copy__load(&copy, (__u64)&words[i], &value));
		assert_int_equal(value, i);
	}
	/* The second copy ends with the page. */
	assert_int_equal(n_reads, 2);
	assert_false(stack_copy__load(&copy, (__u64)&words[100], &value));
	assert_false(stack_copy__load(&copy, (__u64)words + 4, &value));
	assert_false(stack_copy__load(&copy, 8, &value));
	host__answer_by(NULL);
	munmap(pages, 4096);
}

static struct stack_range range_of(__u64 sp)
{
	struct stack_range range;
	char buffer[256];

	stack__range(sp, (__u64)pthread_self(), &range, buffer, sizeof(buffer));
	return range;
}

static void *range_of_thread(void *out)
{
	*(struct stack_range *)out = range_of((__u64)__builtin_frame_address(0));
	return NULL;
}

static void test_stacks(void **state)
{
	char *stack =
		mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u64 sp = (__u64)__builtin_frame_address(0);
	struct stack_range range = range_of(sp), again;
	pthread_t thread;

	assert_true(range.start <= sp && sp < range.end && range.own_end == range.end);
	/* Above what the thread has there, the C library has its own. */
	assert_int_equal(pthread_create(&thread, NULL, range_of_thread, &range), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(range.own_end > range.start && range.own_end < range.end);
	/* Another stack may be in the same mapping as what is beside it. */
	assert_true(stack != MAP_FAILED);
	range = range_of((__u64)stack + 4096);
	assert_true(range.start <= (__u64)stack && range.end >= (__u64)stack + 3 * 4096);
	assert_int_equal(range.own_end, 0);
	n_reads = 0;
	host__answer_by(count_mapped);
	again = range_of((__u64)stack + 4096 + 8);
	host__answer_by(NULL);
	assert_memory_equal(&range, &again, sizeof(range));
	munmap(stack, 3 * 4096);
	range = range_of(8);
	assert_int_equal(range.end, 0);
	/* Without room of the caller's. */
	stack__range(sp, (__u64)pthread_self(), &range, NULL, 0);
	assert_true(range.start <= sp && sp < range.end);
}

/* A kernel that tells the path only where there is room for all of it, as Linux 6.11 does. */
static long too_long(long number, const long arguments[6])
{
	static int n;

	if (number != __NR_ioctl)
		return host__ask_kernel(number, arguments);
	return n++ % 2 ? -ENOTTY : -ENAMETOOLONG;
}

static void test_long_path(void **state)
{
	char path[4] = "", buffer[256];
	struct mapping found;

	host__answer_by(too_long);
	assert_int_equal(maps__find((__u64)dlsym(RTLD_DEFAULT, "qsort"), &found, path, sizeof(path),
				    buffer, sizeof(buffer)),
			 0);
	host__answer_by(NULL);
	assert_int_equal(strlen(path), 3);
	assert_true(found.inode);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_scripts),
		cmocka_unit_test(test_directory),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_filters_that_are_none),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_kept_memory),
		cmocka_unit_test(test_copied_stack),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_long_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
